/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The running daemon as pcptunectl asks it: methods of org.pcptune1.Manager, on the private socket
 * for root (and below any root but "/"), on the system bus for others, who may read on the private
 * socket where there is no bus.
 */
#pragma once

#include "ctl.h"

#include <systemd/sd-bus.h>

struct client {
	sd_bus *bus;
	const struct ctl *ctl;
	bool is_private; /* on the socket, so there is no broker and no polkit */
};

/*
 * Connects. EXIT_DONE; EXIT_NO_DAEMON: none runs here, or its bus does not answer, and `e` has the
 * sentence. client_close() takes one that was never opened.
 */
int client_open(struct client *c, const struct ctl *ctl, struct error *e) _must_check_;
void client_close(struct client *c);

/*
 * Calls a method of the manager with arguments as in sd_bus_message_append() and waits for the
 * answer, `timeout_usec` at most (0: some seconds, enough for what only reads). Returns an exit
 * code: EXIT_DONE and the answer in *ret (sd_bus_message_unref() it); otherwise `e` is a whole
 * sentence, and EXIT_NO_DAEMON means that nothing was asked.
 */
int client_call(struct client *c, const char *method, uint64_t timeout_usec, sd_bus_message **ret,
		struct error *e, const char *types, ...) _must_check_;

/*
 * One call of a method that reads and answers with strings; the first goes into `into`: "Status",
 * "History" ("u", a number), "Explain" ("s", a knob). Exit codes as client_call().
 */
int client_read(struct client *c, const char *method, struct text *into, struct error *e,
		const char *types, ...) _must_check_;
