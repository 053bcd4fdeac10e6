/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/engine-state.h"

#include <assert.h>
#include <math.h>

void engine_rule_event(struct engine *en, struct rule *r, enum rule_event event)
{
	int next = rule_next(r->state, event);

	assert(next >= 0);
	r->state = (enum rule_state)next;
	r->since_usec = en->now_usec;
	r->off_since_usec = USEC_INFINITY;
	/* a release that flickers between true and unknown is blind too: only false ends that */
	if (!rule_asks(r))
		r->unknown_usec = USEC_INFINITY;
	r->ready = false;
	if (r->state != RULE_ARMING)
		r->on_since_usec = USEC_INFINITY;
}

bool engine_asleep(const struct engine *en, const struct rule *r)
{
	return en->policies[r->policy].match.holds != KLEENE_TRUE;
}

struct guard *engine_guard_at(struct engine *en, uint32_t policy, uint32_t knob)
{
	for (uint32_t i = 0; i < en->nr_guards; i++)
		if (en->guards[i].policy == policy && en->guards[i].knob == knob)
			return &en->guards[i];
	return NULL;
}

/* The first of the rules of a guard; they lie together, and all have the same knob. */
static struct rule *guard_rule_next(struct engine *en, const struct guard *g, uint32_t *it)
{
	const struct knob *k = &en->knobs[g->knob];

	while (*it < k->nr_rules) {
		struct rule *r = &en->rules[k->rules[(*it)++]];

		if (r->policy == g->policy)
			return r;
	}
	return NULL;
}

static void guard_settle(struct guard *g, enum guard_state state)
{
	g->state = state;
	g->unknown_usec = USEC_INFINITY;
}

bool engine_guards_elsewhere(const struct engine *en, uint32_t policy, uint32_t knob)
{
	for (uint32_t i = 0; i < en->nr_guards; i++) {
		const struct guard *g = &en->guards[i];

		if (g->policy == policy && g->knob != knob &&
		    (g->state == GUARD_WATCHING || g->state == GUARD_TRIPPED))
			return true;
	}
	return false;
}

static void guard_blame(struct guard *g)
{
	if (g->level < ENGINE_LEVEL_MAX)
		g->level++;
}

void engine_guard_watch(struct engine *en, struct guard *g)
{
	/* judging for so long that the next change has come: what was not cleared counts */
	if (g->state == GUARD_JUDGING && !g->persisted)
		guard_blame(g);
	guard_settle(g, GUARD_WATCHING);
	g->until_usec = en->now_usec + en->policies[g->policy].def->guard.within_usec;
}

void engine_guard_drop(struct guard *g)
{
	if (g->state == GUARD_WATCHING || g->state == GUARD_TRIPPED)
		guard_settle(g, GUARD_IDLE);
}

void engine_guard_judge(struct engine *en, struct guard *g)
{
	guard_settle(g, GUARD_JUDGING);
	g->until_usec = en->now_usec + en->policies[g->policy].def->guard.within_usec;
}

static uint64_t lockout_of(const struct engine *en, const struct guard *g)
{
	uint64_t usec = en->policies[g->policy].def->guard.lockout_usec;

	for (unsigned i = 0; i < g->level && usec < USEC_PER_DAY; i++)
		usec *= 2;
	return MIN_OF(usec, USEC_PER_DAY);
}

static void guard_trip(struct engine *en, struct guard *g)
{
	struct rule *r;

	guard_settle(g, GUARD_TRIPPED);
	g->trips++;
	g->locked_until_usec = en->now_usec + lockout_of(en, g);
	g->clean_usec = g->locked_until_usec;
	g->persisted = false;
	for (uint32_t it = 0; (r = guard_rule_next(en, g, &it));)
		if (r->state != RULE_LOCKED_OUT)
			engine_rule_event(en, r, RULE_EVENT_TRIP);
	en->knobs[g->knob].lane[LANE_ENFORCE].leave = CAUSE_GUARD;
}

/* Nobody can say whether the change does harm: as good as a release that cannot be known. */
static void guard_blind(struct engine *en, struct guard *g)
{
	struct rule *r;

	guard_settle(g, GUARD_IDLE);
	for (uint32_t it = 0; (r = guard_rule_next(en, g, &it));)
		if (rule_asks(r))
			engine_rule_event(en, r, RULE_EVENT_BLINDED);
	en->knobs[g->knob].lane[LANE_ENFORCE].leave = CAUSE_BLIND;
}

