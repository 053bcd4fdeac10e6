/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What can be said about a condition without any value: it is brought into alternatives (joined by
 * or) of terms (joined by and), and in each alternative the constant bounds of a quantity are
 * intersected. Where that would grow too large, nothing is said.
 */
#include "policy/expr-internal.h"

#include <math.h>

#define ALTERNATIVES_MAX 64U
#define TERMS_MAX        24U

struct literal {
	const struct expr *e;
	uint32_t term;
	bool negated;
};

struct alternative {
	struct literal list[TERMS_MAX];
	unsigned nr;
};

struct alternatives {
	struct alternative list[ALTERNATIVES_MAX];
	unsigned nr;
	bool overflow;
};

/* The term whose comparison or signal is op `i`; nr_terms for none. */
static uint32_t term_at(const struct expr *e, uint32_t i)
{
	uint32_t t;

	for (t = 0; t < e->nr_terms; t++)
		if (e->terms[t].comparison ? e->terms[t].end == i : e->terms[t].end == i + 1)
			break;
	return t;
}

/* Where the value that op `end` leaves begins. */
static uint32_t span_start(const struct expr *e, uint32_t end)
{
	uint32_t need = 1, i = end + 1;

	while (need > 0) {
		uint32_t code = e->ops[--i].code;

		need += code >= OP_ADD ? 1U : code > OP_HAND_SERIES ? 0U : (uint32_t)-1;
	}
	return i;
}

static void join_or(struct alternatives *into, const struct alternatives *more)
{
	for (unsigned i = 0; i < more->nr; i++) {
		if (into->nr == ALTERNATIVES_MAX) {
			into->overflow = true;
			return;
		}
		into->list[into->nr++] = more->list[i];
	}
	into->overflow = into->overflow || more->overflow;
}

static void join_and(struct alternatives *into, const struct alternatives *a,
		     const struct alternatives *b)
{
	into->nr = 0;
	into->overflow = a->overflow || b->overflow || a->nr * b->nr > ALTERNATIVES_MAX;
	if (into->overflow)
		return;
	for (unsigned i = 0; i < a->nr; i++)
		for (unsigned k = 0; k < b->nr; k++) {
			struct alternative *x = &into->list[into->nr++];

			if (a->list[i].nr + b->list[k].nr > TERMS_MAX) {
				into->overflow = true;
				return;
			}
			*x = a->list[i];
			for (unsigned n = 0; n < b->list[k].nr; n++)
				x->list[x->nr++] = b->list[k].list[n];
		}
}

static void one_term(struct alternatives *into, const struct expr *e, uint32_t term, bool negated)
{
	into->nr = 1;
	into->list[0].nr = 1;
	into->list[0].list[0] = (struct literal){e, term, negated};
}

/*
 * The alternatives of the condition that op `end` leaves. Deep conditions need room: the three
 * lists of a level are on the heap.
 */
static void expand(const struct expr *e, uint32_t end, bool negated, unsigned depth,
		   struct alternatives *into)
{
	uint32_t code = e->ops[end].code, term = term_at(e, end);
	_cleanup_(freep) struct alternatives *both = NULL;
	bool either;

	into->nr = 0;
	into->overflow = false;
	if (term < e->nr_terms) {
		one_term(into, e, term, negated);
		return;
	}
	if (code == OP_NOT) {
		expand(e, end - 1, !negated, depth, into);
		return;
	}
	both = depth < TERMS_MAX && (code == OP_AND || code == OP_OR)
		       ? calloc(2, sizeof(struct alternatives))
		       : NULL;
	if (!both) {
		into->overflow = true;
		return;
	}
	expand(e, span_start(e, end - 1) - 1, negated, depth + 1, &both[0]);
	expand(e, end - 1, negated, depth + 1, &both[1]);
	either = (code == OP_OR) != negated;
	if (either) {
		join_or(into, &both[0]);
		join_or(into, &both[1]);
	} else {
		join_and(into, &both[0], &both[1]);
	}
}

/* What a term says about a quantity: it lies within these bounds. */
struct bounds {
	const struct op *quantity;
	uint32_t nr_ops; /* 0: about no quantity */
	double low, high;
	bool low_open, high_open;
};

