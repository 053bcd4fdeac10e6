/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * or < and < not < comparison < sum < product < minus < value. Names, arguments and dimensions are
 * checked on the way up; after a clash of dimensions the parse goes on, after a word that does not
 * fit it ends.
 */
#include "policy/expr-internal.h"

#include "base/nearest.h"

#include <errno.h>
#include <math.h>

/* Parentheses, calls and signs inside each other; keeps the recursion short. */
#define DEPTH_MAX 40U
/* Above every order there is, and low enough to shift a page size by. */
#define ORDER_OF_NO_MACHINE 40

struct parser {
	struct origin *s;
	struct tree *t;
	const struct expr_table *table;
	struct token token; /* the one at hand */
	size_t last_end;    /* where the one before ended */
	unsigned flags, depth;
	bool stop; /* a syntax error: no more is told */
};

static void advance(struct parser *p)
{
	p->last_end = p->token.off + p->token.len;
	p->token = lex(p->s, p->last_end);
	if (p->token.kind == TOKEN_BAD)
		p->stop = true;
}

static struct node *at(const struct parser *p, uint32_t i)
{
	return &p->t->nodes[i];
}

static uint32_t stop(struct parser *p, const char *expected)
{
	if (!p->stop) {
		if (p->token.kind == TOKEN_END)
			source_error(p->s, p->token.off, NULL,
				     "the expression ends where %s should be", expected);
		else
			source_error(p->s, p->token.off, NULL, "`%.*s` where %s should be",
				     (int)MIN_OF(p->token.len, (size_t)60),
				     p->s->v->text + p->token.off, expected);
	}
	p->stop = true;
	return NO_NODE;
}

static uint32_t new_node(struct parser *p, enum node_kind kind, size_t off)
{
	struct tree *t = p->t;

	if (t->nr == t->room) {
		uint32_t room = t->room ? t->room * 2 : 32;
		struct node *nodes = realloc(t->nodes, room * sizeof(*nodes));

		if (!nodes) {
			t->no_memory = p->stop = true;
			return NO_NODE;
		}
		t->nodes = nodes;
		t->room = room;
	}
	t->nodes[t->nr] = (struct node){.kind = kind, .off = off, .a = NO_NODE, .b = NO_NODE};
	return t->nr++;
}

/* The node now reaches to the end of the token before the one at hand. */
static uint32_t finish(struct parser *p, uint32_t i)
{
	at(p, i)->len = p->last_end - at(p, i)->off;
	return i;
}

static uint32_t parse_or(struct parser *p);
static uint32_t parse_sum(struct parser *p);

/* "1min 30s" is one time. */
static uint32_t parse_number(struct parser *p)
{
	uint32_t i = new_node(p, NODE_CONST, p->token.off);
	struct node *n;

	if (i == NO_NODE)
		return i;
	n = at(p, i);
	n->constant = true;
	n->number = p->token.number;
	n->dim = p->token.dim;
	advance(p);
	while (!p->stop && p->token.kind == TOKEN_NUMBER && n->dim.d.unit == UNIT_SECONDS &&
	       p->token.dim.d.unit == UNIT_SECONDS) {
		n->number += p->token.number;
		advance(p);
	}
	return finish(p, i);
}

static const struct expr_function functions[_FUNCTION_MAX] = {
	[FUNCTION_RATE] = {"rate", "x", "of x a second",
			   "Growth a second between the last two readings; for counters.", 1},
	[FUNCTION_DELTA] =
		{"delta", "x, time", "as x",
		 "Growth over the last `time`. A counter that goes backwards starts again.", 2},
	[FUNCTION_AVG] = {"avg", "x, time", "as x", "Average over the last `time`.", 2},
	[FUNCTION_MIN] = {"min", "x, time", "as x",
			  "Smallest value in the last `time`. With two values of one dimension in "
			  "place of a time: the smaller one.",
			  2},
	[FUNCTION_MAX] = {"max", "x, time", "as x",
			  "Largest value in the last `time`. With two values of one dimension in "
			  "place of a time: the larger one.",
			  2},
	[FUNCTION_BEFORE] =
		{"before", "x", "as x",
		 "Average over the minute that ended when pcptune last changed the knob at "
		 "hand; while nothing of pcptune's is in place, over the last minute.",
		 1},
	[FUNCTION_FRACTION_FOR] =
		{"fraction_for", "bytes", "a bare number",
		 "The percpu_pagelist_high_fraction at which each CPU may hold about "
		 "that much in the largest zone.",
		 1},
	[FUNCTION_BYTES_FOR] = {"bytes_for", "fraction", "bytes",
				"The other way: what each CPU may hold in the largest zone at that "
				"fraction; bytes_for(0) is the kernel's own minimum.",
				1},
};

