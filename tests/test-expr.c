/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/expr.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PAGE UINT64_C(4096)

static struct expr *compile(struct expr_table *t, const char *text, enum expr_want want,
			    unsigned flags)
{
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	struct expr *e = NULL;

	if (expr_compile_text(t, "x", text, want, flags, &e, &d) < 0) {
		diagnostics_print(&d, stderr, false);
		fail_msg("\"%s\" was refused", text);
	}
	return e;
}

static void mistakes_are_told_with_their_column(void **state)
{
	static const struct {
		const char *text;
		unsigned column;
		const char *message, *nearest;
	} rows[] = {
		{"", 1, "an expression should be here", NULL},
		{"pcp.share >", 12, "ends where", NULL},
		{"pcp.share > 5%)", 15, "`)` where an operator", NULL},
		{"(pcp.share > 5%", 16, "ends where `)`", NULL},
		{"pcp.share > 5% pcp.share < 1%", 16, "where an operator", NULL},
		{"pcp.shar > 5%", 1, "no signal \"pcp.shar\"", "pcp.share"},
		{"zone.fre_ratio < 5%", 1, "no signal", "zone.free_ratio"},
		{"rat(vmstat.compact_stall) > 1/s", 1, "no function \"rat\"", "rate"},
		{"share > 5%", 1, "signals have a family", NULL},
		{"rate > 1/s", 1, "rate is a function", NULL},
		{"rate() > 1/s", 6, "`)` where", NULL},
		{"rate(vmstat.compact_stall, 60s) > 1/s", 26, "takes no more arguments", NULL},
		{"delta(vmstat.compact_stall) > 1", 27, "needs a second argument", NULL},
		{"delta(vmstat.compact_stall, 5) > 1", 29, "needs a time", NULL},
		{"delta(vmstat.compact_stall, 16min) > 1", 29, "1 s to 15 min", NULL},
		{"delta(vmstat.compact_stall, 500ms) > 1", 29, "1 s to 15 min", NULL},
		{"rate(rate(vmstat.compact_stall)) > 1/s", 6, "a rate already", NULL},
		{"avg(pcp.share > 5%, 60s) > 1", 5, "needs a number", NULL},
		{"pcp.share", 1, "this is a ratio where a condition", NULL},
		{"not pcp.share", 5, "where a condition", NULL},
		{"pcp.share > 5% and pcp.bytes", 20, "where a condition", NULL},
		{"pcp.share > 5", 13, "5% or 0.05", NULL},
		{"1.5 < pcp.share", 1, "ratio goes from 0 to 1", NULL},
		{"pcp.bytes > 5", 11, "give the number its unit", NULL},
		{"pcp.bytes > 0", 11, "give the number its unit", NULL},
		{"pcp.bytes > 5%", 11, "bytes and a ratio cannot be compared", NULL},
		{"pcp.bytes > vmstat.nr_free_pages", 11, "machine.page_bytes", NULL},
		{"rate(vmstat.compact_stall) > 0", 28, "a rate is written with /s", NULL},
		{"vmstat.compact_stall > 10/s", 22, "rate() makes one", NULL},
		{"pcp.bytes + 5% > 1M", 11, "cannot be added", NULL},
		{"pcp.bytes * pcp.bytes > 1M", 11, "nothing that can be compared", NULL},
		{"pcp.bytes / 0 > 1M", 13, "division by zero", NULL},
		{"-(pcp.share > 5%)", 1, "write `not`", NULL},
		{"(pcp.share > 5%) + 1 > 2", 1, "cannot be added", NULL},
		{"1% < pcp.share < 5%", 16, "do not chain", NULL},
		{"pcp.share = 5%", 11, "`==`", NULL},
		{"pcp.share > 5% && pcp.share < 9%", 16, "write `and`", NULL},
		{"pcp.share > 5% || pcp.share < 9%", 16, "write `or`", NULL},
		{"!(pcp.share > 5%)", 1, "write `not`", NULL},
		{"pcp.share => 5%", 11, "write `>=`", NULL},
		{"pcp.share > 5% # why", 16, "starts with ` ;`", NULL},
		{"pcp.share > 5x", 14, "no unit", NULL},
		{"pcp.bytes > 64kb", 15, "no unit", NULL},
		{"pcp.share > 1e3", 14, "no unit", NULL},
		{"pcp.share ≥ 5%", 11, "typographic", NULL},
		{"process.running(\"x", 17, "never closed", NULL},
		{"process.running", 1, "needs a command's name", NULL},
		{"process.running(\"\")", 17, "1 to", NULL},
		{"pcp.share(\"x\") > 1%", 1, "takes nothing in parentheses", NULL},
		{"machine.pcp_autotune == 1", 1, "cannot be compared", NULL},
		{"mthp.63kB.anon_fault_alloc > 1", 1, "no folio size", NULL},
		{"mthp.anon_fault_alloc > 1", 1, "of the order at hand", NULL},
		{"frag.unusable > 50%", 1, "of the order at hand", NULL},
		{"fraction_for(5%) > 8", 14, "needs bytes", NULL},
		{"bytes_for(4M) > 4M", 11, "needs a bare number", NULL},
		{"pcp.share > 5% $", 16, "no meaning", NULL},
		{"0/0 > 1", 3, "division by zero", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
		_cleanup_(diagnostics_free) struct diagnostics d = {0};
		struct expr *e = NULL;
		int r = expr_compile_text(&t, "x", rows[i].text, EXPR_CONDITION, 0, &e, &d);

		if (r != -EBADMSG || e || d.errors != 1)
			fail_msg("\"%s\": got %d and %zu errors", rows[i].text, r, d.errors);
		if (d.list[0].column != rows[i].column ||
		    !strstr(d.list[0].message, rows[i].message))
			fail_msg("\"%s\": got column %u: %s", rows[i].text, d.list[0].column,
				 d.list[0].message);
		if (rows[i].nearest &&
		    (!d.list[0].nearest || !streq(d.list[0].nearest, rows[i].nearest)))
			fail_msg("\"%s\": nearest is %s", rows[i].text,
				 d.list[0].nearest ? d.list[0].nearest : "(none)");
	}
}

static void several_mistakes_of_one_expression_are_all_told(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	struct expr *e = NULL;

	(void)state;
	assert_int_equal(expr_compile_text(&t, "x",
					   "pcp.shar > 5% and pcp.bytes > 3 or zone.x == 1",
					   EXPR_CONDITION, 0, &e, &d),
			 -EBADMSG);
	assert_int_equal(d.errors, 3);
}

static void nesting_has_a_limit(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	char text[3000];
	struct expr *e = NULL;

	(void)state;
	memset(text, '(', 2000);
	strcpy(text + 2000, "1");
	assert_int_equal(expr_compile_text(&t, "x", text, EXPR_ANY, 0, &e, NULL), -EBADMSG);
	memset(text, '-', 2000);
	assert_int_equal(expr_compile_text(&t, "x", text, EXPR_ANY, 0, &e, NULL), -EBADMSG);
	text[0] = '\0';
	for (int i = 0; i < 400; i++)
		strcat(text, "not ");
	assert_int_equal(expr_compile_text(&t, "x", text, EXPR_ANY, 0, &e, NULL), -EBADMSG);
	text[0] = '\0';
	for (int i = 0; i < 200; i++)
		strcat(text, "pcp.bytes + ");
	strcat(text, "1M");
	e = compile(&t, text, EXPR_ANY, 0);
	(void)expr_free(e);
}

/* The values that the tests below work with. */
static const struct {
	const char *name;
	double value;
} given[] = {
	{"pcp.share", 0.25},          {"pcp.bytes", 1048576},        {"machine.cpus", 4},
	{"machine.page_bytes", 4096}, {"vmstat.nr_free_pages", 512}, {"vmstat.compact_stall", 100},
	{"zone.below_low", 0},        {"process.running(\"t\")", 1}, {"process.running(\"f\")", 0},
};

static double slot_value(const struct expr_table *t, uint32_t id)
{
	char name[SIGNAL_NAME_MAX];

	(void)signal_name(&t->slots[id].ref, PAGE, name, sizeof(name));
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		if (streq(name, given[i].name))
			return given[i].value;
	return NAN;
}

static double value_of(const char *text)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	_cleanup_(expr_freep) struct expr *e = compile(&t, text, EXPR_ANY, 0);
	const struct pcp_sizing sizing = {
		.managed = 67108864, .low = 83456, .batch = 63, .cpus = 64, .page_bytes = 4096};
	double slots[64], series[64];
	struct expr_env env = {.slots = slots, .series = series, .sizing = &sizing};

	for (uint32_t i = 0; i < t.nr_slots; i++)
		slots[i] = slot_value(&t, i);
	for (uint32_t i = 0; i < t.nr_series; i++)
		series[i] = 1 + i;
	return expr_eval(e, &env);
}

