/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's own device messages (NETLINK_KOBJECT_UEVENT, group 1), as text:
 * "online@/devices/system/cpu/cpu1", then KEY=value strings, each with its NUL
 * (lib/kobject_uevent.c). What udev sends on (group 2) looks different and is refused.
 */
#pragma once

#include "base/util.h"

#include <stdbool.h>

/* Longer than the kernel makes them (its environment buffer is 2 KiB). */
#define UEVENT_MAX 8192U

/* Points into the message. */
struct uevent {
	const char *action, *devpath, *subsystem;
};

/* -EBADMSG: no kernel's message, or cut off. On an error *ret is untouched. */
int uevent_parse(const char *message, size_t len, struct uevent *ret) _must_check_;

/* Is it about CPUs, memory blocks or nodes, whatever happened to them? */
bool uevent_is_topology(const struct uevent *u);