const struct expr_function *expr_function_at(size_t i)
{
	return i < _FUNCTION_MAX ? &functions[i] : NULL;
}

static int find_function(const char *name, size_t len)
{
	for (int f = 0; f < _FUNCTION_MAX; f++)
		if (strlen(functions[f].name) == len && memcmp(functions[f].name, name, len) == 0)
			return f;
	return -ENOENT;
}

/* The known name that is nearest; patterns are no names. */
static const char *nearest_name(const char *name)
{
	struct nearest n = NEAREST(name);

	for (size_t i = 0; signal_info_at(i); i++)
		if (!strchr(signal_info_at(i)->name, 'X'))
			nearest_try(&n, signal_info_at(i)->name);
	for (size_t f = 0; f < _FUNCTION_MAX; f++)
		nearest_try(&n, functions[f].name);
	return n.best;
}

static void unknown_signal(struct parser *p, size_t off, const char *name, int r)
{
	const char *best = p->s->d ? nearest_name(name) : NULL;

	if (r == -EINVAL)
		source_error(
			p->s, off, best,
			"\"%s\" names no folio size of this machine: sizes are powers of two times "
			"the page, as in 64kB",
			name);
	else if (strchr(name, '.'))
		source_error(p->s, off, best, "there is no signal \"%s\"", name);
	else
		source_error(p->s, off, best,
			     "there is no signal or function \"%s\"; signals have a family, as in "
			     "vmstat.compact_stall",
			     name);
}

static uint32_t half_of_ratio(struct parser *p, uint32_t ratio, const char *name)
{
	size_t off = at(p, ratio)->off;
	uint32_t signal = new_node(p, NODE_SIGNAL, off), call = new_node(p, NODE_CALL, off);
	struct node *n;

	if (signal == NO_NODE || call == NO_NODE)
		return NO_NODE;
	n = at(p, signal);
	if (signal_resolve(name, p->table->page_bytes, &n->ref) < 0) {
		p->stop = p->s->failed = true;
		return NO_NODE;
	}
	n->ref.order = at(p, ratio)->ref.order;
	n->dim = dim_of(signal_dimension(&n->ref));
	(void)finish(p, signal);
	at(p, call)->function = FUNCTION_DELTA;
	at(p, call)->windowed = true;
	at(p, call)->window_usec = USEC_PER_MINUTE;
	at(p, call)->a = signal;
	at(p, call)->dim = at(p, signal)->dim;
	return finish(p, call);
}

/* A ratio over the last minute is the growth of one counter divided by that of another. */
static uint32_t make_ratio(struct parser *p, uint32_t i)
{
	const struct signal_info *info = signal_describe(&at(p, i)->ref);
	uint32_t a, b;

	if (p->flags & EXPR_FACTS) {
		source_error(
			p->s, at(p, i)->off, NULL,
			"[Match] holds facts of the machine, which have no past: put \"%s\" into "
			"a rule",
			info->name);
		at(p, i)->dim.bad = true;
		return i;
	}
	a = half_of_ratio(p, i, info->numerator);
	b = half_of_ratio(p, i, info->denominator);
	if (a == NO_NODE || b == NO_NODE)
		return NO_NODE;
	at(p, i)->kind = NODE_BINARY;
	at(p, i)->op = TOKEN_SLASH;
	at(p, i)->a = a;
	at(p, i)->b = b;
	return i;
}

