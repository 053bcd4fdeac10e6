/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each shipped policy through a scripted day, and its values on every captured machine. */
#include "corpus.h"
#include "engine-kit.h"
#include "policy/check.h"
#include "sense/autotune.h"
#include "sense/sizing.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S USEC_PER_SEC
#define M USEC_PER_MINUTE

static void shipped_path(char *buf, size_t size, const char *name)
{
	(void)snprintf(buf, size, "%s/%s.policy", TEST_POLICIES, name);
}

static struct kit *kit_of(const char *name)
{
	struct kit *k = kit_new();
	char path[512];

	shipped_path(path, sizeof(path), name);
	kit_policy_file(k, path);
	return k;
}

/* The same with Mode=enforce, so that the whole circle is played and not only told. */
static struct kit *kit_enforcing(const char *name)
{
	_cleanup_(text_free) struct text t = {0};
	struct kit *k = kit_new();
	char path[512], *mode;

	shipped_path(path, sizeof(path), name);
	read_test_file(path, &t);
	mode = strstr(t.data, "Mode=observe");
	if (mode)
		memcpy(mode, "Mode=enforce", strlen("Mode=enforce"));
	kit_policy(k, name, t.data);
	return k;
}

#define NOTHING(k)                                                                \
	do {                                                                      \
		if ((k)->nr_log) {                                                \
			kit_dump(k);                                              \
			fail_msg("line %d: nothing should be decided", __LINE__); \
		}                                                                 \
	} while (0)

#define DECIDED(k, n)                                                                           \
	do {                                                                                    \
		if ((k)->nr_log != (n)) {                                                       \
			kit_dump(k);                                                            \
			fail_msg("line %d: %zu decisions, should be %d", __LINE__, (k)->nr_log, \
				 (int)(n));                                                     \
		}                                                                               \
	} while (0)

static const struct decision *last(const struct kit *k)
{
	return &k->log[k->nr_log - 1].d;
}

/* trim-under-pressure */

static void trim_gives_back_what_is_parked_when_memory_is_short(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("trim-under-pressure");

	(void)state;
	kit_run(k, 10 * M); /* calm */
	NOTHING(k);
	k->m.parked = 100000; /* a burst has parked 9.5% */
	kit_run(k, 10 * M);
	NOTHING(k);
	k->m.free_ratio = 0.03; /* pressure */
	kit_run(k, 8 * S);
	DECIDED(k, 1);
	assert_int_equal(last(k)->kind, DECISION_DRAIN);
	assert_int_equal(last(k)->drain, ENGINE_DRAIN_TRIM);
	assert_true(last(k)->write);
	assert_int_equal(k->m.parked, k->m.high_min);
	kit_run(k, 20 * M); /* still short, and nothing left to give */
	DECIDED(k, 1);
	k->m.parked = 100000;
	kit_run(k, 10 * S);
	DECIDED(k, 2);
	k->m.parked = 100000;
	kit_run(k, 9 * M); /* a cooldown */
	DECIDED(k, 2);
	kit_run(k, 2 * M);
	DECIDED(k, 3);
}

static void trim_sees_direct_reclaim_but_no_containers_limit(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("trim-under-pressure");

	(void)state;
	k->m.parked = 100000;
	k->s.psi_memory.some = (struct psi_line){.avg10 = 0.9, .avg60 = 0.9, .present = true};
	kit_run(k, 10 * M); /* a container thrashes inside its limit */
	NOTHING(k);
	k->m.allocstall = 5;
	kit_run(k, 8 * S);
	DECIDED(k, 1);
}

static void trim_does_nothing_where_it_cannot_know_or_act(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("trim-under-pressure");
	_cleanup_(kit_freep) struct kit *old = kit_of("trim-under-pressure");

	(void)state;
	k->m.parked = 100000;
	k->m.free_ratio = 0.03;
	k->m.has_zoneinfo = false;
	kit_run(k, 5 * M);
	NOTHING(k);
	k->m.has_zoneinfo = true;
	k->drain.trim = false; /* isolated CPUs */
	kit_run(k, 5 * M);
	NOTHING(k);
	old->m.autotune = 0; /* before 6.7 */
	old->m.parked = 100000;
	old->m.free_ratio = 0.03;
	kit_run(old, 5 * M);
	NOTHING(old);
}

