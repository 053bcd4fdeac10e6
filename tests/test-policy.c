/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/check.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "corpus.h"

#define PAGE UINT64_C(4096)

static const char full[] =
	"[Policy]\n"
	"Description=Everything that there is\n"
	"Priority=60\n"
	"Mode=observe\n"
	"UnknownFor=2min\n"
	"[Match]\n"
	"Kernel=>=6.8 <7\n"
	"CPUs=>=4\n"
	"Memory=>=16G\n"
	"Host=web-* db1\n"
	"Rollout=10%\n"
	"When=machine.l2_bytes >= 1M\n"
	"Process=postgres redis-server\n"
	"LinkMTU=>=9000\n"
	"[Order 64kB]\n"
	"Enable=rate(mthp.alloc_bytes) / machine.cpus > 32M/s \\\n"
	"       and pcp.fits >= 8\n"
	"EnableFor=31s\n"
	"Disable=rate(mthp.alloc_bytes) / machine.cpus < 2M/s\n"
	"DisableFor=61s\n"
	"MinHold=10min\n"
	"[HighFraction small]\n"
	"When=pcp.share > 5%\n"
	"For=60s\n"
	"Value=fraction_for(4M)\n"
	"Until=pcp.share < 1%\n"
	"UntilFor=10min\n"
	"Drain=squeeze\n"
	"MinHold=5min\n"
	"[Trim idle]\n"
	"When=zone.free_ratio < 5%\n"
	"For=7s\n"
	"Cooldown=11min\n"
	"Squeeze=yes\n"
	"[Guard]\n"
	"Trip=rate(vmstat.compact_stall) > 4 * before(rate(vmstat.compact_stall)) + "
	"10/s\n"
	"Within=121s\n"
	"Lockout=12min\n";

static struct policy *parse(struct expr_table *t, const char *name, const char *text)
{
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	struct policy *p = NULL;

	if (policy_parse(t, name, "x.policy", text, strlen(text), &p, &d) < 0) {
		diagnostics_print(&d, stderr, false);
		fail_msg("refused:\n%s", text);
	}
	return p;
}

static void every_key_reaches_the_policy(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	struct policy *p = parse(&t, "full", full);
	const struct policy_rule *r = p->rules;

	(void)state;
	assert_string_equal(p->description, "Everything that there is");
	assert_int_equal(p->priority, 60);
	assert_int_equal(p->mode, POLICY_OBSERVE);
	assert_int_equal(p->unknown_for_usec, 2 * USEC_PER_MINUTE);
	assert_int_equal(p->match.kernel.nr, 2);
	assert_int_equal(p->match.memory.list[0].value, UINT64_C(16) << 30);
	assert_string_equal(p->match.host, "web-* db1");
	assert_true(p->match.rollout > 0.09 && p->match.rollout < 0.11);
	assert_non_null(p->match.when);
	assert_string_equal(expr_text(p->match.process),
			    "process.running(\"postgres\") or process.running(\"redis-server\")");
	assert_string_equal(expr_text(p->match.link_mtu), "link.mtu_max >= 9000B");
	assert_int_equal(p->nr_rules, 3);
	assert_int_equal(r[0].kind, RULE_ORDER);
	assert_int_equal(r[0].order, 4);
	assert_int_equal(r[0].on_usec, 31 * USEC_PER_SEC);
	assert_int_equal(r[0].off_usec, 61 * USEC_PER_SEC);
	assert_int_equal(r[0].min_hold_usec, 10 * USEC_PER_MINUTE);
	assert_non_null(r[0].off);
	assert_int_equal(r[1].kind, RULE_HIGH_FRACTION);
	assert_string_equal(r[1].name, "small");
	assert_int_equal(r[1].drain, POLICY_DRAIN_SQUEEZE);
	assert_int_equal(r[1].off_usec, 10 * USEC_PER_MINUTE);
	assert_int_equal(r[2].kind, RULE_TRIM);
	assert_int_equal(r[2].cooldown_usec, 11 * USEC_PER_MINUTE);
	assert_true(r[2].squeeze);
	assert_int_equal(p->guard.within_usec, 121 * USEC_PER_SEC);
	assert_int_equal(p->guard.lockout_usec, 12 * USEC_PER_MINUTE);
	assert_non_null(p->guard.trip);
	(void)policy_free(p);
}

static void the_full_policy_uses_every_key_of_the_table(void **state)
{
	_cleanup_(ini_doc_free) struct ini_doc doc = {0};

	(void)state;
	assert_int_equal(ini_doc_add(&doc, "f", full, strlen(full), NULL), 0);
	for (size_t i = 0; policy_key_at(i); i++) {
		const struct policy_key *k = policy_key_at(i);
		bool found = false;

		for (size_t s = 0; s < doc.nr; s++)
			found = found || (strncmp(doc.sections[s].name, k->section,
						  strlen(k->section)) == 0 &&
					  ini_section_get(&doc.sections[s], k->key));
		if (!found)
			fail_msg("[%s] %s= is not tested", k->section, k->key);
		assert_true(strlen(k->description) > 10);
		assert_non_null(policy_key_type(k));
	}
}

