/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decision engine: (state, snapshot, time) -> (state, decisions).
 *
 * It does no I/O, has no clock and, after engine_new(), allocates nothing: the same policies,
 * inputs and times give the same decisions, so that a recording can be replayed through it. Times
 * are microseconds of CLOCK_MONOTONIC as the caller read them; a time that lies before the last one
 * counts as the last one.
 *
 * The engine decides what a knob should have; act writes it and reports how that went with the next
 * input. A decision is given once: until the report says otherwise the engine takes it as done.
 */
#pragma once

#include "base/error.h"
#include "policy/rule.h"
#include "sense/snapshot.h"

struct machine_facts; /* policy/policy.h, as struct policy_set */
struct policy_set;

enum engine_mode {
	ENGINE_OBSERVE, /* decide and tell; no decision has `write` */
	ENGINE_ENFORCE,
};

/* Stand above every policy and every pin. */
struct engine_limits {
	uint64_t high_fraction_min; /* smaller fractions (larger lists) are raised to it; 0 stays */
	double max_parked_share;    /* likewise: no fraction below 1 / share */
	unsigned order_max;         /* orders above it are never enabled */
	uint64_t min_hold_usec;     /* no knob changes again sooner, except by a guard or a pin */
};

/* 8, 12.5%, the PMD order - 1 (or 9 where that is unknown: pmd_order 0), 60 s. */
struct engine_limits engine_limits_default(unsigned pmd_order);

/* How the last write of a knob went, and whose it is. */
enum engine_report {
	ENGINE_REPORT_NONE,    /* nothing is in flight, nothing is wrong */
	ENGINE_REPORT_PENDING, /* a write is under way or queued: no further decision meanwhile */
	ENGINE_REPORT_FOREIGN, /* somebody else wrote it: hands off until adopted */
	ENGINE_REPORT_FAILED,  /* the kernel refused; act retries the last decision by itself */
};

struct engine_knob_input {
	struct knob_id id;
	bool known; /* `current` was read; false: the file is not there (now) */
	uint64_t current;
	uint64_t baseline; /* the value before our first write; `current` where there was none */
	bool controllable; /* may be written here; false for orders that are always on */
	enum engine_report report;
	const char *why;          /* for foreign and failed: a few words, or NULL; copied */
	uint64_t not_before_usec; /* no change before (write budgets); 0: any time */
};

/* What act says about drains. */
struct engine_drain_input {
	bool trim, squeeze;  /* works on this kernel and may run by itself (6.7+, none isolated) */
	bool running;        /* one is under way */
	const char *why_not; /* where !trim: why, or NULL */
	uint64_t not_before_usec; /* the pause between automatic drains */
};

struct engine_input {
	uint64_t now_usec;
	const struct snapshot *snapshot;
	enum engine_mode mode;
	bool paused;
	/*
	 * CPUs, nodes, memory, links or processes came or went: [Match] and Value= are redone with
	 * `facts` (NULL: those of before).
	 */
	bool facts_changed;
	const struct machine_facts *facts;
	/* The pause that was meant to lie before this tick; one far longer was not watched. */
	uint64_t interval_usec;
	struct engine_limits limits;
	const struct engine_knob_input *knobs; /* any order; knobs not listed are not there */
	size_t nr_knobs;
	struct engine_drain_input drain;
};

enum engine_drain {
	ENGINE_DRAIN_NONE,
	ENGINE_DRAIN_TRIM,
	ENGINE_DRAIN_SQUEEZE,
	_ENGINE_DRAIN_MAX,
};

enum decision_kind {
	DECISION_VALUE, /* set `knob` to `value`, then do `drain` */
	DECISION_DRAIN, /* a [Trim] rule: do `drain`; no knob */
};

enum decision_cause {
	CAUSE_RULE,    /* a rule turned on, took over, or has a new value after hotplug */
	CAUSE_RELEASE, /* the rule that had it released; maybe another one takes it */
	CAUSE_GUARD,   /* a guard tripped: the old value comes back */
	CAUSE_BLIND,   /* a release stayed unknown */
	CAUSE_ASLEEP,  /* the policy no longer matches or is gone */
	CAUSE_PIN,     /* pinned or unpinned */
	CAUSE_LIMIT,   /* a limit was tightened */
	CAUSE_REPEAT,  /* the same once more: the knob does not have what was decided */
	_DECISION_CAUSE_MAX,
};

#define DECISION_REASON_MAX 256U
#define POLICY_NAME_MAX     64U

struct decision {
	enum decision_kind kind;
	enum decision_cause cause;
	bool write; /* false: only tell (Mode=observe of the policy or of the daemon) */
	struct knob_id knob;
	uint64_t value, old_value;
	bool to_baseline; /* `value` is the baseline: the record's entry may go */
	enum engine_drain drain;
	const char *policy, *rule;  /* whose decision; live as long as the policies. "" for a pin */
	enum rule_state was, state; /* of the knob, or of the trim rule */
	/* "trim-under-pressure/idle: zone.free_ratio 3.1% < 5%, held for 5s" */
	char reason[DECISION_REASON_MAX];
};

struct engine;