/* hot-orders */

static void hot_orders_follow_the_load(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("hot-orders");

	(void)state;
	kit_run(k, 10 * M);
	NOTHING(k);
	k->m.alloc_bytes = 16.0 * (40 << 20); /* a burst of 64 KiB folios */
	kit_run(k, 50 * S);
	NOTHING(k);
	kit_run(k, 15 * S);
	DECIDED(k, 1);
	assert_true(knob_id_eq(last(k)->knob, KIT_64K));
	assert_int_equal(kit_value(k, KIT_64K), 1);
	assert_int_equal(kit_value(k, KIT_128K), 0);
	k->m.alloc_bytes = 0; /* cold: and yet not before MinHold= is over */
	kit_run(k, 9 * M);
	DECIDED(k, 1);
	kit_run(k, 3 * M);
	DECIDED(k, 2);
	assert_true(last(k)->to_baseline);
	assert_int_equal(kit_value(k, KIT_64K), 0);
}

static void make_hot(struct kit *k)
{
	kit_run(k, 5 * M);
	k->m.alloc_bytes = 16.0 * (40 << 20);
	kit_run(k, 70 * S);
	DECIDED(k, 1);
	assert_int_equal(kit_value(k, KIT_64K), 1);
}

static void hot_orders_let_go_when_allocations_begin_to_fail(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("hot-orders");

	(void)state;
	k->m.fallback_share = 0.3; /* as it was before: not our doing */
	make_hot(k);
	kit_run(k, 15 * M);
	DECIDED(k, 1);
	k->m.fallback_share = 0.6;
	kit_run(k, 4 * M);
	DECIDED(k, 2);
	assert_int_equal(kit_value(k, KIT_64K), 0);
}

static void hot_orders_keep_away_from_fragmented_memory(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("hot-orders");

	(void)state;
	k->m.unusable = 0.6;
	k->m.alloc_bytes = 16.0 * (40 << 20);
	kit_run(k, 10 * M);
	NOTHING(k);
	k->m.unusable = 0.1;
	kit_run(k, 70 * S);
	DECIDED(k, 1);
	k->m.unusable = 0.95;
	kit_run(k, 12 * M);
	DECIDED(k, 2);
	assert_int_equal(kit_value(k, KIT_64K), 0);
}

static void hot_orders_take_back_what_brings_compaction(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("hot-orders");

	(void)state;
	make_hot(k);
	k->m.compact_stall = 400; /* of 10240 allocations a second */
	kit_run(k, 30 * S);
	DECIDED(k, 2);
	assert_int_equal(last(k)->cause, CAUSE_GUARD);
	assert_int_equal(kit_value(k, KIT_64K), 0);
	kit_expect_state(k, KIT_64K, RULE_LOCKED_OUT);
	k->m.compact_stall = 0;
	kit_run(k, 5 * M);
	DECIDED(k, 2);
}

static void hot_orders_do_not_mind_compaction_that_was_there_before(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("hot-orders");

	(void)state;
	k->m.compact_stall = 50;
	make_hot(k);
	kit_run(k, 5 * M);
	DECIDED(k, 1);
}

static void hot_orders_do_not_enable_what_does_not_fit(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("hot-orders");

	(void)state;
	k->m.high_min = 7 * 16;
	k->m.alloc_bytes = 16.0 * (40 << 20);
	kit_run(k, 10 * M);
	NOTHING(k);
}

static void hot_orders_let_go_when_the_counts_vanish(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("hot-orders");

	(void)state;
	make_hot(k);
	k->m.has_stats = false;
	kit_run(k, 12 * M);
	DECIDED(k, 2);
	assert_int_equal(last(k)->cause, CAUSE_BLIND);
	assert_int_equal(kit_value(k, KIT_64K), 0);
}

static void hot_orders_do_nothing_without_the_knob_or_the_counts(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_of("hot-orders"), *n = kit_of("hot-orders");

	(void)state;
	k->m.has_orders = false;
	k->m.alloc_bytes = 16.0 * (40 << 20);
	kit_run(k, 10 * M);
	NOTHING(k);
	n->m.has_stats = false;
	n->m.alloc_bytes = 16.0 * (40 << 20);
	kit_run(n, 10 * M);
	NOTHING(n);
}

