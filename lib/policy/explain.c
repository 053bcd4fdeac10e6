/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/explain.h"

#include "policy/engine-state.h"

#include <errno.h>
#include <math.h>

const char *explain_standing_name(enum explain_standing s)
{
	switch (s) {
	case EXPLAIN_HAS:
		return "has the knob";
	case EXPLAIN_LOSES:
		return "loses to a better rule";
	case EXPLAIN_WAITS:
		return "waits";
	case EXPLAIN_IDLE:
		break;
	}
	return "does not ask";
}

static void condition_free(struct explain_condition *c)
{
	for (size_t i = 0; i < c->nr_terms; i++)
		free(c->terms[i].text);
	free(c->terms);
}

struct explanation *explanation_free(struct explanation *x)
{
	if (!x)
		return NULL;
	for (size_t i = 0; i < x->nr_rules; i++) {
		condition_free(&x->rules[i].on);
		condition_free(&x->rules[i].off);
		condition_free(&x->rules[i].guard);
	}
	for (size_t i = 0; i < x->nr_signals; i++)
		free(x->signals[i].name);
	free(x->rules);
	free(x->signals);
	free(x);
	return NULL;
}

static int condition_fill(struct explain_condition *c, const char *key, const struct expr *e,
			  const struct expr_env *env)
{
	size_t n = e ? expr_nr_terms(e) : 0;

	c->key = key;
	if (!e)
		return 0;
	c->text = expr_text(e);
	c->holds = expr_test(e, env);
	c->terms = calloc(n + 1, sizeof(*c->terms));
	if (!c->terms)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct expr_term t;

		expr_term_eval(e, i, env, &t);
		c->terms[i] = (struct explain_term){
			.text = strndup(t.text, t.len),
			.comparison = t.comparison,
			.left = t.left,
			.right = t.right,
			.left_dimension = t.left_dimension,
			.right_dimension = t.right_dimension,
			.holds = t.holds,
		};
		c->nr_terms++;
		if (!c->terms[i].text)
			return -ENOMEM;
	}
	return 0;
}

static void condition_time(struct explain_condition *c, uint64_t needs_usec, uint64_t since_usec,
			   uint64_t now_usec)
{
	c->needs_usec = needs_usec;
	if (since_usec == USEC_INFINITY)
		return;
	c->held_usec = usec_since(now_usec, since_usec);
	c->missing_usec = c->held_usec < needs_usec ? needs_usec - c->held_usec : 0;
}

/* signals */

struct collect {
	const struct engine *en;
	struct explanation *x;
	uint32_t hand;
	const char **why, **hand_why; /* by slot */
	uint8_t *seen_slots, *seen_series;
	int error;
};

static struct explain_signal *signal_add(struct collect *c, char *name)
{
	struct explain_signal *more;

	if (!name) {
		c->error = -ENOMEM;
		return NULL;
	}
	more = realloc(c->x->signals, (c->x->nr_signals + 1) * sizeof(*more));
	if (!more) {
		free(name);
		c->error = -ENOMEM;
		return NULL;
	}
	c->x->signals = more;
	more += c->x->nr_signals++;
	*more = (struct explain_signal){.name = name, .value = NAN, .why = ""};
	return more;
}

static void collect_slot(struct collect *c, uint32_t id)
{
	const struct expr_table *t = &c->en->set->table;
	const struct expr_slot *slot = &t->slots[id];
	char name[SIGNAL_NAME_MAX];
	struct explain_signal *s;
	const char *why = slot->varies ? c->hand_why[id] : c->why[id];

	if (c->seen_slots[id])
		return;
	c->seen_slots[id] = 1;
	s = signal_add(c, strdup(signal_name(&slot->ref, t->page_bytes, name, sizeof(name))));
	if (!s)
		return;
	s->dimension = signal_dimension(&slot->ref);
	s->value = slot->varies ? c->en->hands[c->hand].slots[id] : c->en->slots[id];
	if (isnan(s->value))
		s->why = why ? why : "unknown";
}

static void collect(struct collect *c, const struct expr *e);

static void collect_series(struct collect *c, uint32_t id)
{
	const struct expr_series *series = &c->en->set->table.series[id];
	struct explain_signal *s;

	if (c->seen_series[id])
		return;
	c->seen_series[id] = 1;
	s = signal_add(c, strdup(series->text));
	if (!s)
		return;
	s->function = true;
	s->dimension = series->dimension;
	s->value = series->varies ? c->en->hands[c->hand].series[id] : c->en->series[id];
	if (isnan(s->value))
		s->why = "not watched for long enough, or what it is made of is unknown";
	collect(c, series->arg);
}

static void collect(struct collect *c, const struct expr *e)
{
	struct expr_use use;

	if (!e)
		return;
	for (size_t it = 0; c->error == 0 && expr_next_use(e, &it, &use);) {
		if (use.is_series)
			collect_series(c, use.id);
		else
			collect_slot(c, use.id);
	}
}

static int fill_signals(struct collect *c, const struct snapshot *s, const uint32_t *rules,
			size_t n)
{
	const struct expr_table *t = &c->en->set->table;
	_cleanup_(freep) double *room = calloc((size_t)t->nr_slots + 1, sizeof(*room));
	_cleanup_(freep) const char **why = calloc((size_t)t->nr_slots + 1, sizeof(*why));
	_cleanup_(freep) const char **hand_why = calloc((size_t)t->nr_slots + 1, sizeof(*why));
	_cleanup_(freep) uint8_t *slots = calloc((size_t)t->nr_slots + 1, 1);
	_cleanup_(freep) uint8_t *series = calloc((size_t)t->nr_series + 1, 1);

	if (!room || !why || !hand_why || !slots || !series)
		return -ENOMEM;
	expr_table_read(t, s, room, why);
	expr_table_read_hand(t, s, c->en->hands[c->hand].order, room, hand_why);
	c->why = why;
	c->hand_why = hand_why;
	c->seen_slots = slots;
	c->seen_series = series;
	for (size_t i = 0; i < n; i++) {
		const struct rule *r = &c->en->rules[rules[i]];

		collect(c, r->def->on);
		collect(c, r->def->off);
		collect(c, r->def->value);
		if (r->guard != NONE)
			collect(c, c->en->policies[r->policy].def->guard.trip);
	}
	return c->error;
}

