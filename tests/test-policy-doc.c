/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The documents of the policy language say what the code does: their tables are the code's own, and
 * their examples parse. PCPTUNE_WRITE_DOC=1 writes the tables ("make doc-policy").
 */
#include "policy/policy.h"

#include "base/format.h"

#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MARKDOWN DOC_DIR "/policy-language.md"
#define MANUAL   DOC_DIR "/pcptune.policy.5"

static char *read_whole(const char *path)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	char *text = calloc(1, 1U << 20);

	if (!f || !text)
		fail_msg("cannot read %s", path);
	else
		text[fread(text, 1, (1U << 20) - 1, f)] = '\0';
	return text;
}

static const char *dimension_of(const struct signal_info *info, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s%s", dimension_name(info->dimension),
		       info->counter ? ", counter" : "");
	return buf;
}

/* The name with the place of the size: "mthp.SIZE.X", "pcp.fits.SIZE". */
static const char *name_of(const struct signal_info *info, char *buf, size_t size)
{
	if (!signal_has_order(info))
		(void)snprintf(buf, size, "%s", info->name);
	else if (strncmp(info->name, "mthp.", 5) == 0)
		(void)snprintf(buf, size, "mthp.SIZE.%s", info->name + 5);
	else
		(void)snprintf(buf, size, "%s.SIZE", info->name);
	return buf;
}

/* In a man page each sentence starts a line. */
static void add_sentences(struct text *t, const char *s)
{
	for (; *s; s++) {
		text_add_n(t, s, 1);
		if (*s == '.' && s[1] == ' ' && isupper((unsigned char)s[2])) {
			text_add(t, "\n");
			s++;
		}
	}
	text_add(t, "\n");
}

static void section_head(const char *section, struct text *t, bool man)
{
	static const char *const args[][2] = {
		{"Order", " SIZE|N|*"}, {"HighFraction", " NAME"}, {"Trim", " NAME"}};
	const char *arg = "";

	for (size_t i = 0; i < ARRAY_SIZE(args); i++)
		if (streq(args[i][0], section))
			arg = args[i][1];
	text_addf(t,
		  man ? ".Ss [%s%s]\n.Bl -tag -width Ds\n"
		      : "\n### [%s%s]\n\n| key | takes | default | |\n|---|---|---|---|\n",
		  section, arg);
}

static void render_keys(struct text *t, bool man)
{
	const char *section = "";
	const struct policy_key *k;

	for (size_t i = 0; (k = policy_key_at(i)); i++) {
		const char *type = policy_key_type(k);

		if (!streq(section, k->section)) {
			if (man && *section)
				text_add(t, ".El\n");
			section_head(k->section, t, man);
			section = k->section;
		}
		if (!man) {
			text_addf(t, "| `%s=` | %s | %s | %s |\n", k->key, type, k->default_text,
				  k->description);
			continue;
		}
		text_addf(t, ".It Sy %s= Pq %s\n", k->key, type);
		add_sentences(t, k->description);
		if (streq(k->default_text, "required"))
			text_add(t, "Required.\n");
		else if (*k->default_text)
			text_addf(t, "Default: %s.\n", k->default_text);
	}
	text_add(t, man ? ".El\n" : "\n");
}

static void render_functions(struct text *t, bool man)
{
	const struct expr_function *f;

	text_add(t, man ? ".Bl -tag -width Ds\n" : "\n| function | gives | |\n|---|---|---|\n");
	for (size_t i = 0; (f = expr_function_at(i)); i++) {
		if (!man) {
			text_addf(t, "| `%s(%s)` | %s | %s |\n", f->name, f->args, f->gives,
				  f->description);
			continue;
		}
		text_addf(t, ".It Sy \"%s(%s)\"\nGives %s.\n", f->name, f->args, f->gives);
		add_sentences(t, f->description);
	}
	text_add(t, man ? ".El\n" : "\n");
}

static void render_signals(struct text *t, bool man)
{
	const struct signal_info *s;
	char name[96], dimension[64];

	text_add(t, man ? ".Bl -tag -width Ds\n"
			: "\n| signal | dimension | since | |\n|---|---|---|---|\n");
	for (size_t i = 0; (s = signal_info_at(i)); i++) {
		(void)name_of(s, name, sizeof(name));
		(void)dimension_of(s, dimension, sizeof(dimension));
		if (!man) {
			text_addf(t, "| `%s` | %s | %s | %s |\n", name, dimension, s->since,
				  s->description);
			continue;
		}
		text_addf(t, ".It Sy \"%s\" Pq %s%s%s\n", name, dimension,
			  *s->since ? ", since " : "", s->since);
		add_sentences(t, s->description);
	}
	text_add(t, man ? ".El\n" : "\n");
}