/* cache-sized-lists */

static struct kit *producers(bool enforce)
{
	struct kit *k = enforce ? kit_enforcing("cache-sized-lists") : kit_of("cache-sized-lists");

	k->m.low = 8000; /* a stock high_min of 500 pages */
	k->m.high_min = 500;
	return k;
}

static void cache_sized_lists_are_told_and_not_written(void **state)
{
	_cleanup_(kit_freep) struct kit *k = producers(false);

	(void)state;
	kit_run(k, 10 * M);
	NOTHING(k);
	k->m.pgalloc = 16 * 60000.0;
	kit_run(k, 5 * M);
	DECIDED(k, 1);
	assert_false(last(k)->write);
	assert_int_equal(last(k)->value, 16777216 / (1024 * 16)); /* 4 MiB a CPU */
	assert_int_equal(kit_value(k, KIT_FRACTION), 0);
}

static void cache_sized_lists_go_when_memory_gets_short(void **state)
{
	_cleanup_(kit_freep) struct kit *k = producers(true);

	(void)state;
	k->m.pgalloc = 16 * 60000.0;
	kit_run(k, 5 * M);
	DECIDED(k, 1);
	assert_int_equal(kit_value(k, KIT_FRACTION), 1024);
	assert_int_equal(last(k)->drain, ENGINE_DRAIN_TRIM);
	k->m.free_ratio = 0.04;
	kit_run(k, 11 * M);
	DECIDED(k, 2);
	assert_int_equal(kit_value(k, KIT_FRACTION), 0);
}

static void cache_sized_lists_know_when_their_guard_trips(void **state)
{
	_cleanup_(kit_freep) struct kit *k = producers(true);

	(void)state;
	k->m.pgalloc = 16 * 60000.0;
	kit_run(k, 4 * M);
	DECIDED(k, 1);
	k->m.allocstall = 100;
	kit_run(k, 5 * S);
	DECIDED(k, 2);
	assert_int_equal(last(k)->cause, CAUSE_GUARD);
}

static void cache_sized_lists_sleep_where_they_would_not_help(void **state)
{
	_cleanup_(kit_freep) struct kit *k = producers(false), *small = producers(false);
	_cleanup_(kit_freep) struct kit *stock = producers(false), *blind = producers(false);

	(void)state;
	k->m.pgalloc = small->m.pgalloc = stock->m.pgalloc = blind->m.pgalloc = 16 * 60000.0;
	(void)snprintf(k->facts.kernel, sizeof(k->facts.kernel), "6.12.74-amd64");
	kit_run(k, 10 * M); /* the kernel empties such lists itself */
	NOTHING(k);
	small->m.l2_bytes = 256 << 10;
	kit_run(small, 10 * M);
	NOTHING(small);
	stock->m.low = 34000; /* the stock size alone is more than half the cache */
	stock->m.high_min = 2125;
	kit_run(stock, 10 * M);
	NOTHING(stock);
	blind->m.l2_bytes = blind->m.llc_bytes = 0;
	kit_run(blind, 10 * M);
	NOTHING(blind);
}

/* bulk-faults */

static struct kit *faulting(bool enforce)
{
	struct kit *k = enforce ? kit_enforcing("bulk-faults") : kit_of("bulk-faults");

	k->m.autotune = 0;
	(void)snprintf(k->facts.kernel, sizeof(k->facts.kernel), "6.1.0-44-amd64");
	k->m.low = 8000;
	k->m.high_min = 500;
	return k;
}

static void bulk_faults_enlarge_the_lists_while_they_last(void **state)
{
	_cleanup_(kit_freep) struct kit *k = faulting(true), *told = faulting(false);

	(void)state;
	kit_run(k, 10 * M);
	NOTHING(k);
	k->m.pgfault = told->m.pgfault = 16 * 30000.0;
	kit_run(k, 40 * S);
	DECIDED(k, 1);
	assert_int_equal(kit_value(k, KIT_FRACTION), 16777216 / (4096 * 16));
	assert_int_equal(last(k)->drain, ENGINE_DRAIN_NONE);
	k->m.pgfault = 0;
	kit_run(k, 6 * M);
	DECIDED(k, 2);
	assert_int_equal(kit_value(k, KIT_FRACTION), 0);
	kit_run(told, 2 * M);
	DECIDED(told, 1);
	assert_false(last(told)->write);
}