static uint32_t resolved_signal(struct parser *p, uint32_t i, const char *name)
{
	struct node *n = at(p, i);
	const struct signal_info *info = signal_describe(&n->ref);

	n->dim = dim_of(signal_dimension(&n->ref));
	if (n->ref.order == SIGNAL_ORDER_AT_HAND && !(p->flags & EXPR_ORDER_AT_HAND)) {
		source_error(
			p->s, n->off, NULL,
			"\"%s\" is of the order at hand, and there is none outside of [Order]: "
			"put a size into the name, as in %s",
			name,
			strncmp(name, "mthp.", 5) == 0 ? "mthp.64kB.anon_fault_alloc"
						       : "frag.unusable.64kB");
		n->dim.bad = true;
		return i;
	}
	return info->numerator ? make_ratio(p, i) : i;
}

/*
 * A size below the page is no error, for the policy may be meant for other machines too: it becomes
 * an order that none has, and so is unknown.
 */
static int resolve(const char *name, uint64_t page_bytes, struct signal_ref *ret)
{
	struct signal_ref ref;
	int r = signal_resolve(name, page_bytes, ret);

	for (uint64_t page = page_bytes / 2; r == -EINVAL && page >= 1024; page /= 2)
		if (signal_resolve(name, page, &ref) == 0 && page << ref.order < page_bytes) {
			ref.order = ORDER_OF_NO_MACHINE;
			*ret = ref;
			r = 0;
		}
	return r;
}

/* `arg` (may be NULL) stands in parentheses behind the name. */
static uint32_t make_signal(struct parser *p, size_t off, const char *name, const char *arg)
{
	uint32_t i = new_node(p, NODE_SIGNAL, off);
	const char *plain;
	struct node *n;
	int r;

	if (i == NO_NODE)
		return i;
	n = at(p, i);
	r = resolve(name, p->table->page_bytes, &n->ref);
	(void)finish(p, i);
	if (r < 0) {
		unknown_signal(p, off, name, r);
		n->dim.bad = true;
		return i;
	}
	plain = signal_describe(&n->ref)->name;
	if (!streq(plain, "process.running") != !arg) {
		source_error(p->s, off, NULL,
			     arg ? "the signal \"%s\" takes nothing in parentheses"
				 : "\"%s\" needs a command's name: process.running(\"postgres\")",
			     name);
		n->dim.bad = true;
		return i;
	}
	if (arg)
		(void)snprintf(n->ref.arg, sizeof(n->ref.arg), "%s", arg);
	return resolved_signal(p, i, name);
}

static bool expect(struct parser *p, enum token_kind kind, const char *what)
{
	if (!p->stop && p->token.kind == kind) {
		advance(p);
		return !p->stop;
	}
	(void)stop(p, what);
	return false;
}

/* name("argument") */
static uint32_t parse_signal_argument(struct parser *p, size_t off, const char *name)
{
	char command[sizeof(((struct signal_ref *)NULL)->arg)];
	struct token arg;

	advance(p);
	arg = p->token;
	if (p->stop || arg.kind != TOKEN_STRING)
		return stop(p, "a name between `\"`");
	advance(p);
	if (!expect(p, TOKEN_RPAREN, "`)`"))
		return NO_NODE;
	/* the kernel keeps 15 bytes of a command's name */
	if (arg.len < 3 || arg.len - 2 >= sizeof(command)) {
		source_error(p->s, arg.off, NULL, "a command's name has 1 to %zu bytes",
			     sizeof(command) - 1);
		p->stop = true;
		return NO_NODE;
	}
	(void)snprintf(command, sizeof(command), "%.*s", (int)arg.len - 2,
		       p->s->v->text + arg.off + 1);
	return make_signal(p, off, name, command);
}

static bool is_time(const struct node *n)
{
	return n->constant && !n->dim.plain && n->dim.d.unit == UNIT_SECONDS &&
	       !n->dim.d.per_second;
}