static void defaults_are_those_of_the_table(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	struct policy *p = parse(&t, "small",
				 "[Trim x]\nWhen=zone.free_ratio < 5%\n"
				 "[Order *]\nEnable=pcp.fits > 8\n"
				 "[Guard]\nTrip=vmstat.compact_stall > 10\n");

	(void)state;
	assert_int_equal(p->priority, 50);
	assert_int_equal(p->mode, POLICY_ENFORCE);
	assert_int_equal(p->unknown_for_usec, 5 * USEC_PER_MINUTE);
	assert_true(p->match.rollout >= 1);
	assert_int_equal(p->rules[0].on_usec, 5 * USEC_PER_SEC);
	assert_int_equal(p->rules[0].cooldown_usec, 10 * USEC_PER_MINUTE);
	assert_false(p->rules[0].squeeze);
	assert_int_equal(p->rules[1].on_usec, 30 * USEC_PER_SEC);
	assert_int_equal(p->rules[1].off_usec, 60 * USEC_PER_SEC);
	assert_null(p->rules[1].off);
	assert_int_equal(p->rules[1].min_hold_usec, 0);
	assert_true(p->rules[1].any_order);
	assert_int_equal(p->guard.within_usec, 120 * USEC_PER_SEC);
	assert_int_equal(p->guard.lockout_usec, 10 * USEC_PER_MINUTE);
	(void)policy_free(p);
}

static void mistakes_in_policies_are_told_where_they_are(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *message, *nearest;
	} rows[] = {
		{"[Polcy]\nPriority=1\n", 1, 2, "no section [Polcy]", "Policy"},
		{"[Policy]\nPrioriti=1\n", 2, 1, "[Policy] has no Prioriti=", "Priority"},
		{"[Policy]\nCooldown=1s\n", 2, 1, "[Trim] has", NULL},
		{"[Policy]\nPriority=101\n", 2, 10, "0 to 100", NULL},
		{"[Policy]\nMode=enforced\n", 2, 6, "takes enforce or observe", "enforce"},
		{"[Policy]\nUnknownFor=soon\n", 2, 12, "takes a time", NULL},
		{"[Policy x]\nPriority=1\n", 1, 8, "takes no name", NULL},
		{"[Order]\nEnable=pcp.fits > 8\n", 1, 7, "needs a name", NULL},
		{"[Order 60kB]\nEnable=pcp.fits > 8\n", 1, 8, "a folio size", NULL},
		{"[Order 99]\nEnable=pcp.fits > 8\n", 1, 8, "orders go up to", NULL},
		{"[Order 4]\nEnable=pcp.fits > 8\n[Order 64kB]\nEnable=pcp.fits > 8\n", 3, 8,
		 "the same order", NULL},
		{"[Order 4]\nDisable=pcp.fits > 8\n", 1, 1, "needs Enable=", NULL},
		{"[Trim a b]\nWhen=pcp.share > 5%\n", 1, 7, "letters, digits", NULL},
		{"[Trim *]\nWhen=pcp.share > 5%\n", 1, 7, "only [Order]", NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\n", 1, 1, "needs Value=", NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=pcp.share\n", 3, 7, "bare number",
		 NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=2%\n", 3, 7,
		 "for this share write 50", NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=50%\n", 3, 7, "not a ratio", NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=7\n", 3, 7, "from 8 to", NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=0\n", 3, 7, "lets go", NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=2147483648\n", 3, 7, "from 8 to",
		 NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=9\nDrain=yes\n", 4, 7, "takes trim",
		 NULL},
		{"[Trim a]\nWhen=pcp.share > 5%\nSqueeze=maybe\n", 3, 9, "yes or no", NULL},
		{"[Trim a]\nWhen=pcp.fits > 5\n", 2, 6, "order at hand", NULL},
		{"[Trim a]\nWhen=pcp.share > 5%\n[Guard]\nTrip=pcp.fits > 5\n", 4, 6,
		 "order at hand", NULL},
		{"[Trim a]\nWhen=pcp.share \\\n  > 5% and \\\n  pcp.shre < 1%\n", 4, 3, "no signal",
		 "pcp.share"},
		{"[Match]\nKernel=>=six\n", 2, 10, "kernel version", NULL},
		{"[Match]\nKernel=>=6.\n", 2, 10, "kernel version", NULL},
		{"[Match]\nCPUs=>=\n", 2, 6, "whole number", NULL},
		{"[Match]\nCPUs=>=4 <x\n", 2, 11, "whole number", NULL},
		{"[Match]\nMemory=>=16Q\n", 2, 10, "a size", NULL},
		{"[Match]\nRollout=101%\n", 2, 9, "a share", NULL},
		{"[Match]\nWhen=rate(vmstat.compact_stall) > 1/s\n", 2, 6, "no past", NULL},
		{"[Match]\nProcess=a\"b\n", 2, 10, "in the name of a command", NULL},
		{"[Match]\nLinkMTU=>=1k\n", 2, 11, "whole number", NULL},
		{"[Guard]\nWithin=0s\nTrip=vmstat.compact_stall > 10\n", 2, 8, "at least 1s", NULL},
		{"[Guard]\nWithin=60s\n", 1, 1, "needs Trip=", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
		_cleanup_(diagnostics_free) struct diagnostics d = {0};
		struct policy *p;
		int r = policy_parse(&t, "x", "f", rows[i].text, strlen(rows[i].text), &p, &d);

		if (r != -EBADMSG || p || d.errors != 1)
			fail_msg("%s: got %d and %zu errors%s%s", rows[i].text, r, d.errors,
				 d.nr > 1 ? ": " : "", d.nr > 1 ? d.list[1].message : "");
		if (d.list[0].line != rows[i].line || d.list[0].column != rows[i].column ||
		    !strstr(d.list[0].message, rows[i].message))
			fail_msg("%s: got %u:%u: %s", rows[i].text, d.list[0].line,
				 d.list[0].column, d.list[0].message);
		if (rows[i].nearest &&
		    (!d.list[0].nearest || !streq(d.list[0].nearest, rows[i].nearest)))
			fail_msg("%s: nearest is %s", rows[i].text,
				 d.list[0].nearest ? d.list[0].nearest : "(none)");
	}
}