static void bulk_faults_keep_away_from_huge_pages_and_shortage(void **state)
{
	_cleanup_(kit_freep) struct kit *k = faulting(true), *thp = faulting(true);

	(void)state;
	k->m.pgfault = thp->m.pgfault = 16 * 30000.0;
	k->m.free_ratio = 0.15;
	kit_run(k, 5 * M);
	NOTHING(k);
	thp->m.thp_fault_alloc = 50;
	kit_run(thp, 5 * M);
	NOTHING(thp);
	thp->m.thp_fault_alloc = 0;
	kit_run(thp, 3 * M);
	DECIDED(thp, 1);
	thp->m.thp_fault_alloc = 50;
	kit_run(thp, 6 * M);
	DECIDED(thp, 2);
	assert_int_equal(kit_value(thp, KIT_FRACTION), 0);
}

static void bulk_faults_take_back_what_brings_compaction_or_reclaim(void **state)
{
	_cleanup_(kit_freep) struct kit *k = faulting(true), *r = faulting(true);

	(void)state;
	k->m.pgfault = r->m.pgfault = 16 * 30000.0;
	kit_run(k, 2 * M);
	kit_run(r, 2 * M);
	k->m.compact_stall = 100;
	r->m.allocstall = 100;
	kit_run(k, 5 * S);
	kit_run(r, 5 * S);
	DECIDED(k, 2);
	DECIDED(r, 2);
	assert_int_equal(last(k)->cause, CAUSE_GUARD);
	assert_int_equal(last(r)->cause, CAUSE_GUARD);
}

static void bulk_faults_sleep_where_lists_tune_themselves(void **state)
{
	_cleanup_(kit_freep) struct kit *k = faulting(true), *unknown = faulting(true);
	_cleanup_(kit_freep) struct kit *none = faulting(true);

	(void)state;
	k->m.pgfault = unknown->m.pgfault = none->m.pgfault = 16 * 30000.0;
	k->m.autotune = 1;
	kit_run(k, 5 * M);
	NOTHING(k);
	unknown->m.autotune = -1;
	kit_run(unknown, 5 * M);
	NOTHING(unknown);
	none->m.has_high_fraction = false;
	kit_run(none, 5 * M);
	NOTHING(none);
}

/* cap-parked */

static void cap_parked_fixes_the_lists_while_little_is_free(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_enforcing("cap-parked");
	_cleanup_(kit_freep) struct kit *told = kit_of("cap-parked");

	(void)state;
	kit_run(k, 10 * M);
	NOTHING(k);
	k->m.parked = told->m.parked = 60000; /* 5.7% */
	kit_run(k, 10 * M);
	NOTHING(k);
	k->m.free_ratio = told->m.free_ratio = 0.2;
	kit_run(k, 70 * S);
	DECIDED(k, 1);
	assert_int_equal(kit_value(k, KIT_FRACTION), 16777216 / (34000 / 16 * 16) + 1);
	assert_int_equal(last(k)->drain, ENGINE_DRAIN_TRIM);
	k->m.parked = 2000;
	kit_run(k, 60 * M); /* a ceiling stays while it is needed */
	DECIDED(k, 1);
	k->m.free_ratio = 0.5;
	kit_run(k, 35 * M);
	DECIDED(k, 2);
	assert_int_equal(kit_value(k, KIT_FRACTION), 0);
	kit_run(told, 2 * M);
	DECIDED(told, 1);
	assert_false(last(told)->write);
}

static void cap_parked_sleeps_where_nothing_grows(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_enforcing("cap-parked");
	_cleanup_(kit_freep) struct kit *blind = kit_enforcing("cap-parked");

	(void)state;
	k->m.autotune = 0;
	k->m.parked = blind->m.parked = 60000;
	k->m.free_ratio = blind->m.free_ratio = 0.2;
	kit_run(k, 10 * M);
	NOTHING(k);
	kit_run(blind, 5 * M);
	DECIDED(blind, 1);
	blind->m.has_zoneinfo = false; /* the file goes: back to the baseline, in time */
	kit_run(blind, 15 * M);
	DECIDED(blind, 2);
	assert_int_equal(kit_value(blind, KIT_FRACTION), 0);
}