static void check_window(struct parser *p, struct node *n, const struct node *window)
{
	if (window->dim.bad) {
		n->dim.bad = true;
		return;
	}
	if (!is_time(window)) {
		source_error(p->s, window->off, NULL, "%s() needs a time here, as in 60s",
			     functions[n->function].name);
		n->dim.bad = true;
		return;
	}
	if (window->number < 1 || window->number * 1e6 > (double)EXPR_WINDOW_MAX) {
		source_error(p->s, window->off, NULL, "a window is 1 s to 15 min long");
		n->dim.bad = true;
		return;
	}
	n->window_usec = (uint64_t)llround(window->number * 1e6);
}

/* A window function: x must be a number, and there must be ticks to look back on. */
static void check_series(struct parser *p, struct node *n)
{
	const struct node *arg = at(p, n->a);

	n->windowed = true;
	if (p->flags & EXPR_FACTS) {
		source_error(
			p->s, n->off, NULL,
			"[Match] holds facts of the machine, which have no past: put %s() into a "
			"rule",
			functions[n->function].name);
		n->dim.bad = true;
		return;
	}
	if (arg->dim.bad) {
		n->dim.bad = true;
		return;
	}
	if (dim_is_condition(arg->dim)) {
		source_error(p->s, arg->off, NULL, "%s() needs a number, and this is a condition",
			     functions[n->function].name);
		n->dim.bad = true;
		return;
	}
	n->dim = n->function == FUNCTION_RATE ? dim_rate(p->s, arg) : arg->dim;
	if (n->function == FUNCTION_BEFORE)
		n->window_usec = EXPR_BEFORE_WINDOW;
	else if (n->function != FUNCTION_RATE && !n->dim.bad)
		check_window(p, n, at(p, n->b));
}

static void check_sizing(struct parser *p, struct node *n)
{
	const struct node *arg = at(p, n->a);
	bool for_fraction = n->function == FUNCTION_FRACTION_FOR;
	bool fits = for_fraction ? arg->dim.d.unit == UNIT_BYTES && !arg->dim.d.per_second
				 : arg->dim.plain || (arg->dim.d.unit == UNIT_COUNT &&
						      !arg->dim.d.per_second);

	n->dim.bad = arg->dim.bad;
	if (arg->dim.bad)
		return;
	if (!fits) {
		source_error(p->s, arg->off, NULL, "%s() needs %s, and this is %s",
			     functions[n->function].name,
			     for_fraction ? "bytes, as in 4M" : "a bare number",
			     dim_name(arg->dim));
		n->dim.bad = true;
		return;
	}
	n->dim = for_fraction ? (struct vdim){.d = {UNIT_COUNT, false}, .plain = true}
			      : dim_of((struct dimension){UNIT_BYTES, false});
}

static void check_call(struct parser *p, uint32_t i)
{
	struct node *n = at(p, i);
	bool extreme = n->function == FUNCTION_MIN || n->function == FUNCTION_MAX;

	if (n->function == FUNCTION_FRACTION_FOR || n->function == FUNCTION_BYTES_FOR) {
		check_sizing(p, n);
		return;
	}
	if (extreme && !at(p, n->b)->dim.bad && !is_time(at(p, n->b))) {
		const struct node *a = at(p, n->a), *b = at(p, n->b);

		n->dim = dim_sum(p->s, n->off, "compared", a, b);
		if (!n->dim.bad && a->constant && b->constant) {
			n->constant = true;
			n->number = n->function == FUNCTION_MIN ? fmin(a->number, b->number)
								: fmax(a->number, b->number);
		}
		return;
	}
	check_series(p, n);
}