static void a_size_that_no_folio_has_sleeps(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = 65536};
	struct policy *p = parse(&t, "x",
				 "[Order 16kB]\nEnable=pcp.fits > 8\n"
				 "[Order 2G]\nEnable=pcp.fits > 8\n");

	(void)state;
	assert_int_equal(p->rules[0].order, POLICY_ORDER_NONE);
	assert_int_equal(p->rules[1].order, 15);
	(void)policy_free(p);
}

/* Matching */

static void kernel_versions_compare_by_the_numbers_that_are_written(void **state)
{
	static const struct {
		const char *condition, *release;
		enum kleene want;
	} rows[] = {
		{">=6.8", "6.8.0-45-generic", KLEENE_TRUE},
		{">=6.8", "6.18.44", KLEENE_TRUE},
		{">=6.8", "6.1.0-13-amd64", KLEENE_FALSE},
		{">=6.8", "5.15.0", KLEENE_FALSE},
		{">=6.8", "10.0.0", KLEENE_TRUE},
		{"<6.7", "6.6.87", KLEENE_TRUE},
		{"<6.7", "6.7.0", KLEENE_FALSE},
		{">6.8", "6.8.5", KLEENE_FALSE},
		{"<=6.8", "6.8.5", KLEENE_TRUE},
		{"=6.8", "6.8.5-rt", KLEENE_TRUE},
		{"6.8", "6.8.5-rt", KLEENE_TRUE},
		{"!=6.8", "6.8.5", KLEENE_FALSE},
		{">=6.8.6", "6.8.5", KLEENE_FALSE},
		{">= 6.7 < 6.14", "6.12.1", KLEENE_TRUE},
		{">=6.7 <6.14", "6.14.0", KLEENE_FALSE},
		{">=6.8", "", KLEENE_UNKNOWN},
		{">=6.8", "unreadable", KLEENE_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
		struct machine_facts facts = {0};
		struct match_result result;
		struct policy *p;
		char text[80];

		(void)snprintf(text, sizeof(text), "[Match]\nKernel=%s\n", rows[i].condition);
		(void)snprintf(facts.kernel, sizeof(facts.kernel), "%s", rows[i].release);
		p = parse(&t, "x", text);
		policy_match_eval(p, &facts, NULL, &result);
		if (result.holds != rows[i].want || !*result.why != (result.holds == KLEENE_TRUE))
			fail_msg("%s on %s: %s (%s)", rows[i].condition, rows[i].release,
				 kleene_name(result.holds), result.why);
		(void)policy_free(p);
	}
}

static void the_other_conditions_of_match(void **state)
{
	static const struct {
		const char *text;
		enum kleene want;
		const char *why;
	} rows[] = {
		{"", KLEENE_TRUE, ""},
		{"CPUs=>=4", KLEENE_TRUE, ""},
		{"CPUs=>=4 <8", KLEENE_FALSE, "CPUs=>=4 <8: 8 are online"},
		{"CPUs=8", KLEENE_TRUE, ""},
		{"Memory=>=15G", KLEENE_TRUE, ""},
		{"Memory=>=16G", KLEENE_FALSE, "Memory=>=16G: the kernel manages 15.5 GiB"},
		{"Host=web-*", KLEENE_TRUE, ""},
		{"Host=db-* web-1", KLEENE_TRUE, ""},
		{"Host=WEB-1.example.org", KLEENE_TRUE, ""},
		{"Host=db-*", KLEENE_FALSE, "Host=db-*: this is web-1.example.org"},
		{"Rollout=100%", KLEENE_TRUE, ""},
		{"Rollout=0", KLEENE_FALSE, "place is at"},
		{"When=machine.cpus > 4", KLEENE_TRUE, ""},
		{"When=machine.cpus > 8", KLEENE_FALSE, "When=machine.cpus > 8"},
		{"Process=postgres", KLEENE_UNKNOWN, "is unknown"},
		{"LinkMTU=>=9000", KLEENE_UNKNOWN, "is unknown"},
		{"Process=postgres\nWhen=machine.cpus > 8", KLEENE_FALSE, "When="},
		{"Process=postgres\nWhen=machine.cpus > 4", KLEENE_UNKNOWN, "Process="},
	};
	const struct machine_facts facts = {.kernel = "6.8.0",
					    .host = "web-1.example.org",
					    .machine_id = "0123456789abcdef0123456789abcdef",
					    .cpus = 8,
					    .memory_bytes = UINT64_C(31) << 29};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
		struct expr_env env = {0};
		struct match_result result;
		double slots[8];
		struct policy *p;
		char text[120];

		(void)snprintf(text, sizeof(text), "[Match]\n%s\n", rows[i].text);
		p = parse(&t, "x", text);
		for (uint32_t k = 0; k < t.nr_slots; k++)
			slots[k] = strncmp(rows[i].text, "When", 4) == 0 ||
						   (strstr(rows[i].text, "When") && k == 1)
					   ? 8
					   : NAN;
		env.slots = slots;
		policy_match_eval(p, &facts, &env, &result);
		if (result.holds != rows[i].want || !strstr(result.why, rows[i].why))
			fail_msg("%s: %s (%s)", rows[i].text, kleene_name(result.holds),
				 result.why);
		(void)policy_free(p);
	}
}

