/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Carries out the engine's decisions: the instance lock, the actor and at most one drain, and a
 * message for each thing that happens to them. The only part of the daemon that calls lib/act.
 */
#pragma once

#include "act/drain.h"
#include "base/log.h"
#include "config.h"
#include "policy/engine.h"

#define KNOBS_MAX RECORD_KNOBS_MAX
/* However often policies ask: an automatic drain wakes every CPU of the machine. */
#define AUTOMATIC_DRAIN_PAUSE_USEC (10 * USEC_PER_MINUTE)

/* Who wants to know what happens, besides the log. Called on the loop's thread. */
struct acting_listener {
	void (*on_event)(void *user, const struct actor_event *ev);
	void (*on_drain)(void *user, const struct drain_report *r, const char *reason);
	void *user;
};

/* A drain by hand has ended. */
typedef void (*acting_drain_over)(void *user, const struct drain_report *r);

struct acting {
	const struct log *log;
	struct act_env env;
	struct instance_lock lock;
	struct actor *actor; /* NULL: only observing, nothing can be written */
	bool for_a_while;    /* the actor is there for a request by hand only */
	struct drain *drain;
	uint64_t drains_begun; /* tells one drain from the next */
	struct acting_listener listener;
	bool drain_blocked;             /* a pass hangs right now */
	bool drain_told;                /* its end was told, its hung pass is still out there */
	enum engine_drain after_change; /* to do once `after_knob` has its value */
	struct knob_id after_knob;
	char after_reason[DECISION_REASON_MAX];
	char drain_reason[DECISION_REASON_MAX];
	uint64_t no_drain_before_usec;
	acting_drain_over drain_over; /* of a drain by hand; NULL */
	void *drain_user;
};

/*
 * Takes the lock and opens the actor, which recovers what an earlier run left. `root` and `log`
 * must outlive it. Errors as lock_take() and actor_open().
 */
int acting_open(struct acting *a, const struct sysroot *root, const struct snapshot *s,
		const struct config *config, const struct log *log, struct act_time now,
		struct error *e) _must_check_;
/* For observing: no lock, no actor; decisions are only told. */
void acting_observe_only(struct acting *a, const struct sysroot *root, const struct snapshot *s,
			 const struct log *log);
/* After a reload of the configuration. */
void acting_configure(struct acting *a, const struct config *config);
void acting_close(struct acting *a, struct act_time now);

/* What the engine must know of each knob and of drains. Fills `knobs` (KNOBS_MAX). */
size_t acting_engine_input(const struct acting *a, const struct snapshot *s,
			   struct engine_knob_input *knobs, struct engine_drain_input *drain);

/* Looks for foreign writes in what was just read. */
void acting_observe(struct acting *a, const struct snapshot *s, struct act_time now);

/* Tells each decision, and carries out those that are to be written. */
void acting_apply(struct acting *a, const struct snapshot *s, const struct decision *decisions,
		  size_t n, struct act_time now);

/* Takes in finished writes and passes and tells their outcome. Call it whenever a descriptor is
 * readable, when acting_next_usec() has come, and on each tick. */
void acting_dispatch(struct acting *a, struct act_time now);
uint64_t acting_next_usec(const struct acting *a);

/* Puts every knob back and lets nothing be set until acting_resume(): the kill switches. */
void acting_take_hands_off(struct acting *a, struct act_time now);
void acting_resume(struct acting *a);

/*
 * A drain by hand, beside the limits that hold for policies. `over` is called once, on the loop's
 * thread. -EBUSY: one is under way; otherwise as drain_start().
 */
int acting_drain(struct acting *a, const struct drain_options *o, struct act_time now,
		 acting_drain_over over, void *user, struct error *e) _must_check_;

/* For a daemon that only observes and holds the lock: an actor for requests by hand. */
int acting_open_for_a_while(struct acting *a, const struct actor_options *o, struct act_time now,
			    struct error *e) _must_check_;
void acting_close_for_a_while(struct acting *a);

/* While paused nothing new is set, and nothing that was refused is tried again. */
void acting_pause(struct acting *a, bool paused, struct act_time now);

/* Begins to put everything back (`restore`), and to end a drain that runs. */
void acting_stop(struct acting *a, bool restore, struct act_time now);
/* Is there nothing left to wait for? */
bool acting_stopped(const struct acting *a, bool restore);