/* The document with what stands between the markers of `what` made anew. */
static void splice(struct text *out, const char *doc, const char *what, bool man,
		   void (*render)(struct text *t, bool man))
{
	char begin[64], end[64];
	const char *from, *to;

	(void)snprintf(begin, sizeof(begin), man ? ".\\\" %s: begin\n" : "<!-- %s: begin -->\n",
		       what);
	(void)snprintf(end, sizeof(end), man ? ".\\\" %s: end\n" : "<!-- %s: end -->\n", what);
	from = strstr(doc, begin);
	to = from ? strstr(from, end) : NULL;
	if (!to) {
		fail_msg("no place for the table of %s", what);
		return;
	}
	text_clear(out);
	text_add_n(out, doc, (size_t)(from - doc) + strlen(begin));
	render(out, man);
	text_add(out, to);
}

static void compare_or_write(const char *path, bool man)
{
	_cleanup_(freep) char *doc = read_whole(path);
	_cleanup_(text_free) struct text a = {0}, b = {0}, c = {0};

	splice(&a, doc, "keys", man, render_keys);
	splice(&b, text_str(&a), "functions", man, render_functions);
	splice(&c, text_str(&b), "signals", man, render_signals);
	if (getenv("PCPTUNE_WRITE_DOC")) {
		_cleanup_(fclosep) FILE *f = fopen(path, "we");

		assert_non_null(f);
		(void)fputs(text_str(&c), f);
	} else if (!streq(doc, text_str(&c))) {
		fail_msg("%s differs from the code's tables: run \"make doc-policy\"", path);
	}
}

static void the_tables_of_the_documents_are_those_of_the_code(void **state)
{
	(void)state;
	compare_or_write(MARKDOWN, false);
	compare_or_write(MANUAL, true);
}

/* An example, without what the document's own notation adds. */
static void check_example(const char *text, size_t len, bool man, bool drop_in)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = 4096};
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(text_free) struct text plain = {0};
	struct policy *p = NULL;

	for (size_t i = 0; i < len; i++) {
		text_add_n(&plain, &text[i], 1);
		if (man && text[i] == '\\')
			i++;
	}
	if (policy_parse(&t, "example", "example", text_str(&plain), plain.len, &p, &d) < 0) {
		diagnostics_print(&d, stderr, false);
		fail_msg("an example does not parse:\n%s", text_str(&plain));
	} else if (!drop_in) {
		assert_true(p->nr_rules > 0);
	}
	(void)policy_free(p);
}

static unsigned check_examples(const char *path, const char *begin, const char *end, bool man)
{
	_cleanup_(freep) char *doc = read_whole(path);
	unsigned n = 0;

	for (const char *s = strstr(doc, begin); s; s = strstr(s, begin)) {
		const char *finish;

		s += strlen(begin);
		finish = strstr(s, end);
		assert_non_null(finish);
		check_example(s, (size_t)(finish - s) + 1, man, *s == ';');
		s = finish;
		n++;
	}
	return n;
}

static void every_example_parses(void **state)
{
	(void)state;
	assert_int_equal(check_examples(MARKDOWN, "```ini\n", "\n```", false), 3);
	assert_int_equal(check_examples(MANUAL, ".Bd -literal -offset indent\n", "\n.Ed", true), 3);
}

static bool is_expression(const char *s)
{
	return strchr(s, '.') && (strchr(s, '<') || strchr(s, '>') || strchr(s, '(')) &&
	       !strstr(s, "SIZE") && !strstr(s, "(x") && !strchr(s, '=') && !strstr(s, "policy(5)");
}

/* What stands between backquotes in running text and looks like one. */
static void expressions_in_the_text_compile(void **state)
{
	_cleanup_(freep) char *doc = read_whole(MARKDOWN);
	unsigned n = 0;

	(void)state;
	for (char *line = strtok(doc, "\n"); line; line = strtok(NULL, "\n")) {
		for (char *s = strchr(line, '`');
		     s && line[0] != '|' && strncmp(s, "```", 3) != 0;) {
			_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = 4096};
			_cleanup_(expr_freep) struct expr *e = NULL;
			char *end = strchr(s + 1, '`');

			if (!end)
				break;
			*end = '\0';
			if (is_expression(s + 1) && !streq(s + 1, "pcp.share > 5")) {
				if (expr_compile_text(&t, "x", s + 1, EXPR_ANY, EXPR_ORDER_AT_HAND,
						      &e, NULL) < 0)
					fail_msg("`%s` does not compile", s + 1);
				n++;
			}
			s = strchr(end + 1, '`');
		}
	}
	assert_true(n >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tables_of_the_documents_are_those_of_the_code),
		cmocka_unit_test(every_example_parses),
		cmocka_unit_test(expressions_in_the_text_compile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