static void a_rollout_takes_its_share_of_machines_and_grows_by_adding(void **state)
{
	unsigned tenth = 0, half = 0, other = 0;

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		char id[33];
		double at;

		(void)snprintf(id, sizeof(id), "%032x", i * 2654435761U);
		at = policy_rollout_hash(id, "hot-orders");
		assert_true(at >= 0 && at < 1);
		assert_true(at == policy_rollout_hash(id, "hot-orders"));
		tenth += at < 0.1;
		half += at < 0.5;
		other += at < 0.1 && policy_rollout_hash(id, "cap-parked") < 0.1;
	}
	assert_in_range(tenth, 900, 1100);
	assert_in_range(half, 4800, 5200);
	/* two policies do not meet on the same tenth */
	assert_in_range(other, 50, 160);
}

/* Directories */

struct tree {
	char path[64];
	struct sysroot root;
};

static void put(const struct tree *t, const char *rel, const char *text)
{
	char path[256];
	FILE *f;

	for (const char *s = strchr(rel, '/'); s; s = strchr(s + 1, '/')) {
		(void)snprintf(path, sizeof(path), "%s/%.*s", t->path, (int)(s - rel), rel);
		(void)mkdir(path, 0755);
	}
	(void)snprintf(path, sizeof(path), "%s/%s", t->path, rel);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs(text, f);
	(void)fclose(f);
}

static void put_link(const struct tree *t, const char *rel, const char *target)
{
	char path[256];

	put(t, rel, "");
	(void)snprintf(path, sizeof(path), "%s/%s", t->path, rel);
	(void)unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static int tree_setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	(void)snprintf(t->path, sizeof(t->path), "/tmp/pcptune-policy-XXXXXX");
	assert_non_null(mkdtemp(t->path));
	assert_int_equal(sysroot_open(&t->root, t->path, NULL), 0);
	*state = t;
	return 0;
}

static int tree_teardown(void **state)
{
	struct tree *t = *state;
	char command[128];

	sysroot_close(&t->root);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", t->path);
	assert_int_equal(system(command), 0);
	free(t);
	return 0;
}

#define RULE "[Trim x]\nWhen=zone.free_ratio < 5%\n"

static struct policy_set *load(const struct tree *t, const struct policy_set *previous,
			       struct diagnostics *d)
{
	struct policy_set *set = NULL;

	assert_int_equal(policy_set_load(&set, &t->root, NULL, PAGE, previous, d), 0);
	return set;
}