static void arithmetic_follows_the_usual_order(void **state)
{
	static const struct {
		const char *text;
		double want; /* NAN: unknown */
	} rows[] = {
		{"1 + 2 * 3", 7},
		{"(1 + 2) * 3", 9},
		{"10 - 4 - 3", 3},
		{"16 / 4 / 2", 2},
		{"-2 + 5", 3},
		{"2 - -1", 3},
		{"64kB", 65536},
		{"2M", 2097152},
		{"1.5K", 1536},
		{"10%", 0.1},
		{"1min 30s", 90},
		{"2h", 7200},
		{"32M/s", 33554432},
		{"10/s", 10},
		{"pcp.bytes / machine.cpus", 262144},
		{"pcp.bytes/4", 262144},
		{"vmstat.nr_free_pages * machine.page_bytes", 2097152},
		{"pcp.bytes / machine.page_bytes", 256},
		{"max(pcp.bytes, 2M)", 2097152},
		{"min(pcp.bytes, 2M)", 1048576},
		{"max(3, 4)", 4},
		{"fraction_for(4M)", 1024},
		{"fraction_for(1T)", 8},
		{"fraction_for(1B)", 2147483647},
		{"bytes_for(0)", 1304 * 4096.0},
		{"bytes_for(100)", 10485 * 4096.0},
		{"fraction_for(max(bytes_for(0), 4M))", 804},
		{"1 / zone.below_low", NAN},
		{"pcp.fill + 1%", NAN},
		{"max(pcp.fill, 1%)", NAN},
		{"0 * pcp.fill", NAN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		double v = value_of(rows[i].text);

		if (isnan(rows[i].want) ? !isnan(v) : !(fabs(v - rows[i].want) < 1e-9))
			fail_msg("%s is %g", rows[i].text, v);
	}
}

static void conditions_follow_kleenes_logic(void **state)
{
	static const struct {
		const char *text;
		enum kleene want;
	} rows[] = {
		{"T and T", KLEENE_TRUE},      {"T and F", KLEENE_FALSE},
		{"T and U", KLEENE_UNKNOWN},   {"F and U", KLEENE_FALSE},
		{"U and F", KLEENE_FALSE},     {"U and U", KLEENE_UNKNOWN},
		{"T or U", KLEENE_TRUE},       {"U or T", KLEENE_TRUE},
		{"F or U", KLEENE_UNKNOWN},    {"F or F", KLEENE_FALSE},
		{"not T", KLEENE_FALSE},       {"not F", KLEENE_TRUE},
		{"not U", KLEENE_UNKNOWN},     {"not not T", KLEENE_TRUE},
		{"F and F or T", KLEENE_TRUE}, {"T or T and F", KLEENE_TRUE},
		{"not F and F", KLEENE_FALSE}, {"not (F and F)", KLEENE_TRUE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(text_free) struct text text = {0};
		double v;

		for (const char *s = rows[i].text; *s; s++)
			if (*s == 'T' || *s == 'F' || *s == 'U')
				text_addf(&text, "process.running(\"%c\")",
					  *s == 'T'   ? 't'
					  : *s == 'F' ? 'f'
						      : 'u');
			else
				text_add_n(&text, s, 1);
		v = value_of(text_str(&text));
		if ((isnan(v) ? KLEENE_UNKNOWN
		     : v != 0 ? KLEENE_TRUE
			      : KLEENE_FALSE) != rows[i].want)
			fail_msg("%s is %g", rows[i].text, v);
	}
}

static void comparisons_with_the_unknown_are_unknown(void **state)
{
	(void)state;
	assert_true(value_of("pcp.share > 20%") == 1);
	assert_true(value_of("pcp.share >= 0.25") == 1);
	assert_true(value_of("pcp.share < 25%") == 0);
	assert_true(value_of("pcp.share != 0.5") == 1);
	assert_true(value_of("machine.cpus == 4") == 1);
	assert_true(isnan(value_of("pcp.fill > 20%")));
	assert_true(isnan(value_of("pcp.fill == pcp.fill")));
	assert_true(value_of("pcp.fill > 20% or pcp.share > 20%") == 1);
}

static void what_the_design_writes_has_the_right_dimensions(void **state)
{
	static const char *const rows[] = {
		"rate(mthp.alloc_bytes) / machine.cpus > 32M/s and pcp.fits >= 8",
		"rate(mthp.alloc_bytes) / machine.cpus > 32M/s and frag.unusable < 50%",
		"rate(mthp.alloc_bytes) / machine.cpus < 2M/s or mthp.fallback_ratio > 20%",
		"pcp.share > 5%",
		"(zone.free_ratio < 5% or rate(vmstat.allocstall) > 0/s) and pcp.excess > 1%",
		"rate(vmstat.compact_stall) > 4 * before(rate(vmstat.compact_stall)) + 10/s",
		"psi.memory.some.avg10 > 10%",
		"rate(psi.memory.full.total) > 10%",
		"rate(psi.memory.full.total) > 0.1s/s",
		"mthp.64kB.anon_fault_alloc / mthp.64kB.anon_fault_fallback < 3",
		"rate(mthp.64kB.anon_fault_alloc) * 64kB > 32M/s",
		"delta(vmstat.compact_stall, 1min 30s) > 10",
		"max(pcp.share, 15min) - min(pcp.share, 15min) > 10%",
		"not machine.pcp_autotune",
		"pcp.share < 0.5",
		"pcp.bytes / machine.memory_bytes > 5%",
		"process.running(\"postgres\") and link.mtu_max > 4kB",
		"rate(vmstat.pgalloc) > 1000pages/s",
		"pcp.bytes / rate(mthp.64kB.alloc_bytes) > 30s",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};

		(void)expr_free(compile(&t, rows[i], EXPR_CONDITION, EXPR_ORDER_AT_HAND));
	}
}

static void equal_windows_are_kept_once(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	struct expr *a, *b, *c;

	(void)state;
	a = compile(&t, "rate(vmstat.compact_stall) > 4 * before( rate( vmstat.compact_stall ) )",
		    EXPR_CONDITION, 0);
	b = compile(&t, "rate(vmstat.compact_stall)>1/s", EXPR_CONDITION, 0);
	c = compile(&t,
		    "delta(vmstat.compact_stall, 60s) > 1 or delta(vmstat.compact_stall, 1min) > 2",
		    EXPR_CONDITION, 0);
	assert_int_equal(t.nr_slots, 1);
	assert_int_equal(t.nr_series, 3);
	assert_string_equal(t.series[0].text, "rate(vmstat.compact_stall)");
	assert_true(t.series[0].counter);
	assert_false(t.series[0].varies);
	assert_string_equal(t.series[1].text, "before(rate(vmstat.compact_stall))");
	assert_true(t.series[1].varies);
	assert_false(t.series[1].counter);
	assert_string_equal(t.series[2].text, "delta(vmstat.compact_stall, 60s)");
	assert_int_equal(t.series[2].window_usec, 60 * USEC_PER_SEC);
	assert_true(expr_varies(a));
	assert_false(expr_varies(b));
	(void)expr_free(a);
	(void)expr_free(b);
	(void)expr_free(c);
}

static void a_signal_of_the_order_at_hand_varies_and_one_with_a_size_does_not(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	_cleanup_(expr_freep) struct expr *a = NULL, *b = NULL, *c = NULL;
	double hand[8] = {0}, all[8];
	struct expr_env env = {.slots = all, .hand_slots = hand};

	(void)state;
	a = compile(&t, "pcp.fits >= 8", EXPR_CONDITION, EXPR_ORDER_AT_HAND);
	b = compile(&t, "pcp.fits.64kB >= 8", EXPR_CONDITION, 0);
	c = compile(&t, "mthp.fallback_ratio > 20%", EXPR_CONDITION, EXPR_ORDER_AT_HAND);
	assert_true(expr_varies(a) && expr_uses_order(a));
	assert_false(expr_varies(b) || expr_uses_order(b));
	assert_true(expr_varies(c) && expr_uses_order(c));
	for (uint32_t i = 0; i < t.nr_slots; i++)
		all[i] = 100;
	assert_int_equal(expr_test(a, &env), KLEENE_FALSE);
	assert_int_equal(expr_test(b, &env), KLEENE_TRUE);
	env.hand_slots = NULL;
	assert_int_equal(expr_test(a, &env), KLEENE_UNKNOWN);
	/* a ratio of the last minute is made of two windows */
	assert_int_equal(t.nr_series, 2);
	assert_string_equal(t.series[0].text, "delta(mthp.fallbacks, 60s)");
	assert_true(t.series[0].varies && t.series[0].counter);
}

static void facts_have_no_past(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	struct expr *e = NULL;

	(void)state;
	assert_int_equal(expr_compile_text(&t, "x", "rate(vmstat.compact_stall) > 1/s",
					   EXPR_CONDITION, EXPR_FACTS, &e, &d),
			 -EBADMSG);
	assert_non_null(strstr(d.list[0].message, "have no past"));
	assert_int_equal(expr_compile_text(&t, "x", "mthp.64kB.fallback_ratio > 1%", EXPR_CONDITION,
					   EXPR_FACTS, &e, NULL),
			 -EBADMSG);
	e = compile(&t, "machine.l2_bytes >= 1M", EXPR_CONDITION, EXPR_FACTS);
	assert_false(t.slots[t.nr_slots - 1].each_tick);
	(void)expr_free(e);
	e = compile(&t, "machine.l2_bytes >= 2M", EXPR_CONDITION, 0);
	assert_true(t.slots[t.nr_slots - 1].each_tick);
	(void)expr_free(e);
}

static void sizes_of_other_machines_are_unknown_and_no_error(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = 65536};
	_cleanup_(expr_freep) struct expr *e =
		compile(&t, "rate(mthp.16kB.anon_fault_alloc) > 1/s", EXPR_CONDITION, 0);

	(void)state;
	assert_non_null(e);
}

