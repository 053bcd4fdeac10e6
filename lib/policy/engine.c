/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/engine-state.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

#define PMD_ORDER_USUAL 9U

struct engine_limits engine_limits_default(unsigned pmd_order)
{
	return (struct engine_limits){
		.high_fraction_min = HIGH_FRACTION_MIN,
		.max_parked_share = 0.125,
		.order_max = (pmd_order ? pmd_order : PMD_ORDER_USUAL) - 1,
		.min_hold_usec = USEC_PER_MINUTE,
	};
}

/* making one */

static void knob_init(struct knob *k, struct knob_id id, bool controllable)
{
	*k = (struct knob){
		.id = id,
		.order = id.kind == KNOB_PCP_ENABLED ? (int)id.order : -1,
		.controllable = controllable,
		.mismatch_usec = USEC_INFINITY,
	};
	for (enum lane_id lane = 0; lane < _LANE_MAX; lane++) {
		k->lane[lane].holder = k->lane[lane].soft_rule = NONE;
		k->lane[lane].leave = CAUSE_RULE;
	}
}

static int make_knobs(struct engine *en, const struct snapshot *s)
{
	uint32_t n = 0;

	en->knobs = calloc(s->mthp.nr_sizes + 2, sizeof(*en->knobs));
	if (!en->knobs)
		return -ENOMEM;
	if (s->has_high_fraction)
		knob_init(&en->knobs[n++], (struct knob_id){.kind = KNOB_HIGH_FRACTION}, true);
	for (uint32_t i = 0; i < s->mthp.nr_sizes; i++)
		if (s->mthp.size[i].controllable)
			knob_init(&en->knobs[n++],
				  (struct knob_id){KNOB_PCP_ENABLED, s->mthp.size[i].order}, true);
	en->nr_knobs = n;
	en->nr_hands = n + 1;
	en->hands = calloc(en->nr_hands, sizeof(*en->hands));
	if (!en->hands)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		en->hands[i].order = en->knobs[i].order;
	en->hands[n].order = -1;
	return 0;
}

/* In one policy a section for the exact size stands in place of [Order *]. */
static bool has_exact(const struct policy *p, unsigned order)
{
	for (size_t i = 0; i < p->nr_rules; i++)
		if (p->rules[i].kind == RULE_ORDER && !p->rules[i].any_order &&
		    p->rules[i].order == order)
			return true;
	return false;
}

static bool applies(const struct policy *p, const struct policy_rule *d, const struct knob *k)
{
	switch (d->kind) {
	case RULE_HIGH_FRACTION:
		return k->id.kind == KNOB_HIGH_FRACTION;
	case RULE_ORDER:
		if (k->id.kind != KNOB_PCP_ENABLED)
			return false;
		return d->any_order ? !has_exact(p, k->id.order) : d->order == k->id.order;
	case RULE_TRIM:
	case _RULE_KIND_MAX:
		break;
	}
	return false;
}

static uint32_t guard_for(struct engine *en, uint32_t policy, uint32_t knob)
{
	struct guard *g = engine_guard_at(en, policy, knob);

	if (!en->policies[policy].def->guard.trip)
		return NONE;
	if (!g) {
		g = &en->guards[en->nr_guards++];
		*g = (struct guard){
			.policy = policy,
			.knob = knob,
			.unknown_usec = USEC_INFINITY,
			.trip = KLEENE_UNKNOWN,
		};
	}
	return (uint32_t)(g - en->guards);
}

static void rule_init(struct engine *en, const struct policy_rule *d, uint32_t policy,
		      uint32_t knob)
{
	en->rules[en->nr_rules++] = (struct rule){
		.def = d,
		.policy = policy,
		.knob = knob,
		.guard = knob == NONE ? NONE : guard_for(en, policy, knob),
		.on_since_usec = USEC_INFINITY,
		.off_since_usec = USEC_INFINITY,
		.unknown_usec = USEC_INFINITY,
	};
}

static int make_rules(struct engine *en)
{
	size_t room = 0;

	for (uint32_t p = 0; p < en->nr_policies; p++)
		room += en->policies[p].def->nr_rules * ((size_t)en->nr_knobs + 1);
	en->rules = calloc(room + 1, sizeof(*en->rules));
	en->guards = calloc((size_t)en->nr_policies * en->nr_knobs + 1, sizeof(*en->guards));
	en->knob_rules = calloc(room + 1, sizeof(*en->knob_rules));
	if (!en->rules || !en->guards || !en->knob_rules)
		return -ENOMEM;
	for (uint32_t p = 0; p < en->nr_policies; p++) {
		const struct policy *def = en->policies[p].def;

		for (size_t i = 0; i < def->nr_rules; i++) {
			if (def->rules[i].kind == RULE_TRIM)
				rule_init(en, &def->rules[i], p, NONE);
			for (uint32_t k = 0; k < en->nr_knobs; k++)
				if (applies(def, &def->rules[i], &en->knobs[k]))
					rule_init(en, &def->rules[i], p, k);
		}
	}
	return 0;
}

