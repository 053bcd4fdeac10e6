/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the checked tree to a program, and the table that programs share. */
#include "policy/expr-internal.h"

#include <assert.h>
#include <errno.h>

static const char *const series_names[_SERIES_KIND_MAX] = {
	[SERIES_RATE] = "rate", [SERIES_DELTA] = "delta", [SERIES_AVG] = "avg",
	[SERIES_MIN] = "min",   [SERIES_MAX] = "max",     [SERIES_BEFORE] = "before",
};

const char *series_kind_name(enum series_kind k)
{
	return k < _SERIES_KIND_MAX ? series_names[k] : NULL;
}

const char *kleene_name(enum kleene k)
{
	return k == KLEENE_TRUE ? "true" : k == KLEENE_FALSE ? "false" : "unknown";
}

struct builder {
	struct expr_table *table;
	const struct tree *tree;
	struct origin *s;
	struct expr *e;
	uint32_t ops_room, terms_room;
	unsigned depth, deepest;
	bool facts;
	int error;
};

static void free_tree(struct tree *t)
{
	free(t->nodes);
}

struct expr *expr_free(struct expr *e)
{
	if (!e)
		return NULL;
	free(e->text);
	free(e->ops);
	free(e->terms);
	free(e);
	return NULL;
}

void expr_table_free(struct expr_table *t)
{
	for (uint32_t i = 0; i < t->nr_series; i++) {
		free(t->series[i].text);
		(void)expr_free((struct expr *)t->series[i].arg);
	}
	free(t->series);
	free(t->slots);
	*t = (struct expr_table){.page_bytes = t->page_bytes};
}

static void emit(struct builder *b, enum opcode code, uint32_t arg, double number)
{
	struct expr *e = b->e;

	if (e->nr_ops == b->ops_room) {
		uint32_t room = b->ops_room ? b->ops_room * 2 : 16;
		struct op *ops = realloc(e->ops, room * sizeof(*ops));

		if (!ops) {
			b->error = -ENOMEM;
			return;
		}
		e->ops = ops;
		b->ops_room = room;
	}
	e->ops[e->nr_ops++] = (struct op){.code = code, .arg = arg, .number = number};
	if (code <= OP_HAND_SERIES)
		b->depth++;
	else if (code >= OP_ADD)
		b->depth--;
	b->deepest = MAX_OF(b->deepest, b->depth);
}

static int too_many(struct builder *b, const struct node *n)
{
	source_error(b->s, n->off, NULL,
		     "more than %u different signals or windows in all policies", EXPR_TABLE_MAX);
	return -EBADMSG;
}

static int intern_slot(struct builder *b, const struct node *n)
{
	struct expr_table *t = b->table;
	uint32_t i;

	for (i = 0; i < t->nr_slots; i++)
		if (memcmp(&t->slots[i].ref, &n->ref, sizeof(n->ref)) == 0)
			break;
	if (i == EXPR_TABLE_MAX)
		return too_many(b, n);
	if (i == t->slots_room) {
		uint32_t room = t->slots_room ? t->slots_room * 2 : 16;
		struct expr_slot *slots = realloc(t->slots, room * sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		t->slots = slots;
		t->slots_room = room;
	}
	if (i == t->nr_slots) {
		t->slots[i] = (struct expr_slot){.varies = n->ref.order == SIGNAL_ORDER_AT_HAND};
		(void)memcpy(&t->slots[i].ref, &n->ref, sizeof(n->ref));
		t->nr_slots++;
	}
	t->slots[i].each_tick = t->slots[i].each_tick || !b->facts;
	return (int)i;
}

static bool same_program(const struct expr *a, const struct expr *b)
{
	return a->nr_ops == b->nr_ops && memcmp(a->ops, b->ops, a->nr_ops * sizeof(*a->ops)) == 0;
}

/* The source with each run of blanks made one, and none inside of parentheses' edges. */
static char *tidy(const char *s, size_t len)
{
	char *out = malloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; out && i < len; i++) {
		bool blank = s[i] == ' ' || s[i] == '\t';

		if (blank && (n == 0 || out[n - 1] == ' ' || out[n - 1] == '('))
			continue;
		if (n > 0 && out[n - 1] == ' ' && (s[i] == ')' || s[i] == '(' || s[i] == ','))
			n--;
		out[n++] = blank ? ' ' : s[i];
	}
	if (out)
		out[n] = '\0';
	return out;
}

