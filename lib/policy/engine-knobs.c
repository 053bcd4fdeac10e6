/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/engine-state.h"

#include <assert.h>
#include <math.h>

/* Who would have a knob now, and with which value. */
struct choice {
	uint32_t rule; /* NONE: nobody, the baseline */
	bool fires;    /* that rule is ready and turns on with this change */
	bool pinned;
	uint64_t value;
};

enum lane_id engine_lane_of(const struct engine *en, const struct rule *r)
{
	return en->mode == ENGINE_ENFORCE && en->policies[r->policy].def->mode == POLICY_ENFORCE
		       ? LANE_ENFORCE
		       : LANE_OBSERVE;
}

/* The lane that pins and states are about. */
static enum lane_id main_lane(const struct engine *en)
{
	return en->mode == ENGINE_ENFORCE ? LANE_ENFORCE : LANE_OBSERVE;
}

static uint64_t smallest_fraction(const struct engine_limits *limits)
{
	uint64_t min = MAX_OF(limits->high_fraction_min, HIGH_FRACTION_MIN);

	/* lists of all CPUs together hold at most a zone's managed pages / fraction */
	if (limits->max_parked_share > 0 && limits->max_parked_share < 1)
		min = MAX_OF(min, (uint64_t)ceil(1 / limits->max_parked_share));
	return MIN_OF(min, HIGH_FRACTION_MAX);
}

static uint64_t limited(const struct knob *k, uint64_t value, const struct engine_input *in)
{
	if (k->id.kind == KNOB_PCP_ENABLED)
		return value && (unsigned)k->order > in->limits.order_max ? 0 : value;
	/* 0 is the kernel's own sizing, which no limit of ours makes smaller */
	return value == 0 ? 0 : MAX_OF(value, smallest_fraction(&in->limits));
}

static uint64_t rule_value(const struct rule *r)
{
	return r->def->kind == RULE_ORDER ? 1 : r->value;
}

static bool order_over_limit(const struct knob *k, const struct engine_input *in)
{
	return k->id.kind == KNOB_PCP_ENABLED && (unsigned)k->order > in->limits.order_max;
}

static struct choice choose(const struct engine *en, const struct knob *k, enum lane_id lane,
			    const struct engine_input *in)
{
	struct choice c = {.rule = NONE, .value = k->baseline};
	/* what takes a change back does not wait for, or make room for, a new one */
	bool no_new = k->lane[lane].leave == CAUSE_GUARD;

	if (lane != main_lane(en))
		c.value = k->lane[LANE_ENFORCE].value;
	if (k->pinned && lane == main_lane(en)) {
		c.pinned = true;
		c.value = order_over_limit(k, in) ? k->baseline : limited(k, k->pin_value, in);
		return c;
	}
	if (order_over_limit(k, in))
		return c;
	for (uint32_t i = 0; i < k->nr_rules; i++) {
		const struct rule *r = &en->rules[k->rules[i]];
		bool mine = engine_lane_of(en, r) == lane;

		/* an enforced rule that has the knob is a fact for the observing lane */
		if (!mine && lane == LANE_ENFORCE)
			continue;
		if (!rule_asks(r) && !(mine && r->ready && !no_new))
			continue;
		c.rule = k->rules[i];
		c.fires = !rule_asks(r);
		c.value = limited(k, rule_value(r), in);
		return c;
	}
	return c;
}

static enum decision_cause cause_of(const struct engine *en, const struct knob *k,
				    const struct lane *l, const struct choice *c,
				    const struct engine_input *in)
{
	if (c->pinned || l->pinned)
		return CAUSE_PIN;
	if (l->ours && limited(k, l->value, in) != l->value)
		return CAUSE_LIMIT;
	if (l->leave == CAUSE_GUARD || (l->leave != CAUSE_RULE && !c->fires))
		return l->leave;
	if (c->rule != NONE)
		return CAUSE_RULE;
	if (l->holder != NONE && rule_asks(&en->rules[l->holder]))
		return CAUSE_LIMIT;
	return CAUSE_RELEASE;
}