static void guard_watching(struct engine *en, struct guard *g)
{
	const struct policy *p = en->policies[g->policy].def;

	if (g->trip == KLEENE_TRUE) {
		guard_trip(en, g);
	} else if (g->trip == KLEENE_FALSE) {
		g->unknown_usec = USEC_INFINITY;
		if (en->now_usec >= g->until_usec)
			guard_settle(g, GUARD_IDLE);
	} else if (g->unknown_usec == USEC_INFINITY) {
		g->unknown_usec = en->now_usec;
	} else if (usec_since(en->now_usec, g->unknown_usec) >= p->unknown_for_usec) {
		guard_blind(en, g);
	}
}

/* The old value is back. A condition that goes away with the change was the change's doing. */
static void guard_judging(struct engine *en, struct guard *g)
{
	if (g->trip == KLEENE_FALSE) {
		guard_blame(g);
		guard_settle(g, GUARD_IDLE);
		return;
	}
	if (g->trip == KLEENE_TRUE)
		g->persisted = true;
	if (en->now_usec < g->until_usec)
		return;
	if (!g->persisted)
		guard_blame(g);
	guard_settle(g, GUARD_IDLE);
}

static void guard_step(struct engine *en, struct guard *g)
{
	struct knob *k = &en->knobs[g->knob];
	struct expr_env env = engine_env(en, g->knob);

	g->trip = expr_test(en->policies[g->policy].def->guard.trip, &env);
	if (g->state == GUARD_WATCHING)
		guard_watching(en, g);
	else if (g->state == GUARD_JUDGING)
		guard_judging(en, g);
	while (g->level > 0 && usec_since(en->now_usec, g->clean_usec) >= USEC_PER_DAY) {
		g->level--;
		g->clean_usec += USEC_PER_DAY;
	}
	/* before() follows the present again once nothing of ours is in place or in question */
	if (!k->lane[LANE_ENFORCE].ours && g->state == GUARD_IDLE)
		k->frozen = false;
}

void engine_guards_step(struct engine *en)
{
	for (uint32_t i = 0; i < en->nr_guards; i++)
		guard_step(en, &en->guards[i]);
}

/* Would this order's blocks find room on the lists, and do the limits allow it? */
static const char *order_refused(const struct engine *en, const struct knob *k,
				 const struct engine_input *in)
{
	double fits;

	if (!k->controllable)
		return "this order is not for us to set";
	if ((unsigned)k->order > in->limits.order_max)
		return "the order is above OrderMax=";
	if (!en->fits_known ||
	    !signal_read(&en->fits, in->snapshot, (unsigned)k->order, &fits, NULL))
		return "whether the order fits the lists is unknown";
	if (fits < 1)
		return "a block of this order does not fit the lists";
	return NULL;
}

/* What stands against a rule that has held long enough, but for the knob; NULL: nothing. */
static const char *refused(struct engine *en, struct rule *r, const struct engine_input *in)
{
	struct expr_env env = engine_env(en, engine_hand_of(en, r));
	const struct guard *g = r->guard == NONE ? NULL : &en->guards[r->guard];

	if (r->knob == NONE)
		return NULL;
	if (r->def->kind == RULE_HIGH_FRACTION) {
		r->value_known = policy_fraction(r->def, &env, &r->value) == 0;
		if (!r->value_known)
			return "Value= is unknown";
	} else {
		const char *why = order_refused(en, &en->knobs[r->knob], in);

		if (why)
			return why;
	}
	if (g && g->trip == KLEENE_UNKNOWN)
		return "the guard is unknown";
	if (g && g->trip == KLEENE_TRUE)
		return "the guard's condition is true already";
	return NULL;
}

static void step_waiting(struct engine *en, struct rule *r, const struct engine_input *in,
			 const struct expr_env *env)
{
	r->ready = false;
	r->waits = NULL;
	if (expr_test(r->def->on, env) != KLEENE_TRUE) {
		if (r->state == RULE_ARMING)
			engine_rule_event(en, r, RULE_EVENT_TRIGGER_LOST);
		r->on_since_usec = USEC_INFINITY;
		return;
	}
	if (r->state == RULE_OFF) {
		engine_rule_event(en, r, RULE_EVENT_TRIGGER);
		r->on_since_usec = en->now_usec;
	}
	if (usec_since(en->now_usec, r->on_since_usec) < r->def->on_usec)
		return;
	r->waits = refused(en, r, in);
	r->ready = !r->waits;
}

