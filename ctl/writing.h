/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the verbs that write have in common: the lock, the actor, and signals as a descriptor. */
#pragma once

#include "ctl.h"

#include "act/actor.h"

struct writing {
	struct act_env env; /* set before writing_begin() */
	struct instance_lock lock;
	struct actor *actor;
	int stop_fd; /* readable on SIGINT, SIGTERM and SIGHUP */
	/* called for what the actor tells; set before writing_begin(), or NULL */
	void (*on_event)(void *user, const struct actor_event *ev);
	void *user;
};
#define WRITING_NONE ((struct writing){.lock = INSTANCE_LOCK_NONE, .stop_fd = -1})

/*
 * Takes the lock, blocks the signals and opens the actor, which finishes what a killed pcptune left
 * undone. EXIT_DONE, or an exit code with the message printed: while a daemon runs it names it.
 */
int writing_begin(struct writing *w, struct ctl *c, const char *program);
void writing_end(struct writing *w);
