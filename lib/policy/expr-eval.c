/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/expr-internal.h"

#include "base/format.h"

#include <math.h>

/* Kleene's logic over 0, 1 and NaN. */
static double kleene_and(double a, double b)
{
	if (a == 0 || b == 0)
		return 0;
	return a + b == 2 ? 1 : NAN;
}

static double kleene_or(double a, double b)
{
	if (a == 1 || b == 1)
		return 1;
	return a + b == 0 ? 0 : NAN;
}

static double finite_or_unknown(double v)
{
	return isfinite(v) ? v : NAN;
}

static double compare(enum opcode code, double a, double b)
{
	if (isnan(a) || isnan(b))
		return NAN;
	switch (code) {
	case OP_LT:
		return a < b;
	case OP_LE:
		return a <= b;
	case OP_GT:
		return a > b;
	case OP_GE:
		return a >= b;
	case OP_EQ:
		return a == b;
	default:
		return a != b;
	}
}

double op_apply(enum opcode code, double a, double b)
{
	switch (code) {
	case OP_ADD:
		return finite_or_unknown(a + b);
	case OP_SUB:
		return finite_or_unknown(a - b);
	case OP_MUL:
		return finite_or_unknown(a * b);
	case OP_DIV:
		return b == 0 ? NAN : finite_or_unknown(a / b);
	case OP_MIN:
		return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	case OP_MAX:
		return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	case OP_AND:
		return kleene_and(a, b);
	case OP_OR:
		return kleene_or(a, b);
	default:
		return compare(code, a, b);
	}
}

static double load(const double *values, uint32_t i)
{
	return values ? values[i] : NAN;
}

static double fraction_for(const struct pcp_sizing *z, double bytes)
{
	if (!z || isnan(bytes) || z->page_bytes == 0)
		return NAN;
	return (double)pcp_fraction_for(z, bytes / (double)z->page_bytes);
}

static double bytes_for(const struct pcp_sizing *z, double fraction)
{
	if (!z || !(fraction >= 0) || fraction > (double)HIGH_FRACTION_MAX)
		return NAN;
	return (double)(pcp_highsize(z, (uint64_t)fraction) * z->page_bytes);
}

double eval_ops(const struct op *ops, uint32_t from, uint32_t to, const struct expr_env *env)
{
	double stack[EXPR_STACK];
	unsigned n = 0;

	for (uint32_t i = from; i < to; i++) {
		const struct op *o = &ops[i];

		switch ((enum opcode)o->code) {
		case OP_CONST:
			stack[n++] = o->number;
			break;
		case OP_SLOT:
			stack[n++] = load(env->slots, o->arg);
			break;
		case OP_HAND_SLOT:
			stack[n++] = load(env->hand_slots, o->arg);
			break;
		case OP_SERIES:
			stack[n++] = load(env->series, o->arg);
			break;
		case OP_HAND_SERIES:
			stack[n++] = load(env->hand_series, o->arg);
			break;
		case OP_NEG:
			stack[n - 1] = -stack[n - 1];
			break;
		case OP_NOT:
			stack[n - 1] = 1 - stack[n - 1];
			break;
		case OP_FRACTION_FOR:
			stack[n - 1] = fraction_for(env->sizing, stack[n - 1]);
			break;
		case OP_BYTES_FOR:
			stack[n - 1] = bytes_for(env->sizing, stack[n - 1]);
			break;
		default:
			n--;
			stack[n - 1] = op_apply((enum opcode)o->code, stack[n - 1], stack[n]);
		}
	}
	return stack[0];
}

double expr_eval(const struct expr *e, const struct expr_env *env)
{
	return eval_ops(e->ops, 0, e->nr_ops, env);
}

static enum kleene to_kleene(double v)
{
	return isnan(v) ? KLEENE_UNKNOWN : v != 0 ? KLEENE_TRUE : KLEENE_FALSE;
}

enum kleene expr_test(const struct expr *e, const struct expr_env *env)
{
	return to_kleene(expr_eval(e, env));
}

void expr_term_eval(const struct expr *e, size_t i, const struct expr_env *env,
		    struct expr_term *ret)
{
	const struct term *t = &e->terms[i];

	*ret = (struct expr_term){.text = e->text + t->text_off,
				  .len = t->text_len,
				  .comparison = t->comparison,
				  .left = NAN,
				  .right = NAN,
				  .left_dimension = t->left,
				  .right_dimension = t->right};
	if (!t->comparison) {
		ret->holds = to_kleene(eval_ops(e->ops, t->start, t->end, env));
		return;
	}
	ret->left = eval_ops(e->ops, t->start, t->split, env);
	ret->right = eval_ops(e->ops, t->split, t->end, env);
	ret->holds = to_kleene(op_apply((enum opcode)e->ops[t->end].code, ret->left, ret->right));
}

/* Signals are 0 and 1 where they are conditions; anything else would break the logic. */
static double clean(const struct expr_slot *slot, bool known, double v)
{
	if (!known || !isfinite(v))
		return NAN;
	return signal_dimension(&slot->ref).unit == UNIT_BOOL ? v != 0 : v;
}

static void read_slot(const struct expr_table *t, uint32_t i, const struct snapshot *s, int order,
		      double *slots, const char **why)
{
	const char *reason = "there is no order at hand";
	double v = NAN;
	bool known = false;

	if (!t->slots[i].varies || order >= 0) {
		reason = "not read";
		known = signal_read(&t->slots[i].ref, s, order < 0 ? 0 : (unsigned)order, &v,
				    &reason);
	}
	slots[i] = clean(&t->slots[i], known, v);
	if (why)
		why[i] = isnan(slots[i]) ? reason : NULL;
}

void expr_table_read(const struct expr_table *t, const struct snapshot *s, double *slots,
		     const char **why)
{
	for (uint32_t i = 0; i < t->nr_slots; i++)
		if (!t->slots[i].varies)
			read_slot(t, i, s, -1, slots, why);
}

void expr_table_read_hand(const struct expr_table *t, const struct snapshot *s, int order,
			  double *slots, const char **why)
{
	for (uint32_t i = 0; i < t->nr_slots; i++)
		if (t->slots[i].varies)
			read_slot(t, i, s, order, slots, why);
}

const char *value_format(char *buf, size_t size, struct dimension d, double value)
{
	const char *sign = value < 0 ? "-" : "", *per = d.per_second ? "/s" : "";
	double v = fabs(value);
	char part[FORMAT_MAX] = "";

	if (isnan(value)) {
		(void)snprintf(buf, size, "unknown");
		return buf;
	}
	switch (d.unit) {
	case UNIT_BYTES:
		(void)format_bytes(part, sizeof(part), v < 0x1p63 ? (uint64_t)v : UINT64_MAX);
		break;
	case UNIT_RATIO:
		(void)format_ratio(part, sizeof(part), v);
		break;
	case UNIT_SECONDS:
		(void)format_usec(part, sizeof(part),
				  v * 1e6 < 0x1p63 ? (uint64_t)(v * 1e6) : UINT64_MAX);
		break;
	case UNIT_BOOL:
		(void)snprintf(part, sizeof(part), "%s", v != 0 ? "yes" : "no");
		break;
	case UNIT_PAGES:
		(void)snprintf(part, sizeof(part), "%.6g pages", v);
		break;
	case UNIT_COUNT:
	case _UNIT_MAX:
		(void)snprintf(part, sizeof(part), "%.6g", v);
	}
	(void)snprintf(buf, size, "%s%s%s", sign, part, per);
	return buf;
}
