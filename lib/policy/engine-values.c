/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/engine-state.h"

#include <errno.h>
#include <math.h>

uint32_t engine_hand_of(const struct engine *en, const struct rule *r)
{
	return r->knob == NONE ? en->nr_hands - 1 : r->knob;
}

struct expr_env engine_env(const struct engine *en, uint32_t hand)
{
	return (struct expr_env){
		.slots = en->slots,
		.series = en->series,
		.hand_slots = en->hands[hand].slots,
		.hand_series = en->hands[hand].series,
		.sizing = en->sizing_known ? &en->sizing : NULL,
	};
}

/* Marks the series that an expression needs with this hand, and those below them. */
static void mark(const struct engine *en, const struct expr *e, uint32_t hand, uint8_t *used)
{
	const struct expr_table *t = &en->set->table;
	struct expr_use use;

	if (!e)
		return;
	for (size_t it = 0; expr_next_use(e, &it, &use);) {
		uint32_t h;

		if (!use.is_series)
			continue;
		h = t->series[use.id].varies ? hand : en->nr_hands;
		if (used[(size_t)h * t->nr_series + use.id])
			continue;
		used[(size_t)h * t->nr_series + use.id] = 1;
		mark(en, t->series[use.id].arg, hand, used);
	}
}

static void mark_all(const struct engine *en, uint8_t *used)
{
	for (uint32_t i = 0; i < en->nr_rules; i++) {
		const struct rule *r = &en->rules[i];
		uint32_t hand = engine_hand_of(en, r);

		mark(en, r->def->on, hand, used);
		mark(en, r->def->off, hand, used);
		mark(en, r->def->value, hand, used);
	}
	for (uint32_t i = 0; i < en->nr_guards; i++) {
		const struct guard *g = &en->guards[i];

		mark(en, en->policies[g->policy].def->guard.trip, g->knob, used);
	}
}

static uint64_t span_of(const struct expr_series *s)
{
	if (s->kind == SERIES_RATE)
		return 0;
	return s->kind == SERIES_BEFORE ? EXPR_BEFORE_WINDOW : s->window_usec;
}

/* The doubles of all hands and of what does not vary, all unknown at first. */
static int alloc_values(struct engine *en)
{
	const struct expr_table *t = &en->set->table;
	size_t row = (size_t)t->nr_slots + 2 * (size_t)t->nr_series, n = row * (en->nr_hands + 1);
	double *v;

	v = en->value_room = calloc(n + 1, sizeof(*v));
	en->window_ptr_room =
		calloc((size_t)t->nr_series * (en->nr_hands + 1) + 1, sizeof(struct window *));
	if (!v || !en->window_ptr_room)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i] = NAN;
	for (uint32_t h = 0; h <= en->nr_hands; h++, v += row) {
		struct window **w = en->window_ptr_room + (size_t)h * t->nr_series;

		if (h == en->nr_hands) {
			en->slots = v;
			en->series = v + t->nr_slots;
			en->windows = w;
		} else {
			en->hands[h].slots = v;
			en->hands[h].series = v + t->nr_slots;
			en->hands[h].frozen = v + t->nr_slots + t->nr_series;
			en->hands[h].windows = w;
		}
	}
	return 0;
}

static int alloc_windows(struct engine *en, const uint8_t *used)
{
	const struct expr_table *t = &en->set->table;
	size_t all = (size_t)t->nr_series * (en->nr_hands + 1), nr = 0, buckets = 0;
	struct window_bucket *b;
	struct window *w;

	for (size_t i = 0; i < all; i++)
		if (used[i]) {
			nr++;
			buckets += window_room(span_of(&t->series[i % t->nr_series]));
		}
	w = en->window_room = calloc(nr + 1, sizeof(*w));
	b = en->bucket_room = calloc(buckets + 1, sizeof(*b));
	if (!w || !b)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		const struct expr_series *s;

		if (!used[i])
			continue;
		s = &t->series[i % t->nr_series];
		window_init(w, span_of(s), s->counter, b);
		en->window_ptr_room[i] = w++;
		b += window_room(span_of(s));
	}
	return 0;
}

int engine_values_alloc(struct engine *en)
{
	const struct expr_table *t = &en->set->table;
	_cleanup_(freep) uint8_t *used = NULL;
	int r;

	r = alloc_values(en);
	if (r < 0)
		return r;
	used = calloc((size_t)t->nr_series * (en->nr_hands + 1) + 1, 1);
	if (!used)
		return -ENOMEM;
	mark_all(en, used);
	return alloc_windows(en, used);
}

void engine_values_free(struct engine *en)
{
	free(en->value_room);
	free(en->window_ptr_room);
	free(en->window_room);
	free(en->bucket_room);
}