static void explain_gets_each_term_with_its_values(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	_cleanup_(expr_freep) struct expr *e =
		compile(&t, "(pcp.share > 5% or pcp.fill > 50%) and not process.running(\"f\")",
			EXPR_CONDITION, 0);
	double slots[8];
	struct expr_env env = {.slots = slots};
	struct expr_term term;
	struct expr_use use;
	size_t it = 0, uses = 0;

	(void)state;
	for (uint32_t i = 0; i < t.nr_slots; i++)
		slots[i] = slot_value(&t, i);
	assert_int_equal(expr_nr_terms(e), 3);
	expr_term_eval(e, 0, &env, &term);
	assert_int_equal(term.len, strlen("pcp.share > 5%"));
	assert_memory_equal(term.text, "pcp.share > 5%", term.len);
	assert_true(term.left > 0.24 && term.right < 0.06);
	assert_int_equal(term.holds, KLEENE_TRUE);
	expr_term_eval(e, 1, &env, &term);
	assert_int_equal(term.holds, KLEENE_UNKNOWN);
	assert_true(isnan(term.left));
	expr_term_eval(e, 2, &env, &term);
	assert_false(term.comparison);
	assert_memory_equal(term.text, "process.running(\"f\")", term.len);
	assert_int_equal(term.holds, KLEENE_FALSE);
	while (expr_next_use(e, &it, &use))
		uses++;
	assert_int_equal(uses, 3);
	assert_int_equal(expr_test(e, &env), KLEENE_TRUE);
}

