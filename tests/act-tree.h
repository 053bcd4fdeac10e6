/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plain directory that stands for a kernel, for the tests of acting, and the ways to make it
 * misbehave. Lists behave as decay_pcp_high() makes them; the rest is as plain files are.
 */
#pragma once

#include "act/drain.h"

#include <pthread.h>
#include <stdatomic.h>

#define TREE_CPUS_MAX 8U
#define TREE_MANAGED  UINT64_C(1000000)
#define TREE_BATCH    UINT64_C(63)
#define TREE_HIGH_MIN UINT64_C(1312) /* at fraction 0 */
#define TREE_FLOOR    (4 * TREE_BATCH)
#define TREE_FRACTION ((struct knob_id){.kind = KNOB_HIGH_FRACTION})
#define TREE_ORDER4   ((struct knob_id){.kind = KNOB_PCP_ENABLED, .order = 4})

struct tree_cpu {
	bool offline;
	uint64_t count, high;
	uint64_t refill; /* has at least so many again after every pass: a busy CPU */
	bool stuck;      /* gives nothing back */
};

struct tree {
	char dir[64];
	struct sysroot root;
	struct act_env env;
	struct tree_cpu cpu[TREE_CPUS_MAX];
	unsigned nr_cpus;
	bool old_kernel;    /* before 6.7: no high_min, passes do nothing */
	bool prints_orders; /* blocks of each order, here of order 4 alone, on the first CPU */
	uint64_t blocks4;

	/* faults; all are off until set */
	atomic_int passes;         /* that came to their end */
	atomic_int calls, kill_at; /* SIGKILL at the kill_at-th point that is passed */
	atomic_int fail_point, fail_with, fail_left;
	const char *fail_rel;   /* only with this file; NULL: any */
	atomic_int block_point; /* a thread that passes it waits for tree_unblock() */
	atomic_bool is_blocked;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	/* called at every point; may change files */
	void (*at_point)(struct tree *t, enum act_point point);
	uint64_t at_value;
};

/* `single`: pcp_allow_high_order in place of pcp_enabled by size. */
void tree_make(struct tree *t, bool single);
void tree_remove(struct tree *t);

void tree_write(const struct tree *t, const char *rel, const char *text);
/* A file's number; UINT64_MAX where there is none. */
uint64_t tree_read(const struct tree *t, const char *rel);
uint64_t tree_fraction(const struct tree *t);
uint64_t tree_parked(const struct tree *t);
void tree_write_zoneinfo(struct tree *t); /* after a change of `cpu` */

void tree_fail(struct tree *t, enum act_point point, int error, int times);
void tree_block(struct tree *t, enum act_point point);
void tree_wait_blocked(struct tree *t);
void tree_unblock(struct tree *t);

/* An actor with these options' limits; fails the test where it cannot be opened. */
struct actor *tree_actor(struct tree *t, struct actor_options o);
/* Until nothing is under way. Fails the test after ten seconds. */
void tree_settle(struct actor *a);
/* The same at a time of the test's own. */
void tree_settle_at(struct actor *a, struct act_time now);
struct act_time tree_time(uint64_t sec);

/* Takes events until one of `kind` comes; fails the test where none does. */
struct actor_event tree_event(struct actor *a, enum actor_event_kind kind);
/* How many events of `kind` wait; takes all. */
unsigned tree_count_events(struct actor *a, enum actor_event_kind kind);
