/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What must hold whatever policies, snapshots and times are: random worlds, one after the other.
 * PCPTUNE_TICKS (or the first argument) ticks in all, from PCPTUNE_SEED (or the second).
 */
#include "engine-kit.h"
#include "policy/explain.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TICKS_DEFAULT UINT64_C(50000)
#define SEED_DEFAULT  UINT64_C(20240415)
#define WORLD_TICKS   800U
#define RULES_MAX     128U

#define S             USEC_PER_SEC

struct random {
	uint64_t state;
};

/* Steele, Lea, Flood: SplitMix64. */
static uint64_t next(struct random *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static unsigned upto(struct random *r, unsigned n)
{
	return (unsigned)(next(r) % n);
}

static bool one_in(struct random *r, unsigned n)
{
	return upto(r, n) == 0;
}

/* policies */

static void add_term(struct random *r, struct text *t, bool order)
{
	static const char *const terms[] = {
		"zone.free_ratio < %u%%",
		"zone.free_ratio > %u%%",
		"pcp.share > %u%%",
		"pcp.excess > %u%%",
		"rate(vmstat.pgfault) > %u/s",
		"rate(vmstat.pgfault) < %u/s",
		"delta(vmstat.compact_stall, 40s) > %u",
		"avg(rate(vmstat.allocstall), 30s) > %u/s",
		"max(zone.free_ratio, 60s) < %u%%",
		"min(zone.free_ratio, 20s) < %u%%",
		"rate(vmstat.compact_stall) > 2 * before(rate(vmstat.compact_stall)) + %u/s",
		"frag.unusable < %u%%",
		"mthp.fallback_ratio > %u%%",
		"rate(mthp.alloc_bytes) > %uM/s",
	};
	static const char *const negations[] = {"", "", "", "not "};
	unsigned which = upto(r, ARRAY_SIZE(terms) - (order ? 0U : 3U));

	text_add(t, negations[upto(r, ARRAY_SIZE(negations))]);
	text_addf(t, "%s", "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	text_addf(t, terms[which], 1 + upto(r, 60));
#pragma GCC diagnostic pop
}

static void add_condition(struct random *r, struct text *t, const char *key, bool order)
{
	unsigned n = 1 + upto(r, 3);

	text_addf(t, "%s=", key);
	for (unsigned i = 0; i < n; i++) {
		if (i)
			text_add(t, one_in(r, 2) ? " and " : " or ");
		if (one_in(r, 3)) {
			text_add(t, "(");
			add_term(r, t, order);
			text_add(t, " or ");
			add_term(r, t, order);
			text_add(t, ")");
		} else {
			add_term(r, t, order);
		}
		text_add(t, i + 1 < n ? " \\\n\t" : "");
	}
	text_add(t, "\n");
}

static void add_order(struct random *r, struct text *t, unsigned i)
{
	static const char *const sizes[] = {"*", "64kB", "128kB", "1M"};

	text_addf(t, "[Order %s]\n", sizes[i % ARRAY_SIZE(sizes)]);
	add_condition(r, t, "Enable", true);
	text_addf(t, "EnableFor=%us\n", upto(r, 60));
	if (!one_in(r, 3))
		add_condition(r, t, "Disable", true);
	text_addf(t, "DisableFor=%us\n", upto(r, 60));
	if (one_in(r, 2))
		text_addf(t, "MinHold=%us\n", upto(r, 600));
}

static void add_fraction(struct random *r, struct text *t, unsigned i)
{
	text_addf(t, "[HighFraction f%u]\n", i);
	add_condition(r, t, "When", false);
	text_addf(t, "For=%us\n", upto(r, 60));
	if (one_in(r, 2))
		text_addf(t, "Value=%u\n", 8 + upto(r, 5000));
	else
		text_addf(t, "Value=fraction_for(%uM)\n", 1 + upto(r, 64));
	if (!one_in(r, 3))
		add_condition(r, t, "Until", false);
	text_addf(t, "UntilFor=%us\n", upto(r, 60));
	if (one_in(r, 2))
		text_addf(t, "MinHold=%us\n", upto(r, 600));
}

static void add_trim(struct random *r, struct text *t, unsigned i)
{
	text_addf(t, "[Trim t%u]\n", i);
	add_condition(r, t, "When", false);
	text_addf(t, "For=%us\nCooldown=%us\n", upto(r, 20), 1 + upto(r, 900));
}

static void random_policy(struct random *r, struct text *t)
{
	unsigned rules = 1 + upto(r, 3);

	text_clear(t);
	text_addf(t, "[Policy]\nPriority=%u\nMode=%s\nUnknownFor=%us\n", upto(r, 5) * 20,
		  one_in(r, 5) ? "observe" : "enforce", 1 + upto(r, 400));
	for (unsigned i = 0; i < rules; i++) {
		if (one_in(r, 4))
			add_trim(r, t, i);
		else if (one_in(r, 2))
			add_order(r, t, i);
		else
			add_fraction(r, t, i);
	}
	if (one_in(r, 2)) {
		text_add(t, "[Guard]\n");
		if (one_in(r, 2))
			text_addf(t, "Trip=rate(vmstat.compact_stall) > %u/s\n", 1 + upto(r, 50));
		else
			add_condition(r, t, "Trip", false);
		text_addf(t, "Within=%us\nLockout=%us\n", 1 + upto(r, 200), 1 + upto(r, 900));
	}
}

/* a world */

struct watch {
	bool on;
	uint64_t lockout_until_usec;
	uint64_t fired, since_usec;
	enum rule_state state;
};

struct world {
	struct random r;
	struct kit *k;
	struct engine *twin;
	uint64_t tick;
	uint64_t seed;
	uint64_t changed_usec[KIT_KNOBS_MAX];
	unsigned busy[KIT_KNOBS_MAX]; /* ticks until act reports that all is well */
	uint64_t meant[KIT_KNOBS_MAX];
	struct watch rules[RULES_MAX];
	uint64_t drained_usec[RULES_MAX];
	struct {
		uint64_t decisions, writes, guards, pins, limits, blinds, drains, fires;
	} seen;
};

static void _printf_(2, 3) bad(const struct world *w, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < w->k->set.nr; i++)
		(void)fprintf(stderr, "--- %s, priority %d\n", w->k->set.policies[i]->name,
			      w->k->set.policies[i]->priority);
	kit_dump(w->k);
	fail_msg("seed %" PRIu64 ", tick %" PRIu64 ": %s", w->seed, w->tick, text);
}

static size_t knob_index(const struct kit *k, struct knob_id id)
{
	for (size_t i = 0; i < k->nr_knobs; i++)
		if (knob_id_eq(k->knobs[i].id, id))
			return i;
	fail_msg("a decision about a knob that is not there");
	return 0;
}

static void world_make(struct world *w)
{
	_cleanup_(text_free) struct text t = {0};
	struct kit *k = w->k = kit_new();
	unsigned policies = 1 + upto(&w->r, 5);

	for (unsigned i = 0; i < policies; i++) {
		char name[16];

		random_policy(&w->r, &t);
		(void)snprintf(name, sizeof(name), "p%u", i);
		kit_policy(k, name, text_str(&t));
	}
	k->limits.min_hold_usec = upto(&w->r, 3) * 30 * S;
	k->m.has_high_fraction = !one_in(&w->r, 10);
	k->m.has_orders = !one_in(&w->r, 10);
	k->m.autotune = one_in(&w->r, 4) ? 0 : 1;
	kit_start(k);
	for (size_t i = 0; i < k->nr_knobs; i++)
		k->knobs[i].baseline = k->knobs[i].current =
			k->knobs[i].id.kind == KNOB_HIGH_FRACTION && one_in(&w->r, 3) ? 100 : 0;
	if (engine_new(&w->twin, &k->set, &k->facts, &k->s, NULL) < 0)
		fail_msg("no second engine");
	assert_true(engine_nr_rules(k->engine) <= RULES_MAX);
	memset(w->rules, 0, sizeof(w->rules));
	memset(w->changed_usec, 0, sizeof(w->changed_usec));
	memset(w->drained_usec, 0, sizeof(w->drained_usec));
	memset(w->busy, 0, sizeof(w->busy));
}

static void world_free(struct world *w)
{
	w->twin = engine_free(w->twin);
	w->k = kit_free(w->k);
}

static void move_machine(struct world *w)
{
	struct kit_machine *m = &w->k->m;
	struct random *r = &w->r;

	if (one_in(r, 10))
		m->free_ratio = upto(r, 70) / 100.0;
	if (one_in(r, 20))
		m->parked = upto(r, 120000);
	if (one_in(r, 20))
		m->pgfault = upto(r, 120);
	if (one_in(r, 20))
		m->compact_stall = one_in(r, 2) ? 0 : upto(r, 100);
	if (one_in(r, 20))
		m->allocstall = one_in(r, 2) ? 0 : upto(r, 60);
	if (one_in(r, 20))
		m->alloc_bytes = upto(r, 100) * 1048576.0;
	if (one_in(r, 20))
		m->fallback_share = upto(r, 90) / 100.0;
	if (one_in(r, 20))
		m->unusable = upto(r, 100) / 100.0;
	if (one_in(r, 60))
		m->has_zoneinfo = !m->has_zoneinfo;
	if (one_in(r, 60))
		m->has_vmstat = !m->has_vmstat;
	if (one_in(r, 60))
		m->has_stats = !m->has_stats;
	if (one_in(r, 500))
		memset(w->k->counters, 0, sizeof(w->k->counters)); /* they start again */
	if (one_in(r, 200))
		m->high_min = 10 + upto(r, 3000);
}

static void move_operator(struct world *w)
{
	struct kit *k = w->k;
	struct random *r = &w->r;

	if (k->nr_knobs && one_in(r, 150)) {
		struct knob_id id = k->knobs[upto(r, (unsigned)k->nr_knobs)].id;
		uint64_t value = id.kind == KNOB_HIGH_FRACTION ? 8 + upto(r, 1000) : upto(r, 2);
		uint64_t until = one_in(r, 2) ? USEC_INFINITY : k->now_usec + upto(r, 600) * S;

		assert_int_equal(engine_pin(k->engine, id, value, until), 0);
		assert_int_equal(engine_pin(w->twin, id, value, until), 0);
	}
	if (k->nr_knobs && one_in(r, 60)) {
		struct knob_id id = k->knobs[upto(r, (unsigned)k->nr_knobs)].id;

		assert_int_equal(engine_unpin(k->engine, id), engine_unpin(w->twin, id));
	}
	if (one_in(r, k->paused ? 20 : 200))
		k->paused = !k->paused;
	if (one_in(r, k->mode == ENGINE_OBSERVE ? 20 : 300))
		k->mode = k->mode == ENGINE_OBSERVE ? ENGINE_ENFORCE : ENGINE_OBSERVE;
	if (one_in(r, 150)) {
		k->limits.high_fraction_min = 8 + upto(r, 200);
		k->limits.max_parked_share = (1 + upto(r, 12)) / 100.0;
		k->limits.order_max = 3 + upto(r, 6);
	}
	k->facts_changed = one_in(r, 100);
	k->drain.trim = !one_in(r, 10);
	k->drain.running = one_in(r, 10);
}

/* What act reports of writes that were given to it some ticks ago. */
static void move_act(struct world *w)
{
	struct kit *k = w->k;

	for (size_t i = 0; i < k->nr_knobs; i++) {
		struct engine_knob_input *knob = &k->knobs[i];

		if (w->busy[i] && --w->busy[i] == 0) {
			if (knob->report == ENGINE_REPORT_FOREIGN)
				knob->baseline = knob->current; /* adopted */
			else
				knob->current = w->meant[i];
			knob->report = ENGINE_REPORT_NONE;
		}
		if (w->busy[i] == 0 && one_in(&w->r, 400)) {
			knob->report = ENGINE_REPORT_FOREIGN;
			knob->current = knob->id.kind == KNOB_HIGH_FRACTION ? 77 : !knob->current;
			w->busy[i] = 1 + upto(&w->r, 50);
		}
		knob->not_before_usec = one_in(&w->r, 50) ? k->now_usec + 30 * S : 0;
	}
}

static void move_clock(struct world *w)
{
	struct kit *k = w->k;
	uint64_t step = (1 + upto(&w->r, 3)) * S + upto(&w->r, 1000);
	double s;

	if (one_in(&w->r, 20))
		step = 10 * S;
	if (one_in(&w->r, 300))
		step = (100 + upto(&w->r, 5000)) * S;
	if (one_in(&w->r, 200))
		step = 0;
	k->now_usec += step;
	s = (double)step / (double)S;
	k->counters[0] += k->m.allocstall * s;
	k->counters[1] += k->m.compact_stall * s;
	k->counters[3] += k->m.pgfault * s;
	k->alloc_count += k->m.alloc_bytes / 65536 * s;
	k->fallback_count += k->m.alloc_bytes / 65536 * s * k->m.fallback_share;
}

static void remember_rules(struct world *w)
{
	for (size_t i = 0; i < engine_nr_rules(w->k->engine); i++) {
		struct engine_rule_view v;

		engine_rule_view(w->k->engine, i, &v);
		w->rules[i] = (struct watch){
			.on = v.watched,
			.lockout_until_usec = v.lockout_until_usec,
			.fired = v.fired,
			.since_usec = v.since_usec,
			.state = v.state,
		};
	}
}

static const struct policy_rule *rule_def(const struct kit *k, const struct engine_rule_view *v)
{
	const struct policy *p = policy_set_find(&k->set, v->policy);

	for (size_t i = 0; i < p->nr_rules; i++)
		if (streq(p->rules[i].name, v->rule) &&
		    (p->rules[i].kind == RULE_TRIM) == v->is_trim &&
		    (v->is_trim ||
		     (p->rules[i].kind == RULE_ORDER) == (v->knob.kind == KNOB_PCP_ENABLED)))
			return &p->rules[i];
	fail_msg("a rule %s/%s that no policy has", v->policy, v->rule);
	return NULL;
}

/* A rule that has just fired: its condition is true, has held, and its guard is known and false. */
static void judge_fire(struct world *w, size_t i, const struct engine_rule_view *v)
{
	_cleanup_(explanation_freep) struct explanation *x = NULL;
	const struct kit *k = w->k;
	uint64_t needs = rule_def(k, v)->on_usec;

	w->seen.fires++;
	if (needs &&
	    (w->rules[i].state != RULE_ARMING || k->now_usec - w->rules[i].since_usec < needs))
		bad(w, "%s/%s fired before it had held", v->policy, v->rule);
	if (w->rules[i].lockout_until_usec > k->now_usec)
		bad(w, "%s/%s fired while locked out", v->policy, v->rule);
	assert_int_equal(engine_explain(k->engine, &k->s, v->is_trim ? NULL : &v->knob, &x), 0);
	for (size_t j = 0; j < x->nr_rules; j++) {
		const struct explain_rule *e = &x->rules[j];

		if (!streq(e->policy, v->policy) || !streq(e->rule, v->rule))
			continue;
		if (e->on.holds != KLEENE_TRUE)
			bad(w, "%s/%s fired, and its condition is %s", v->policy, v->rule,
			    kleene_name(e->on.holds));
		if (e->guard.text && e->guard.holds != KLEENE_FALSE)
			bad(w, "%s/%s fired, and its guard is %s", v->policy, v->rule,
			    kleene_name(e->guard.holds));
	}
}

static void judge_rules(struct world *w)
{
	for (size_t i = 0; i < engine_nr_rules(w->k->engine); i++) {
		struct engine_rule_view v;

		engine_rule_view(w->k->engine, i, &v);
		if (v.fired != w->rules[i].fired)
			judge_fire(w, i, &v);
		if (v.lockout_until_usec > w->k->now_usec && v.state != RULE_LOCKED_OUT)
			bad(w, "%s/%s is %s while locked out", v.policy, v.rule,
			    rule_state_name(v.state));
	}
}

static bool waits_for_nothing(enum decision_cause c)
{
	return c == CAUSE_GUARD || c == CAUSE_PIN || c == CAUSE_LIMIT;
}

/* While a guard watches, its policy changes no other knob. */
static void judge_watch(struct world *w, const struct decision *d)
{
	for (size_t i = 0; i < engine_nr_rules(w->k->engine); i++) {
		struct engine_rule_view v;

		engine_rule_view(w->k->engine, i, &v);
		if (v.is_trim || !w->rules[i].on || !v.watched || !streq(v.policy, d->policy) ||
		    knob_id_eq(v.knob, d->knob))
			continue;
		bad(w, "%s changed a knob while its guard watched another", d->policy);
	}
}

static void judge_locked(struct world *w, const struct decision *d)
{
	for (size_t i = 0; i < engine_nr_rules(w->k->engine); i++) {
		struct engine_rule_view v;

		engine_rule_view(w->k->engine, i, &v);
		if (!v.is_trim && knob_id_eq(v.knob, d->knob) && streq(v.policy, d->policy) &&
		    streq(v.rule, d->rule) && !d->to_baseline && d->cause != CAUSE_GUARD &&
		    w->rules[i].lockout_until_usec > w->k->now_usec)
			bad(w, "a locked-out rule %s/%s has the knob", d->policy, d->rule);
	}
}

static void judge_limits(struct world *w, const struct decision *d)
{
	const struct engine_limits *l = &w->k->limits;

	if (d->to_baseline)
		return;
	if (d->knob.kind == KNOB_PCP_ENABLED) {
		if (d->value && d->knob.order > l->order_max &&
		    d->value != w->k->knobs[knob_index(w->k, d->knob)].baseline)
			bad(w, "order %u is above the limit", d->knob.order);
		return;
	}
	if (d->value &&
	    (d->value < l->high_fraction_min || (double)d->value * l->max_parked_share < 1 - 1e-9))
		bad(w, "fraction %" PRIu64 " is below the limits", d->value);
}

static void judge_write(struct world *w, const struct decision *d)
{
	struct kit *k = w->k;
	size_t i = knob_index(k, d->knob);

	if (!waits_for_nothing(d->cause) && w->changed_usec[i] &&
	    k->now_usec - w->changed_usec[i] < k->limits.min_hold_usec)
		bad(w, "a knob changed twice within MinHold=");
	if (k->paused || k->mode == ENGINE_OBSERVE)
		bad(w, "a write while %s", k->paused ? "paused" : "observing");
	if (k->knobs[i].report == ENGINE_REPORT_FOREIGN ||
	    k->knobs[i].report == ENGINE_REPORT_PENDING ||
	    k->now_usec < k->knobs[i].not_before_usec)
		bad(w, "a write that act did not allow");
	judge_limits(w, d);
	judge_locked(w, d);
	if (!waits_for_nothing(d->cause))
		judge_watch(w, d);
	w->changed_usec[i] = k->now_usec;
	w->meant[i] = d->value;
	k->knobs[i].report = ENGINE_REPORT_NONE;
	k->knobs[i].current = d->value;
	w->busy[i] = 0;
	if (one_in(&w->r, 6)) {
		k->knobs[i].report = one_in(&w->r, 2) ? ENGINE_REPORT_PENDING
						      : ENGINE_REPORT_FAILED;
		k->knobs[i].current = d->old_value;
		w->busy[i] = 1 + upto(&w->r, 10);
	}
}

static void judge_drain(struct world *w, const struct decision *d)
{
	w->seen.drains++;
	if (w->k->paused || w->k->drain.running || !w->k->drain.trim)
		bad(w, "a drain that was not allowed");
	for (size_t i = 0; i < engine_nr_rules(w->k->engine); i++) {
		struct engine_rule_view v;

		engine_rule_view(w->k->engine, i, &v);
		if (!v.is_trim || !streq(v.policy, d->policy) || !streq(v.rule, d->rule))
			continue;
		if (w->drained_usec[i] &&
		    w->k->now_usec - w->drained_usec[i] < rule_def(w->k, &v)->cooldown_usec)
			bad(w, "two drains within Cooldown=");
		w->drained_usec[i] = w->k->now_usec;
	}
}

static void judge(struct world *w, const struct decision *d)
{
	struct kit *k = w->k;

	k->log[k->nr_log++ % KIT_LOG_MAX] = (struct kit_entry){.at_usec = k->now_usec, .d = *d};
	w->seen.decisions++;
	w->seen.guards += d->cause == CAUSE_GUARD;
	w->seen.pins += d->cause == CAUSE_PIN;
	w->seen.limits += d->cause == CAUSE_LIMIT;
	w->seen.blinds += d->cause == CAUSE_BLIND;
	if (!d->reason[0] || !memchr(d->reason, '\0', sizeof(d->reason)))
		bad(w, "a decision without a reason");
	if (d->kind == DECISION_DRAIN) {
		judge_drain(w, d);
		return;
	}
	if (d->value == d->old_value)
		bad(w, "a decision that changes nothing");
	if (!d->write)
		return;
	w->seen.writes++;
	judge_write(w, d);
}

static bool same(const struct decision *a, const struct decision *b)
{
	return a->kind == b->kind && a->cause == b->cause && a->write == b->write &&
	       knob_id_eq(a->knob, b->knob) && a->value == b->value &&
	       a->old_value == b->old_value && a->to_baseline == b->to_baseline &&
	       a->drain == b->drain && streq(a->policy, b->policy) && streq(a->rule, b->rule) &&
	       a->was == b->was && a->state == b->state && streq(a->reason, b->reason);
}

/* Not only what is decided is the same: what is shown, too. */
static void judge_twin(struct world *w)
{
	for (size_t i = 0; i < engine_nr_rules(w->k->engine); i++) {
		struct engine_rule_view a, b;

		engine_rule_view(w->k->engine, i, &a);
		engine_rule_view(w->twin, i, &b);
		if (a.state != b.state || a.since_usec != b.since_usec || a.fired != b.fired ||
		    a.trips != b.trips || a.watched != b.watched ||
		    a.lockout_until_usec != b.lockout_until_usec)
			bad(w, "%s/%s is %s here and %s there", a.policy, a.rule,
			    rule_state_name(a.state), rule_state_name(b.state));
	}
	for (size_t i = 0; i < engine_nr_knobs(w->k->engine); i++) {
		struct engine_knob_view a, b;

		engine_knob_view(w->k->engine, i, &a);
		engine_knob_view(w->twin, i, &b);
		if (a.state != b.state || a.wanted != b.wanted || a.ours != b.ours ||
		    a.observed != b.observed || !streq(a.rule, b.rule))
			bad(w, "a knob is %s here and %s there", rule_state_name(a.state),
			    rule_state_name(b.state));
	}
}

static void world_tick(struct world *w)
{
	struct kit *k = w->k;
	const struct engine_input in = {
		.now_usec = k->now_usec,
		.snapshot = &k->s,
		.mode = k->mode,
		.paused = k->paused,
		.facts_changed = k->facts_changed,
		.interval_usec = S,
		.limits = k->limits,
		.knobs = k->knobs,
		.nr_knobs = k->nr_knobs,
		.drain = k->drain,
	};
	const struct decision *d, *t;
	size_t n, twins;

	kit_snapshot(k);
	remember_rules(w);
	d = engine_tick(k->engine, &in, &n);
	t = engine_tick(w->twin, &in, &twins);
	if (n != twins)
		bad(w, "the same input, and %zu decisions in place of %zu (%s)", twins, n,
		    twins > n ? t[twins - 1].reason : d[n - 1].reason);
	judge_rules(w);
	for (size_t i = 0; i < n; i++) {
		if (!same(&d[i], &t[i]))
			bad(w, "the same input, and another decision: \"%s\", \"%s\"", d[i].reason,
			    t[i].reason);
		judge(w, &d[i]);
	}
	judge_twin(w);
}

/* Nothing is the same about a reload that changes nothing but the memory the engine lives in. */
static void world_reload(struct world *w)
{
	struct engine *fresh = NULL;

	kit_snapshot(w->k);
	if (engine_reload(&fresh, w->twin, &w->k->set, &w->k->facts, &w->k->s, NULL) < 0)
		fail_msg("no reload");
	w->twin = engine_free(w->twin);
	w->twin = fresh;
}

/* When nothing can be known any more, everything goes back in the end. */
static void world_end(struct world *w)
{
	struct kit *k = w->k;

	k->m.has_zoneinfo = k->m.has_vmstat = k->m.has_stats = false;
	k->paused = k->facts_changed = false;
	k->mode = ENGINE_ENFORCE;
	for (size_t i = 0; i < k->nr_knobs; i++) {
		(void)engine_unpin(k->engine, k->knobs[i].id);
		(void)engine_unpin(w->twin, k->knobs[i].id);
		if (k->knobs[i].report == ENGINE_REPORT_FOREIGN)
			k->knobs[i].baseline = k->knobs[i].current;
	}
	for (unsigned i = 0; i < 250; i++) {
		k->now_usec += 30 * S;
		for (size_t j = 0; j < k->nr_knobs; j++) {
			if (w->busy[j] && k->knobs[j].report != ENGINE_REPORT_FOREIGN)
				k->knobs[j].current = w->meant[j];
			k->knobs[j].report = ENGINE_REPORT_NONE;
			k->knobs[j].not_before_usec = 0;
			w->busy[j] = 0;
		}
		world_tick(w);
	}
	for (size_t i = 0; i < k->nr_knobs; i++)
		if (k->knobs[i].current != k->knobs[i].baseline)
			bad(w, "a knob is on and has no way off");
}

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t value;

	return text && parse_u64(text, &value) == 0 ? value : otherwise;
}