static uint32_t parse_arguments(struct parser *p, uint32_t i)
{
	enum function f = at(p, i)->function;
	uint32_t arg;

	arg = parse_or(p);
	if (p->stop)
		return NO_NODE;
	at(p, i)->a = arg;
	if (functions[f].nr_args == 2) {
		if (p->token.kind == TOKEN_RPAREN) {
			source_error(p->s, p->token.off, NULL,
				     "%s(%s) needs a second argument, as in %s(x, 60s)",
				     functions[f].name, functions[f].args, functions[f].name);
			p->stop = true;
			return NO_NODE;
		}
		if (!expect(p, TOKEN_COMMA, "`,`"))
			return NO_NODE;
		arg = parse_sum(p);
		if (p->stop)
			return NO_NODE;
		at(p, i)->b = arg;
	}
	if (p->token.kind == TOKEN_COMMA) {
		source_error(p->s, p->token.off, NULL, "%s(%s) takes no more arguments",
			     functions[f].name, functions[f].args);
		p->stop = true;
		return NO_NODE;
	}
	if (!expect(p, TOKEN_RPAREN, "`)` or an operator"))
		return NO_NODE;
	return i;
}

static uint32_t parse_call(struct parser *p, struct token name, int f)
{
	uint32_t i = new_node(p, NODE_CALL, name.off);

	if (i == NO_NODE)
		return i;
	at(p, i)->function = (enum function)f;
	advance(p);
	if (p->stop || parse_arguments(p, i) == NO_NODE)
		return NO_NODE;
	(void)finish(p, i);
	check_call(p, i);
	return i;
}

static uint32_t parse_name(struct parser *p)
{
	struct token name = p->token;
	char text[SIGNAL_NAME_MAX];
	int f = find_function(p->s->v->text + name.off, name.len);

	if (name.len >= sizeof(text)) {
		source_error(p->s, name.off, NULL, "a name of %zu bytes is no signal's", name.len);
		p->stop = true;
		return NO_NODE;
	}
	(void)snprintf(text, sizeof(text), "%.*s", (int)name.len, p->s->v->text + name.off);
	advance(p);
	if (p->stop)
		return NO_NODE;
	if (p->token.kind == TOKEN_LPAREN) {
		struct token next;

		if (f >= 0)
			return parse_call(p, name, f);
		next = lex(&(struct origin){.v = p->s->v}, p->token.off + p->token.len);
		if (p->s->v->text[next.off] == '"')
			return parse_signal_argument(p, name.off, text);
		source_error(p->s, name.off, nearest_name(text), "there is no function \"%s\"",
			     text);
		p->stop = true;
		return NO_NODE;
	}
	if (f >= 0) {
		source_error(p->s, name.off, NULL, "%s is a function: write %s(%s)", text, text,
			     functions[f].args);
		p->stop = true;
		return NO_NODE;
	}
	return make_signal(p, name.off, text, NULL);
}

static uint32_t parse_parentheses(struct parser *p)
{
	size_t off = p->token.off;
	uint32_t i;

	advance(p);
	if (p->stop)
		return NO_NODE;
	i = parse_or(p);
	if (p->stop || !expect(p, TOKEN_RPAREN, "`)` or an operator"))
		return NO_NODE;
	at(p, i)->off = off;
	return finish(p, i);
}

static uint32_t parse_value(struct parser *p)
{
	uint32_t i;

	if (p->stop)
		return NO_NODE;
	if (p->depth >= DEPTH_MAX) {
		source_error(p->s, p->token.off, NULL, "parentheses and calls go too deep here");
		p->stop = true;
		return NO_NODE;
	}
	p->depth++;
	switch (p->token.kind) {
	case TOKEN_NUMBER:
		i = parse_number(p);
		break;
	case TOKEN_NAME:
		i = parse_name(p);
		break;
	case TOKEN_LPAREN:
		i = parse_parentheses(p);
		break;
	default:
		i = stop(p, "a signal, a number or `(`");
	}
	p->depth--;
	return i;
}