static void higher_directories_hide_mask_and_amend(void **state)
{
	const struct tree *t = *state;
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(policy_set_freep) struct policy_set *set = NULL;
	const struct policy *p;

	put(t, "usr/lib/pcptune/policies.d/a.policy", "[Policy]\nPriority=10\n" RULE);
	put(t, "usr/lib/pcptune/policies.d/b.policy", "[Policy]\nPriority=90\n" RULE);
	put(t, "usr/lib/pcptune/policies.d/masked.policy", RULE);
	put(t, "usr/lib/pcptune/policies.d/empty.policy", RULE);
	put(t, "usr/lib/pcptune/policies.d/c.policy", "[Policy]\nPriority=90\n" RULE);
	put(t, "run/pcptune/policies.d/a.policy", "[Policy]\nPriority=20\n" RULE);
	put(t, "etc/pcptune/policies.d/c.policy", "[Policy]\nPriority=95\n" RULE);
	put_link(t, "etc/pcptune/policies.d/masked.policy", "/dev/null");
	put(t, "run/pcptune/policies.d/empty.policy", "");
	put(t, "etc/pcptune/policies.d/a.policy~", "nonsense");
	put(t, "etc/pcptune/policies.d/a.policy.dpkg-new", "nonsense");
	put(t, "etc/pcptune/policies.d/.hidden.policy", "nonsense");
	put(t, "usr/lib/pcptune/policies.d/a.policy.d/10-x.conf",
	    "[Trim x]\nFor=50s\nCooldown=1min\n");
	put(t, "etc/pcptune/policies.d/a.policy.d/20-y.conf",
	    "[Trim x]\nFor=\n[Policy]\nMode=observe\n");
	put(t, "run/pcptune/policies.d/a.policy.d/10-x.conf", "[Trim x]\nFor=51s\nCooldown=2min\n");
	put(t, "etc/pcptune/policies.d/a.policy.d/30-z.conf.bak", "nonsense");
	set = load(t, NULL, &d);
	if (d.nr > 0)
		fail_msg("%s", d.list[0].message);
	assert_int_equal(set->nr, 3);
	assert_string_equal(set->policies[0]->name, "c");
	assert_string_equal(set->policies[1]->name, "b");
	assert_string_equal(set->policies[2]->name, "a");
	assert_int_equal(set->policies[0]->priority, 95);
	p = policy_set_find(set, "a");
	assert_int_equal(p->priority, 20);
	assert_int_equal(p->mode, POLICY_OBSERVE);
	assert_int_equal(p->rules[0].on_usec, 5 * USEC_PER_SEC);
	assert_int_equal(p->rules[0].cooldown_usec, 2 * USEC_PER_MINUTE);
	assert_int_equal(set->nr_unused, 2);
	assert_true(set->unused[0].masked && set->unused[1].masked);
}

static void one_bad_policy_does_not_stop_the_others(void **state)
{
	const struct tree *t = *state;
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(policy_set_freep) struct policy_set *set = NULL, *again = NULL;
	_cleanup_(text_free) struct text cat = {0};

	put(t, "etc/pcptune/policies.d/good.policy", "[Policy]\nPriority=10\n" RULE);
	put(t, "etc/pcptune/policies.d/other.policy", "[Policy]\nPriority=11\n" RULE);
	set = load(t, NULL, &d);
	assert_int_equal(set->nr, 2);
	assert_int_equal(d.nr, 0);

	put(t, "etc/pcptune/policies.d/good.policy", "[Policy]\nPriority=x\n" RULE);
	put(t, "etc/pcptune/policies.d/new.policy", "[Trim x]\nWhen=no\n");
	again = load(t, set, &d);
	assert_int_equal(d.errors, 2);
	assert_non_null(strstr(d.list[0].file, "/etc/pcptune/policies.d/good.policy"));
	assert_int_equal(again->nr, 2);
	assert_true(policy_set_find(again, "good")->kept);
	assert_int_equal(policy_set_find(again, "good")->priority, 10);
	assert_false(policy_set_find(again, "other")->kept);
	assert_int_equal(policy_set_find(again, "good")->fingerprint,
			 policy_set_find(set, "good")->fingerprint);
	assert_int_equal(policy_set_find(again, "other")->rules[0].fingerprint,
			 policy_set_find(set, "other")->rules[0].fingerprint);
	assert_null(policy_set_find(again, "new"));
	assert_int_equal(again->nr_unused, 2);
	set = policy_set_free(set);
	ini_doc_print(&policy_set_find(again, "good")->doc, &cat);
	assert_non_null(strstr(text_str(&cat), "good.policy"));
	assert_non_null(strstr(text_str(&cat), "Priority=10"));
}

