/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pcptunectl explain [KNOB]: every rule that could have a knob, with each of its conditions.
 * Decides by itself from a few seconds of this machine, with the policies as they lie there, and
 * writes nothing; what a running daemon has decided is told beside it.
 */
#include "base/nearest.h"
#include "ctl.h"
#include "show/explanation-json.h"

#include <errno.h>
#include <time.h>

#define TICKS     3U /* two pauses: enough for rates, and no long wait */
#define TICK_USEC USEC_PER_SEC
#define SOURCES   (SOURCE_BIT(SOURCE_ZONEINFO) | SOURCE_BIT(SOURCE_KNOBS))

struct explaining {
	struct policy_set *set;
	struct machine_facts facts;
	struct engine *engine;
	struct engine_knob_input knobs[PCP_ORDERS_MAX + 1];
	size_t nr_knobs;
	struct holder holder;
};

static void explaining_free(struct explaining *x)
{
	x->engine = engine_free(x->engine);
	x->set = policy_set_free(x->set);
	holder_free(&x->holder);
}

/* What is known of a knob from outside: a daemon's baseline, else its value. */
static void add_knob(struct explaining *x, const struct ctl *c, struct knob_id id, bool known,
		     uint64_t value, bool controllable)
{
	struct engine_knob_input *in = &x->knobs[x->nr_knobs++];
	const struct daemon_state *daemon = &x->holder.state; /* empty where none runs */
	char name[KNOB_NAME_MAX];

	*in = (struct engine_knob_input){
		.id = id,
		.known = known,
		.current = value,
		.baseline = value,
		.controllable = controllable,
	};
	(void)knob_name(id, c->snapshot->page_bytes, name);
	for (uint32_t i = 0; x->holder.has_state && i < daemon->nr_knobs; i++)
		if (daemon->knobs[i].has_baseline && streq(daemon->knobs[i].name, name))
			in->baseline = daemon->knobs[i].baseline;
}

static void look_at_knobs(struct explaining *x, const struct ctl *c)
{
	const struct snapshot *s = c->snapshot;
	struct knob_id fraction = {.kind = KNOB_HIGH_FRACTION};

	x->nr_knobs = 0;
	if (s->has_high_fraction)
		add_knob(x, c, fraction, true, s->high_fraction, true);
	for (uint32_t i = 0; i < s->mthp.nr_sizes; i++) {
		const struct mthp_size *size = &s->mthp.size[i];
		struct knob_id id = {.kind = KNOB_PCP_ENABLED, .order = size->order};

		if (mthp_has_switch(size) && size->controllable)
			add_knob(x, c, id, size->pcp_enabled >= 0, size->pcp_enabled > 0,
				 size->controllable);
	}
}