static void whatever_happens_the_engine_keeps_its_promises(void **state)
{
	uint64_t ticks = from_env("PCPTUNE_TICKS", TICKS_DEFAULT);
	struct world w = {.seed = from_env("PCPTUNE_SEED", SEED_DEFAULT)};

	(void)state;
	w.r.state = w.seed;
	while (w.tick < ticks) {
		world_make(&w);
		for (unsigned i = 0; i < WORLD_TICKS && w.tick < ticks; i++, w.tick++) {
			move_clock(&w);
			move_machine(&w);
			move_operator(&w);
			move_act(&w);
			world_tick(&w);
			if (one_in(&w.r, 150))
				world_reload(&w);
		}
		world_end(&w);
		world_free(&w);
	}
	print_message("%" PRIu64 " ticks: %" PRIu64 " decisions, %" PRIu64 " writes, %" PRIu64
		      " rules fired, %" PRIu64 " guards tripped, %" PRIu64 " for pins, %" PRIu64
		      " for limits, %" PRIu64 " blind, %" PRIu64 " drains\n",
		      w.tick, w.seen.decisions, w.seen.writes, w.seen.fires, w.seen.guards,
		      w.seen.pins, w.seen.limits, w.seen.blinds, w.seen.drains);
	if (ticks >= TICKS_DEFAULT) {
		/* a test that meets nothing proves nothing */
		assert_true(w.seen.writes > ticks / 200);
		assert_true(w.seen.guards && w.seen.pins && w.seen.limits && w.seen.blinds &&
			    w.seen.drains);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_happens_the_engine_keeps_its_promises),
	};

	if (argc > 1)
		(void)setenv("PCPTUNE_TICKS", argv[1], 1);
	if (argc > 2)
		(void)setenv("PCPTUNE_SEED", argv[2], 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