static void directories_of_the_command_line_take_the_place_of_the_others(void **state)
{
	const struct tree *t = *state;
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(policy_set_freep) struct policy_set *set = NULL;
	char one[128], two[128];
	const char *dirs[] = {one, two, NULL};

	put(t, "etc/pcptune/policies.d/system.policy", RULE);
	put(t, "one/mine.policy", "[Policy]\nPriority=1\n" RULE);
	put(t, "two/mine.policy", "[Policy]\nPriority=2\n" RULE);
	put(t, "one/mine.policy.d/x.conf", "[Policy]\nMode=observe\n");
	(void)snprintf(one, sizeof(one), "%s/one", t->path);
	(void)snprintf(two, sizeof(two), "%s/two", t->path);
	assert_int_equal(policy_set_load(&set, &t->root, dirs, PAGE, NULL, &d), 0);
	assert_int_equal(d.nr, 0);
	assert_int_equal(set->nr, 1);
	assert_int_equal(set->policies[0]->priority, 2);
	assert_int_equal(set->policies[0]->mode, POLICY_OBSERVE);
}

static void a_drop_in_can_take_a_rule_away(void **state)
{
	const struct tree *t = *state;
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(policy_set_freep) struct policy_set *set = NULL;

	put(t, "usr/lib/pcptune/policies.d/a.policy", RULE "[Trim y]\nWhen=pcp.share > 5%\n");
	put(t, "etc/pcptune/policies.d/a.policy.d/x.conf", "[Trim x]\nWhen=\n");
	set = load(t, NULL, &d);
	assert_int_equal(d.nr, 0);
	assert_int_equal(set->policies[0]->nr_rules, 1);
	assert_string_equal(set->policies[0]->rules[0].name, "y");
}

static void configuration_is_searched_the_same_way(void **state)
{
	const struct tree *t = *state;
	_cleanup_(diagnostics_free) struct diagnostics d = {0};
	_cleanup_(ini_doc_free) struct ini_doc doc = {0}, given = {0};
	_cleanup_(text_free) struct text text = {0};
	char path[128];
	bool masked;

	put(t, "usr/lib/pcptune/pcptuned.conf", "[Daemon]\nMode=observe\nInterval=1s\n");
	put(t, "etc/pcptune/pcptuned.conf.d/50-me.conf", "[Daemon]\nMode=enforce\n");
	assert_int_equal(
		search_load(&t->root, search_config_dirs, "pcptuned.conf", NULL, &doc, &masked, &d),
		0);
	assert_false(masked);
	ini_doc_print(&doc, &text);
	assert_non_null(strstr(text_str(&text), "50-me.conf\nMode=enforce\n# "));
	assert_non_null(strstr(text_str(&text), "pcptuned.conf\nInterval=1s\n"));

	(void)snprintf(path, sizeof(path), "%s/none.conf", t->path);
	assert_int_equal(search_load(&t->root, search_config_dirs, "pcptuned.conf", path, &given,
				     &masked, &d),
			 -EBADMSG);
	assert_non_null(strstr(d.list[0].message, "No such file"));
}

static void larger_priority_then_exact_size_then_name_wins(void **state)
{
	_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
	struct policy *a = parse(&t, "a",
				 "[Order *]\nEnable=pcp.fits > 1\n"
				 "[Order 64kB]\nEnable=pcp.fits > 1\n");
	struct policy *b = parse(&t, "b", "[Order 64kB]\nEnable=pcp.fits > 1\n");
	struct policy *c = parse(&t, "c",
				 "[Policy]\nPriority=51\n"
				 "[Order *]\nEnable=pcp.fits > 1\n");

	(void)state;
	assert_true(policy_rule_beats(c, &c->rules[0], a, &a->rules[1]));
	assert_true(policy_rule_beats(b, &b->rules[0], a, &a->rules[0]));
	assert_true(policy_rule_beats(a, &a->rules[1], b, &b->rules[0]));
	assert_true(policy_rule_beats(a, &a->rules[1], a, &a->rules[0]));
	assert_false(policy_rule_beats(a, &a->rules[0], c, &c->rules[0]));
	(void)policy_free(a);
	(void)policy_free(b);
	(void)policy_free(c);
}

/* Warnings */

/* 64 CPUs on one node with 256 GiB in one zone, as sized by the kernel. */
struct machine {
	struct snapshot s;
	struct zone zone;
	int32_t nodes[64];
};

static void machine_make(struct machine *m)
{
	*m = (struct machine){0};
	m->zone.populated = true;
	m->zone.has = UINT64_MAX;
	m->zone.value[ZONE_MANAGED] = m->zone.value[ZONE_PRESENT] = 67108864;
	m->zone.value[ZONE_LOW] = 83968;
	(void)snprintf(m->zone.name, sizeof(m->zone.name), "Normal");
	m->s.page_bytes = PAGE;
	m->s.valid = SOURCE_BIT(SOURCE_ZONEINFO);
	m->s.zoneinfo.zones = &m->zone;
	m->s.zoneinfo.nr_zones = 1;
	m->s.topology.node_of_cpu = m->nodes;
	m->s.topology.cpu_room = 64;
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(cpuset_add(&m->s.topology.online, i), 0);
}