static uint64_t now_usec(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

static void tick(struct explaining *x, struct ctl *c)
{
	struct engine_input in = {
		.mode = ENGINE_OBSERVE,
		.facts = &x->facts,
		.interval_usec = TICK_USEC,
		.limits = engine_limits_default(c->snapshot->mthp.pmd_order),
		.drain = {.trim = c->snapshot->has_stat_refresh && c->snapshot->pcp_autotune != 0},
	};
	size_t n;

	ctl_take_again(c, SOURCES | engine_sources(x->engine));
	look_at_knobs(x, c);
	in.now_usec = now_usec();
	in.snapshot = c->snapshot;
	in.knobs = x->knobs;
	in.nr_knobs = x->nr_knobs;
	(void)engine_tick(x->engine, &in, &n);
}

static int prepare(struct explaining *x, struct ctl *c)
{
	const char *const *extra = c->options.nr_policy_dirs ? c->options.policy_dirs : NULL;
	struct diagnostics d = {0};
	struct error e = {0};
	int r;

	r = ctl_take(c, SOURCES_ALL, SOURCE_BIT(SOURCE_ZONEINFO));
	if (r != EXIT_DONE)
		return r;
	r = policy_set_load(&x->set, &c->root, extra, c->snapshot->page_bytes, NULL, &d);
	diagnostics_sort(&d);
	diagnostics_print(&d, stderr, false);
	diagnostics_free(&d);
	if (r < 0)
		return ctl_failf(c, EXIT_FAILED, "out of memory while loading the policies");
	machine_facts_read(&x->facts, &c->root, c->snapshot);
	holder_find(c, &x->holder);
	r = engine_new(&x->engine, x->set, &x->facts, c->snapshot, &e);
	return r < 0 ? ctl_fail(c, EXIT_FAILED, &e) : EXIT_DONE;
}

/* ---- as text ---- */

static void tell_daemon(const struct explaining *x, struct ctl *c, const char *name)
{
	const struct daemon_state *daemon = &x->holder.state;

	for (uint32_t i = 0; x->holder.has_state && i < daemon->nr_knobs; i++) {
		const struct state_knob *k = &daemon->knobs[i];

		if (!streq(k->name, name))
			continue;
		(void)fprintf(c->screen.out, "the daemon (pid %d): %s%s%s%s%s\n", (int)daemon->pid,
			      shown_state_name(k->state), k->policy[0] ? ", " : "", k->policy,
			      k->reason[0] ? ": " : "", k->reason);
	}
}

/* `id` NULL: the trim rules. */
static int explain_one(struct explaining *x, struct ctl *c, const struct knob_id *id)
{
	_cleanup_(explanation_freep) struct explanation *e = NULL;
	_cleanup_(text_free) struct text text = {0};
	char name[KNOB_NAME_MAX] = "trim";
	int r = engine_explain(x->engine, c->snapshot, id, &e);

	if (id)
		(void)knob_name(*id, c->snapshot->page_bytes, name);
	if (r == -ENOENT)
		return ctl_failf(c, EXIT_NOT_HERE,
				 "%s is not on this kernel; pcptunectl doctor says what is", name);
	if (r < 0)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	if (c->wants_json) {
		explanation_to_json(&c->json, e, name);
		return EXIT_DONE;
	}
	explain_render(e, c->snapshot->page_bytes, &text);
	(void)fputs(text_str(&text), c->screen.out);
	tell_daemon(x, c, name);
	return EXIT_DONE;
}

static int explain_all(struct explaining *x, struct ctl *c)
{
	for (size_t i = 0; i < x->nr_knobs; i++) {
		int r = explain_one(x, c, &x->knobs[i].id);

		if (r != EXIT_DONE)
			return r;
		if (!c->wants_json)
			(void)fputc('\n', c->screen.out);
	}
	return explain_one(x, c, NULL);
}

static int unknown_knob(const struct explaining *x, struct ctl *c, const char *word)
{
	char known[PCP_ORDERS_MAX + 1][KNOB_NAME_MAX];
	struct nearest n = NEAREST(word);

	for (size_t i = 0; i < x->nr_knobs; i++)
		nearest_try(&n, knob_name(x->knobs[i].id, c->snapshot->page_bytes, known[i]));
	nearest_try(&n, "trim");
	return ctl_failf(
		c, EXIT_USAGE,
		"there is no knob \"%s\"%s%s%s; there is high_fraction, pcp_enabled/SIZE, and trim "
		"for the rules that trim",
		word, n.best ? ", did you mean \"" : "", n.best ? n.best : "", n.best ? "\"" : "");
}

static int explain(struct explaining *x, struct ctl *c)
{
	const char *word = c->nr_operands ? c->operands[0] : NULL;
	struct knob_id id;

	if (!word)
		return explain_all(x, c);
	if (streq(word, "trim"))
		return explain_one(x, c, NULL);
	if (knob_parse(word, c->snapshot->page_bytes, &id) < 0)
		return unknown_knob(x, c, word);
	return explain_one(x, c, &id);
}

int verb_explain(struct ctl *c)
{
	_cleanup_(explaining_free) struct explaining x = {0};
	int r = prepare(&x, c);

	for (unsigned i = 0; r == EXIT_DONE && i < TICKS; i++) {
		if (i > 0)
			(void)usleep(TICK_USEC);
		tick(&x, c);
	}
	if (r != EXIT_DONE)
		return r;
	if (c->wants_json)
		json_begin_array(ctl_json_begin(c), "explanations");
	r = explain(&x, c);
	if (c->wants_json && r == EXIT_DONE) {
		json_end_array(&c->json);
		return ctl_json_end(c);
	}
	return r;
}