/*
 * An engine for the policies of `set` (borrowed: it must outlive the engine and not change).
 * `snapshot` tells which knobs there are ([Order *] means the sizes that are controllable in it)
 * and `facts` what [Match] compares; neither is kept. Everything that a tick needs is allocated
 * here. 0, -ENOMEM.
 */
int engine_new(struct engine **ret, const struct policy_set *set, const struct machine_facts *facts,
	       const struct snapshot *snapshot, struct error *e) _must_check_;
struct engine *engine_free(struct engine *en); /* takes NULL; returns NULL */

static inline void engine_freep(struct engine **en)
{
	*en = engine_free(*en);
}

/*
 * A new engine for changed policies or a changed set of knobs: rules that are the same keep their
 * state, their windows and their lockouts, pins stay, knobs keep what is in place. `old` is only
 * read: on success free it (and then its policy set), on failure go on with it.
 */
int engine_reload(struct engine **ret, const struct engine *old, const struct policy_set *set,
		  const struct machine_facts *facts, const struct snapshot *snapshot,
		  struct error *e) _must_check_;

/*
 * One tick. Returns the decisions (the engine's; valid until the next call of anything here) and
 * their number in *ret_n. Those that give a knob back come first.
 */
const struct decision *engine_tick(struct engine *en, const struct engine_input *in, size_t *ret_n);

/* Which sources of the snapshot the policies need each tick (SOURCE_BIT()s). */
uint32_t engine_sources(const struct engine *en);

/* Something is arming, releasing, watched or held: tick at the active interval. */
bool engine_is_active(const struct engine *en);

/*
 * Pins: above every policy, below the limits. They act at the next tick. `until_usec` is
 * USEC_INFINITY for one that does not expire. -ENOENT: no such knob; -ERANGE: no such value.
 */
int engine_pin(struct engine *en, struct knob_id knob, uint64_t value, uint64_t until_usec);
int engine_unpin(struct engine *en, struct knob_id knob); /* -ENOENT: was not pinned */

/* rollback: every rule starts again from off, lockouts and pins stay. Decides nothing. */
void engine_reset(struct engine *en);

/* What must survive a reload and a restart. Times are what remains, so that any clock serves. */
struct engine_saved_lockout {
	char policy[POLICY_NAME_MAX];
	struct knob_id knob;
	unsigned level;          /* trips that count: the next lockout is Lockout << level */
	uint64_t remaining_usec; /* of the lockout; 0: over */
	uint64_t clean_usec;     /* since it ended: a day halves the next one */
};

struct engine_saved_pin {
	struct knob_id knob;
	uint64_t value;
	uint64_t remaining_usec; /* USEC_INFINITY: for ever */
};

/* Fill up to `room` entries and return how many there are. */
size_t engine_export_lockouts(const struct engine *en, uint64_t now_usec,
			      struct engine_saved_lockout *out, size_t room);
size_t engine_export_pins(const struct engine *en, uint64_t now_usec, struct engine_saved_pin *out,
			  size_t room);

/* After a start; `age_usec` has passed since the export. Unknown policies and knobs are skipped. */
void engine_import_lockouts(struct engine *en, uint64_t now_usec, uint64_t age_usec,
			    const struct engine_saved_lockout *in, size_t n);
void engine_import_pins(struct engine *en, uint64_t now_usec, uint64_t age_usec,
			const struct engine_saved_pin *in, size_t n);

/* What a knob is at, for status and metrics. */
struct engine_knob_view {
	struct knob_id id;
	enum rule_state state;
	uint64_t since_usec;       /* in this state */
	uint64_t wanted;           /* what the engine has decided for it */
	bool ours;                 /* a rule or a pin has it: not at the baseline by our will */
	const char *policy, *rule; /* who has it, or is arming, locked out, blind; "" for nobody */
	uint64_t wait_until_usec;  /* held, locked out, pinned: until when; USEC_INFINITY unknown */
	const char *why;           /* held, foreign, failed: a few words; "" otherwise */
	/* what policies in observe mode would have done */
	bool observed;
	uint64_t observed_value;
	const char *observed_policy, *observed_rule;
};

size_t engine_nr_knobs(const struct engine *en);
void engine_knob_view(const struct engine *en, size_t i, struct engine_knob_view *ret);
int engine_find_knob(const struct engine *en, struct knob_id knob); /* index or -ENOENT */

/* What a rule is at: every rule of every policy, once for each knob it applies to. */
struct engine_rule_view {
	const char *policy, *rule;
	bool is_trim;
	struct knob_id knob;  /* !is_trim */
	bool observe, asleep; /* of its policy: Mode=observe; [Match] does not hold */
	enum rule_state state;
	uint64_t since_usec;
	bool watched;                /* the guard is watching a young change of this knob */
	uint64_t lockout_until_usec; /* 0: none */
	unsigned lockout_level;
	uint64_t fired, trips; /* since engine_new(), kept over reloads */
};

size_t engine_nr_rules(const struct engine *en);
void engine_rule_view(const struct engine *en, size_t i, struct engine_rule_view *ret);

const char *engine_drain_name(enum engine_drain d);     /* "trim" */
const char *decision_cause_name(enum decision_cause c); /* "guard" */