static void contradictions_and_truisms_are_seen(void **state)
{
	static const struct {
		const char *text;
		bool never, always;
	} rows[] = {
		{"pcp.share > 5%", false, false},
		{"pcp.share > 5% and pcp.share < 1%", true, false},
		{"pcp.share > 5% and pcp.share < 5%", true, false},
		{"pcp.share >= 5% and pcp.share <= 5%", false, false},
		{"pcp.share > 100%", true, false},
		{"pcp.share >= 0", false, true},
		{"pcp.share < 0", true, false},
		{"5% < pcp.share and 1% > pcp.share", true, false},
		{"pcp.share > 5% or pcp.share < 10%", false, true},
		{"pcp.share > 5% or not pcp.share > 5%", false, true},
		{"process.running(\"a\") and not process.running(\"a\")", true, false},
		{"process.running(\"a\") and not process.running(\"b\")", false, false},
		{"1 > 2", true, false},
		{"1 < 2", false, true},
		{"pcp.bytes > 1M and pcp.share < 1%", false, false},
		{"(pcp.share > 5% or pcp.bytes > 1G) and pcp.share < 1% and pcp.bytes < 1M", true,
		 false},
		{"rate(pcp.bytes) < 0B/s", false, false},
		{"machine.cpus == 4 and machine.cpus > 8", true, false},
		{"machine.cpus != 4", false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
		_cleanup_(expr_freep) struct expr *e = compile(&t, rows[i].text, EXPR_CONDITION, 0);

		if (expr_never(e) != rows[i].never || expr_always(e) != rows[i].always)
			fail_msg("%s: never %d, always %d", rows[i].text, expr_never(e),
				 expr_always(e));
	}
}

static void a_release_overlaps_only_through_what_both_compare(void **state)
{
	static const struct {
		const char *on, *off, *want; /* the release's term; NULL: no overlap */
	} rows[] = {
		{"pcp.share > 5%", "pcp.share < 1%", NULL},
		{"pcp.share > 5%", "pcp.share < 10%", "pcp.share < 10%"},
		{"pcp.share > 5%", "zone.free_ratio > 10%", NULL},
		{"pcp.share > 5%", "zone.free_ratio > 10% or pcp.share > 8%", "pcp.share > 8%"},
		{"pcp.share > 5% and pcp.bytes > 1G", "pcp.share < 9% and pcp.bytes < 1M", NULL},
		{"pcp.share > 5%", "not pcp.share > 5%", NULL},
		{"rate(mthp.64kB.alloc_bytes) / machine.cpus > 32M/s",
		 "rate(mthp.64kB.alloc_bytes) / machine.cpus < 2M/s or mthp.64kB.fallback_ratio > 20%",
		 NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
		_cleanup_(expr_freep) struct expr *on = compile(&t, rows[i].on, EXPR_CONDITION, 0);
		_cleanup_(expr_freep) struct expr *off =
			compile(&t, rows[i].off, EXPR_CONDITION, 0);
		const char *text = NULL;
		size_t len = 0;
		bool r = expr_overlaps(on, off, &text, &len);

		if (r != (rows[i].want != NULL) ||
		    (r && (len != strlen(rows[i].want) || memcmp(text, rows[i].want, len) != 0)))
			fail_msg("%s until %s: %d %.*s", rows[i].on, rows[i].off, r, (int)len,
				 text ? text : "");
	}
}

static void values_are_printed_with_their_unit(void **state)
{
	static const struct {
		enum unit unit;
		bool per_second;
		double value;
		const char *want;
	} rows[] = {
		{UNIT_BYTES, true, 33554432, "32.0 MiB/s"},
		{UNIT_RATIO, false, 0.031, "3.1%"},
		{UNIT_COUNT, true, 12.5, "12.5/s"},
		{UNIT_COUNT, false, -3, "-3"},
		{UNIT_BOOL, false, 1, "yes"},
		{UNIT_PAGES, false, 512, "512 pages"},
		{UNIT_BYTES, false, NAN, "unknown"},
	};
	char buf[VALUE_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(
			value_format(buf, sizeof(buf),
				     (struct dimension){rows[i].unit, rows[i].per_second},
				     rows[i].value),
			rows[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_are_told_with_their_column),
		cmocka_unit_test(several_mistakes_of_one_expression_are_all_told),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(arithmetic_follows_the_usual_order),
		cmocka_unit_test(conditions_follow_kleenes_logic),
		cmocka_unit_test(comparisons_with_the_unknown_are_unknown),
		cmocka_unit_test(what_the_design_writes_has_the_right_dimensions),
		cmocka_unit_test(equal_windows_are_kept_once),
		cmocka_unit_test(a_signal_of_the_order_at_hand_varies_and_one_with_a_size_does_not),
		cmocka_unit_test(facts_have_no_past),
		cmocka_unit_test(sizes_of_other_machines_are_unknown_and_no_error),
		cmocka_unit_test(explain_gets_each_term_with_its_values),
		cmocka_unit_test(contradictions_and_truisms_are_seen),
		cmocka_unit_test(a_release_overlaps_only_through_what_both_compare),
		cmocka_unit_test(values_are_printed_with_their_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
