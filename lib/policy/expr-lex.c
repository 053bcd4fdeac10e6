/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/expr-internal.h"

#include <ctype.h>
#include <math.h>

void source_error(struct origin *s, size_t off, const char *nearest, const char *fmt, ...)
{
	char message[400];
	const char *raw;
	struct ini_pos pos = ini_value_pos(s->v, off, &raw);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	s->failed = true;
	(void)diagnostics_add(s->d, &pos, raw, nearest, "%s", message);
}

static bool is_name_start(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static const struct literal_unit {
	const char *name;
	double factor;
	enum unit unit;
	bool plain;
} literal_units[] = {
	{"", 1, UNIT_COUNT, true},          {"%", 0.01, UNIT_RATIO, false},
	{"pages", 1, UNIT_PAGES, false},    {"B", 1, UNIT_BYTES, false},
	{"k", 0x1p10, UNIT_BYTES, false},   {"K", 0x1p10, UNIT_BYTES, false},
	{"kB", 0x1p10, UNIT_BYTES, false},  {"KB", 0x1p10, UNIT_BYTES, false},
	{"KiB", 0x1p10, UNIT_BYTES, false}, {"kiB", 0x1p10, UNIT_BYTES, false},
	{"M", 0x1p20, UNIT_BYTES, false},   {"MB", 0x1p20, UNIT_BYTES, false},
	{"MiB", 0x1p20, UNIT_BYTES, false}, {"G", 0x1p30, UNIT_BYTES, false},
	{"GB", 0x1p30, UNIT_BYTES, false},  {"GiB", 0x1p30, UNIT_BYTES, false},
	{"T", 0x1p40, UNIT_BYTES, false},   {"TB", 0x1p40, UNIT_BYTES, false},
	{"TiB", 0x1p40, UNIT_BYTES, false}, {"us", 1e-6, UNIT_SECONDS, false},
	{"ms", 1e-3, UNIT_SECONDS, false},  {"s", 1, UNIT_SECONDS, false},
	{"sec", 1, UNIT_SECONDS, false},    {"m", 60, UNIT_SECONDS, false},
	{"min", 60, UNIT_SECONDS, false},   {"h", 3600, UNIT_SECONDS, false},
	{"d", 86400, UNIT_SECONDS, false},
};

static const struct literal_unit *find_unit(const char *s, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(literal_units); i++)
		if (strlen(literal_units[i].name) == len &&
		    memcmp(literal_units[i].name, s, len) == 0)
			return &literal_units[i];
	return NULL;
}

/* Digits with an optional fraction at *p; by hand, for strtod() knows too many notations. */
static double read_decimal(const char **p)
{
	double v = 0, scale = 1;

	for (; isdigit((unsigned char)**p); (*p)++)
		v = v * 10 + (**p - '0');
	if (**p == '.' && isdigit((unsigned char)(*p)[1]))
		for ((*p)++; isdigit((unsigned char)**p); (*p)++) {
			scale /= 10;
			v += scale * (**p - '0');
		}
	return v;
}

static struct token bad_token(struct token t)
{
	t.kind = TOKEN_BAD;
	return t;
}

static struct token lex_number(struct origin *s, struct token t)
{
	const char *start = s->v->text + t.off, *p = start, *name;
	const struct literal_unit *u;
	bool per_second = false;

	t.kind = TOKEN_NUMBER;
	t.number = read_decimal(&p);
	name = p;
	if (*p == '%')
		p++;
	else
		while (isalpha((unsigned char)*p))
			p++;
	u = find_unit(name, (size_t)(p - name));
	if (!u || is_name(*p) || *p == '%') {
		source_error(
			s, t.off + (size_t)(name - start), NULL,
			"a number followed by something that is no unit: bytes have k, M, G or T "
			"(64kB), times us, ms, s, min, h or d, shares %%, page counts pages, "
			"and rates any of these with /s");
		while (is_name(*p) || *p == '%')
			p++;
		t.len = (size_t)(p - start);
		return bad_token(t);
	}
	if (p[0] == '/' && p[1] == 's' && !is_name(p[2]) && p[2] != '(') {
		per_second = true;
		p += 2;
	}
	t.len = (size_t)(p - start);
	t.number *= u->factor;
	if (!isfinite(t.number)) {
		source_error(s, t.off, NULL, "a number of that size is not for this world");
		return bad_token(t);
	}
	t.dim = dim_of((struct dimension){u->unit, per_second});
	t.dim.plain = t.dim.plain || (u->plain && !per_second);
	return t;
}