static uint32_t parse_sign(struct parser *p)
{
	size_t off = p->token.off;
	uint32_t i, operand;

	if (p->stop || p->token.kind != TOKEN_MINUS)
		return parse_value(p);
	if (p->depth >= DEPTH_MAX)
		return parse_value(p);
	advance(p);
	p->depth++;
	operand = parse_sign(p);
	p->depth--;
	if (p->stop)
		return NO_NODE;
	i = new_node(p, NODE_UNARY, off);
	if (i == NO_NODE)
		return i;
	at(p, i)->op = TOKEN_MINUS;
	at(p, i)->a = operand;
	at(p, i)->dim = at(p, operand)->dim;
	at(p, i)->constant = at(p, operand)->constant;
	at(p, i)->number = -at(p, operand)->number;
	if (dim_is_condition(at(p, operand)->dim)) {
		source_error(p->s, off, NULL, "this is a condition: write `not`");
		at(p, i)->dim.bad = true;
	}
	return finish(p, i);
}

static void check_arithmetic(struct parser *p, uint32_t i, size_t op_off)
{
	struct node *n = at(p, i);
	const struct node *a = at(p, n->a), *b = at(p, n->b);

	switch (n->op) {
	case TOKEN_PLUS:
		n->dim = dim_sum(p->s, op_off, "added", a, b);
		break;
	case TOKEN_MINUS:
		n->dim = dim_sum(p->s, op_off, "subtracted", a, b);
		break;
	case TOKEN_STAR:
		n->dim = dim_product(p->s, op_off, a, b);
		break;
	default:
		n->dim = dim_quotient(p->s, op_off, a, b);
	}
	if (n->dim.bad || !a->constant || !b->constant)
		return;
	n->constant = true;
	n->number = n->op == TOKEN_PLUS    ? a->number + b->number
		    : n->op == TOKEN_MINUS ? a->number - b->number
		    : n->op == TOKEN_STAR  ? a->number * b->number
					   : a->number / b->number;
	if (!isfinite(n->number)) {
		source_error(p->s, op_off, NULL, "this is no finite number");
		n->dim.bad = true;
	}
}

static uint32_t binary(struct parser *p, uint32_t a, uint32_t b, enum token_kind op)
{
	uint32_t i = new_node(p, NODE_BINARY, at(p, a)->off);

	if (i == NO_NODE)
		return i;
	at(p, i)->op = op;
	at(p, i)->a = a;
	at(p, i)->b = b;
	return finish(p, i);
}

static uint32_t parse_arithmetic(struct parser *p, enum token_kind op1, enum token_kind op2,
				 uint32_t (*operand)(struct parser *))
{
	uint32_t a = operand(p), b;

	while (!p->stop && (p->token.kind == op1 || p->token.kind == op2)) {
		enum token_kind op = p->token.kind;
		size_t off = p->token.off;

		advance(p);
		b = operand(p);
		if (p->stop)
			return NO_NODE;
		a = binary(p, a, b, op);
		if (a == NO_NODE)
			return a;
		check_arithmetic(p, a, off);
	}
	return p->stop ? NO_NODE : a;
}

static uint32_t parse_product(struct parser *p)
{
	return parse_arithmetic(p, TOKEN_STAR, TOKEN_SLASH, parse_sign);
}

static uint32_t parse_sum(struct parser *p)
{
	return parse_arithmetic(p, TOKEN_PLUS, TOKEN_MINUS, parse_product);
}

static bool is_comparison(enum token_kind k)
{
	return k >= TOKEN_LT && k <= TOKEN_NE;
}

static uint32_t parse_comparison(struct parser *p)
{
	uint32_t a = parse_sum(p), b;
	enum token_kind op = p->token.kind;
	size_t off = p->token.off;
	struct vdim d;

	if (p->stop || !is_comparison(op))
		return a;
	advance(p);
	b = parse_sum(p);
	if (p->stop)
		return NO_NODE;
	if (is_comparison(p->token.kind)) {
		source_error(p->s, p->token.off, NULL,
			     "comparisons do not chain: write a < b and b < c");
		p->stop = true;
		return NO_NODE;
	}
	d = dim_sum(p->s, off, "compared", at(p, a), at(p, b));
	a = binary(p, a, b, op);
	if (a == NO_NODE)
		return a;
	at(p, a)->dim = (struct vdim){.d = {UNIT_BOOL, false}, .bad = d.bad};
	return a;
}

