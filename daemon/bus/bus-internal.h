/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "bus.h"

#include "manager-internal.h"

#include <systemd/sd-bus.h>

#define BUS_NAME      "org.pcptune1"
#define BUS_PATH      "/org/pcptune1"
#define BUS_KNOB_PATH "/org/pcptune1/knob"
#define BUS_MANAGER   "org.pcptune1.Manager"
#define BUS_KNOB      "org.pcptune1.Knob"
#define BUS_ERROR     "org.pcptune1.Error."

#define BUS_REL       "run/pcptune/bus"

struct bus_auth;

struct bus {
	struct manager *m;
	sd_bus *system; /* NULL: not connected */
	sd_event_source *retry;
	bool name_told; /* that the name cannot be had */
	struct bus_private *private;
	struct bus_auth *asked; /* questions to polkit without an answer */
	struct state_knob shown[STATE_KNOBS_MAX];
	uint32_t nr_shown;
	bool shown_paused, shown_enforce, shown_drain_blocked;
	uint64_t shown_paused_until;
};

/* Puts the objects on a connection; their slots live as long as it. */
int bus_objects_add(struct bus *b, sd_bus *connection);
/* Emits what changed on one connection. */
void bus_objects_emit(struct bus *b, sd_bus *connection, const char *knob_path);
void bus_objects_emit_manager(struct bus *b, sd_bus *connection);

/*
 * May the sender do this? Runs `run` now or when polkit has said yes; otherwise answers the message
 * with an error. What a message handler returns.
 */
int bus_authorize(struct bus *b, sd_bus_message *message, const char *action,
		  int (*run)(struct bus *b, sd_bus_message *message), sd_bus_error *error);
/* The connection is gone, and with it who asked (NULL: all). */
void bus_auth_forget(struct bus *b, sd_bus *connection);

int bus_private_new(struct bus *b, struct error *e);
struct bus_private *bus_private_free(struct bus_private *p);
/* The user at the other end; false: not a private connection. */
bool bus_private_uid(const struct bus *b, sd_bus *connection, uid_t *ret);
/* Calls `fn` for each connection that is through with its greeting. */
void bus_private_each(struct bus *b, void (*fn)(struct bus *b, sd_bus *connection, void *user),
		      void *user);
