/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One pcptune at a time: run/pcptune/lock below the root, held with flock(2).
 *
 * The file names its holder for the message that the second one gets; the truth is the lock, which
 * the kernel drops when the holder dies, whatever the file says. It is never removed: a name that
 * comes and goes would let two hold "the" lock.
 */
#pragma once

#include "act/env.h"

#define RUN_DIR_REL  "run/pcptune"
#define LOCK_REL     RUN_DIR_REL "/lock"
#define INFLIGHT_REL RUN_DIR_REL "/inflight"

/*
 * Opens run/pcptune below the root (O_PATH), and with `create` makes it (0755) and run/ where they
 * are missing. A descriptor, or:
 * -ENOENT: not there (without `create`); -EACCES: not root; -EROFS; -EPERM: belongs to somebody
 * else or others may write to it (then nothing in it can be believed). `e` has the sentence.
 */
int rundir_open(const struct act_env *env, bool create, struct error *e) _must_check_;

struct instance_lock {
	int fd;
};
#define INSTANCE_LOCK_NONE ((struct instance_lock){.fd = -1})

struct lock_holder {
	int64_t pid;         /* 0: unknown */
	char program[32];    /* "pcptuned" */
	uint64_t since_usec; /* CLOCK_REALTIME; 0: unknown */
};

/*
 * Takes the lock for `program` ("pcptuned", "pcptunectl drain"). Both programs hold it while they
 * write. On error *ret is untouched:
 * -EBUSY: somebody holds it, named in `e` and in *holder (may be NULL); otherwise as rundir_open().
 */
int lock_take(struct instance_lock *ret, const struct act_env *env, const char *program,
	      struct act_time now, struct lock_holder *holder, struct error *e) _must_check_;

/* Lets go. Takes INSTANCE_LOCK_NONE. */
void lock_release(struct instance_lock *lock);

/*
 * Who holds the lock now? 1 and *ret: somebody does (a daemon runs, or a tool writes). 0: nobody.
 * A negative errno where it cannot be told: -EACCES for anybody but root, since whoever could open
 * the file could hold it, too.
 */
int lock_query(const struct act_env *env, struct lock_holder *ret);

/*
 * run/pcptune/inflight: every write to a knob holds it, shared, in a descriptor that only the
 * writing thread has. A killed process whose write still hangs in the kernel lets go of the
 * instance lock but not of this: who can take it `alone` knows that no write will come late.
 * A descriptor; -EBUSY: such a write is under way.
 */
int inflight_open(const struct act_env *env, bool alone) _must_check_;
