/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the engine remembers from tick to tick. Shared by the files of the engine only. */
#pragma once

#include "policy/engine.h"
#include "policy/policy.h"
#include "policy/window.h"

#define NONE             UINT32_MAX
#define ENGINE_WHY_MAX   96U
#define ENGINE_GAP_USEC  (60 * USEC_PER_SEC) /* without a known interval: longer was not watched */
#define ENGINE_LEVEL_MAX 32U                 /* a second doubled so often is a century */

enum lane_id {
	LANE_ENFORCE, /* what is written */
	LANE_OBSERVE, /* what would be, had the observing policies their way */
	_LANE_MAX,
};

enum guard_state {
	GUARD_IDLE,
	GUARD_WATCHING, /* a change of this policy to this knob is young */
	GUARD_TRIPPED,  /* it tripped; the old value is not back yet */
	GUARD_JUDGING,  /* the old value is back: does the condition go away with the change? */
};

/* One for each policy with a [Guard] and each knob that it has a rule for. */
struct guard {
	uint32_t policy, knob;
	enum guard_state state;
	uint64_t until_usec;   /* watching and judging: not before */
	uint64_t unknown_usec; /* watching: unknown since; USEC_INFINITY: known */
	bool persisted;        /* judging: still true when it was last known */
	uint64_t locked_until_usec;
	uint64_t clean_usec; /* clean days count from here */
	unsigned level;
	uint64_t trips;
	enum kleene trip; /* now */
};

struct rule {
	const struct policy_rule *def;
	uint32_t policy, knob, guard; /* knob NONE: a trim; guard NONE: none */
	enum rule_state state;
	uint64_t since_usec;
	uint64_t on_since_usec, off_since_usec; /* the condition has held since; USEC_INFINITY */
	uint64_t unknown_usec;                  /* the release is unknown since */
	uint64_t cooldown_until_usec;
	uint64_t value;
	bool value_known;
	bool ready;        /* would fire, if the knob may change */
	const char *waits; /* held long enough and yet not ready: why; NULL */
	uint64_t fired;
};

struct lane {
	uint32_t holder;          /* the rule that has the knob; NONE */
	bool pinned;              /* a pin has it */
	bool ours;                /* it has something because of a rule or a pin */
	uint64_t value;           /* decided last; the knob's own while nothing is ours */
	uint64_t hard_until_usec; /* the daemon's MinHold */
	uint64_t soft_until_usec; /* the rule's: does not stop a rule that beats it */
	uint32_t soft_rule;       /* whose that is */
	const char *waits;        /* the rules want something else: why not yet; NULL */
	uint64_t waits_until_usec;
	uint32_t wants;            /* the rule that is waiting; NONE: a release */
	enum decision_cause leave; /* why the holder lost it, until the knob has changed */
};

struct knob {
	struct knob_id id;
	int order; /* -1: not an order */
	struct lane lane[_LANE_MAX];
	uint32_t *rules; /* best first */
	uint32_t nr_rules;
	enum rule_state state;
	uint64_t since_usec;
	bool pinned;
	uint64_t pin_value, pin_until_usec;
	/* from the last input */
	bool known, controllable;
	uint64_t current, baseline, not_before_usec;
	enum engine_report report;
	char why[ENGINE_WHY_MAX];
	uint64_t mismatch_usec; /* has had another value than decided since; USEC_INFINITY */
	bool frozen;            /* before() means the minute before our change */
};

/* What the engine knows of a policy beyond what it says. */
struct policy_state {
	const struct policy *def;
	struct match_result match;
};

/* The values of one hand: varying slots and series, and windows of those in use. */
struct hand {
	int order; /* -1: high_fraction and trims */
	double *slots, *series;
	struct window **windows; /* by series; NULL: not used with this hand */
	double *frozen;          /* by series: before() at the last change */
};

struct engine {
	const struct policy_set *set;
	struct machine_facts facts;
	bool started;
	uint64_t now_usec;
	enum engine_mode mode;
	bool active;

	struct policy_state *policies;
	uint32_t nr_policies;
	struct rule *rules; /* policy by policy, in file order, for each knob */
	uint32_t nr_rules;
	struct guard *guards;
	uint32_t nr_guards;
	struct knob *knobs;
	uint32_t nr_knobs;
	uint32_t *knob_rules; /* what the knobs' lists are parts of */

	double *slots, *series; /* that do not vary */
	struct window **windows;
	struct hand *hands; /* one for each knob, in their order; then one for trims */
	uint32_t nr_hands;
	struct window *window_room;
	struct window_bucket *bucket_room;
	double *value_room;
	struct window **window_ptr_room;

	struct pcp_sizing sizing;
	bool sizing_known;
	struct signal_ref fits; /* pcp.fits of the order at hand */
	bool fits_known;

	struct decision *decisions;
	size_t nr_decisions, decisions_room;
};

/* engine-values.c: the snapshot, and what windows make of it */
int engine_values_alloc(struct engine *en);
void engine_values_free(struct engine *en);
void engine_values_take(struct engine *en, const struct snapshot *s, bool gap);
void engine_values_freeze(struct engine *en, uint32_t knob);
void engine_values_move(struct engine *to, const struct engine *from);
struct expr_env engine_env(const struct engine *en, uint32_t hand);
uint32_t engine_hand_of(const struct engine *en, const struct rule *r);

/* engine-rules.c: one tick of the guards and rules, before any knob is decided */
void engine_guards_step(struct engine *en);
void engine_rules_step(struct engine *en, const struct engine_input *in);
void engine_rule_event(struct engine *en, struct rule *r, enum rule_event event);
void engine_guard_watch(struct engine *en, struct guard *g);
void engine_guard_judge(struct engine *en, struct guard *g);
void engine_guard_drop(struct guard *g);
bool engine_guards_elsewhere(const struct engine *en, uint32_t policy, uint32_t knob);
struct guard *engine_guard_at(struct engine *en, uint32_t policy, uint32_t knob);

/* engine-knobs.c: who gets which knob */
void engine_knobs_take(struct engine *en, const struct engine_input *in);
void engine_knobs_step(struct engine *en, const struct engine_input *in);
void engine_trims_step(struct engine *en, const struct engine_input *in);
enum lane_id engine_lane_of(const struct engine *en, const struct rule *r);
bool engine_asleep(const struct engine *en, const struct rule *r);

/* engine-reason.c: sentences */
void engine_reason(const struct engine *en, const struct rule *r, bool release, char *buf,
		   size_t size);

static inline bool rule_asks(const struct rule *r)
{
	return r->state == RULE_ON || r->state == RULE_RELEASING;
}

/* How long ago, safe for times that are not known. */
static inline uint64_t usec_since(uint64_t now_usec, uint64_t then_usec)
{
	return then_usec < now_usec ? now_usec - then_usec : 0;
}
