/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What outlives an engine: over a reload everything that is still the same, over a restart
 * lockouts and pins. And what others may look at. */
#include "policy/engine-state.h"

#include <assert.h>
#include <errno.h>

static uint64_t remaining(uint64_t until_usec, uint64_t now_usec)
{
	if (until_usec == USEC_INFINITY)
		return USEC_INFINITY;
	return until_usec > now_usec ? until_usec - now_usec : 0;
}

static uint64_t from_now(uint64_t now_usec, uint64_t usec)
{
	uint64_t sum;

	return usec == USEC_INFINITY || __builtin_add_overflow(now_usec, usec, &sum) ? USEC_INFINITY
										     : sum;
}

static uint32_t policy_find(const struct engine *en, const char *name)
{
	for (uint32_t i = 0; i < en->nr_policies; i++)
		if (streq(en->policies[i].def->name, name))
			return i;
	return NONE;
}

/* lockouts and pins */

size_t engine_export_lockouts(const struct engine *en, uint64_t now_usec,
			      struct engine_saved_lockout *out, size_t room)
{
	size_t n = 0;

	for (uint32_t i = 0; i < en->nr_guards; i++) {
		const struct guard *g = &en->guards[i];
		struct engine_saved_lockout *o;

		if (g->level == 0 && g->locked_until_usec <= now_usec)
			continue;
		if (n++ >= room)
			continue;
		o = &out[n - 1];
		*o = (struct engine_saved_lockout){
			.knob = en->knobs[g->knob].id,
			.level = g->level,
			.remaining_usec = remaining(g->locked_until_usec, now_usec),
			.clean_usec = usec_since(now_usec, g->clean_usec),
		};
		(void)snprintf(o->policy, sizeof(o->policy), "%s",
			       en->policies[g->policy].def->name);
	}
	return n;
}

size_t engine_export_pins(const struct engine *en, uint64_t now_usec, struct engine_saved_pin *out,
			  size_t room)
{
	size_t n = 0;

	for (uint32_t i = 0; i < en->nr_knobs; i++) {
		const struct knob *k = &en->knobs[i];

		if (!k->pinned || remaining(k->pin_until_usec, now_usec) == 0)
			continue;
		if (n++ >= room)
			continue;
		out[n - 1] = (struct engine_saved_pin){
			.knob = k->id,
			.value = k->pin_value,
			.remaining_usec = remaining(k->pin_until_usec, now_usec),
		};
	}
	return n;
}

static bool name_is(const struct policy *p, const char *saved)
{
	return strncmp(p->name, saved, POLICY_NAME_MAX - 1) == 0;
}

static void lock_out(struct engine *en, const struct guard *g)
{
	const struct knob *k = &en->knobs[g->knob];

	for (uint32_t i = 0; i < k->nr_rules; i++) {
		struct rule *r = &en->rules[k->rules[i]];

		if (r->policy == g->policy && r->state != RULE_LOCKED_OUT)
			engine_rule_event(en, r, RULE_EVENT_TRIP);
	}
}

void engine_import_lockouts(struct engine *en, uint64_t now_usec, uint64_t age_usec,
			    const struct engine_saved_lockout *in, size_t n)
{
	en->now_usec = MAX_OF(en->now_usec, now_usec);
	for (size_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < en->nr_guards; j++) {
			struct guard *g = &en->guards[j];
			uint64_t left = remaining(in[i].remaining_usec, age_usec);

			if (!name_is(en->policies[g->policy].def, in[i].policy) ||
			    !knob_id_eq(en->knobs[g->knob].id, in[i].knob))
				continue;
			g->level = MIN_OF(in[i].level, ENGINE_LEVEL_MAX);
			g->locked_until_usec = now_usec + MIN_OF(left, USEC_PER_DAY);
			g->clean_usec = g->locked_until_usec;
			if (!left)
				g->clean_usec = usec_since(now_usec, in[i].clean_usec + age_usec -
									     in[i].remaining_usec);
			if (left)
				lock_out(en, g);
		}
}

