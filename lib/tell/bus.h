/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names on the control bus, as org.pcptune1(5) documents them. */
#pragma once

#define BUS_NAME              "org.pcptune1"
#define BUS_PATH              "/org/pcptune1"
#define BUS_KNOB_PREFIX       "/org/pcptune1/knob"
#define BUS_MANAGER_INTERFACE "org.pcptune1.Manager"
#define BUS_KNOB_INTERFACE    "org.pcptune1.Knob"

/* Below the root: the private socket, and where the system bus listens. */
#define BUS_DIR_REL       "run/pcptune"
#define BUS_SOCKET        "bus"
#define SYSTEM_BUS_REL    "run/dbus/system_bus_socket"

#define BUS_ACTION_SET    "org.pcptune1.set"
#define BUS_ACTION_DRAIN  "org.pcptune1.drain"
#define BUS_ACTION_RELOAD "org.pcptune1.reload"

#define BUS_ERROR_PREFIX  "org.pcptune1.Error."

/* Behind the prefix. */
enum bus_error {
	BUS_ERROR_NONE,
	BUS_ERROR_FAILED,         /* whatever has no name of its own */
	BUS_ERROR_UNKNOWN_KNOB,   /* no such knob; the text has the nearest */
	BUS_ERROR_INVALID_VALUE,  /* no value of it; the text says which are */
	BUS_ERROR_NOT_AUTHORIZED, /* the caller may not */
	BUS_ERROR_NOT_AVAILABLE,  /* not on this kernel, or not in this mode */
	BUS_ERROR_REFUSED,        /* by the kernel */
	BUS_ERROR_FOREIGN,        /* the knob is somebody else's: adopt it first */
	BUS_ERROR_NOT_FOREIGN,
	BUS_ERROR_NOT_PINNED,
	BUS_ERROR_BUSY,    /* a drain runs, or too many requests wait */
	BUS_ERROR_PENDING, /* taken, but the kernel does not have it yet; it is tried on */
	_BUS_ERROR_MAX,
};

/* "UnknownKnob"; "" for BUS_ERROR_NONE. */
const char *bus_error_name(enum bus_error e);
/* Of a whole name; BUS_ERROR_NONE for one that is not ours. */
enum bus_error bus_error_parse(const char *name);