/* rules */

static enum explain_standing standing_of(const struct engine *en, const struct rule *r, uint32_t id,
					 const char **ret_waits)
{
	const struct lane *l;

	*ret_waits = r->waits ? r->waits : "";
	if (r->knob == NONE)
		return r->waits ? EXPLAIN_WAITS : EXPLAIN_IDLE;
	l = &en->knobs[r->knob].lane[engine_lane_of(en, r)];
	if (l->waits && l->wants == id) {
		*ret_waits = l->waits;
		return EXPLAIN_WAITS;
	}
	if (l->holder == id && rule_asks(r))
		return EXPLAIN_HAS;
	if (rule_asks(r))
		return EXPLAIN_LOSES;
	return r->waits ? EXPLAIN_WAITS : EXPLAIN_IDLE;
}

static void fill_guard(struct explain_rule *x, const struct engine *en, const struct rule *r)
{
	const struct guard *g = &en->guards[r->guard];

	x->guard_watching = g->state == GUARD_WATCHING;
	if (g->locked_until_usec > en->now_usec)
		x->lockout_usec = g->locked_until_usec - en->now_usec;
	x->lockout_level = g->level;
	x->trips = g->trips;
	x->guard.needs_usec = 0;
}

static int fill_rule(struct explain_rule *x, const struct engine *en, uint32_t id)
{
	const struct rule *r = &en->rules[id];
	const struct policy_state *p = &en->policies[r->policy];
	struct expr_env env = engine_env(en, engine_hand_of(en, r));
	bool order = r->def->kind == RULE_ORDER;
	int e;

	*x = (struct explain_rule){
		.policy = p->def->name,
		.rule = r->def->name,
		.file = r->def->file,
		.line = r->def->line,
		.priority = p->def->priority,
		.observe = p->def->mode == POLICY_OBSERVE,
		.asleep = engine_asleep(en, r),
		.asleep_why = engine_asleep(en, r) ? p->match.why : "",
		.state = r->state,
		.in_state_usec = r->since_usec ? usec_since(en->now_usec, r->since_usec)
					       : USEC_INFINITY,
	};
	x->standing = standing_of(en, r, id, &x->waits);
	if (order) {
		x->value_known = true;
		x->value = 1;
	} else if (r->knob != NONE) {
		x->value_known = rule_asks(r) || policy_fraction(r->def, &env, &x->value) == 0;
		if (rule_asks(r))
			x->value = r->value;
	}
	e = condition_fill(&x->on, order ? "Enable" : "When", r->def->on, &env);
	if (e == 0)
		e = condition_fill(&x->off, order ? "Disable" : "Until", r->def->off, &env);
	if (e == 0 && r->guard != NONE)
		e = condition_fill(&x->guard, "Trip", p->def->guard.trip, &env);
	condition_time(&x->on, r->def->on_usec, r->on_since_usec, en->now_usec);
	condition_time(&x->off, r->def->off_usec, r->off_since_usec, en->now_usec);
	if (r->guard != NONE)
		fill_guard(x, en, r);
	return e;
}

static void fill_knob(struct explanation *x, const struct engine *en, uint32_t i)
{
	const struct knob *k = &en->knobs[i];

	engine_knob_view(en, i, &x->knob);
	x->current_known = k->known;
	x->current = k->current;
	x->baseline = k->baseline;
	if (k->pinned) {
		x->pin_value = k->pin_value;
		x->pin_left_usec =
			k->pin_until_usec == USEC_INFINITY
				? USEC_INFINITY
				: k->pin_until_usec - MIN_OF(en->now_usec, k->pin_until_usec);
	}
}

int engine_explain(const struct engine *en, const struct snapshot *s, const struct knob_id *knob,
		   struct explanation **ret)
{
	_cleanup_(explanation_freep) struct explanation *x = calloc(1, sizeof(*x));
	_cleanup_(freep) uint32_t *trims = calloc((size_t)en->nr_rules + 1, sizeof(*trims));
	struct collect c = {.en = en, .x = x, .hand = en->nr_hands - 1};
	int k = knob ? engine_find_knob(en, *knob) : 0, r = 0;
	const uint32_t *rules = trims;
	uint32_t n = 0;

	if (!x || !trims)
		return -ENOMEM;
	if (k < 0)
		return k;
	x->is_trims = !knob;
	x->now_usec = en->now_usec;
	for (uint32_t i = 0; !knob && i < en->nr_rules; i++)
		if (en->rules[i].knob == NONE)
			trims[n++] = i;
	if (knob) {
		fill_knob(x, en, (uint32_t)k);
		rules = en->knobs[k].rules;
		n = en->knobs[k].nr_rules;
		c.hand = (uint32_t)k;
	}
	x->rules = calloc((size_t)n + 1, sizeof(*x->rules));
	if (!x->rules)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < n; i++, x->nr_rules++)
		r = fill_rule(&x->rules[i], en, rules[i]);
	if (r == 0)
		r = fill_signals(&c, s, rules, n);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(x);
	return 0;
}