void engine_import_pins(struct engine *en, uint64_t now_usec, uint64_t age_usec,
			const struct engine_saved_pin *in, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t left = in[i].remaining_usec == USEC_INFINITY
					? USEC_INFINITY
					: remaining(in[i].remaining_usec, age_usec);

		if (left)
			(void)engine_pin(en, in[i].knob, in[i].value, from_now(now_usec, left));
	}
}

/* reload */

static uint32_t rule_find(const struct engine *en, const struct engine *like,
			  const struct rule *want)
{
	const struct policy *wp = like->policies[want->policy].def;

	for (uint32_t i = 0; i < en->nr_rules; i++) {
		const struct rule *r = &en->rules[i];
		const struct policy *p = en->policies[r->policy].def;

		if (r->def->fingerprint != want->def->fingerprint || p->mode != wp->mode ||
		    !streq(r->def->section, want->def->section) || !streq(p->name, wp->name) ||
		    (r->knob == NONE) != (want->knob == NONE))
			continue;
		if (r->knob == NONE ||
		    knob_id_eq(en->knobs[r->knob].id, like->knobs[want->knob].id))
			return i;
	}
	return NONE;
}

static void keep_rule(struct engine *to, struct rule *r, const struct engine *from)
{
	uint32_t old = rule_find(from, to, r);
	const struct policy_rule *def = r->def;
	uint32_t policy = r->policy, knob = r->knob, guard = r->guard;

	if (old == NONE)
		return;
	*r = from->rules[old];
	r->def = def;
	r->policy = policy;
	r->knob = knob;
	r->guard = guard;
	if (guard == NONE && r->state == RULE_LOCKED_OUT)
		r->state = RULE_OFF;
}

/* A policy keeps its lockouts however it was changed, and its watch while it has a guard. */
static void keep_guard(struct engine *to, struct guard *g, const struct engine *from)
{
	uint32_t p = policy_find(from, to->policies[g->policy].def->name);
	int k = engine_find_knob(from, to->knobs[g->knob].id);

	if (p == NONE || k < 0)
		return;
	for (uint32_t i = 0; i < from->nr_guards; i++) {
		const struct guard *old = &from->guards[i];
		uint32_t policy = g->policy, knob = g->knob;

		if (old->policy != p || old->knob != (uint32_t)k)
			continue;
		*g = *old;
		g->policy = policy;
		g->knob = knob;
		if (to->now_usec < g->locked_until_usec)
			lock_out(to, g);
		return;
	}
}

static uint32_t moved_rule(const struct engine *to, const struct engine *from, uint32_t rule)
{
	return rule == NONE ? NONE : rule_find(to, from, &from->rules[rule]);
}

static void keep_lane(struct engine *to, struct lane *l, const struct engine *from)
{
	uint32_t holder = l->holder;

	l->holder = moved_rule(to, from, holder);
	l->soft_rule = moved_rule(to, from, l->soft_rule);
	l->waits = NULL;
	l->wants = NONE;
	if (holder != NONE && l->holder == NONE)
		l->leave = CAUSE_ASLEEP;
}

static void keep_knob(struct engine *to, struct knob *k, const struct engine *from)
{
	int i = engine_find_knob(from, k->id);
	uint32_t *rules = k->rules, nr = k->nr_rules;

	if (i < 0)
		return;
	*k = from->knobs[i];
	k->rules = rules;
	k->nr_rules = nr;
	for (enum lane_id lane = 0; lane < _LANE_MAX; lane++)
		keep_lane(to, &k->lane[lane], from);
}

/* A change whose guard is gone is not watched any more; one that tripped still comes back. */
int engine_reload(struct engine **ret, const struct engine *old, const struct policy_set *set,
		  const struct machine_facts *facts, const struct snapshot *snapshot,
		  struct error *e)
{
	_cleanup_(engine_freep) struct engine *en = NULL;
	int r = engine_new(&en, set, facts ? facts : &old->facts, snapshot, e);