static void warnings_say_what_was_surely_not_meant(void **state)
{
	static const struct {
		const char *text;
		const char *warning; /* NULL: none */
	} rows[] = {
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=100\nUntil=pcp.share < 1%\n",
		 "10485 pages (41.0 MiB) a CPU in zone Normal of node 0, not 1312 (5.12 MiB)"},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=1000\nUntil=pcp.share < 1%\n", NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=fraction_for(4M)\n", NULL},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=fraction_for(8M)\n",
		 "larger here than the kernel's own minimum"},
		{"[HighFraction a]\nWhen=rate(vmstat.pgfault) > 1000/s\nValue=32\n", NULL},
		{"[HighFraction a]\nWhen=rate(vmstat.pgfault) > 1000/s\nValue=32\nDrain=no\n",
		 NULL},
		{"[HighFraction a]\nWhen=rate(vmstat.pgfault) > 1000/s\nValue=32\nDrain=trim\n",
		 "larger here"},
		{"[HighFraction a]\nWhen=zone.free_ratio < 5%\nValue=100\n", "larger here"},
		{"[HighFraction a]\nWhen=zone.free_ratio > 30%\nValue=100\n", NULL},
		{"[HighFraction a]\nWhen=pcp.share < 5%\nValue=100\n", NULL},
		{"[Trim a]\nWhen=pcp.share > 5% and pcp.share < 1%\n", "never be true"},
		{"[Trim a]\nWhen=pcp.share >= 0\n", "always true"},
		{"[HighFraction a]\nWhen=pcp.share > 5%\nValue=1000\nUntil=pcp.share < 10%\n",
		 "overlaps the trigger: `pcp.share < 10%`"},
		{"[Order 64kB]\nEnable=pcp.fits > 8\nDisable=pcp.fits > 4\n", "overlaps"},
		{"[Order 2]\nEnable=pcp.fits > 8\nDisable=pcp.fits < 4\n", "always kept"},
		{"[Trim a]\nWhen=zone.free_ratio < 5%\n[Guard]\nTrip=pcp.share >= 0\n",
		 "every change is taken back"},
		{"[Policy]\nPriority=1\n", "has no rule"},
	};
	struct machine m;

	(void)state;
	machine_make(&m);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
		_cleanup_(diagnostics_free) struct diagnostics d = {0};
		struct policy *p = parse(&t, "x", rows[i].text);

		policy_check(p, &t, &m.s, &d);
		if (d.warnings != (rows[i].warning != NULL) || d.errors)
			fail_msg("%s: %zu warnings%s%s", rows[i].text, d.warnings, d.nr ? ": " : "",
				 d.nr ? d.list[0].message : "");
		if (rows[i].warning && !strstr(d.list[0].message, rows[i].warning))
			fail_msg("%s: %s", rows[i].text, d.list[0].message);
		(void)policy_free(p);
	}
	cpuset_free(&m.s.topology.online);
}

/* What this kernel prints as its own minimum of a zone's lists; 0 where a fraction is set. */
static uint64_t printed_minimum(const struct snapshot *s, const struct zone *z)
{
	const struct pageset *p = &s->zoneinfo.pagesets[z->first_pageset];

	if (z->nr_pagesets == 0 || !(p->has >> PAGESET_HIGH_MIN & 1) ||
	    p->value[PAGESET_HIGH_MIN] >= p->value[PAGESET_HIGH_MAX])
		return 0;
	return p->value[PAGESET_HIGH_MIN];
}

/* 1: lists of some zone are larger at `fraction` than printed; 0: none; -1: too near to say. */
static int larger_than_printed(const struct snapshot *s, uint64_t fraction)
{
	int larger = 0;

	for (uint32_t i = 0; i < s->zoneinfo.nr_zones; i++) {
		const struct zone *z = &s->zoneinfo.zones[i];
		uint64_t own = printed_minimum(s, z), high;
		struct pcp_sizing sizing;

		if (!snapshot_zone_counts(s, z) || !pcp_sizing_of(s, z, &sizing))
			continue;
		high = pcp_highsize(&sizing, fraction);
		if (own == 0 || (high > own - own / 20 && high < own + own / 20 && high != own))
			return -1;
		larger = larger || high > own;
	}
	return larger;
}