static bool beats(const struct engine *en, uint32_t a, uint32_t b)
{
	const struct rule *ra = &en->rules[a], *rb = &en->rules[b];

	return a != b && policy_rule_beats(en->policies[ra->policy].def, ra->def,
					   en->policies[rb->policy].def, rb->def);
}

/* What act and the operator have to say about a change now; NULL: nothing. */
static const char *not_writable(const struct engine *en, const struct knob *k,
				const struct engine_input *in, uint64_t *until_usec)
{
	if (in->paused)
		return "paused";
	if (en->mode != ENGINE_ENFORCE)
		return NULL;
	if (!k->known)
		return "its file cannot be read";
	if (!k->controllable)
		return "it is not for us to set";
	if (k->report == ENGINE_REPORT_FOREIGN)
		return "somebody else wrote it";
	if (k->report == ENGINE_REPORT_PENDING)
		return "a write is under way";
	if (en->now_usec < k->not_before_usec) {
		*until_usec = k->not_before_usec;
		return "the limit on writes";
	}
	return NULL;
}

static const char *must_wait(const struct engine *en, uint32_t ki, enum lane_id lane,
			     const struct choice *c, enum decision_cause cause,
			     const struct engine_input *in, uint64_t *until_usec)
{
	const struct knob *k = &en->knobs[ki];
	const struct lane *l = &k->lane[lane];
	uint32_t who = c->rule != NONE ? c->rule : l->holder;
	const char *why;

	*until_usec = USEC_INFINITY;
	why = not_writable(en, k, in, until_usec);
	if (why && (lane == LANE_ENFORCE || in->paused))
		return why;
	if (cause == CAUSE_GUARD || cause == CAUSE_PIN || cause == CAUSE_LIMIT)
		return NULL;
	if (en->now_usec < l->hard_until_usec) {
		*until_usec = l->hard_until_usec;
		return "MinHold= of the daemon";
	}
	if (en->now_usec < l->soft_until_usec &&
	    (c->rule == NONE || l->soft_rule == NONE || !beats(en, c->rule, l->soft_rule))) {
		*until_usec = l->soft_until_usec;
		return "MinHold= of the rule";
	}
	if (lane == LANE_ENFORCE && who != NONE &&
	    engine_guards_elsewhere(en, en->rules[who].policy, ki))
		return "the policy's guard is watching another change";
	return NULL;
}

/* How large a list may get at this value, for comparing. */
static uint64_t room_at(const struct engine *en, const struct snapshot *s, uint64_t fraction)
{
	if (fraction == 0 && s->pcp_autotune != 0)
		fraction = HIGH_FRACTION_MIN;
	if (!en->sizing_known)
		return fraction ? HIGH_FRACTION_MAX / fraction : 0;
	return pcp_highsize(&en->sizing, fraction);
}

static enum engine_drain drain_after(const struct engine *en, const struct knob *k, uint32_t whose,
				     uint64_t from, uint64_t to, const struct engine_input *in)
{
	if (whose == NONE || k->id.kind != KNOB_HIGH_FRACTION ||
	    room_at(en, in->snapshot, to) >= room_at(en, in->snapshot, from))
		return ENGINE_DRAIN_NONE;
	switch (en->rules[whose].def->drain) {
	case POLICY_DRAIN_TRIM:
		return in->drain.trim ? ENGINE_DRAIN_TRIM : ENGINE_DRAIN_NONE;
	case POLICY_DRAIN_SQUEEZE:
		return in->drain.squeeze ? ENGINE_DRAIN_SQUEEZE : ENGINE_DRAIN_NONE;
	case POLICY_DRAIN_NO:
		break;
	}
	return ENGINE_DRAIN_NONE;
}

static struct decision *decision_add(struct engine *en)
{
	struct decision *d;

	assert(en->nr_decisions < en->decisions_room);
	d = &en->decisions[en->nr_decisions++];
	*d = (struct decision){.policy = "", .rule = ""};
	return d;
}