static bool is_constant(const struct op *ops, uint32_t from, uint32_t to)
{
	return to - from == 1 && ops[from].code == OP_CONST;
}

static enum opcode mirrored(enum opcode code)
{
	switch (code) {
	case OP_LT:
		return OP_GT;
	case OP_LE:
		return OP_GE;
	case OP_GT:
		return OP_LT;
	case OP_GE:
		return OP_LE;
	default:
		return code;
	}
}

static enum opcode opposite(enum opcode code)
{
	switch (code) {
	case OP_LT:
		return OP_GE;
	case OP_LE:
		return OP_GT;
	case OP_GT:
		return OP_LE;
	case OP_GE:
		return OP_LT;
	case OP_EQ:
		return OP_NE;
	default:
		return OP_EQ;
	}
}

/* A signal by itself: a ratio stays within 0 and 1, nothing that is read is below 0. */
static void natural_bounds(struct bounds *b, const struct term *t, bool left)
{
	struct dimension d = left ? t->left : t->right;
	bool signal = b->nr_ops == 1 &&
		      (b->quantity->code == OP_SLOT || b->quantity->code == OP_HAND_SLOT);

	b->low = signal ? 0 : -INFINITY;
	b->high = signal && d.unit == UNIT_RATIO && !d.per_second ? 1 : INFINITY;
}

/* Where something lies that compares with `c` like that. */
static struct bounds interval(enum opcode code, double c)
{
	struct bounds b = {.low = -INFINITY, .high = INFINITY};

	if (code == OP_LT || code == OP_LE || code == OP_EQ)
		b.high = c;
	if (code == OP_GT || code == OP_GE || code == OP_EQ)
		b.low = c;
	b.high_open = code == OP_LT;
	b.low_open = code == OP_GT;
	return b;
}

/* `a` stays about its quantity. */
static struct bounds intersect(struct bounds a, const struct bounds *b)
{
	if (b->low > a.low || (b->low == a.low && b->low_open)) {
		a.low = b->low;
		a.low_open = b->low_open;
	}
	if (b->high < a.high || (b->high == a.high && b->high_open)) {
		a.high = b->high;
		a.high_open = b->high_open;
	}
	return a;
}

static bool empty(const struct bounds *b)
{
	return b->low > b->high || (b->low == b->high && (b->low_open || b->high_open));
}

static struct bounds bounds_of(const struct literal *l)
{
	const struct term *t = &l->e->terms[l->term];
	const struct op *ops = l->e->ops;
	struct bounds b = {0}, said;
	enum opcode code;

	if (!t->comparison) {
		b = interval(OP_EQ, l->negated ? 0 : 1);
		b.quantity = &ops[t->start];
		b.nr_ops = t->end - t->start;
		return b;
	}
	code = l->negated ? opposite((enum opcode)ops[t->end].code) : (enum opcode)ops[t->end].code;
	if (is_constant(ops, t->split, t->end)) {
		b.quantity = &ops[t->start];
		b.nr_ops = t->split - t->start;
		natural_bounds(&b, t, true);
		said = interval(code, ops[t->split].number);
		return intersect(b, &said);
	}
	if (is_constant(ops, t->start, t->split)) {
		b.quantity = &ops[t->split];
		b.nr_ops = t->end - t->split;
		natural_bounds(&b, t, false);
		said = interval(mirrored(code), ops[t->start].number);
		return intersect(b, &said);
	}
	return b;
}

/* A comparison of two constants: 1 true, 0 false, -1 none. */
static int constant_truth(const struct literal *l)
{
	const struct term *t = &l->e->terms[l->term];
	const struct op *ops = l->e->ops;
	double v;

	if (!t->comparison || !is_constant(ops, t->start, t->split) ||
	    !is_constant(ops, t->split, t->end))
		return -1;
	v = op_apply((enum opcode)ops[t->end].code, ops[t->start].number, ops[t->split].number);
	return (v != 0) != l->negated;
}

static bool same_quantity(const struct bounds *a, const struct bounds *b)
{
	return a->nr_ops > 0 && a->nr_ops == b->nr_ops &&
	       memcmp(a->quantity, b->quantity, a->nr_ops * sizeof(*a->quantity)) == 0;
}