/* Operands of and, or, not must be conditions. */
static bool check_condition(struct parser *p, uint32_t i)
{
	const struct node *n = at(p, i);

	if (n->dim.bad)
		return false;
	if (dim_is_condition(n->dim))
		return true;
	source_error(p->s, n->off, NULL,
		     "this is %s where a condition should be: compare it with something",
		     dim_name(n->dim));
	return false;
}

static uint32_t parse_not(struct parser *p)
{
	size_t off = p->token.off;
	uint32_t operand, i;

	if (p->stop || p->token.kind != TOKEN_NOT || p->depth >= DEPTH_MAX)
		return parse_comparison(p);
	advance(p);
	p->depth++;
	operand = parse_not(p);
	p->depth--;
	if (p->stop)
		return NO_NODE;
	i = new_node(p, NODE_UNARY, off);
	if (i == NO_NODE)
		return i;
	at(p, i)->op = TOKEN_NOT;
	at(p, i)->a = operand;
	at(p, i)->dim = (struct vdim){.d = {UNIT_BOOL, false}, .bad = !check_condition(p, operand)};
	return finish(p, i);
}

static uint32_t parse_logic(struct parser *p, enum token_kind op,
			    uint32_t (*operand)(struct parser *))
{
	uint32_t a = operand(p), b;

	while (!p->stop && p->token.kind == op) {
		bool fine;

		advance(p);
		b = operand(p);
		if (p->stop)
			return NO_NODE;
		fine = check_condition(p, a);
		fine = check_condition(p, b) && fine;
		a = binary(p, a, b, op);
		if (a == NO_NODE)
			return a;
		at(p, a)->dim = (struct vdim){.d = {UNIT_BOOL, false}, .bad = !fine};
	}
	return p->stop ? NO_NODE : a;
}

static uint32_t parse_and(struct parser *p)
{
	return parse_logic(p, TOKEN_AND, parse_not);
}

static uint32_t parse_or(struct parser *p)
{
	return parse_logic(p, TOKEN_OR, parse_and);
}

/* Value= is the divisor of a zone's memory, which who thinks in shares writes as a share first. */
static void no_bare_number(struct parser *p, const struct node *n)
{
	const bool share = n->dim.d.unit == UNIT_RATIO && !n->dim.d.per_second && n->constant &&
			   n->number > 0 && n->number <= 0.125; /* the least is 8 */

	if (share)
		source_error(p->s, n->off, NULL,
			     "the value is a bare number N, and the lists hold 1/N of a zone: "
			     "for this share write %.0f",
			     1 / n->number);
	else
		source_error(p->s, n->off, NULL, "a bare number should be here, not %s",
			     dim_name(n->dim));
}

static bool check_want(struct parser *p, uint32_t root, enum expr_want want)
{
	const struct node *n = at(p, root);

	if (n->dim.bad)
		return false;
	if (want == EXPR_CONDITION)
		return check_condition(p, root);
	if (want == EXPR_NUMBER && !n->dim.plain &&
	    (n->dim.d.unit != UNIT_COUNT || n->dim.d.per_second)) {
		no_bare_number(p, n);
		return false;
	}
	return true;
}

uint32_t parse_expression(struct origin *s, struct tree *t, const struct expr_table *table,
			  enum expr_want want, unsigned flags)
{
	struct parser p = {.s = s, .t = t, .table = table, .flags = flags};
	uint32_t root;

	p.token = lex(s, 0);
	p.stop = p.token.kind == TOKEN_BAD;
	if (p.token.kind == TOKEN_END) {
		source_error(s, 0, NULL, "an expression should be here");
		return NO_NODE;
	}
	root = parse_or(&p);
	if (!p.stop && p.token.kind != TOKEN_END)
		return stop(&p, "an operator");
	if (p.stop || !check_want(&p, root, want) || s->failed)
		return NO_NODE;
	return root;
}
