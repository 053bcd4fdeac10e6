/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/engine-state.h"

#include "base/format.h"

#include <ctype.h>
#include <math.h>

/* snprintf() again and again into one buffer; what does not fit is cut off. */
struct line {
	char *buf;
	size_t size, len;
};

static void _printf_(2, 3) put(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (l->len + 1 >= l->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(l->buf + l->len, l->size - l->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->len = MIN_OF(l->len + (size_t)n, l->size - 1);
}

/* "zone.free_ratio < 5%" and 0.031 as "zone.free_ratio 3.1% < 5%". */
static void put_term(struct line *l, const struct expr_term *t)
{
	size_t op = 0, right;
	char value[VALUE_TEXT_MAX];

	while (op < t->len && !strchr("<>=!", t->text[op]))
		op++;
	if (!t->comparison || op == t->len) {
		put(l, "%.*s", (int)t->len, t->text);
		return;
	}
	put(l, "%.*s%s%s %.*s", (int)op, t->text, op > 0 && t->text[op - 1] == ' ' ? "" : " ",
	    value_format(value, sizeof(value), t->left_dimension, t->left), (int)(t->len - op),
	    t->text + op);
	for (right = op; right < t->len && strchr("<>=! ", t->text[right]);)
		right++;
	/* what is not a plain number is worth its value, too */
	if (right < t->len && !isdigit((unsigned char)t->text[right]))
		put(l, " (%s)", value_format(value, sizeof(value), t->right_dimension, t->right));
}

/*
 * What makes the condition true: its terms that hold; where it is true for what does not hold
 * ("not …"), those that do not. `negated`: what makes it false.
 */
static void put_condition(struct line *l, const struct expr *e, const struct expr_env *env,
			  bool negated)
{
	size_t n = expr_nr_terms(e);
	bool any = false;

	for (int other = 0; other <= 1 && !any; other++)
		for (size_t i = 0; i < n; i++) {
			struct expr_term t;

			expr_term_eval(e, i, env, &t);
			if (t.holds != ((other == 1) == negated ? KLEENE_TRUE : KLEENE_FALSE))
				continue;
			put(l, "%s%s", any ? ", " : "", other && !negated ? "not " : "");
			put_term(l, &t);
			any = true;
		}
	if (negated)
		put(l, "%s", any ? " no longer" : "no longer true");
}

void engine_reason(const struct engine *en, const struct rule *r, bool release, char *buf,
		   size_t size)
{
	struct expr_env env = engine_env(en, engine_hand_of(en, r));
	struct line l = {.buf = buf, .size = size};
	uint64_t held = release ? r->def->off_usec : r->def->on_usec;
	char text[FORMAT_MAX];

	put(&l, "%s/%s: ", en->policies[r->policy].def->name, r->def->name);
	if (release && r->def->off)
		put_condition(&l, r->def->off, &env, false);
	else
		put_condition(&l, r->def->on, &env, release);
	if (held)
		put(&l, ", held for %s", format_usec(text, sizeof(text), held));
}
