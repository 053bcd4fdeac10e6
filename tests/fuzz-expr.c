/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any text as an expression. What compiles must evaluate in bounds, and keep three promises: what
 * is certain while everything is unknown stays so whatever the values are; what can never be true
 * never is; what is always true is never false.
 */
#include "policy/expr.h"

#include "tests/fuzz.h"

#include <math.h>

#define ROOM  256U
#define DRAWS 8U

static double draw(uint64_t *state, bool bounded)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	switch (*state >> 61) {
	case 0:
		return NAN;
	case 1:
		return 0;
	case 2:
		return 1;
	default:
		return (double)(*state >> 11) * 0x1p-53 * (bounded ? 1 : 1e6);
	}
}

static void draw_all(const struct expr_table *t, uint64_t *state, double *slots, double *series)
{
	for (uint32_t i = 0; i < t->nr_slots && i < ROOM; i++) {
		struct dimension d = signal_dimension(&t->slots[i].ref);
		double v = draw(state, d.unit == UNIT_RATIO);

		slots[i] = d.unit == UNIT_BOOL && !isnan(v) ? v > 0.5 : v;
	}
	for (uint32_t i = 0; i < t->nr_series && i < ROOM; i++)
		series[i] = draw(state, false) - 5e5;
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void evaluate(const struct expr_table *t, const struct expr *e, uint64_t seed)
{
	static const struct pcp_sizing sizing = {
		.managed = 1U << 20, .low = 10000, .batch = 63, .cpus = 4, .page_bytes = 4096};
	double slots[ROOM], series[ROOM], blind;
	const struct expr_env nothing = {0};
	struct expr_env env = {.slots = slots,
			       .series = series,
			       .hand_slots = slots,
			       .hand_series = series,
			       .sizing = &sizing};
	bool condition = expr_dimension(e).unit == UNIT_BOOL;
	bool never = condition && expr_never(e), always = condition && expr_always(e);

	if (t->nr_slots > ROOM || t->nr_series > ROOM)
		return;
	blind = expr_eval(e, &nothing);
	for (unsigned i = 0; i < DRAWS; i++) {
		struct expr_term term;
		double v;

		draw_all(t, &seed, slots, series);
		v = expr_eval(e, &env);
		check(!isinf(v));
		check(isnan(blind) || v == blind);
		check(!condition || isnan(v) || v == 0 || v == 1);
		check(!never || !(v == 1));
		check(!always || !(v == 0));
		for (size_t k = 0; k < expr_nr_terms(e); k++)
			expr_term_eval(e, k, &env, &term);
	}
	(void)expr_overlaps(e, e, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = 4096};
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(expr_freep) struct expr *e = NULL;
	_cleanup_(freep) char *text = strndup((const char *)data, size);
	struct expr_use use;
	bool told = size % 16 == 0;
	size_t it = 0;
	int r;

	if (!text)
		return 0;
	/* messages are the slow part: every sixteenth will do */
	r = expr_compile_text(&t, "x", text, EXPR_ANY, EXPR_ORDER_AT_HAND, &e, told ? &d : NULL);
	check((r == 0) == (e != NULL));
	check(r == 0 || !told || d.errors > 0);
	if (r < 0)
		return 0;
	while (expr_next_use(e, &it, &use))
		check(use.id < (use.is_series ? t.nr_series : t.nr_slots));
	for (uint32_t i = 0; i < t.nr_series; i++)
		evaluate(&t, t.series[i].arg, size);
	evaluate(&t, e, size * 31 + (size ? data[0] : 0));
	return 0;
}
