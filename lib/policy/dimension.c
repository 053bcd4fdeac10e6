/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What may be added, compared, multiplied and divided, and what comes out. */
#include "policy/expr-internal.h"

static const struct vdim bad = {.bad = true};
static const struct vdim plain = {.d = {UNIT_COUNT, false}, .plain = true};

/* Seconds a second are a share of time: a plain number. */
struct vdim dim_of(struct dimension d)
{
	if (d.unit == UNIT_SECONDS && d.per_second)
		return plain;
	return (struct vdim){.d = d};
}

bool dim_is_condition(struct vdim d)
{
	return !d.bad && d.d.unit == UNIT_BOOL;
}

const char *dim_name(struct vdim d)
{
	if (d.plain)
		return "a bare number";
	if (d.d.unit == UNIT_BOOL)
		return "a condition";
	if (d.d.unit == UNIT_RATIO)
		return d.d.per_second ? "a ratio a second" : "a ratio";
	if (d.d.unit == UNIT_COUNT)
		return d.d.per_second ? "a count a second" : "a count";
	return dimension_name(d.d);
}

static bool same(struct vdim a, struct vdim b)
{
	return a.d.unit == b.d.unit && a.d.per_second == b.d.per_second;
}

static bool without(struct vdim d) /* dimension */
{
	return !d.d.per_second && (d.d.unit == UNIT_COUNT || d.d.unit == UNIT_RATIO);
}

static bool is(struct vdim d, enum unit unit, bool per_second)
{
	return !d.plain && d.d.unit == unit && d.d.per_second == per_second;
}

/* Both must be numbers; tells it otherwise. */
static bool numbers(struct origin *s, const char *what, const struct node *a, const struct node *b)
{
	const struct node *both[] = {a, b};

	if (a->dim.bad || b->dim.bad)
		return false;
	for (size_t i = 0; i < 2; i++)
		if (dim_is_condition(both[i]->dim)) {
			source_error(s, both[i]->off, NULL,
				     "this is a condition, true or false: it cannot be %s", what);
			return false;
		}
	return true;
}

/* A bare constant above 1 beside a ratio is a percentage that lost its sign. */
static bool ratio_fits(struct origin *s, const struct node *ratio, const struct node *number)
{
	if (!is(ratio->dim, UNIT_RATIO, false) || !number->dim.plain || !number->constant ||
	    number->number <= 1)
		return true;
	source_error(s, number->off, NULL,
		     "a ratio goes from 0 to 1, so a bare %g is none: write %g%% or %g",
		     number->number, number->number, number->number / 100);
	return false;
}

static const char *hint(struct vdim a, struct vdim b)
{
	if (a.d.unit == b.d.unit || (without(a) && b.d.unit == UNIT_COUNT) ||
	    (without(b) && a.d.unit == UNIT_COUNT))
		return a.d.per_second != b.d.per_second
			       ? "; a rate is written with /s, and rate() makes one of a counter"
			       : "";
	if ((a.d.unit == UNIT_PAGES && b.d.unit == UNIT_BYTES) ||
	    (b.d.unit == UNIT_PAGES && a.d.unit == UNIT_BYTES))
		return "; pages * machine.page_bytes gives bytes";
	if (a.plain || b.plain)
		return "; give the number its unit";
	return "";
}

struct vdim dim_sum(struct origin *s, size_t off, const char *verb, const struct node *a,
		    const struct node *b)
{
	if (!numbers(s, verb, a, b))
		return bad;
	if (!ratio_fits(s, a, b) || !ratio_fits(s, b, a))
		return bad;
	if (a->dim.plain && b->dim.plain)
		return plain;
	if (a->dim.plain && without(b->dim))
		return b->dim;
	if (b->dim.plain && without(a->dim))
		return a->dim;
	if (!a->dim.plain && !b->dim.plain && same(a->dim, b->dim))
		return a->dim;
	source_error(s, off, NULL, "%s and %s cannot be %s%s", dim_name(a->dim), dim_name(b->dim),
		     verb, hint(a->dim, b->dim));
	return bad;
}