static double read_window(const struct window *w, enum series_kind kind)
{
	bool known = false;
	double v = NAN;

	switch (kind) {
	case SERIES_RATE:
		known = window_rate(w, &v);
		break;
	case SERIES_DELTA:
		known = window_delta(w, &v);
		break;
	case SERIES_AVG:
	case SERIES_BEFORE:
		known = window_avg(w, &v);
		break;
	case SERIES_MIN:
		known = window_min(w, &v);
		break;
	case SERIES_MAX:
		known = window_max(w, &v);
		break;
	case _SERIES_KIND_MAX:
		break;
	}
	return known ? v : NAN;
}

static double series_take(struct engine *en, uint32_t id, struct window *w,
			  const struct expr_env *env, bool gap)
{
	const struct expr_series *s = &en->set->table.series[id];
	double v = expr_eval(s->arg, env);

	if (gap)
		window_restart(w);
	window_add(w, en->now_usec, !isnan(v), v);
	return read_window(w, s->kind);
}

void engine_values_take(struct engine *en, const struct snapshot *s, bool gap)
{
	const struct expr_table *t = &en->set->table;
	struct expr_env common = {.slots = en->slots, .series = en->series};

	en->sizing_known = pcp_sizing_largest(s, &en->sizing);
	common.sizing = en->sizing_known ? &en->sizing : NULL;
	expr_table_read(t, s, en->slots, NULL);
	for (uint32_t h = 0; h < en->nr_hands; h++)
		expr_table_read_hand(t, s, en->hands[h].order, en->hands[h].slots, NULL);
	/* a series comes behind those that it is made of, whichever of them vary */
	for (uint32_t i = 0; i < t->nr_series; i++) {
		if (!t->series[i].varies) {
			if (en->windows[i])
				en->series[i] = series_take(en, i, en->windows[i], &common, gap);
			continue;
		}
		for (uint32_t h = 0; h < en->nr_hands; h++) {
			struct hand *hand = &en->hands[h];
			struct expr_env env;

			if (!hand->windows[i])
				continue;
			env = engine_env(en, h);
			hand->series[i] = series_take(en, i, hand->windows[i], &env, gap);
			if (t->series[i].kind == SERIES_BEFORE && h < en->nr_knobs &&
			    en->knobs[h].frozen)
				hand->series[i] = hand->frozen[i];
		}
	}
}

void engine_values_freeze(struct engine *en, uint32_t knob)
{
	const struct expr_table *t = &en->set->table;
	struct hand *hand = &en->hands[knob];

	for (uint32_t i = 0; i < t->nr_series; i++)
		if (t->series[i].kind == SERIES_BEFORE && hand->windows[i])
			hand->frozen[i] = read_window(hand->windows[i], SERIES_BEFORE);
	en->knobs[knob].frozen = true;
}

static void window_move(struct window *to, const struct window *from)
{
	struct window_bucket *buckets = to->buckets;

	if (to->span_usec != from->span_usec || to->counter != from->counter)
		return;
	memcpy(buckets, from->buckets, from->room * sizeof(*buckets));
	*to = *from;
	to->buckets = buckets;
}

static uint32_t series_find(const struct expr_table *t, const struct expr_series *like)
{
	for (uint32_t i = 0; i < t->nr_series; i++)
		if (t->series[i].kind == like->kind &&
		    t->series[i].window_usec == like->window_usec &&
		    t->series[i].varies == like->varies && streq(t->series[i].text, like->text))
			return i;
	return NONE;
}

static uint32_t hand_find(const struct engine *en, const struct engine *like, uint32_t h)
{
	int k;

	if (h == like->nr_hands - 1)
		return en->nr_hands - 1;
	k = engine_find_knob(en, like->knobs[h].id);
	return k < 0 ? NONE : (uint32_t)k;
}

void engine_values_move(struct engine *to, const struct engine *from)
{
	const struct expr_table *t = &to->set->table;

	for (uint32_t i = 0; i < t->nr_series; i++) {
		uint32_t old = series_find(&from->set->table, &t->series[i]);

		if (old == NONE)
			continue;
		if (to->windows[i] && from->windows[old])
			window_move(to->windows[i], from->windows[old]);
		for (uint32_t h = 0; h < to->nr_hands; h++) {
			uint32_t oldh = hand_find(from, to, h);

			if (oldh == NONE)
				continue;
			to->hands[h].frozen[i] = from->hands[oldh].frozen[old];
			if (to->hands[h].windows[i] && from->hands[oldh].windows[old])
				window_move(to->hands[h].windows[i],
					    from->hands[oldh].windows[old]);
		}
	}
}