/* all of them together, and what check has to say */

static void all_together_they_live_through_a_day(void **state)
{
	_cleanup_(kit_freep) struct kit *k = kit_new();
	static const char *const names[] = {"trim-under-pressure", "hot-orders",
					    "cache-sized-lists", "bulk-faults", "cap-parked"};
	char path[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		shipped_path(path, sizeof(path), names[i]);
		kit_policy_file(k, path);
	}
	k->step_usec = 5 * S;
	for (int hour = 0; hour < 24; hour++) {
		k->m.alloc_bytes = hour % 4 == 1 ? 16.0 * (40 << 20) : 0;
		k->m.parked = hour % 3 ? 2000 : 90000;
		k->m.free_ratio = hour % 5 == 3 ? 0.03 : 0.4;
		k->m.unusable = hour % 7 == 5 ? 0.7 : 0.1;
		k->m.has_vmstat = hour != 13;
		k->m.has_stats = hour != 17;
		kit_run(k, 60 * M);
	}
	assert_int_equal(kit_value(k, KIT_FRACTION), 0); /* those that observe wrote nothing */
	for (size_t i = 0; i < k->nr_log; i++)
		if (k->log[i].d.write && k->log[i].d.kind == DECISION_VALUE)
			assert_string_equal(k->log[i].d.policy, "hot-orders");
}

static void check_has_nothing_to_say_about_them(void **state)
{
	static const char *const names[] = {"trim-under-pressure", "hot-orders",
					    "cache-sized-lists", "bulk-faults", "cap-parked"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_(kit_freep) struct kit *k = kit_of(names[i]);
		struct diagnostics d = {0};

		kit_snapshot(k);
		policy_check(k->set.policies[0], &k->set.table, &k->s, &d);
		if (d.nr)
			diagnostics_print(&d, stderr, false);
		assert_int_equal(d.nr, 0);
		diagnostics_free(&d);
	}
}

/* every captured machine */

struct machine {
	const char *name;
	struct text text;
	struct snapshot s;
};

static bool machine_load(struct machine *m, const char *name)
{
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/corpus/kernel/%s/zoneinfo", corpus_dir(), name);
	if (access(path, R_OK) < 0)
		return false;
	m->name = name;
	read_test_file(path, &m->text);
	m->s.page_bytes = 4096;
	m->s.valid = SOURCES_ALL;
	/* an excerpt is no machine */
	return zoneinfo_parse(&m->s.zoneinfo, m->text.data, m->text.len, 0, NULL) == 0;
}

static void machine_free(struct machine *m)
{
	zoneinfo_free(&m->s.zoneinfo);
	text_free(&m->text);
}

/* [Match] holds, were there only a kernel and a number of CPUs that it asks for. */
static bool could_wake(const struct kit *k, const struct machine *m, const struct expr_env *env)
{
	struct machine_facts facts = k->facts;
	struct match_result match;

	facts.memory_bytes = snapshot_parked(&m->s).managed * m->s.page_bytes;
	policy_match_eval(k->set.policies[0], &facts, env, &match);
	return match.holds == KLEENE_TRUE;
}

/* What Value= gives on this machine, if the sizes let the rule turn on; false otherwise. */
static bool value_on(const struct kit *k, const struct machine *m, double *slots, uint64_t *ret)
{
	const struct policy_rule *r = &k->set.policies[0]->rules[0];
	struct pcp_sizing sizing;
	struct expr_env env = {.slots = slots, .sizing = &sizing};

	if (!pcp_sizing_largest(&m->s, &sizing))
		return false;
	expr_table_read(&k->set.table, &m->s, slots, NULL);
	if (!could_wake(k, m, &env))
		return false;
	for (size_t i = 0; i < expr_nr_terms(r->on); i++) {
		struct expr_term t;

		expr_term_eval(r->on, i, &env, &t);
		if (memmem(t.text, t.len, "bytes_for", strlen("bytes_for")) &&
		    t.holds != KLEENE_TRUE)
			return false;
	}
	return policy_fraction(r, &env, ret) == 0;
}

