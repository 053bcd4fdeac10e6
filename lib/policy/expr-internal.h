/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files that make up expressions: lexer, parser, compiler, evaluator. */
#pragma once

#include "policy/expr.h"

/*
 * The dimension of a value while it is checked. A *plain* number has none of its own (a bare
 * literal, a quotient of two of a kind) and goes with counts and with ratios.
 */
struct vdim {
	struct dimension d;
	bool plain;
	bool bad; /* an error was told already: stay silent */
};

enum token_kind {
	TOKEN_END,
	TOKEN_NUMBER,
	TOKEN_NAME,
	TOKEN_STRING,
	TOKEN_LPAREN,
	TOKEN_RPAREN,
	TOKEN_COMMA,
	TOKEN_PLUS,
	TOKEN_MINUS,
	TOKEN_STAR,
	TOKEN_SLASH,
	TOKEN_LT,
	TOKEN_LE,
	TOKEN_GT,
	TOKEN_GE,
	TOKEN_EQ,
	TOKEN_NE,
	TOKEN_AND,
	TOKEN_OR,
	TOKEN_NOT,
	TOKEN_BAD, /* told already */
};

struct token {
	enum token_kind kind;
	size_t off, len;
	double number;
	struct vdim dim; /* TOKEN_NUMBER */
};

/* Where an expression stands, and where its errors go. */
struct origin {
	const struct ini_value *v;
	struct diagnostics *d;
	bool failed;
};

void source_error(struct origin *s, size_t off, const char *nearest, const char *fmt, ...)
	_printf_(4, 5);

/* The token at `off` (blanks skipped). Tells what is wrong with it itself: TOKEN_BAD. */
struct token lex(struct origin *s, size_t off);

enum node_kind {
	NODE_CONST,
	NODE_SIGNAL,
	NODE_UNARY,  /* op: TOKEN_MINUS, TOKEN_NOT */
	NODE_BINARY, /* op: any of arithmetic, comparison, and, or */
	NODE_CALL,
};

enum function {
	FUNCTION_RATE,
	FUNCTION_DELTA,
	FUNCTION_AVG,
	FUNCTION_MIN,
	FUNCTION_MAX,
	FUNCTION_BEFORE,
	FUNCTION_FRACTION_FOR,
	FUNCTION_BYTES_FOR,
	_FUNCTION_MAX,
};

struct node {
	enum node_kind kind;
	enum token_kind op;
	enum function function;
	bool windowed;        /* NODE_CALL: a series */
	uint64_t window_usec; /* of it */
	size_t off, len;      /* in the text, parentheses included */
	struct vdim dim;
	bool constant; /* number is its value */
	double number;
	struct signal_ref ref;
	uint32_t a, b; /* children; NO_NODE */
};
#define NO_NODE UINT32_MAX

struct tree {
	struct node *nodes;
	uint32_t nr, room;
	bool no_memory;
};

/* Parses and checks the whole expression. The root, or NO_NODE after an error. */
uint32_t parse_expression(struct origin *s, struct tree *t, const struct expr_table *table,
			  enum expr_want want, unsigned flags);

/* Dimensions, see dimension.c. On a clash these tell it at `off` and give a bad one. */
struct vdim dim_sum(struct origin *s, size_t off, const char *verb, const struct node *a,
		    const struct node *b);
struct vdim dim_product(struct origin *s, size_t off, const struct node *a, const struct node *b);
struct vdim dim_quotient(struct origin *s, size_t off, const struct node *a, const struct node *b);
struct vdim dim_rate(struct origin *s, const struct node *arg);
struct vdim dim_of(struct dimension d);
bool dim_is_condition(struct vdim d);
const char *dim_name(struct vdim d); /* "bytes", "a bare number", "a condition" */

/* The program: postfix, one stack. */
enum opcode {
	OP_CONST,
	OP_SLOT,
	OP_HAND_SLOT,
	OP_SERIES,
	OP_HAND_SERIES,
	OP_NEG,
	OP_NOT,
	OP_FRACTION_FOR,
	OP_BYTES_FOR,
	OP_ADD, /* from here on two operands */
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_MIN,
	OP_MAX,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_EQ,
	OP_NE,
	OP_AND,
	OP_OR,
};

/* Bytewise comparable: no padding is left unset. */
struct op {
	uint32_t code; /* enum opcode */
	uint32_t arg;  /* slot or series */
	double number; /* OP_CONST */
};

struct term {
	uint32_t start, split, end; /* operands [start, split) and [split, end); end is the
				     * comparison. A bare condition: [start, end), split == end */
	bool comparison;
	uint32_t text_off, text_len;
	struct dimension left, right;
};

struct expr {
	char *text;
	struct op *ops;
	uint32_t nr_ops;
	struct term *terms;
	uint32_t nr_terms;
	struct dimension dimension;
	bool varies, uses_order;
};

double eval_ops(const struct op *ops, uint32_t from, uint32_t to, const struct expr_env *env);
double op_apply(enum opcode code, double a, double b);

/*
 * Can the condition hold because one of these signals is large (bounded from below by more than 0),
 * or small (bounded from above by less than 1)?
 */
bool expr_wants(const struct expr *e, const struct signal_ref *refs, size_t nr,
		const struct expr_table *t, bool large);