static void decision_sign(const struct engine *en, struct decision *d, uint32_t rule)
{
	if (rule == NONE)
		return;
	d->policy = en->policies[en->rules[rule].policy].def->name;
	d->rule = en->rules[rule].def->name;
}

static void sentence(const struct engine *en, const struct lane *l, const struct choice *c,
		     struct decision *d)
{
	uint32_t old = l->holder;
	char *buf = d->reason;
	size_t size = sizeof(d->reason);

	switch (d->cause) {
	case CAUSE_RULE:
		if (c->rule == old && old != NONE)
			(void)snprintf(buf, size, "%s/%s: Value=, or a limit on it, is another now",
				       d->policy, d->rule);
		else
			engine_reason(en, &en->rules[c->rule], false, buf, size);
		break;
	case CAUSE_RELEASE:
		if (old != NONE)
			engine_reason(en, &en->rules[old], true, buf, size);
		else
			(void)snprintf(buf, size, "no rule asks for the value it has");
		break;
	case CAUSE_GUARD:
		(void)snprintf(buf, size, "%s: the guard tripped, the old value comes back",
			       d->policy);
		break;
	case CAUSE_BLIND:
		(void)snprintf(buf, size, "%s/%s: what would release it has been unknown too long",
			       d->policy, d->rule);
		break;
	case CAUSE_ASLEEP:
		if (old != NONE)
			(void)snprintf(buf, size, "%s: %s", d->policy,
				       en->policies[en->rules[old].policy].match.why);
		else
			(void)snprintf(buf, size, "the rule that had it is gone");
		break;
	case CAUSE_PIN:
		(void)snprintf(buf, size, c->pinned ? "pinned" : "no longer pinned");
		break;
	case CAUSE_LIMIT:
		(void)snprintf(buf, size, "a limit stands above what was asked for");
		break;
	case CAUSE_REPEAT:
		(void)snprintf(buf, size, "it does not have the value that was decided");
		break;
	case _DECISION_CAUSE_MAX:
		break;
	}
}

static enum rule_state lane_state(const struct engine *en, const struct knob *k, enum lane_id lane,
				  const struct engine_input *in)
{
	const struct lane *l = &k->lane[lane];
	bool locked = false, blind = false, arming = false;

	if (lane == LANE_ENFORCE && k->report == ENGINE_REPORT_FOREIGN)
		return RULE_FOREIGN;
	if (lane == LANE_ENFORCE && k->report == ENGINE_REPORT_FAILED)
		return RULE_FAILED;
	if (in->paused)
		return RULE_PAUSED;
	if (k->pinned && lane == main_lane(en))
		return RULE_PINNED;
	if (l->waits)
		return RULE_HELD;
	if (l->holder != NONE && rule_asks(&en->rules[l->holder]))
		return en->rules[l->holder].state;
	for (uint32_t i = 0; i < k->nr_rules; i++) {
		const struct rule *r = &en->rules[k->rules[i]];

		if (engine_lane_of(en, r) != lane)
			continue;
		locked |= r->state == RULE_LOCKED_OUT;
		blind |= r->state == RULE_BLIND;
		arming |= r->state == RULE_ARMING;
	}
	return locked ? RULE_LOCKED_OUT : blind ? RULE_BLIND : arming ? RULE_ARMING : RULE_OFF;
}

/* The guards of a knob, after its value changed for `c`. */
static void guards_follow(struct engine *en, uint32_t ki, const struct choice *c,
			  enum decision_cause cause, bool changed)
{
	const struct rule *r = c->rule == NONE || c->pinned ? NULL : &en->rules[c->rule];
	bool watch = r && r->guard != NONE && changed && cause != CAUSE_GUARD;
	bool judging = false;

	for (uint32_t i = 0; i < en->nr_guards; i++) {
		struct guard *g = &en->guards[i];

		if (g->knob != ki)
			continue;
		if (g->state == GUARD_TRIPPED)
			engine_guard_judge(en, g);
		else if (watch && i == r->guard)
			engine_guard_watch(en, g);
		else if (changed)
			engine_guard_drop(g);
		judging |= g->state == GUARD_JUDGING;
	}
	if (changed && en->knobs[ki].lane[LANE_ENFORCE].ours && !judging)
		engine_values_freeze(en, ki);
}