static bool rule_beats(const struct engine *en, uint32_t a, uint32_t b)
{
	const struct rule *ra = &en->rules[a], *rb = &en->rules[b];

	return policy_rule_beats(en->policies[ra->policy].def, ra->def,
				 en->policies[rb->policy].def, rb->def);
}

/* Each knob's rules, best first. By insertion: a rule of a set is nearly in place already. */
static void sort_rules(struct engine *en)
{
	uint32_t *next = en->knob_rules;

	for (uint32_t k = 0; k < en->nr_knobs; k++) {
		struct knob *knob = &en->knobs[k];

		knob->rules = next;
		for (uint32_t i = 0; i < en->nr_rules; i++) {
			uint32_t at = knob->nr_rules;

			if (en->rules[i].knob != k)
				continue;
			for (; at > 0 && rule_beats(en, i, knob->rules[at - 1]); at--)
				knob->rules[at] = knob->rules[at - 1];
			knob->rules[at] = i;
			knob->nr_rules++;
		}
		next += knob->nr_rules;
	}
}

static int make_policies(struct engine *en)
{
	en->policies = calloc(en->set->nr + 1, sizeof(*en->policies));
	if (!en->policies)
		return -ENOMEM;
	en->nr_policies = (uint32_t)en->set->nr;
	for (uint32_t i = 0; i < en->nr_policies; i++)
		en->policies[i].def = en->set->policies[i];
	return 0;
}

static void match_all(struct engine *en)
{
	struct expr_env env = {
		.slots = en->slots,
		.series = en->series,
		.sizing = en->sizing_known ? &en->sizing : NULL,
	};

	for (uint32_t i = 0; i < en->nr_policies; i++)
		policy_match_eval(en->policies[i].def, &en->facts, &env, &en->policies[i].match);
}

static int make(struct engine *en, const struct snapshot *s)
{
	int r;

	r = make_policies(en);
	if (r == 0)
		r = make_knobs(en, s);
	if (r == 0)
		r = make_rules(en);
	if (r == 0)
		r = engine_values_alloc(en);
	if (r < 0)
		return r;
	sort_rules(en);
	en->decisions_room = (size_t)en->nr_knobs * 3 + en->nr_rules;
	en->decisions = calloc(en->decisions_room + 1, sizeof(*en->decisions));
	if (!en->decisions)
		return -ENOMEM;
	en->fits_known = signal_resolve("pcp.fits", s->page_bytes, &en->fits) == 0;
	expr_table_read(&en->set->table, s, en->slots, NULL);
	en->sizing_known = pcp_sizing_largest(s, &en->sizing);
	match_all(en);
	return 0;
}

int engine_new(struct engine **ret, const struct policy_set *set, const struct machine_facts *facts,
	       const struct snapshot *snapshot, struct error *e)
{
	_cleanup_(engine_freep) struct engine *en = calloc(1, sizeof(*en));
	int r = -ENOMEM;

	if (en) {
		en->set = set;
		en->mode = ENGINE_ENFORCE;
		if (facts)
			en->facts = *facts;
		r = make(en, snapshot);
	}
	if (r < 0)
		return error_set(e, r, "no memory for the decision engine and %zu policies",
				 set->nr);
	*ret = TAKE_PTR(en);
	return 0;
}

struct engine *engine_free(struct engine *en)
{
	if (!en)
		return NULL;
	engine_values_free(en);
	free(en->policies);
	free(en->rules);
	free(en->guards);
	free(en->knobs);
	free(en->knob_rules);
	free(en->hands);
	free(en->decisions);
	free(en);
	return NULL;
}

/* one tick */

static bool was_gap(const struct engine *en, const struct engine_input *in)
{
	uint64_t interval = MIN_OF(in->interval_usec, USEC_PER_DAY);
	uint64_t limit = MAX_OF(ENGINE_GAP_USEC, 4 * interval);

	return en->started && usec_since(in->now_usec, en->now_usec) > limit;
}

/* Nobody watched: what has to hold without a break starts again. */
static void forget_times(struct engine *en)
{
	for (uint32_t i = 0; i < en->nr_rules; i++) {
		struct rule *r = &en->rules[i];

		if (r->on_since_usec != USEC_INFINITY)
			r->on_since_usec = en->now_usec;
		if (r->off_since_usec != USEC_INFINITY)
			r->off_since_usec = en->now_usec;
		if (r->unknown_usec != USEC_INFINITY)
			r->unknown_usec = en->now_usec;
	}
	for (uint32_t i = 0; i < en->nr_guards; i++)
		if (en->guards[i].unknown_usec != USEC_INFINITY)
			en->guards[i].unknown_usec = en->now_usec;
}

static void change_mode(struct engine *en, enum engine_mode mode)
{
	if (en->mode == mode)
		return;
	engine_reset(en);
	en->mode = mode;
}