static struct token lex_name(struct origin *s, struct token t)
{
	static const struct {
		const char *word;
		enum token_kind kind;
	} words[] = {{"and", TOKEN_AND}, {"or", TOKEN_OR}, {"not", TOKEN_NOT}};
	const char *start = s->v->text + t.off;

	while (is_name(start[t.len]))
		t.len++;
	t.kind = TOKEN_NAME;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i].word) == t.len && memcmp(words[i].word, start, t.len) == 0)
			t.kind = words[i].kind;
	return t;
}

static struct token lex_string(struct origin *s, struct token t)
{
	const char *start = s->v->text + t.off, *end = strchr(start + 1, '"');

	if (!end) {
		source_error(s, t.off, NULL, "a `\"` that is never closed");
		t.len = strlen(start);
		return bad_token(t);
	}
	t.kind = TOKEN_STRING;
	t.len = (size_t)(end + 1 - start);
	return t;
}

/* Ways to write an operator that other languages have, each with ours. */
static struct token lex_foreign(struct origin *s, struct token t)
{
	static const struct {
		const char *text, *ours;
	} rows[] = {
		{"&&", "write `and`"},
		{"||", "write `or`"},
		{"&", "write `and`"},
		{"|", "write `or`"},
		{"!", "write `not`"},
		{"=<", "write `<=`"},
		{"=>", "write `>=`"},
		{"=", "write `==` to compare"},
		{"#", "a comment behind a value starts with ` ;`"},
		{";", "a comment needs a blank before its `;`"},
		{"%", "`%` stands right behind a number"},
		{"'", "names stand between `\"`"},
		{"\\", "`\\` joins lines only as the last character of a line"},
	};
	const char *p = s->v->text + t.off;

	t.len = 1;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = strlen(rows[i].text);

		if (strncmp(p, rows[i].text, n) != 0)
			continue;
		t.len = n;
		source_error(s, t.off, NULL, "`%s` has no meaning here: %s", rows[i].text,
			     rows[i].ours);
		return bad_token(t);
	}
	if ((unsigned char)*p >= 0x80)
		source_error(
			s, t.off, NULL,
			"a character that has no meaning in an expression (a typographic one?)");
	else
		source_error(s, t.off, NULL, "`%c` has no meaning in an expression", *p);
	return bad_token(t);
}

static struct token lex_operator(struct origin *s, struct token t)
{
	static const struct {
		const char *text;
		enum token_kind kind;
	} operators[] = {
		{"<=", TOKEN_LE},   {">=", TOKEN_GE},   {"==", TOKEN_EQ},    {"!=", TOKEN_NE},
		{"<", TOKEN_LT},    {">", TOKEN_GT},    {"+", TOKEN_PLUS},   {"-", TOKEN_MINUS},
		{"*", TOKEN_STAR},  {"/", TOKEN_SLASH}, {"(", TOKEN_LPAREN}, {")", TOKEN_RPAREN},
		{",", TOKEN_COMMA},
	};
	const char *p = s->v->text + t.off;

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		size_t n = strlen(operators[i].text);

		if (strncmp(p, operators[i].text, n) == 0) {
			t.kind = operators[i].kind;
			t.len = n;
			return t;
		}
	}
	return lex_foreign(s, t);
}

struct token lex(struct origin *s, size_t off)
{
	const char *text = s->v->text;
	struct token t = {.kind = TOKEN_END};

	while (text[off] == ' ' || text[off] == '\t')
		off++;
	t.off = off;
	if (!text[off])
		return t;
	if (isdigit((unsigned char)text[off]) ||
	    (text[off] == '.' && isdigit((unsigned char)text[off + 1])))
		return lex_number(s, t);
	if (is_name_start(text[off]))
		return lex_name(s, t);
	if (text[off] == '"')
		return lex_string(s, t);
	return lex_operator(s, t);
}