static void lane_settle(struct engine *en, uint32_t ki, enum lane_id lane, const struct choice *c)
{
	struct lane *l = &en->knobs[ki].lane[lane];

	l->holder = c->rule;
	l->pinned = c->pinned;
	l->ours = c->rule != NONE || c->pinned;
	l->value = c->value;
	l->leave = CAUSE_RULE;
	l->waits = NULL;
}

static void lane_hold(struct engine *en, struct lane *l, uint32_t whose,
		      const struct engine_input *in)
{
	l->hard_until_usec = en->now_usec + in->limits.min_hold_usec;
	l->soft_rule = whose;
	l->soft_until_usec = whose == NONE ? 0 : en->now_usec + en->rules[whose].def->min_hold_usec;
}

static void change(struct engine *en, uint32_t ki, enum lane_id lane, const struct choice *c,
		   enum decision_cause cause, const struct engine_input *in)
{
	struct knob *k = &en->knobs[ki];
	struct lane *l = &k->lane[lane];
	uint32_t whose = c->pinned ? NONE : c->rule != NONE ? c->rule : l->holder;
	struct decision *d = decision_add(en);

	d->kind = DECISION_VALUE;
	d->cause = cause;
	d->write = lane == LANE_ENFORCE;
	d->knob = k->id;
	d->value = c->value;
	d->old_value = l->value;
	d->to_baseline = c->rule == NONE && !c->pinned;
	d->drain = drain_after(en, k, whose, l->value, c->value, in);
	d->was = k->state;
	/* a guard's decision is signed by the policy that is taken back */
	decision_sign(en, d, cause == CAUSE_GUARD && l->holder != NONE ? l->holder : whose);
	sentence(en, l, c, d);

	lane_hold(en, l, whose, in);
	if (c->fires) {
		en->rules[c->rule].fired++;
		engine_rule_event(en, &en->rules[c->rule], RULE_EVENT_FIRE);
	}
	lane_settle(en, ki, lane, c);
	if (lane == LANE_ENFORCE)
		guards_follow(en, ki, c, cause, true);
	k->mismatch_usec = USEC_INFINITY;
	d->state = lane_state(en, k, lane, in);
}

/* Rules that are ready and beaten turn on all the same: they ask, and lose. */
static void fire_losers(struct engine *en, const struct knob *k, enum lane_id lane)
{
	for (uint32_t i = 0; i < k->nr_rules; i++) {
		struct rule *r = &en->rules[k->rules[i]];

		if (!r->ready || rule_asks(r) || engine_lane_of(en, r) != lane)
			continue;
		r->fired++;
		engine_rule_event(en, r, RULE_EVENT_FIRE);
	}
}

static void repeat(struct engine *en, uint32_t ki, const struct engine_input *in)
{
	struct knob *k = &en->knobs[ki];
	struct lane *l = &k->lane[LANE_ENFORCE];
	uint64_t wait = MAX_OF(in->limits.min_hold_usec, USEC_PER_SEC), until;
	struct decision *d;

	if (!l->ours || !k->known || k->report != ENGINE_REPORT_NONE || k->current == l->value) {
		k->mismatch_usec = USEC_INFINITY;
		return;
	}
	if (k->mismatch_usec == USEC_INFINITY)
		k->mismatch_usec = en->now_usec;
	if (usec_since(en->now_usec, k->mismatch_usec) < wait || not_writable(en, k, in, &until))
		return;
	k->mismatch_usec = en->now_usec;
	l->hard_until_usec = en->now_usec + in->limits.min_hold_usec;
	d = decision_add(en);
	*d = (struct decision){
		.kind = DECISION_VALUE,
		.cause = CAUSE_REPEAT,
		.write = true,
		.knob = k->id,
		.value = l->value,
		.old_value = k->current,
		.policy = "",
		.rule = "",
		.was = k->state,
		.state = k->state,
	};
	decision_sign(en, d, l->holder);
	sentence(en, l, &(struct choice){.rule = l->holder}, d);
}