static bool find_active(const struct engine *en)
{
	for (uint32_t i = 0; i < en->nr_rules; i++)
		if (en->rules[i].state == RULE_ARMING || en->rules[i].state == RULE_RELEASING ||
		    en->rules[i].unknown_usec != USEC_INFINITY)
			return true;
	for (uint32_t i = 0; i < en->nr_guards; i++)
		if (en->guards[i].state != GUARD_IDLE)
			return true;
	for (uint32_t i = 0; i < en->nr_knobs; i++)
		if (en->knobs[i].state == RULE_HELD || en->knobs[i].mismatch_usec != USEC_INFINITY)
			return true;
	return false;
}

const struct decision *engine_tick(struct engine *en, const struct engine_input *in, size_t *ret_n)
{
	bool gap = was_gap(en, in);

	en->now_usec = MAX_OF(en->now_usec, in->now_usec);
	en->nr_decisions = 0;
	if (!en->started)
		en->mode = in->mode;
	change_mode(en, in->mode);
	if (gap)
		forget_times(en);
	if (in->facts)
		en->facts = *in->facts;
	engine_knobs_take(en, in);
	engine_values_take(en, in->snapshot, gap);
	if (in->facts_changed || !en->started)
		match_all(en);
	engine_guards_step(en);
	engine_rules_step(en, in);
	engine_knobs_step(en, in);
	engine_trims_step(en, in);
	en->started = true;
	en->active = find_active(en);
	*ret_n = en->nr_decisions;
	return en->decisions;
}

uint32_t engine_sources(const struct engine *en)
{
	/* pcp.fits decides about orders whether or not a policy asks for it */
	uint32_t own = en->nr_knobs > 0 ? SOURCE_BIT(SOURCE_KNOBS) | SOURCE_BIT(SOURCE_ZONEINFO)
					: 0;

	return expr_table_sources(&en->set->table, true) | (en->nr_rules ? own : 0);
}

bool engine_is_active(const struct engine *en)
{
	return en->active;
}

void engine_reset(struct engine *en)
{
	for (uint32_t i = 0; i < en->nr_rules; i++) {
		struct rule *r = &en->rules[i];

		r->on_since_usec = r->off_since_usec = r->unknown_usec = USEC_INFINITY;
		r->ready = false;
		r->waits = NULL;
		if (r->state == RULE_LOCKED_OUT || r->state == RULE_HELD)
			continue;
		r->state = RULE_OFF;
		r->since_usec = en->now_usec;
	}
	for (uint32_t i = 0; i < en->nr_guards; i++)
		if (en->guards[i].state != GUARD_JUDGING)
			engine_guard_drop(&en->guards[i]);
	for (uint32_t i = 0; i < en->nr_knobs; i++) {
		for (enum lane_id lane = 0; lane < _LANE_MAX; lane++) {
			struct lane *l = &en->knobs[i].lane[lane];

			l->holder = NONE;
			l->ours = l->pinned = false;
			l->leave = CAUSE_RULE;
			l->waits = NULL;
		}
		en->knobs[i].mismatch_usec = USEC_INFINITY;
	}
}

int engine_find_knob(const struct engine *en, struct knob_id knob)
{
	for (uint32_t i = 0; i < en->nr_knobs; i++)
		if (knob_id_eq(en->knobs[i].id, knob))
			return (int)i;
	return -ENOENT;
}

int engine_pin(struct engine *en, struct knob_id knob, uint64_t value, uint64_t until_usec)
{
	int k = engine_find_knob(en, knob);

	if (k < 0)
		return k;
	if (!knob_value_valid(knob, value))
		return -ERANGE;
	en->knobs[k].pinned = true;
	en->knobs[k].pin_value = value;
	en->knobs[k].pin_until_usec = until_usec;
	return 0;
}

int engine_unpin(struct engine *en, struct knob_id knob)
{
	int k = engine_find_knob(en, knob);

	if (k < 0 || !en->knobs[k].pinned)
		return -ENOENT;
	en->knobs[k].pinned = false;
	return 0;
}

const char *engine_drain_name(enum engine_drain d)
{
	static const char *const names[] = {
		[ENGINE_DRAIN_NONE] = "no",
		[ENGINE_DRAIN_TRIM] = "trim",
		[ENGINE_DRAIN_SQUEEZE] = "squeeze",
	};
	_Static_assert(ARRAY_SIZE(names) == _ENGINE_DRAIN_MAX, "name every drain");

	return d < _ENGINE_DRAIN_MAX ? names[d] : "";
}

const char *decision_cause_name(enum decision_cause c)
{
	static const char *const names[] = {
		[CAUSE_RULE] = "rule",   [CAUSE_RELEASE] = "release", [CAUSE_GUARD] = "guard",
		[CAUSE_BLIND] = "blind", [CAUSE_ASLEEP] = "asleep",   [CAUSE_PIN] = "pin",
		[CAUSE_LIMIT] = "limit", [CAUSE_REPEAT] = "repeat",
	};
	_Static_assert(ARRAY_SIZE(names) == _DECISION_CAUSE_MAX, "name every cause");

	return c < _DECISION_CAUSE_MAX ? names[c] : "";
}
