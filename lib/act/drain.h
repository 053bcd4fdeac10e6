/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Returning parked pages: trim, squeeze, and the drain that per-order control brings.
 *
 * trim reads /proc/sys/vm/stat_refresh pass after pass: each makes every online CPU give back part
 * of what exceeds high_min (decay_pcp_high(), 6.7 and later). squeeze does the same with the
 * largest fraction in place, so that high_min is the floor of 4 * batch. kernel switches an order's
 * pcp_enabled off and on, upon which the kernel empties every list.
 *
 * A pass waits for every CPU and can hang where no signal ends it. So each runs in a thread of its
 * own, the caller's loop watches, and the actor's thread puts the fraction back on a stop or after
 * DRAIN_PASS_LIMIT_USEC; the hung thread is left with memory and descriptors of its own.
 *
 * As in actor.h there is no loop inside: poll drain_fd() and the actor's, sleep until
 * drain_next_usec(), call actor_dispatch() and then drain_dispatch(). Or call drain_run().
 */
#pragma once

#include "act/actor.h"

#define DRAIN_PASS_LIMIT_USEC (2 * USEC_PER_SEC)
#define DRAIN_MAX_TIME_USEC   (60 * USEC_PER_SEC)
#define DRAIN_ZONES_MAX       64U

enum drain_mode {
	DRAIN_TRIM,
	DRAIN_SQUEEZE,
	DRAIN_KERNEL,
	_DRAIN_MODE_MAX,
};
const char *drain_mode_name(enum drain_mode m);               /* "trim" */
int drain_mode_parse(const char *name, enum drain_mode *ret); /* -EINVAL */

struct drain_options {
	enum drain_mode mode;
	bool fast;         /* first free a few pages on each allowed CPU: one pass then does it */
	bool isolated_too; /* also where CPUs are isolated; passes wake them */
	uint64_t max_time_usec;   /* 0: DRAIN_MAX_TIME_USEC */
	uint64_t pass_limit_usec; /* 0: DRAIN_PASS_LIMIT_USEC */
	const char *reason;       /* for the ledger: "by hand", "policy/rule"; copied */
};

enum drain_state {
	DRAIN_PREPARING, /* the fraction is being raised */
	DRAIN_PASSING,   /* a pass is running */
	DRAIN_PAUSING,   /* between two passes */
	DRAIN_ENDING,    /* the fraction is being put back */
	DRAIN_DONE,
	DRAIN_HUNG, /* done as far as it can be: the fraction is back, the pass has not returned */
};
const char *drain_state_name(enum drain_state s);

enum drain_end {
	DRAIN_END_NOT_YET,
	DRAIN_END_FLOOR,       /* every list is where it can be */
	DRAIN_END_NO_PROGRESS, /* three passes lowered neither count nor high of a list above */
	DRAIN_END_TIME,        /* max_time_usec */
	DRAIN_END_STOPPED,     /* drain_stop() */
	DRAIN_END_BLOCKED,     /* a pass took longer than pass_limit_usec */
	DRAIN_END_FAILED,      /* see `error` */
};
const char *drain_end_name(enum drain_end e);
int drain_end_parse(const char *name, enum drain_end *ret); /* -EINVAL */

struct drain_zone {
	int32_t node;
	char name[ZONE_NAME_MAX];
	uint64_t before, after; /* pages parked, from zoneinfo */
};

/* What the counts show, no more: pages move both ways while a drain runs. */
struct drain_report {
	enum drain_mode mode;
	enum drain_state state;
	enum drain_end end;
	bool blocked;                       /* a pass is hanging right now */
	int error;                          /* 0 or a negative errno */
	uint64_t pages_before, pages_after; /* all zones; pages_after is the newest count */
	uint64_t lists_above; /* lists above where this mode brings them, at the newest count */
	uint32_t passes;
	uint64_t took_usec;     /* from start to end, or to now */
	uint64_t pass_max_usec; /* the longest pass that returned */
	uint32_t nr_zones;
	struct drain_zone zone[DRAIN_ZONES_MAX]; /* populated zones; beyond the 64th not listed */
	char text[sizeof(((struct error *)0)->text)]; /* why it ended so, one sentence */
};

struct drain;

/*
 * Can this mode work here? 0, or with a sentence in `e` that says what would work:
 * -EOPNOTSUPP: this kernel has no such drain (before 6.7 passes do nothing for the local node).
 * -EPERM: CPUs are isolated and isolated_too is not set. `s` needs zoneinfo, knobs and mTHP.
 */
int drain_check(const struct snapshot *s, const struct drain_options *o, struct error *e);

/*
 * Begins. Reads the counts through a sensor of its own. `a` must outlive the drain. Errors as
 * drain_check(), actor_moment_begin() and sensor_new().
 */
int drain_start(struct drain **ret, const struct act_env *env, struct actor *a,
		const struct drain_options *o, struct act_time now, struct error *e) _must_check_;

int drain_fd(const struct drain *d); /* POLLIN: a pass returned; owned by the drain */
uint64_t drain_next_usec(const struct drain *d);
void drain_dispatch(struct drain *d, struct act_time now);
/* Ends as soon as the fraction is back; drain_dispatch() goes on until then. */
void drain_stop(struct drain *d, struct act_time now);
/* The state now. Points into the drain; changes with drain_dispatch(). */
const struct drain_report *drain_report(const struct drain *d);
/* DONE or HUNG: the report is final (HUNG: keep the drain to learn when the pass returns). */
bool drain_over(const struct drain *d);

/*
 * Frees. One that is not over is stopped: the actor puts the fraction back and must be dispatched
 * on. Takes NULL, returns NULL.
 */
struct drain *drain_free(struct drain *d, struct act_time now);

/*
 * For programs without a loop: until drain_over(), stopping early when `stop_fd` (-1: none) is
 * readable. `progress` (may be NULL) is called after every pass. Returns the report's error.
 */
int drain_run(struct drain *d, int stop_fd,
	      void (*progress)(void *user, const struct drain_report *r), void *user);

/* The report for people: what was done, pages before and after by zone, passes and seconds. */
void drain_report_print(const struct drain_report *r, uint64_t page_bytes, struct text *into);