struct visit {
	const char *policy;
	uint64_t l2_bytes, llc_bytes;
	uint32_t l2_cpus, llc_cpus;
	int autotune;
	unsigned machines, values;
	void (*judge)(const struct visit *v, const struct machine *m, uint64_t value);
};

static void visit_machine(const char *name, void *userdata)
{
	struct visit *v = userdata;
	_cleanup_(kit_freep) struct kit *k = kit_of(v->policy);
	_cleanup_(freep) double *slots = calloc((size_t)k->set.table.nr_slots + 1, sizeof(*slots));
	struct machine m = {0};
	uint64_t value;

	assert_non_null(slots);
	if (machine_load(&m, name)) {
		m.s.topology.l2_bytes = v->l2_bytes;
		m.s.topology.l2_cpus = v->l2_cpus;
		m.s.topology.llc_bytes = v->llc_bytes;
		m.s.topology.llc_cpus = v->llc_cpus;
		m.s.pcp_autotune = v->autotune;
		v->machines++;
		if (value_on(k, &m, slots, &value)) {
			v->values++;
			v->judge(v, &m, value);
		}
	}
	machine_free(&m);
}

static void visit_all(struct visit *v)
{
	char path[1024];

	if (!corpus_dir()) {
		print_message("no captures beside the source tree: set PCPTUNE_SHARED\n");
		skip();
	}
	(void)snprintf(path, sizeof(path), "%s/corpus/kernel", corpus_dir());
	each_name(path, visit_machine, v);
	if (v->machines < 20)
		fail_msg("only %u machines in %s", v->machines, path);
	print_message("%s: %u machines, a value on %u\n", v->policy, v->machines, v->values);
}

#define BAD(v, m, z, value, high, than, what)                                              \
	fail_msg("%s on %s, node %d zone %s: fraction %" PRIu64 " makes lists of %" PRIu64 \
		 " pages, %s %" PRIu64,                                                    \
		 (v)->policy, (m)->name, (z)->node, (z)->name, value, high, what, than)

static void judge_ceiling(const struct visit *v, const struct machine *m, uint64_t value)
{
	for (uint32_t i = 0; i < m->s.zoneinfo.nr_zones; i++) {
		const struct zone *z = &m->s.zoneinfo.zones[i];
		struct pcp_sizing sizing;
		uint64_t high, most, least;

		if (!pcp_sizing_of(&m->s, z, &sizing))
			continue;
		high = pcp_highsize(&sizing, value);
		most = pcp_highsize(&sizing, HIGH_FRACTION_MIN);
		least = pcp_highsize(&sizing, 0);
		if (high > most)
			BAD(v, m, z, value, high, most, "more than they may grow to anyway:");
		/* where the lists do tune themselves; watermarks of zones differ a little */
		if (autotune_find(&m->s) == 1 && snapshot_zone_counts(&m->s, z) &&
		    high > least + least / 4 + 1)
			BAD(v, m, z, value, high, least, "clearly more than the kernel's minimum:");
	}
}

static void judge_cache(const struct visit *v, const struct machine *m, uint64_t value)
{
	struct pcp_sizing sizing;
	uint64_t high;

	assert_true(pcp_sizing_largest(&m->s, &sizing));
	high = pcp_highsize(&sizing, value);
	if (high * 4096 * v->llc_cpus > v->llc_bytes / 2)
		fail_msg("%s on %s: lists of %" PRIu64 " pages exceed half the cache", v->policy,
			 m->name, high);
	if (high < pcp_highsize(&sizing, 0))
		fail_msg("%s on %s: lists of %" PRIu64 " pages are below the stock minimum",
			 v->policy, m->name, high);
	if (high * 4096 < 2 * v->l2_bytes * 99 / 100)
		fail_msg("%s on %s: lists of %" PRIu64 " pages are below twice the L2", v->policy,
			 m->name, high);
}

