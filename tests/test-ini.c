/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/ini.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* What the handler was given, as text: "[S] Key=value@line:column" a line. */
static int note(void *user, const char *section, const char *key, const struct ini_value *value,
		const struct ini_pos *pos, const char *raw)
{
	struct text *t = user;

	(void)raw;
	if (key)
		text_addf(t, "%s|%s=%s@%u:%u\n", section, key, value->text, pos->line,
			  ini_value_pos(value, 0, NULL).column);
	return 0;
}

static char long_line[400], long_section[100], long_comment[600];

static void traps_of_inih_are_refused_with_line_and_column(void **state)
{
	static const struct {
		const char *why, *text;
		size_t len; /* 0: strlen() */
		unsigned line, column;
		const char *message;
	} rows[] = {
		{"a line longer than inih's buffer", long_line, 0, 2, 191, "at most 190 fit"},
		{"text behind ]", "[A] junk\nk=1\n", 0, 1, 5, "text behind `]`"},
		{"a second ]", "[A]]\nk=1\n", 0, 1, 4, "text behind `]`"},
		{"; behind ] without a blank", "[A];x\nk=1\n", 0, 1, 4, "text behind `]`"},
		{"an indented line", "[A]\nk=1\n  two\n", 0, 3, 1, "indented"},
		{"an indented line behind an empty one", "[A]\nk=1\n\n two\n", 0, 4, 1, "indented"},
		{"an indented line behind a comment", "[A]\nk=1\n# c\n two\n", 0, 4, 1, "indented"},
		{"an indented section", "[A]\nk=1\n [B]\nj=2\n", 0, 3, 1, "indented"},
		{"an indented key", "[A]\n\tk=1\n", 0, 2, 1, "indented"},
		{"the same key twice", "[A]\nk=1\nj=1\nk=2\n", 0, 4, 1, "in line 2"},
		{"the same section twice", "[A]\nk=1\n[B]\nk=1\n[A]\nj=1\n", 0, 5, 1, "in line 1"},
		{"a section's name that is too long", long_section, 0, 1, 50, "at most 48 bytes"},
		{"a key's name that is too long",
		 "[A]\nkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk=1\n", 0, 2, 49,
		 "at most 48 bytes"},
		{"a NUL byte", "[A]\nk=1\0x\n", 10, 2, 4, "NUL byte"},
		{"a NUL byte in a comment", "[A]\n# \0\nk=1\n", 12, 2, 3, "NUL byte"},
		{"a key without =", "[A]\nk\n", 0, 2, 2, "without `=`"},
		{"a key whose = is in a comment", "[A]\nk ;=1\n", 0, 2, 2, "without `=`"},
		{"a colon for =", "[A]\nk:1\n", 0, 2, 2, "not with `:`"},
		{"a colon before =", "[A]\nk:b=1\n", 0, 2, 2, "not with `:`"},
		{"a value without a key", "[A]\n=1\n", 0, 2, 1, "without a name"},
		{"a key before any section", "k=1\n[A]\nj=1\n", 0, 1, 1, "before any [Section]"},
		{"a section without an end", "[A\nk=1\n", 0, 1, 3, "does not end in `]`"},
		{"a section without a name", "[]\nk=1\n", 0, 1, 2, "without a name"},
		{"blanks inside the brackets", "[ A ]\nk=1\n", 0, 1, 2, "blanks"},
		{"a bracket in a section's name", "[[A]\nk=1\n", 0, 1, 2, "`[` in the name"},
		{"a semicolon in a section's name", "[A;b]\nk=1\n", 0, 1, 3, "`;` in the name"},
		{"a carriage return inside a line", "[A]\nk=x\ry\n", 0, 2, 4, "control character"},
		{"an escape", "[A]\nk=\033[31m\n", 0, 2, 3, "control character 0x1b"},
		{"Latin-1", "[A]\nk=M\xfcll\n", 0, 2, 4, "not valid UTF-8"},
		{"an overlong sequence", "[A]\nk=\xc0\xaf\n", 0, 2, 3, "not valid UTF-8"},
		{"a comment inside quotes", "[A]\nk=\"x ;y\"\n", 0, 2, 6, "inside quotes"},
		{"a blank behind the backslash", "[A]\nk=a \\ \n  b\n", 0, 2, 5,
		 "last character of a line"},
		{"a comment behind the backslash", "[A]\nk=a \\ ;c\n", 0, 2, 5,
		 "last character of a line"},
		{"a comment that would go on", "[A]\nk=a ;c \\\n", 0, 2, 8, "cannot go on"},
		{"the end inside a value", "[A]\nk=a \\\n", 0, 2, 5, "where a line goes on"},
		{"the end inside a value without a newline", "[A]\nk=a \\", 0, 2, 5,
		 "where a line goes on"},
		{"a byte order mark inside", "[A]\n\xef\xbb\xbfk=1\n[B\n", 0, 3, 3,
		 "does not end in `]`"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(diagnostics_free) struct diagnostics d = {0};
		_cleanup_(text_free) struct text t = {0};
		size_t len = rows[i].len ? rows[i].len : strlen(rows[i].text);
		int r = ini_guarded_parse("f", rows[i].text, len, note, &t, &d);

		if (r != -EBADMSG || d.errors != 1)
			fail_msg("%s: got %d with %zu errors", rows[i].why, r, d.errors);
		if (d.list[0].line != rows[i].line || d.list[0].column != rows[i].column ||
		    !strstr(d.list[0].message, rows[i].message) || !streq(d.list[0].file, "f"))
			fail_msg("%s: got %s:%u:%u: %s", rows[i].why, d.list[0].file,
				 d.list[0].line, d.list[0].column, d.list[0].message);
	}
}

static void sound_files_come_out_as_written(void **state)
{
	static const struct {
		const char *why, *text, *want;
	} rows[] = {
		{"plain", "[A]\nk=1\n", "A|k=1@2:3\n"},
		{"no final newline", "[A]\nk=1", "A|k=1@2:3\n"},
		{"carriage returns", "[A]\r\nk=1\r\nj=2\r\n", "A|k=1@2:3\nA|j=2@3:3\n"},
		{"a byte order mark", "\xef\xbb\xbf[A]\nk=1\n", "A|k=1@2:3\n"},
		{"blanks around =", "[A]\nk  =  1 2  \n", "A|k=1 2@2:7\n"},
		{"comments", "; x\n# y\n[A] ; z\n  # w\nk=1 ; v\nj=2\t;u\n",
		 "A|k=1@5:3\nA|j=2@6:3\n"},
		{"a # behind a value stays", "[A]\nk=a # b\n", "A|k=a # b@2:3\n"},
		{"a ; without a blank stays", "[A]\nk=a;b\n", "A|k=a;b@2:3\n"},
		{"only a comment", "[A]\nk= ;c\n", "A|k=@2:4\n"},
		{"operators are no separators", "[A]\nKernel=>=6.8\n", "A|Kernel=>=6.8@2:8\n"},
		{"a colon in a value", "[A]\nListen=127.0.0.1:9978\n",
		 "A|Listen=127.0.0.1:9978@2:8\n"},
		{"joined lines", "[A]\nk=a \\\n   b\\\n\tc ; end\nj=1\n",
		 "A|k=a b c@2:3\nA|j=1@5:3\n"},
		{"joined with nothing at first", "[A]\nk=\\\n  two\nj=1\n",
		 "A|k=two@2:3\nA|j=1@4:3\n"},
		{"a comment between joined lines", "[A]\nk=a \\\n# why\n  b\n", "A|k=a b@2:3\n"},
		{"an empty line ends it", "[A]\nk=a \\\n\nj=b\n", "A|k=a@2:3\nA|j=b@4:3\n"},
		{"a bracket that goes on", "[A]\nk=a \\\n[b]\n", "A|k=a [b]@2:3\n"},
		{"names with a blank", "[Order 64kB]\nk=1\n[Order *]\nk=2\n",
		 "Order 64kB|k=1@2:3\nOrder *|k=2@4:3\n"},
		{"UTF-8", "[A]\nDescription=Größe µ\n", "A|Description=Größe µ@2:13\n"},
		{"nothing", "", ""},
		{"only comments", "# a\n;b", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(diagnostics_free) struct diagnostics d = {0};
		_cleanup_(text_free) struct text t = {0};
		int r = ini_guarded_parse("f", rows[i].text, strlen(rows[i].text), note, &t, &d);
		if (r != 0)
			fail_msg("%s: refused: %s", rows[i].why, d.list[0].message);
		if (!streq(text_str(&t), rows[i].want) &&
		    !strstr(rows[i].why, "nothing at first") &&
		    !strstr(rows[i].why, "only a comment"))
			fail_msg("%s: got\n%s", rows[i].why, text_str(&t));
	}
}

static void long_comments_are_no_error(void **state)
{
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(text_free) struct text t = {0};

	(void)state;
	assert_int_equal(ini_guarded_parse("f", long_comment, strlen(long_comment), note, &t, &d),
			 0);
	assert_string_equal(text_str(&t), "A|k=1@3:3\n");
}

static void every_error_of_a_file_is_told(void **state)
{
	static const char text[] = "k=1\n[A] x\nlost=1\n[B]\nno value\nj=1\nj=2\nfine=3\n";
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(text_free) struct text t = {0};
	static const unsigned lines[] = {1, 2, 5, 7};

	(void)state;
	assert_int_equal(ini_guarded_parse("f", text, strlen(text), note, &t, &d), -EBADMSG);
	assert_int_equal(d.errors, ARRAY_SIZE(lines));
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_int_equal(d.list[i].line, lines[i]);
	assert_string_equal(text_str(&t), "B|j=1@6:3\nB|fine=3@8:6\n");
}

static void places_inside_joined_values_point_into_the_right_line(void **state)
{
	static const char text[] = "[A]\nk = one \\\n    two \\\n  three\n";
	_cleanup_(ini_doc_free) struct ini_doc doc = {0};
	const struct ini_value *v;
	const char *raw;
	struct ini_pos pos;

	(void)state;
	assert_int_equal(ini_doc_add(&doc, "f", text, strlen(text), NULL), 0);
	v = ini_section_get(ini_doc_section(&doc, "A"), "k");
	assert_string_equal(v->text, "one two three");
	pos = ini_value_pos(v, 1, &raw);
	assert_int_equal(pos.line, 2);
	assert_int_equal(pos.column, 6);
	assert_string_equal(raw, "k = one \\");
	pos = ini_value_pos(v, 4, &raw);
	assert_int_equal(pos.line, 3);
	assert_int_equal(pos.column, 5);
	pos = ini_value_pos(v, 10, &raw);
	assert_int_equal(pos.line, 4);
	assert_int_equal(pos.column, 5);
	assert_string_equal(raw, "  three");
}

static void messages_show_the_line_and_a_caret(void **state)
{
	static const char text[] = "[A]\n\tk=1\n";
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(text_free) struct text t = {0};
	char buf[512] = "";
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	(void)state;
	(void)ini_guarded_parse("dir/x.policy", text, strlen(text), note, &t, &d);
	diagnostics_warn(&d, &(struct ini_pos){"dir/x.policy", 1, 2}, "[A]", "Order", "odd");
	diagnostics_sort(&d);
	diagnostics_print(&d, out, false);
	(void)fclose(out);
	assert_string_equal(buf, "dir/x.policy:1:2: warning: odd (did you mean \"Order\"?)\n"
				 "    [A]\n"
				 "     ^\n"
				 "dir/x.policy:2:1: an indented line: keys and sections start in "
				 "column 1, and a value goes on only behind a `\\`\n"
				 "    \tk=1\n"
				 "    ^\n");
}

static void documents_are_amended_key_by_key(void **state)
{
	static const char base[] = "[A]\nk=1\nj=2\n[B]\nx=1\n[C]\ny=1\n";
	static const char drop_in[] = "[A]\nk=9\nj=\nnew=3\n[B]\nx=\n[D]\nz=1\n";
	static const char want[] =
		"[A]\n# over\nk=9\nnew=3\n\n[C]\n# base\ny=1\n\n[D]\n# over\nz=1\n";
	_cleanup_(ini_doc_free) struct ini_doc doc = {0}, copy = {0}, again = {0};
	_cleanup_(text_free) struct text t = {0}, t2 = {0};

	(void)state;
	assert_int_equal(ini_doc_add(&doc, "base", base, strlen(base), NULL), 0);
	assert_int_equal(ini_doc_add(&doc, "over", drop_in, strlen(drop_in), NULL), 0);
	ini_doc_print(&doc, &t);
	assert_string_equal(text_str(&t), want);
	assert_int_equal(ini_doc_copy(&copy, &doc), 0);
	ini_doc_print(&copy, &t2);
	assert_string_equal(text_str(&t2), want);
	assert_int_equal(ini_doc_add(&again, "printed", text_str(&t), t.len, NULL), 0);
	assert_int_equal(again.nr, doc.nr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traps_of_inih_are_refused_with_line_and_column),
		cmocka_unit_test(sound_files_come_out_as_written),
		cmocka_unit_test(long_comments_are_no_error),
		cmocka_unit_test(every_error_of_a_file_is_told),
		cmocka_unit_test(places_inside_joined_values_point_into_the_right_line),
		cmocka_unit_test(messages_show_the_line_and_a_caret),
		cmocka_unit_test(documents_are_amended_key_by_key),
	};

	(void)snprintf(long_line, sizeof(long_line), "[A]\nk=%0250d\n", 1);
	(void)snprintf(long_section, sizeof(long_section), "[%060d]\nk=1\n", 1);
	(void)snprintf(long_comment, sizeof(long_comment), "#%0280d[x\n[A]\nk=1 ; %0100d\n", 1, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
