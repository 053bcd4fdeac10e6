/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread for one system call that may never return.
 *
 * It has memory of its own, shared by count with who started it, and a table of descriptors of its
 * own (unshare(2), CLONE_FILES) with nothing in it but what the call needs. So the starter may end
 * and free everything: a thread that hangs keeps no lock of the process, and writes to no
 * descriptor that has been given away since.
 */
#pragma once

#include "act/env.h"

#include <semaphore.h>
#include <stdatomic.h>

/* First member of a job that calloc() made. */
struct worker {
	atomic_uint refs;
	atomic_bool done; /* release: what run() left in the job may be read */
	struct act_env env;
	struct sysroot root; /* env.root points here: no `path` */
	int notify_fd;       /* eventfd, gets 1 when done */
	int keep_fd;         /* one more descriptor that run() holds until it ends; -1: none */
	bool unshared;
	sem_t started;
	void (*run)(struct worker *w);
};

/*
 * Fills in the struct around `run` and starts it, with two references: the thread's and the
 * caller's. `notify_fd` stays the caller's; `keep_fd` is taken over, on failure too. 0 or a
 * negative errno: then only the caller's reference is left.
 */
int worker_start(struct worker *w, const struct act_env *env, void (*run)(struct worker *w),
		 int notify_fd, int keep_fd);

static inline bool worker_is_done(struct worker *w)
{
	return atomic_load_explicit(&w->done, memory_order_acquire);
}

/* Gives a reference back and frees the job with the last one. NULL is taken; returns NULL. */
void *worker_unref(struct worker *w);