/* Has the observing lane nothing of its own to say: an enforced rule or a pin has the knob? */
static bool only_follows(const struct engine *en, const struct knob *k, const struct choice *c)
{
	if (en->mode != ENGINE_ENFORCE)
		return false;
	if (c->rule == NONE && !k->lane[LANE_OBSERVE].ours)
		return true;
	return k->pinned ||
	       (c->rule != NONE && engine_lane_of(en, &en->rules[c->rule]) != LANE_OBSERVE);
}

static void lane_follow(struct engine *en, struct knob *k)
{
	struct lane *l = &k->lane[LANE_OBSERVE];

	l->holder = NONE;
	l->ours = l->pinned = false;
	l->value = k->lane[LANE_ENFORCE].value;
	l->leave = CAUSE_RULE;
	l->waits = NULL;
	fire_losers(en, k, LANE_OBSERVE);
}

static void lane_step(struct engine *en, uint32_t ki, enum lane_id lane, bool fires,
		      const struct engine_input *in)
{
	struct knob *k = &en->knobs[ki];
	struct lane *l = &k->lane[lane];
	bool taken_back = l->leave == CAUSE_GUARD;
	struct choice c = choose(en, k, lane, in);
	enum decision_cause cause;

	if (c.fires != fires)
		return;
	if (lane == LANE_OBSERVE && only_follows(en, k, &c)) {
		lane_follow(en, k);
		return;
	}
	l->waits = NULL;
	if (c.value != l->value) {
		cause = cause_of(en, k, l, &c, in);
		l->waits = must_wait(en, ki, lane, &c, cause, in, &l->waits_until_usec);
		l->wants = c.rule;
		if (l->waits)
			return;
		change(en, ki, lane, &c, cause, in);
	} else {
		lane_settle(en, ki, lane, &c);
		if (lane == LANE_ENFORCE && taken_back)
			guards_follow(en, ki, &c, CAUSE_GUARD, false);
	}
	if (!taken_back)
		fire_losers(en, k, lane);
}

static void finish_state(struct engine *en, struct knob *k, const struct engine_input *in)
{
	enum rule_state state = lane_state(en, k, main_lane(en), in);

	if (state == k->state)
		return;
	assert(rule_state_change_legal(k->state, state));
	k->state = state;
	k->since_usec = en->now_usec;
}

void engine_knobs_step(struct engine *en, const struct engine_input *in)
{
	enum lane_id first = en->mode == ENGINE_ENFORCE ? LANE_ENFORCE : LANE_OBSERVE;

	for (enum lane_id lane = first; lane < _LANE_MAX; lane++) {
		/* first what gives back, so that a change elsewhere does not make it wait */
		for (uint32_t i = 0; i < en->nr_knobs; i++)
			lane_step(en, i, lane, false, in);
		for (uint32_t i = 0; i < en->nr_knobs; i++)
			lane_step(en, i, lane, true, in);
		for (uint32_t i = 0; lane == LANE_ENFORCE && i < en->nr_knobs; i++)
			repeat(en, i, in);
	}
	for (uint32_t i = 0; i < en->nr_knobs; i++)
		finish_state(en, &en->knobs[i], in);
}

static const char *trim_waits(const struct engine *en, const struct rule *r,
			      const struct engine_input *in, bool taken)
{
	if (in->paused)
		return "paused";
	if (r->def->squeeze ? !in->drain.squeeze : !in->drain.trim)
		return "this drain is not available here";
	if (in->drain.running || (taken && engine_lane_of(en, r) == LANE_ENFORCE))
		return "a drain is under way";
	if (en->now_usec < in->drain.not_before_usec)
		return "the pause between automatic drains";
	return NULL;
}