static enum series_kind series_of(enum function f)
{
	switch (f) {
	case FUNCTION_RATE:
		return SERIES_RATE;
	case FUNCTION_DELTA:
		return SERIES_DELTA;
	case FUNCTION_AVG:
		return SERIES_AVG;
	case FUNCTION_MIN:
		return SERIES_MIN;
	case FUNCTION_MAX:
		return SERIES_MAX;
	default:
		assert(f == FUNCTION_BEFORE);
		return SERIES_BEFORE;
	}
}

/* Text by which a series is known again: "delta(vmstat.compact_stall, 60s)". */
static char *series_text(const struct builder *b, const struct node *n)
{
	const struct node *arg = &b->tree->nodes[n->a];
	char name[SIGNAL_NAME_MAX], *text = NULL;
	const char *kind = series_names[series_of(n->function)];

	if (arg->kind != NODE_SIGNAL)
		return tidy(b->s->v->text + n->off, n->len);
	(void)signal_name(&arg->ref, b->table->page_bytes, name, sizeof(name));
	if (n->window_usec == 0 || n->function == FUNCTION_BEFORE)
		return asprintf(&text, "%s(%s)", kind, name) < 0 ? NULL : text;
	return asprintf(&text, "%s(%s, %gs)", kind, name, (double)n->window_usec / 1e6) < 0 ? NULL
											    : text;
}

static bool is_counter(const struct node *n)
{
	const struct signal_info *info = n->kind == NODE_SIGNAL ? signal_describe(&n->ref) : NULL;

	return info && info->counter;
}

static int build(struct expr_table *t, const struct tree *tree, uint32_t root, struct origin *s,
		 bool facts, struct expr **ret);

static int add_series(struct builder *b, const struct node *n, struct expr *arg)
{
	struct expr_table *t = b->table;
	struct expr_series *x;

	if (t->nr_series == EXPR_TABLE_MAX)
		return too_many(b, n);
	if (t->nr_series == t->series_room) {
		uint32_t room = t->series_room ? t->series_room * 2 : 16;

		x = realloc(t->series, room * sizeof(*x));
		if (!x)
			return -ENOMEM;
		t->series = x;
		t->series_room = room;
	}
	x = &t->series[t->nr_series];
	*x = (struct expr_series){.kind = series_of(n->function),
				  .window_usec = n->window_usec,
				  .arg = arg,
				  .varies = arg->varies || n->function == FUNCTION_BEFORE,
				  .counter = is_counter(&b->tree->nodes[n->a]),
				  .dimension = n->dim.d,
				  .text = series_text(b, n)};
	return x->text ? (int)t->nr_series++ : -ENOMEM;
}

static int intern_series(struct builder *b, const struct node *n)
{
	struct expr_table *t = b->table;
	_cleanup_(expr_freep) struct expr *arg = NULL;
	int r = build(t, b->tree, n->a, b->s, b->facts, &arg);

	if (r < 0)
		return r;
	b->e->uses_order = b->e->uses_order || arg->uses_order;
	for (uint32_t i = 0; i < t->nr_series; i++)
		if (t->series[i].kind == series_of(n->function) &&
		    t->series[i].window_usec == n->window_usec &&
		    same_program(t->series[i].arg, arg))
			return (int)i;
	r = add_series(b, n, arg);
	if (r >= 0)
		(void)TAKE_PTR(arg);
	return r;
}