static bool is_page_bytes(const struct node *n)
{
	const struct signal_info *info;

	if (n->kind != NODE_SIGNAL)
		return false;
	info = signal_describe(&n->ref);
	return info && streq(info->name, "machine.page_bytes");
}

static struct vdim product(const struct node *na, const struct node *nb)
{
	struct vdim a = na->dim, b = nb->dim, swap;

	if (a.plain && b.plain)
		return plain;
	if (without(a) && without(b))
		return (a.d.unit == UNIT_COUNT && !a.plain) || (b.d.unit == UNIT_COUNT && !b.plain)
			       ? dim_of((struct dimension){UNIT_COUNT, false})
			       : dim_of((struct dimension){UNIT_RATIO, false});
	for (int i = 0; i < 2; i++) {
		if (without(a))
			return b;
		if (is(a, UNIT_SECONDS, false) && b.d.per_second)
			return dim_of((struct dimension){b.d.unit, false});
		if (is(a, UNIT_COUNT, true) && !b.d.per_second)
			return dim_of((struct dimension){b.d.unit, true});
		swap = a;
		a = b;
		b = swap;
	}
	if ((a.d.unit == UNIT_PAGES && is_page_bytes(nb)) ||
	    (b.d.unit == UNIT_PAGES && is_page_bytes(na)))
		return dim_of((struct dimension){
			UNIT_BYTES, a.d.unit == UNIT_PAGES ? a.d.per_second : b.d.per_second});
	return bad;
}

struct vdim dim_product(struct origin *s, size_t off, const struct node *a, const struct node *b)
{
	struct vdim d;

	if (!numbers(s, "multiplied", a, b))
		return bad;
	d = product(a, b);
	if (d.bad)
		source_error(s, off, NULL, "%s times %s is nothing that can be compared",
			     dim_name(a->dim), dim_name(b->dim));
	return d;
}

static struct vdim quotient(const struct node *na, const struct node *nb)
{
	struct vdim a = na->dim, b = nb->dim;

	if (a.d.unit == UNIT_BYTES && is_page_bytes(nb))
		return dim_of((struct dimension){UNIT_PAGES, a.d.per_second});
	if (without(a) && without(b))
		return a.plain || (a.d.unit == b.d.unit && !b.plain) ||
				       (a.d.unit == UNIT_RATIO && !b.plain)
			       ? plain
			       : a;
	if (without(b))
		return a;
	if (same(a, b))
		return plain;
	if (is(b, UNIT_SECONDS, false) && !a.d.per_second)
		return dim_of((struct dimension){a.d.unit, true});
	if (is(b, UNIT_COUNT, true) && a.d.per_second)
		return dim_of((struct dimension){a.d.unit, false});
	if (a.d.unit == b.d.unit && a.d.per_second)
		return dim_of((struct dimension){UNIT_COUNT, true});
	if (a.d.unit == b.d.unit)
		return dim_of((struct dimension){UNIT_SECONDS, false});
	return bad;
}

struct vdim dim_quotient(struct origin *s, size_t off, const struct node *a, const struct node *b)
{
	struct vdim d;

	if (!numbers(s, "divided", a, b))
		return bad;
	if (b->constant && b->number == 0) {
		source_error(s, b->off, NULL, "a division by zero is always unknown");
		return bad;
	}
	d = quotient(a, b);
	if (d.bad)
		source_error(s, off, NULL, "%s divided by %s is nothing that can be compared",
			     dim_name(a->dim), dim_name(b->dim));
	return d;
}

struct vdim dim_rate(struct origin *s, const struct node *arg)
{
	struct vdim d = arg->dim;

	if (d.bad)
		return bad;
	if (d.d.per_second) {
		source_error(s, arg->off, NULL, "this is %s, a rate already", dim_name(d));
		return bad;
	}
	return dim_of((struct dimension){d.d.unit, true});
}