static bool possible(const struct alternative *x)
{
	for (unsigned i = 0; i < x->nr; i++) {
		struct bounds b = bounds_of(&x->list[i]);

		if (constant_truth(&x->list[i]) == 0)
			return false;
		if (b.nr_ops == 0)
			continue;
		for (unsigned k = 0; k < x->nr; k++) {
			struct bounds other = bounds_of(&x->list[k]);

			if (same_quantity(&b, &other))
				b = intersect(b, &other);
		}
		if (empty(&b))
			return false;
	}
	return true;
}

static bool can_be(const struct expr *e, bool negated)
{
	_cleanup_(freep) struct alternatives *all = calloc(1, sizeof(*all));

	if (!all || e->dimension.unit != UNIT_BOOL)
		return true;
	expand(e, e->nr_ops - 1, negated, 0, all);
	if (all->overflow)
		return true;
	for (unsigned i = 0; i < all->nr; i++)
		if (possible(&all->list[i]))
			return true;
	return false;
}

bool expr_never(const struct expr *e)
{
	return !can_be(e, false);
}

bool expr_always(const struct expr *e)
{
	return !can_be(e, true);
}

/* The term of `b` that compares what a term of `a` does; NULL for none. */
static const struct literal *shared(const struct alternative *a, const struct alternative *b)
{
	for (unsigned i = 0; i < a->nr; i++)
		for (unsigned k = 0; k < b->nr; k++) {
			struct bounds x = bounds_of(&a->list[i]), y = bounds_of(&b->list[k]);

			if (same_quantity(&x, &y))
				return &b->list[k];
		}
	return NULL;
}

static const struct literal *overlap(const struct alternative *a, const struct alternative *b)
{
	const struct literal *l = shared(a, b);
	struct alternative both = *a;

	if (!l || a->nr + b->nr > TERMS_MAX)
		return NULL;
	for (unsigned i = 0; i < b->nr; i++)
		both.list[both.nr++] = b->list[i];
	return possible(&both) ? l : NULL;
}

bool expr_overlaps(const struct expr *a, const struct expr *b, const char **ret_text,
		   size_t *ret_len)
{
	_cleanup_(freep) struct alternatives *all = calloc(2, sizeof(*all));

	if (!all || a->dimension.unit != UNIT_BOOL || b->dimension.unit != UNIT_BOOL)
		return false;
	expand(a, a->nr_ops - 1, false, 0, &all[0]);
	expand(b, b->nr_ops - 1, false, 0, &all[1]);
	if (all[0].overflow || all[1].overflow)
		return false;
	for (unsigned i = 0; i < all[0].nr; i++)
		for (unsigned k = 0; k < all[1].nr; k++) {
			const struct literal *l = overlap(&all[0].list[i], &all[1].list[k]);

			if (!l)
				continue;
			if (ret_text) {
				*ret_text = l->e->text + l->e->terms[l->term].text_off;
				*ret_len = l->e->terms[l->term].text_len;
			}
			return true;
		}
	return false;
}

bool expr_wants(const struct expr *e, const struct signal_ref *refs, size_t nr,
		const struct expr_table *t, bool large)
{
	_cleanup_(freep) struct alternatives *all = calloc(1, sizeof(*all));

	if (!all || e->dimension.unit != UNIT_BOOL)
		return false;
	expand(e, e->nr_ops - 1, false, 0, all);
	for (unsigned i = 0; i < all->nr && !all->overflow; i++)
		for (unsigned k = 0; k < all->list[i].nr; k++) {
			struct bounds b = bounds_of(&all->list[i].list[k]);
			bool above = b.low > 0 || (b.low == 0 && b.low_open);
			bool below = !isinf(b.high) && b.high < 1;

			if (b.nr_ops != 1 || b.quantity->code != OP_SLOT ||
			    !(large ? above : below))
				continue;
			for (size_t n = 0; n < nr; n++)
				if (memcmp(&t->slots[b.quantity->arg].ref, &refs[n],
					   sizeof(refs[n])) == 0)
					return true;
		}
	return false;
}
