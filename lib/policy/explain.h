/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Why a knob has the value it has: every rule that could have it, best first, with every condition,
 * every signal, and what is still missing. Plain data to walk; explain_render() makes text of it.
 */
#pragma once

#include "policy/engine.h"
#include "policy/policy.h"

struct explain_term {
	char *text; /* "zone.free_ratio < 5%" */
	bool comparison;
	double left, right; /* NaN: unknown */
	struct dimension left_dimension, right_dimension;
	enum kleene holds;
};

struct explain_condition {
	const char *key;  /* "Enable", "When", "Disable", "Until", "Trip" */
	const char *text; /* as written; NULL: the rule has no such condition */
	enum kleene holds;
	uint64_t needs_usec;   /* without a break; 0: acts at once */
	uint64_t held_usec;    /* true for so long */
	uint64_t missing_usec; /* what is left of needs_usec; 0 when it does not hold at all */
	struct explain_term *terms;
	size_t nr_terms;
};

enum explain_standing {
	EXPLAIN_HAS,   /* the knob has this rule's value */
	EXPLAIN_LOSES, /* asks, and a better rule or a pin has the knob */
	EXPLAIN_WAITS, /* would have it, and must wait: `waits` */
	EXPLAIN_IDLE,  /* does not ask */
};
const char *explain_standing_name(enum explain_standing s); /* "has the knob" */

struct explain_rule {
	const char *policy, *rule, *file;
	unsigned line;
	int priority;
	bool observe, asleep;
	const char *asleep_why; /* the first fact that does not hold; "" */
	enum rule_state state;
	uint64_t in_state_usec; /* USEC_INFINITY: since the engine is there */
	enum explain_standing standing;
	const char *waits; /* what it waits for; "" */
	bool value_known;
	uint64_t value; /* what it asks, or would ask, for */
	struct explain_condition on, off, guard;
	bool guard_watching;
	uint64_t lockout_usec; /* what is left of a lockout */
	unsigned lockout_level;
	uint64_t trips;
};

struct explain_signal {
	char *name; /* "pcp.fits", "rate(vmstat.compact_stall)" */
	struct dimension dimension;
	bool function;   /* rate() and the like, not a signal itself */
	double value;    /* NaN: unknown */
	const char *why; /* unknown: why; "" otherwise */
};

struct explanation {
	bool is_trims; /* of the trim rules; no knob */
	struct engine_knob_view knob;
	uint64_t now_usec;
	bool current_known;
	uint64_t current, baseline;
	uint64_t pin_value, pin_left_usec; /* state pinned; USEC_INFINITY: for ever */
	struct explain_rule *rules;        /* best first */
	size_t nr_rules;
	struct explain_signal *signals; /* all that the rules look at, each once */
	size_t nr_signals;
};

/*
 * Explains `knob` (NULL: the trim rules) as of the last tick; `s` is the snapshot of that tick.
 * -ENOENT: no such knob here; -ENOMEM. Strings without a comment of their own live as long as the
 * engine's policies.
 */
int engine_explain(const struct engine *en, const struct snapshot *s, const struct knob_id *knob,
		   struct explanation **ret) _must_check_;
struct explanation *explanation_free(struct explanation *x);

static inline void explanation_freep(struct explanation **x)
{
	*x = explanation_free(*x);
}

/* Lines for a person. Check t->failed. */
void explain_render(const struct explanation *x, uint64_t page_bytes, struct text *t);
