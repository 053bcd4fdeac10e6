/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/window.h"

#include <assert.h>

/* Buckets that one span fills, and what stands at its edges: one partly out, one being filled. */
#define BUCKETS_PER_SPAN 120U
#define BUCKETS_AT_EDGES 4U
_Static_assert(BUCKETS_PER_SPAN + BUCKETS_AT_EDGES == WINDOW_BUCKETS_MAX, "one truth");

static uint64_t step_of(uint64_t span_usec)
{
	uint64_t step = (span_usec + BUCKETS_PER_SPAN - 1) / BUCKETS_PER_SPAN;

	return MAX_OF(step, USEC_PER_SEC);
}

uint32_t window_room(uint64_t span_usec)
{
	uint64_t step = step_of(span_usec);

	if (span_usec == 0)
		return 0;
	return (uint32_t)((span_usec + step - 1) / step) + BUCKETS_AT_EDGES;
}

void window_init(struct window *w, uint64_t span_usec, bool counter, struct window_bucket *buckets)
{
	*w = (struct window){
		.span_usec = span_usec,
		.step_usec = step_of(span_usec),
		.counter = counter,
		.room = window_room(span_usec),
		.buckets = buckets,
	};
}

void window_restart(struct window *w)
{
	w->first = w->n = 0;
	w->known = w->known_before = w->any = w->valued = false;
}

static struct window_bucket *bucket_at(const struct window *w, uint32_t i)
{
	return &w->buckets[(w->first + i) % w->room];
}

static void drop_oldest(struct window *w)
{
	w->first = (w->first + 1) % w->room;
	w->n--;
}

static struct window_bucket *bucket_for(struct window *w, uint64_t from_usec, uint64_t now_usec)
{
	struct window_bucket *b = w->n ? bucket_at(w, w->n - 1) : NULL;

	if (b && b->end_usec - b->start_usec < w->step_usec)
		return b;
	while (w->n > 0 && now_usec - bucket_at(w, 0)->end_usec > w->span_usec)
		drop_oldest(w);
	if (w->n == w->room)
		drop_oldest(w);
	b = bucket_at(w, w->n++);
	*b = (struct window_bucket){
		.start_usec = from_usec,
		.end_usec = from_usec,
		.begin = w->last,
		.last = w->last,
		.valued = w->valued,
	};
	return b;
}

static void bucket_extend(struct window *w, uint64_t now_usec, bool known, double value)
{
	uint64_t from = w->any ? w->last_usec : now_usec;
	struct window_bucket *b;

	if (w->room == 0)
		return;
	b = bucket_for(w, from, now_usec);
	/* a value speaks for the time since the sample before it */
	if (known && (b->known_usec == 0 || value < b->min))
		b->min = value;
	if (known && (b->known_usec == 0 || value > b->max))
		b->max = value;
	if (known) {
		b->known_usec += now_usec - from;
		b->area += value * (double)(now_usec - from) / (double)USEC_PER_SEC;
		if (!w->valued) {
			b->begin = value;
			b->valued = true;
		}
		b->last = value;
	}
	b->end_usec = now_usec;
}

void window_add(struct window *w, uint64_t now_usec, bool known, double value)
{
	if (w->any && now_usec <= w->last_usec)
		return;
	if (known && w->counter && w->valued && value < w->last)
		window_restart(w);
	bucket_extend(w, now_usec, known, value);
	w->prev = w->last;
	w->prev_usec = w->last_usec;
	w->known_before = w->any && w->known;
	w->known = known;
	w->last_usec = now_usec;
	if (known) {
		w->last = value;
		w->valued = true;
	}
	w->any = true;
}

bool window_rate(const struct window *w, double *ret)
{
	if (!w->known || !w->known_before)
		return false;
	*ret = (w->last - w->prev) * (double)USEC_PER_SEC / (double)(w->last_usec - w->prev_usec);
	return true;
}

static bool value_at(const struct window *w, uint64_t when, double *ret)
{
	for (uint32_t i = w->n; i-- > 0;) {
		const struct window_bucket *b = bucket_at(w, i);

		if (when < b->start_usec || when > b->end_usec)
			continue;
		*ret = b->begin;
		if (b->end_usec > b->start_usec)
			*ret += (b->last - b->begin) * (double)(when - b->start_usec) /
				(double)(b->end_usec - b->start_usec);
		return b->valued;
	}
	return false;
}

bool window_delta(const struct window *w, double *ret)
{
	double then;

	if (!w->known || w->last_usec < w->span_usec ||
	    !value_at(w, w->last_usec - w->span_usec, &then))
		return false;
	*ret = w->last - then;
	return true;
}

struct summary {
	double known_usec, area, min, max;
};

static bool summarize(const struct window *w, struct summary *ret)
{
	uint64_t begin = w->last_usec > w->span_usec ? w->last_usec - w->span_usec : 0;
	struct summary s = {0};

	if (!w->known)
		return false;
	for (uint32_t i = 0; i < w->n; i++) {
		const struct window_bucket *b = bucket_at(w, i);
		double part = 1;

		if (b->end_usec <= begin || b->known_usec == 0)
			continue;
		if (b->start_usec < begin)
			part = (double)(b->end_usec - begin) /
			       (double)(b->end_usec - b->start_usec);
		if (s.known_usec <= 0 || b->min < s.min)
			s.min = b->min;
		if (s.known_usec <= 0 || b->max > s.max)
			s.max = b->max;
		s.known_usec += (double)b->known_usec * part;
		s.area += b->area * part;
	}
	if (s.known_usec < 0.75 * (double)w->span_usec)
		return false;
	*ret = s;
	return true;
}

bool window_avg(const struct window *w, double *ret)
{
	struct summary s;

	if (!summarize(w, &s))
		return false;
	*ret = s.area * (double)USEC_PER_SEC / s.known_usec;
	return true;
}

bool window_min(const struct window *w, double *ret)
{
	struct summary s;

	if (!summarize(w, &s))
		return false;
	*ret = s.min;
	return true;
}

bool window_max(const struct window *w, double *ret)
{
	struct summary s;

	if (!summarize(w, &s))
		return false;
	*ret = s.max;
	return true;
}
