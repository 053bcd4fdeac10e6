/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a policy file. What is refused says why; what is taken prints as a document that is
 * taken again and means the same.
 */
#include "policy/check.h"

#include "tests/fuzz.h"

#include <errno.h>

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_places(const struct diagnostics *d)
{
	for (size_t i = 0; i < d->nr; i++) {
		const struct diagnostic *x = &d->list[i];

		check(x->line == 0 || x->column >= 1);
		check(!x->source || x->column <= strlen(x->source) + 1 || x->line == 0);
	}
}

static void print_and_parse_again(const struct policy *p)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = 4096};
	_cleanup_(text_free) struct text text = {0};
	struct policy *again;

	ini_doc_print(&p->doc, &text);
	check(policy_parse(&t, "fuzz", "f", text_str(&text), text.len, &again, NULL) == 0);
	check(again->fingerprint == p->fingerprint && again->nr_rules == p->nr_rules);
	(void)policy_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct machine_facts facts = {.kernel = "6.8.0-1-amd64",
						   .host = "web-1.example.org",
						   .machine_id = "0123456789abcdef0123456789abcdef",
						   .cpus = 8,
						   .memory_bytes = UINT64_C(1) << 34};
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = 4096};
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	struct match_result match;
	struct policy *p;
	/* messages are the slow part: every fourth will do */
	bool told = size % 4 == 0;
	int r = policy_parse(&t, "fuzz", "f", (const char *)data, size, &p, told ? &d : NULL);

	check_places(&d);
	check((r == 0) == (p != NULL));
	check(r == 0 || !told || d.errors > 0);
	if (r < 0)
		return 0;
	policy_match_eval(p, &facts, NULL, &match);
	policy_check(p, &t, NULL, &d);
	check_places(&d);
	print_and_parse_again(p);
	(void)policy_free(p);
	return 0;
}
