/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recent past of one value: what rate(), delta(), avg(), min(), max() and before() look at.
 *
 * Samples come at irregular times. They are kept in at most WINDOW_BUCKETS_MAX buckets, so that
 * fifteen minutes cost no more memory than one; an edge of a window is right to within a bucket,
 * which is a second or 1/120 of the window, whichever is more. The caller brings the memory, once.
 */
#pragma once

#include "base/util.h"

#include <stdbool.h>

#define WINDOW_SPAN_MAX    (15 * USEC_PER_MINUTE)
#define WINDOW_BUCKETS_MAX 124U

struct window_bucket {
	uint64_t start_usec, end_usec; /* of what it covers */
	uint64_t known_usec;           /* of that: with a known value */
	double area;                   /* value times seconds, over known_usec */
	double min, max;
	double begin, last; /* the last known values up to start_usec and end_usec */
	bool valued;        /* there were such values */
};

struct window {
	uint64_t span_usec, step_usec;
	bool counter; /* only grows: a smaller value means that it started again from zero */
	uint32_t room, first, n;
	struct window_bucket *buckets;
	bool known, known_before; /* the newest sample, the one before it */
	uint64_t last_usec, prev_usec;
	double last, prev;
	bool any;    /* some sample since the start or restart */
	bool valued; /* some known one: `last` means something */
};

/* How many buckets a window of this span needs; 0 for span 0, which serves rate() alone. */
uint32_t window_room(uint64_t span_usec);

/* `buckets` (window_room() of them) stay the caller's. */
void window_init(struct window *w, uint64_t span_usec, bool counter, struct window_bucket *buckets);

/* Takes the value at `now_usec`; times do not go back (a sample that does is left out). */
void window_add(struct window *w, uint64_t now_usec, bool known, double value);

/* Forgets everything: after a counter went backwards, or a time that nobody watched. */
void window_restart(struct window *w);

/* Each returns false where the past is not known well enough to say. */

/* A second, between the two newest samples. */
bool window_rate(const struct window *w, double *ret);
/* Growth over the span; known once the samples reach back that far. */
bool window_delta(const struct window *w, double *ret);
/* Over the span, weighted by time; known while three quarters of it are. */
bool window_avg(const struct window *w, double *ret);
bool window_min(const struct window *w, double *ret);
bool window_max(const struct window *w, double *ret);
