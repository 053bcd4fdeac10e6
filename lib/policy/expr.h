/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expressions over signals: parsed and checked once, evaluated each tick without allocating.
 *
 * A value is a double; unknown is NaN, so that it propagates through arithmetic by itself; a
 * condition is 0, 1 or NaN and follows Kleene's logic (true or unknown is true). A division by zero
 * and a result that is not finite are unknown.
 *
 * What changes from tick to tick stands in a table that all expressions of a policy set share:
 *
 *   slots   one for each different signal; the engine reads it once a tick
 *   series  one for each different call of a window function (rate, delta, avg, min, max, before);
 *           the engine samples its sub-expression each tick and keeps its window
 *
 * Both come in two kinds. A *varying* one has a value for each *hand*: the knob that is being
 * decided. Hand 0 is high_fraction (and trims), hand 1 + i the i-th controllable order of this
 * machine. Signals "of the order at hand" and everything built on them vary, and so does before(),
 * which refers to the last change of the knob at hand. The others have one value.
 */
#pragma once

#include "policy/ini.h"
#include "sense/signals.h"
#include "sense/sizing.h"

enum kleene {
	KLEENE_FALSE = 0,
	KLEENE_TRUE = 1,
	KLEENE_UNKNOWN = 2,
};
const char *kleene_name(enum kleene k); /* "true", "false", "unknown" */

enum series_kind {
	SERIES_RATE,  /* growth a second between the last two samples */
	SERIES_DELTA, /* growth over the window */
	SERIES_AVG,   /* time-weighted over the window */
	SERIES_MIN,
	SERIES_MAX,
	SERIES_BEFORE, /* average over the minute that ended when the knob at hand was last changed
			* by us; while nothing of ours is in place, over the last minute */
	_SERIES_KIND_MAX,
};
const char *series_kind_name(enum series_kind k); /* "rate" */

#define EXPR_WINDOW_MAX    (15 * USEC_PER_MINUTE)
#define EXPR_BEFORE_WINDOW USEC_PER_MINUTE
#define EXPR_STACK         64U    /* values on the stack while evaluating */
#define EXPR_TEXT_MAX      4096U  /* bytes of one expression */
#define EXPR_TABLE_MAX     16384U /* slots and series of one table, each */

struct expr; /* immutable once compiled; owned by who compiled it */

struct expr_slot {
	struct signal_ref ref;
	bool varies; /* of the order at hand */
	/* some rule or series outside [Match] uses it: read it each tick */
	bool each_tick;
};

struct expr_series {
	enum series_kind kind;
	uint64_t window_usec;   /* SERIES_RATE: 0; at most EXPR_WINDOW_MAX */
	const struct expr *arg; /* its series, if any, have smaller ids: fill in order of id */
	bool varies;
	bool counter; /* arg is one signal that only grows: a step back restarts the window */
	struct dimension dimension; /* of the result */
	char *text; /* as written first, blanks tidied: "rate(vmstat.compact_stall)". Equal text in
		     * two tables is the same series: the engine moves windows over at a reload by
		     * it. */
};

/* Grows while policies are compiled, constant afterwards. Zero-initialise page_bytes apart. */
struct expr_table {
	uint64_t page_bytes; /* turns sizes into orders */
	struct expr_slot *slots;
	uint32_t nr_slots, slots_room;
	struct expr_series *series;
	uint32_t nr_series, series_room;
};
void expr_table_free(struct expr_table *t);

/* SOURCE_BIT()s that the slots need; with `each_tick_only` those of [Match] alone are left out. */
uint32_t expr_table_sources(const struct expr_table *t, bool each_tick_only);

/*
 * The values a tick works on. Arrays are indexed by slot and series id and have nr_slots and
 * nr_series entries; those in `hand_*` are for the hand being evaluated and hold its varying ones,
 * the others hold those that do not vary (entries of the other kind are never looked at). A NULL
 * array is all unknown. NaN is unknown.
 */
struct expr_env {
	const double *slots, *series;
	const double *hand_slots, *hand_series;
	const struct pcp_sizing
		*sizing; /* of the largest zone, for fraction_for(); NULL: unknown */
};