static void trim_fire(struct engine *en, struct rule *r)
{
	struct decision *d = decision_add(en);

	d->kind = DECISION_DRAIN;
	d->cause = CAUSE_RULE;
	d->write = engine_lane_of(en, r) == LANE_ENFORCE;
	d->drain = r->def->squeeze ? ENGINE_DRAIN_SQUEEZE : ENGINE_DRAIN_TRIM;
	d->was = r->state;
	decision_sign(en, d, (uint32_t)(r - en->rules));
	engine_reason(en, r, false, d->reason, sizeof(d->reason));
	r->fired++;
	r->cooldown_until_usec = en->now_usec + r->def->cooldown_usec;
	engine_rule_event(en, r, RULE_EVENT_FIRE);
	engine_rule_event(en, r, RULE_EVENT_DRAINED);
	d->state = r->state;
}

void engine_trims_step(struct engine *en, const struct engine_input *in)
{
	bool taken = false;

	for (size_t i = 0; i < en->nr_decisions; i++)
		taken |= en->decisions[i].write && en->decisions[i].drain != ENGINE_DRAIN_NONE;
	for (uint32_t i = 0; i < en->nr_rules; i++) {
		struct rule *r = &en->rules[i];

		if (r->knob != NONE || !r->ready)
			continue;
		r->waits = trim_waits(en, r, in, taken);
		if (r->waits)
			continue;
		taken |= engine_lane_of(en, r) == LANE_ENFORCE;
		trim_fire(en, r);
	}
}

static const struct engine_knob_input *input_of(const struct engine_input *in, struct knob_id id)
{
	for (size_t i = 0; i < in->nr_knobs; i++)
		if (knob_id_eq(in->knobs[i].id, id))
			return &in->knobs[i];
	return NULL;
}

/* Somebody else has the knob: whatever we did to it is over. */
static void let_go(struct engine *en, uint32_t ki)
{
	struct lane *l = &en->knobs[ki].lane[LANE_ENFORCE];

	l->holder = NONE;
	l->ours = l->pinned = false;
	l->leave = CAUSE_RULE;
	for (uint32_t i = 0; i < en->nr_guards; i++)
		if (en->guards[i].knob == ki)
			engine_guard_drop(&en->guards[i]);
}

static void first_sight(struct engine *en, uint32_t ki, const struct engine_input *in)
{
	struct knob *k = &en->knobs[ki];
	struct lane *l = &k->lane[LANE_ENFORCE];

	/* a value kept from before: rules get their time to ask for it again */
	if (!k->known || k->current == k->baseline || en->mode != ENGINE_ENFORCE)
		return;
	l->ours = true;
	l->value = k->current;
	l->leave = CAUSE_ASLEEP;
	l->hard_until_usec = en->now_usec + in->limits.min_hold_usec;
}

static void knob_take(struct engine *en, uint32_t ki, const struct engine_input *in)
{
	struct knob *k = &en->knobs[ki];
	const struct engine_knob_input *ki_in = input_of(in, k->id);

	k->known = ki_in && ki_in->known;
	k->report = ki_in ? ki_in->report : ENGINE_REPORT_NONE;
	k->controllable = ki_in && ki_in->controllable;
	k->not_before_usec = ki_in ? ki_in->not_before_usec : 0;
	(void)snprintf(k->why, sizeof(k->why), "%s", ki_in && ki_in->why ? ki_in->why : "");
	if (k->known) {
		k->current = ki_in->current;
		k->baseline = ki_in->baseline;
	}
	if (k->pinned && en->now_usec >= k->pin_until_usec)
		k->pinned = false;
	if (!en->started)
		first_sight(en, ki, in);
	if (k->report == ENGINE_REPORT_FOREIGN)
		let_go(en, ki);
	if (!k->known)
		return;
	if (!k->lane[LANE_ENFORCE].ours && k->report != ENGINE_REPORT_PENDING &&
	    k->report != ENGINE_REPORT_FAILED)
		k->lane[LANE_ENFORCE].value = k->current;
	if (!k->lane[LANE_OBSERVE].ours)
		k->lane[LANE_OBSERVE].value =
			en->mode == ENGINE_ENFORCE ? k->lane[LANE_ENFORCE].value : k->current;
}

void engine_knobs_take(struct engine *en, const struct engine_input *in)
{
	for (uint32_t i = 0; i < en->nr_knobs; i++)
		knob_take(en, i, in);
}