static void judge_larger(const struct visit *v, const struct machine *m, uint64_t value)
{
	assert_true(value >= 32);
	for (uint32_t i = 0; i < m->s.zoneinfo.nr_zones; i++) {
		const struct zone *z = &m->s.zoneinfo.zones[i];
		struct pcp_sizing sizing;
		uint64_t high, stock;

		if (!snapshot_zone_counts(&m->s, z) || !pcp_sizing_of(&m->s, z, &sizing))
			continue;
		high = pcp_highsize(&sizing, value);
		stock = pcp_highsize(&sizing, 0);
		if (high < stock - stock / 4)
			BAD(v, m, z, value, high, stock, "clearly less than the kernel's own");
		if (high * sizing.cpus > sizing.managed / 32 + sizing.cpus * 4 * sizing.batch)
			BAD(v, m, z, value, high, sizing.managed / 32, "in all more than");
	}
}

static void no_ceiling_is_above_what_the_kernel_allows(void **state)
{
	struct visit v = {.policy = "cap-parked", .autotune = 1, .judge = judge_ceiling};

	(void)state;
	visit_all(&v);
}

static void no_cache_sized_list_leaves_its_cache_or_shrinks(void **state)
{
	static const struct visit caches[] = {
		{.l2_bytes = 2 << 20, .l2_cpus = 2, .llc_bytes = 96 << 20, .llc_cpus = 8},
		{.l2_bytes = 1 << 20, .l2_cpus = 2, .llc_bytes = 32 << 20, .llc_cpus = 16},
		{.l2_bytes = 1310720, .l2_cpus = 1, .llc_bytes = 48 << 20, .llc_cpus = 4},
		{.l2_bytes = 1310720, .l2_cpus = 1, .llc_bytes = 48 << 20, .llc_cpus = 64},
		{.l2_bytes = 1 << 20, .l2_cpus = 1, .llc_bytes = 512 << 20, .llc_cpus = 8},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		struct visit v = caches[i];

		v.policy = "cache-sized-lists";
		v.judge = judge_cache;
		visit_all(&v);
	}
}

static void no_list_for_bulk_faults_is_smaller_than_before(void **state)
{
	struct visit v = {.policy = "bulk-faults", .judge = judge_larger};

	(void)state;
	visit_all(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trim_gives_back_what_is_parked_when_memory_is_short),
		cmocka_unit_test(trim_sees_direct_reclaim_but_no_containers_limit),
		cmocka_unit_test(trim_does_nothing_where_it_cannot_know_or_act),
		cmocka_unit_test(hot_orders_follow_the_load),
		cmocka_unit_test(hot_orders_let_go_when_allocations_begin_to_fail),
		cmocka_unit_test(hot_orders_keep_away_from_fragmented_memory),
		cmocka_unit_test(hot_orders_take_back_what_brings_compaction),
		cmocka_unit_test(hot_orders_do_not_mind_compaction_that_was_there_before),
		cmocka_unit_test(hot_orders_do_not_enable_what_does_not_fit),
		cmocka_unit_test(hot_orders_let_go_when_the_counts_vanish),
		cmocka_unit_test(hot_orders_do_nothing_without_the_knob_or_the_counts),
		cmocka_unit_test(cache_sized_lists_are_told_and_not_written),
		cmocka_unit_test(cache_sized_lists_go_when_memory_gets_short),
		cmocka_unit_test(cache_sized_lists_know_when_their_guard_trips),
		cmocka_unit_test(cache_sized_lists_sleep_where_they_would_not_help),
		cmocka_unit_test(bulk_faults_enlarge_the_lists_while_they_last),
		cmocka_unit_test(bulk_faults_keep_away_from_huge_pages_and_shortage),
		cmocka_unit_test(bulk_faults_take_back_what_brings_compaction_or_reclaim),
		cmocka_unit_test(bulk_faults_sleep_where_lists_tune_themselves),
		cmocka_unit_test(cap_parked_fixes_the_lists_while_little_is_free),
		cmocka_unit_test(cap_parked_sleeps_where_nothing_grows),
		cmocka_unit_test(all_together_they_live_through_a_day),
		cmocka_unit_test(check_has_nothing_to_say_about_them),
		cmocka_unit_test(no_ceiling_is_above_what_the_kernel_allows),
		cmocka_unit_test(no_cache_sized_list_leaves_its_cache_or_shrinks),
		cmocka_unit_test(no_list_for_bulk_faults_is_smaller_than_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