static const enum opcode binary_ops[] = {
	[TOKEN_PLUS] = OP_ADD,  [TOKEN_MINUS] = OP_SUB, [TOKEN_STAR] = OP_MUL,
	[TOKEN_SLASH] = OP_DIV, [TOKEN_LT] = OP_LT,     [TOKEN_LE] = OP_LE,
	[TOKEN_GT] = OP_GT,     [TOKEN_GE] = OP_GE,     [TOKEN_EQ] = OP_EQ,
	[TOKEN_NE] = OP_NE,     [TOKEN_AND] = OP_AND,   [TOKEN_OR] = OP_OR,
};

static void add_term(struct builder *b, const struct node *n, uint32_t start, uint32_t split)
{
	struct expr *e = b->e;
	bool comparison = n->kind == NODE_BINARY;
	struct term *x;

	if (e->nr_terms == b->terms_room) {
		uint32_t room = b->terms_room ? b->terms_room * 2 : 8;

		x = realloc(e->terms, room * sizeof(*x));
		if (!x) {
			b->error = -ENOMEM;
			return;
		}
		e->terms = x;
		b->terms_room = room;
	}
	e->terms[e->nr_terms++] =
		(struct term){.start = start,
			      .split = split,
			      .end = comparison ? e->nr_ops - 1 : e->nr_ops,
			      .comparison = comparison,
			      .text_off = (uint32_t)n->off,
			      .text_len = (uint32_t)n->len,
			      .left = comparison ? b->tree->nodes[n->a].dim.d : n->dim.d,
			      .right = comparison ? b->tree->nodes[n->b].dim.d : n->dim.d};
}

static void generate(struct builder *b, uint32_t i);

static void generate_signal(struct builder *b, const struct node *n)
{
	uint32_t start = b->e->nr_ops;
	int r = intern_slot(b, n);
	bool varies = n->ref.order == SIGNAL_ORDER_AT_HAND;

	if (r < 0) {
		b->error = r;
		return;
	}
	b->e->varies = b->e->varies || varies;
	b->e->uses_order = b->e->uses_order || varies;
	emit(b, varies ? OP_HAND_SLOT : OP_SLOT, (uint32_t)r, 0);
	if (dim_is_condition(n->dim))
		add_term(b, n, start, b->e->nr_ops);
}

static void generate_call(struct builder *b, const struct node *n)
{
	bool varies;
	int r;

	if (n->windowed) {
		r = intern_series(b, n);
		if (r < 0) {
			b->error = r;
			return;
		}
		varies = b->table->series[r].varies;
		b->e->varies = b->e->varies || varies;
		emit(b, varies ? OP_HAND_SERIES : OP_SERIES, (uint32_t)r, 0);
		return;
	}
	generate(b, n->a);
	if (n->function == FUNCTION_FRACTION_FOR || n->function == FUNCTION_BYTES_FOR) {
		emit(b, n->function == FUNCTION_FRACTION_FOR ? OP_FRACTION_FOR : OP_BYTES_FOR, 0,
		     0);
		return;
	}
	generate(b, n->b);
	emit(b, n->function == FUNCTION_MIN ? OP_MIN : OP_MAX, 0, 0);
}

/* Recursion: to the right it is bounded by the parser's depth, to the left by the text's length. */
static void generate(struct builder *b, uint32_t i)
{
	const struct node *n = &b->tree->nodes[i];
	uint32_t start = b->e->nr_ops, split;

	if (b->error < 0)
		return;
	if (n->constant) {
		emit(b, OP_CONST, 0, n->number);
		return;
	}
	switch (n->kind) {
	case NODE_SIGNAL:
		generate_signal(b, n);
		break;
	case NODE_CALL:
		generate_call(b, n);
		break;
	case NODE_UNARY:
		generate(b, n->a);
		emit(b, n->op == TOKEN_NOT ? OP_NOT : OP_NEG, 0, 0);
		break;
	case NODE_BINARY:
		generate(b, n->a);
		split = b->e->nr_ops;
		generate(b, n->b);
		emit(b, binary_ops[n->op], 0, 0);
		if (b->error == 0 && n->op >= TOKEN_LT && n->op <= TOKEN_NE)
			add_term(b, n, start, split);
		break;
	case NODE_CONST:
		break;
	}
}

