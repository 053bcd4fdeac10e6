/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The running daemon, asked over its bus: org.pcptune1(5). */
#pragma once

#include "ctl.h"

#include <systemd/sd-bus.h>

struct client {
	sd_bus *bus;
	bool system; /* through the system bus, where polkit decides */
};
#define CLIENT_NONE ((struct client){NULL, false})

/*
 * Connects to the daemon of this root: through run/pcptune/bus, or, for somebody who is not root
 * and wants to change something, through the system bus. 1: connected; 0: no daemon answers there;
 * a negative errno, with a message printed.
 */
int client_open(struct client *cl, struct ctl *c, bool change);
void client_close(struct client *cl);

/* The same for verbs that need a daemon: EXIT_DONE, or EXIT_NO_DAEMON with a message printed. */
int client_need(struct client *cl, struct ctl *c, bool change);

/*
 * Calls a method of org.pcptune1.Manager with arguments as sd_bus_message_append() takes them, and
 * waits for its verified result. EXIT_DONE and *ret (to be unreferenced), or an exit code with the
 * daemon's reason printed.
 */
int client_call(struct client *cl, struct ctl *c, sd_bus_message **ret, const char *method,
		const char *types, ...);

/* --for=TIME as the daemon takes it: microseconds; 0: without end. EXIT_DONE or EXIT_USAGE. */
int client_for(const struct ctl *c, uint64_t *ret_usec);