static unsigned warnings_agree(const struct snapshot *s)
{
	static const uint64_t fractions[] = {8, 32, 100, 200, 500, 1000, 4000, 2147483647};
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fractions); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = s->page_bytes};
		_cleanup_(diagnostics_free) struct diagnostics d = {0};
		int want = larger_than_printed(s, fractions[i]);
		struct policy *p;
		char text[120];

		(void)snprintf(text, sizeof(text),
			       "[HighFraction a]\nWhen=pcp.share > 5%%\nValue=%llu\n",
			       (unsigned long long)fractions[i]);
		p = parse(&t, "x", text);
		policy_check(p, &t, s, &d);
		if (want >= 0 && d.warnings != (size_t)want)
			fail_msg("fraction %llu: %zu warnings: %s",
				 (unsigned long long)fractions[i], d.warnings,
				 d.nr ? d.list[0].message : "");
		n += want >= 0;
		(void)policy_free(p);
	}
	return n;
}

static void warnings_agree_with_what_a_captured_kernel_prints(void **state)
{
	_cleanup_(text_free) struct text text = {0};
	struct snapshot s = {.page_bytes = PAGE, .valid = SOURCE_BIT(SOURCE_ZONEINFO)};
	char path[1024];

	(void)state;
	if (!corpus_dir())
		skip();
	(void)snprintf(path, sizeof(path), "%s/corpus/kernel/local-6.18-fc-2cpu/zoneinfo",
		       corpus_dir());
	read_test_file(path, &text);
	assert_int_equal(zoneinfo_parse(&s.zoneinfo, text.data, text.len, 0, NULL), 0);
	if (warnings_agree(&s) < 4)
		fail_msg("too few fractions could be judged");
	zoneinfo_free(&s.zoneinfo);
}

static void warnings_agree_with_what_this_kernel_prints(void **state)
{
	_cleanup_(sensor_freep) struct sensor *sensor = NULL;
	const struct snapshot *s;
	struct sysroot root;

	(void)state;
	assert_int_equal(sysroot_open(&root, "/", NULL), 0);
	assert_int_equal(sensor_new(&sensor, &root, 0, NULL), 0);
	s = sensor_take(sensor, SOURCE_BIT(SOURCE_ZONEINFO), 0);
	if (!snapshot_has(s, SOURCE_ZONEINFO) || !s->zoneinfo.prints_high_min) {
		print_message("this kernel does not print high_min\n");
		sysroot_close(&root);
		skip();
	}
	(void)warnings_agree(s);
	sensor = sensor_free(sensor);
	sysroot_close(&root);
}

static void fractions_stay_within_what_the_kernel_takes(void **state)
{
	static const struct {
		const char *value;
		double slot;
		int want;
		uint64_t fraction;
	} rows[] = {
		{"100", 0, 0, 100},
		{"machine.cpus", 12.9, 0, 12},
		{"machine.cpus", 2, 0, 8},
		{"machine.cpus * 1000000000", 1000, 0, 2147483647},
		{"machine.cpus - 100", 4, -ENODATA, 0},
		{"machine.cpus", NAN, -ENODATA, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(expr_table_free) struct expr_table t = {.page_bytes = PAGE};
		struct expr_env env = {.slots = &rows[i].slot};
		struct policy_rule r = {0};
		uint64_t fraction = 0;

		assert_int_equal(
			expr_compile_text(&t, "x", rows[i].value, EXPR_NUMBER, 0, &r.value, NULL),
			0);
		if (policy_fraction(&r, &env, &fraction) != rows[i].want ||
		    fraction != rows[i].fraction)
			fail_msg("%s: %llu", rows[i].value, (unsigned long long)fraction);
		(void)expr_free(r.value);
	}
}

#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_reaches_the_policy),
		cmocka_unit_test(the_full_policy_uses_every_key_of_the_table),
		cmocka_unit_test(defaults_are_those_of_the_table),
		cmocka_unit_test(mistakes_in_policies_are_told_where_they_are),
		cmocka_unit_test(a_size_that_no_folio_has_sleeps),
		cmocka_unit_test(kernel_versions_compare_by_the_numbers_that_are_written),
		cmocka_unit_test(the_other_conditions_of_match),
		cmocka_unit_test(a_rollout_takes_its_share_of_machines_and_grows_by_adding),
		WITH_TREE(higher_directories_hide_mask_and_amend),
		WITH_TREE(one_bad_policy_does_not_stop_the_others),
		WITH_TREE(directories_of_the_command_line_take_the_place_of_the_others),
		WITH_TREE(a_drop_in_can_take_a_rule_away),
		WITH_TREE(configuration_is_searched_the_same_way),
		cmocka_unit_test(larger_priority_then_exact_size_then_name_wins),
		cmocka_unit_test(warnings_say_what_was_surely_not_meant),
		cmocka_unit_test(warnings_agree_with_what_a_captured_kernel_prints),
		cmocka_unit_test(warnings_agree_with_what_this_kernel_prints),
		cmocka_unit_test(fractions_stay_within_what_the_kernel_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