static int build(struct expr_table *t, const struct tree *tree, uint32_t root, struct origin *s,
		 bool facts, struct expr **ret)
{
	_cleanup_(expr_freep) struct expr *e = calloc(1, sizeof(*e));
	struct builder b = {.table = t, .tree = tree, .s = s, .e = e, .facts = facts};

	if (!e)
		return -ENOMEM;
	e->text = strdup(s->v->text);
	if (!e->text)
		return -ENOMEM;
	e->dimension = tree->nodes[root].dim.d;
	generate(&b, root);
	if (b.error == 0 && b.deepest > EXPR_STACK) {
		source_error(s, tree->nodes[root].off, NULL, "this expression is too deep");
		b.error = -EBADMSG;
	}
	if (b.error < 0)
		return b.error;
	*ret = TAKE_PTR(e);
	return 0;
}

int expr_compile(struct expr_table *t, const struct ini_value *v, enum expr_want want,
		 unsigned flags, struct expr **ret, struct diagnostics *d)
{
	_cleanup_(free_tree) struct tree tree = {0};
	struct origin s = {.v = v, .d = d};
	uint32_t root;

	if (strlen(v->text) > EXPR_TEXT_MAX) {
		source_error(&s, 0, NULL, "an expression has at most %u bytes", EXPR_TEXT_MAX);
		return -EBADMSG;
	}
	root = parse_expression(&s, &tree, t, want, flags);
	if (tree.no_memory)
		return -ENOMEM;
	if (root == NO_NODE)
		return -EBADMSG;
	return build(t, &tree, root, &s, flags & EXPR_FACTS, ret);
}

int expr_compile_text(struct expr_table *t, const char *file, const char *text, enum expr_want want,
		      unsigned flags, struct expr **ret, struct diagnostics *d)
{
	struct ini_part part = {.offset = 0, .line = 1, .column = 1, .raw = (char *)text};
	struct ini_value v = {.text = (char *)text,
			      .file = file,
			      .line = 1,
			      .column = 1,
			      .raw = (char *)text,
			      .parts = &part,
			      .nr_parts = 1};

	return expr_compile(t, &v, want, flags, ret, d);
}

uint32_t expr_table_sources(const struct expr_table *t, bool each_tick_only)
{
	uint32_t sources = 0;

	for (uint32_t i = 0; i < t->nr_slots; i++) {
		const struct signal_info *info = signal_describe(&t->slots[i].ref);

		if (info && (t->slots[i].each_tick || !each_tick_only))
			sources |= info->sources;
	}
	return sources;
}

const char *expr_text(const struct expr *e)
{
	return e->text;
}

struct dimension expr_dimension(const struct expr *e)
{
	return e->dimension;
}

bool expr_varies(const struct expr *e)
{
	return e->varies;
}

bool expr_uses_order(const struct expr *e)
{
	return e->uses_order;
}

size_t expr_nr_terms(const struct expr *e)
{
	return e->nr_terms;
}

bool expr_next_use(const struct expr *e, size_t *it, struct expr_use *ret)
{
	for (; *it < e->nr_ops; (*it)++) {
		const struct op *o = &e->ops[*it];
		bool first = true;

		if (o->code < OP_SLOT || o->code > OP_HAND_SERIES)
			continue;
		for (size_t k = 0; k < *it && first; k++)
			first = e->ops[k].code != o->code || e->ops[k].arg != o->arg;
		if (!first)
			continue;
		*ret = (struct expr_use){.is_series = o->code >= OP_SERIES, .id = o->arg};
		(*it)++;
		return true;
	}
	return false;
}