static enum kleene release_test(const struct rule *r, const struct expr_env *env)
{
	enum kleene k;

	if (r->def->off)
		return expr_test(r->def->off, env);
	k = expr_test(r->def->on, env);
	return k == KLEENE_UNKNOWN ? k : k == KLEENE_TRUE ? KLEENE_FALSE : KLEENE_TRUE;
}

static void rule_leaves(struct engine *en, struct rule *r, enum rule_event event,
			enum decision_cause cause)
{
	struct lane *l = &en->knobs[r->knob].lane[engine_lane_of(en, r)];

	engine_rule_event(en, r, event);
	if (l->holder == (uint32_t)(r - en->rules))
		l->leave = cause;
}

static void step_asking(struct engine *en, struct rule *r, const struct expr_env *env)
{
	enum kleene off = release_test(r, env);

	if (off == KLEENE_TRUE) {
		if (r->state == RULE_ON) {
			engine_rule_event(en, r, RULE_EVENT_RELEASE);
			r->off_since_usec = en->now_usec;
		}
		if (usec_since(en->now_usec, r->off_since_usec) >= r->def->off_usec)
			rule_leaves(en, r, RULE_EVENT_RELEASED, CAUSE_RELEASE);
		return;
	}
	if (r->state == RULE_RELEASING)
		engine_rule_event(en, r, RULE_EVENT_RELEASE_LOST);
	if (off == KLEENE_FALSE)
		r->unknown_usec = USEC_INFINITY;
	else if (r->unknown_usec == USEC_INFINITY)
		r->unknown_usec = en->now_usec;
	if (r->unknown_usec != USEC_INFINITY &&
	    usec_since(en->now_usec, r->unknown_usec) >=
		    en->policies[r->policy].def->unknown_for_usec)
		rule_leaves(en, r, RULE_EVENT_BLINDED, CAUSE_BLIND);
}

static void step_blind(struct engine *en, struct rule *r, const struct expr_env *env)
{
	if (release_test(r, env) == KLEENE_UNKNOWN)
		return;
	if (r->guard != NONE && en->guards[r->guard].trip == KLEENE_UNKNOWN)
		return;
	engine_rule_event(en, r, RULE_EVENT_SEES);
}

static void step_asleep(struct engine *en, struct rule *r)
{
	r->ready = false;
	r->waits = NULL;
	if (rule_asks(r) && r->knob != NONE)
		rule_leaves(en, r, RULE_EVENT_ASLEEP, CAUSE_ASLEEP);
	else if (r->state == RULE_ARMING || r->state == RULE_BLIND)
		engine_rule_event(en, r, RULE_EVENT_ASLEEP);
}

static void recompute_value(struct rule *r, const struct expr_env *env)
{
	uint64_t value;

	if (r->knob != NONE && r->def->kind == RULE_HIGH_FRACTION &&
	    policy_fraction(r->def, env, &value) == 0)
		r->value = value;
}

static void rule_step(struct engine *en, struct rule *r, const struct engine_input *in)
{
	struct expr_env env = engine_env(en, engine_hand_of(en, r));

	if (r->state == RULE_LOCKED_OUT && en->now_usec >= en->guards[r->guard].locked_until_usec)
		engine_rule_event(en, r, RULE_EVENT_LOCKOUT_OVER);
	if (r->state == RULE_HELD && en->now_usec >= r->cooldown_until_usec)
		engine_rule_event(en, r, RULE_EVENT_COOLDOWN_OVER);
	if (engine_asleep(en, r)) {
		step_asleep(en, r);
		return;
	}
	if (r->state == RULE_OFF || r->state == RULE_ARMING) {
		step_waiting(en, r, in, &env);
	} else if (rule_asks(r)) {
		if (in->facts_changed)
			recompute_value(r, &env);
		step_asking(en, r, &env);
	} else if (r->state == RULE_BLIND) {
		step_blind(en, r, &env);
	}
}

void engine_rules_step(struct engine *en, const struct engine_input *in)
{
	for (uint32_t i = 0; i < en->nr_rules; i++)
		rule_step(en, &en->rules[i], in);
}