/*
 * Reads slots from a snapshot into an array of nr_slots: the ones that do not vary
 * (expr_table_read), or the varying ones for an order (expr_table_read_hand; hand 0: order < 0,
 * all unknown). Entries of the other kind are left alone. `why` (may be NULL, nr_slots entries)
 * gets for each unknown the reason, NULL for known ones.
 */
void expr_table_read(const struct expr_table *t, const struct snapshot *s, double *slots,
		     const char **why);
void expr_table_read_hand(const struct expr_table *t, const struct snapshot *s, int order,
			  double *slots, const char **why);

/* What an expression must give. */
enum expr_want {
	EXPR_CONDITION, /* true, false or unknown */
	EXPR_NUMBER,    /* a bare number (Value=) */
	EXPR_ANY,       /* tests and tools */
};

enum expr_flags {
	EXPR_ORDER_AT_HAND =
		1 << 0,      /* there is one: [Order] and [Guard]; else such names are errors */
	EXPR_FACTS = 1 << 1, /* [Match]: no window functions */
};

/*
 * Compiles `v`, adding slots and series to `t`. Errors (all that can be found) go to `d` with their
 * place and the nearest name. 0 and *ret, to be freed by expr_free(); -EBADMSG; -ENOMEM. After an
 * error the table may have gained unused slots and series; they are harmless.
 */
int expr_compile(struct expr_table *t, const struct ini_value *v, enum expr_want want,
		 unsigned flags, struct expr **ret, struct diagnostics *d) _must_check_;
/* The same from plain text, for tests and tools; places are "file":1:column. */
int expr_compile_text(struct expr_table *t, const char *file, const char *text, enum expr_want want,
		      unsigned flags, struct expr **ret, struct diagnostics *d) _must_check_;
struct expr *expr_free(struct expr *e);

static inline void expr_freep(struct expr **e)
{
	*e = expr_free(*e);
}

const char *expr_text(const struct expr *e); /* as written, joined */
struct dimension expr_dimension(const struct expr *e);
bool expr_varies(const struct expr *e);     /* it uses a varying slot or series, so needs a hand */
bool expr_uses_order(const struct expr *e); /* a signal of the order at hand, directly or below */

/* Pure, allocates nothing. NaN: unknown. */
double expr_eval(const struct expr *e, const struct expr_env *env);
/* Of a condition. */
enum kleene expr_test(const struct expr *e, const struct expr_env *env);

/*
 * The parts of a condition that are joined by and, or, not: comparisons, or signals that are a
 * condition by themselves. For `explain`.
 */
struct expr_term {
	const char *text; /* not NUL-terminated: in expr_text() */
	size_t len;
	bool comparison; /* left and right are numbers; otherwise they are NaN */
	double left, right;
	struct dimension left_dimension, right_dimension;
	enum kleene holds;
};
size_t expr_nr_terms(const struct expr *e);
void expr_term_eval(const struct expr *e, size_t i, const struct expr_env *env,
		    struct expr_term *ret);

/*
 * The slots and series that an expression reads (directly; those below a series are found through
 * its arg). Each id once. Start with *it = 0; false behind the last.
 */
struct expr_use {
	bool is_series;
	uint32_t id;
};
bool expr_next_use(const struct expr *e, size_t *it, struct expr_use *ret);

/* A value with its unit for a person: "32 MiB/s", "3.1%", "unknown". VALUE_TEXT_MAX bytes do. */
const char *value_format(char *buf, size_t size, struct dimension d, double value);
#define VALUE_TEXT_MAX 48U

/*
 * Reasoning about conditions without values, for warnings. Quantities count as the same when they
 * are the same expression; each is taken as a free number within the bounds of its dimension.
 */
bool expr_never(const struct expr *e);  /* cannot be true */
bool expr_always(const struct expr *e); /* cannot be false */
/*
 * Can `a` and `b` hold at once, through a quantity that both compare? False where they share none.
 * On true, *ret_text (may be NULL) is the term of `b`, *ret_len its length.
 */
bool expr_overlaps(const struct expr *a, const struct expr *b, const char **ret_text,
		   size_t *ret_len);

/* The functions, for the documentation; NULL behind the end. */
struct expr_function {
	const char *name, *args, *gives, *description;
	unsigned nr_args;
};
const struct expr_function *expr_function_at(size_t i);