	if (r < 0)
		return r;
	en->started = old->started;
	en->now_usec = old->now_usec;
	en->mode = old->mode;
	en->active = old->active;
	for (uint32_t i = 0; i < en->nr_rules; i++)
		keep_rule(en, &en->rules[i], old);
	for (uint32_t i = 0; i < en->nr_knobs; i++)
		keep_knob(en, &en->knobs[i], old);
	for (uint32_t i = 0; i < en->nr_guards; i++)
		keep_guard(en, &en->guards[i], old);
	engine_values_move(en, old);
	*ret = TAKE_PTR(en);
	return 0;
}

/* views */

size_t engine_nr_knobs(const struct engine *en)
{
	return en->nr_knobs;
}

size_t engine_nr_rules(const struct engine *en)
{
	return en->nr_rules;
}

/* The rule that a knob's state is about. */
static uint32_t shown_rule(const struct engine *en, const struct knob *k, enum lane_id lane)
{
	if (k->lane[lane].holder != NONE)
		return k->lane[lane].holder;
	if (k->lane[lane].waits)
		return k->lane[lane].wants;
	for (uint32_t i = 0; i < k->nr_rules; i++) {
		const struct rule *r = &en->rules[k->rules[i]];

		if (r->state == k->state && engine_lane_of(en, r) == lane && r->state != RULE_OFF)
			return k->rules[i];
	}
	return NONE;
}

static uint64_t waits_until(const struct engine *en, const struct knob *k, const struct lane *l,
			    uint32_t rule)
{
	switch (k->state) {
	case RULE_HELD:
		return l->waits_until_usec;
	case RULE_PINNED:
		return k->pin_until_usec;
	case RULE_LOCKED_OUT:
		return rule != NONE && en->rules[rule].guard != NONE
			       ? en->guards[en->rules[rule].guard].locked_until_usec
			       : USEC_INFINITY;
	default:
		return USEC_INFINITY;
	}
}

void engine_knob_view(const struct engine *en, size_t i, struct engine_knob_view *ret)
{
	const struct knob *k = &en->knobs[i];
	enum lane_id lane = en->mode == ENGINE_ENFORCE ? LANE_ENFORCE : LANE_OBSERVE;
	const struct lane *l = &k->lane[lane], *o = &k->lane[LANE_OBSERVE];
	uint32_t rule = shown_rule(en, k, lane);

	*ret = (struct engine_knob_view){
		.id = k->id,
		.state = k->state,
		.since_usec = k->since_usec,
		.wanted = k->lane[LANE_ENFORCE].value,
		.ours = k->lane[LANE_ENFORCE].ours,
		.policy = rule == NONE ? "" : en->policies[en->rules[rule].policy].def->name,
		.rule = rule == NONE ? "" : en->rules[rule].def->name,
		.wait_until_usec = waits_until(en, k, l, rule),
		.why = k->state == RULE_HELD && l->waits ? l->waits : k->why,
		.observed = o->ours,
		.observed_value = o->value,
		.observed_policy = "",
		.observed_rule = "",
	};
	if (o->holder != NONE) {
		ret->observed_policy = en->policies[en->rules[o->holder].policy].def->name;
		ret->observed_rule = en->rules[o->holder].def->name;
	}
}

void engine_rule_view(const struct engine *en, size_t i, struct engine_rule_view *ret)
{
	const struct rule *r = &en->rules[i];
	const struct policy_state *p = &en->policies[r->policy];
	const struct guard *g = r->guard == NONE ? NULL : &en->guards[r->guard];

	*ret = (struct engine_rule_view){
		.policy = p->def->name,
		.rule = r->def->name,
		.is_trim = r->knob == NONE,
		.observe = engine_lane_of(en, r) == LANE_OBSERVE,
		.asleep = engine_asleep(en, r),
		.state = r->state,
		.since_usec = r->since_usec,
		.fired = r->fired,
	};
	if (r->knob != NONE)
		ret->knob = en->knobs[r->knob].id;
	if (g) {
		ret->lockout_until_usec = g->locked_until_usec > en->now_usec ? g->locked_until_usec
									      : 0;
		ret->lockout_level = g->level;
		ret->watched = g->state == GUARD_WATCHING || g->state == GUARD_TRIPPED;
		ret->trips = g->trips;
	}
}
