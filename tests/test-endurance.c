/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's tick (read, decide, act, look again) a hundred thousand times on a clock of the
 * test's own, with CPUs that come and go and values that change: no memory and no descriptor more.
 */
#include "../daemon/acting.h"
#include "act-tree.h"

#include "policy/policy.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define WITH_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN
#endif
#ifdef WITH_ASAN
/* of <sanitizer/allocator_interface.h>, which gcc does not always bring */
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

#define TICKS         100000U
#define WARM_UP       5000U
#define HOTPLUG_EVERY 10U
#define CHANGE_EVERY  250U
#define SLACK_BYTES   65536U /* what the C library and threads keep for themselves */

static const char policy_text[] = "[Policy]\n"
				  "Description=For a test\n"
				  "Priority=10\n"
				  "[HighFraction small]\n"
				  "When=pcp.bytes > 48M\n"
				  "For=0s\n"
				  "Value=100\n"
				  "Until=pcp.bytes < 48M\n"
				  "UntilFor=0s\n"
				  "Drain=no\n"
				  "[Order *]\n"
				  "Enable=pcp.bytes > 48M\n"
				  "EnableFor=0s\n"
				  "Disable=pcp.bytes < 48M\n"
				  "DisableFor=0s\n";

struct machine {
	struct tree tree;
	struct sensor *sensor;
	struct policy_set *set;
	struct machine_facts facts;
	struct engine *engine;
	struct acting acting;
	struct log log;
	const struct snapshot *s;
	bool facts_changed;
};

static size_t memory_in_use(void)
{
#ifdef WITH_ASAN
	return __sanitizer_get_current_allocated_bytes();
#else
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
#endif
}

static unsigned descriptors_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void add_policy(struct machine *m)
{
	struct diagnostics d = {0};
	struct policy *p = NULL;

	m->set = calloc(1, sizeof(*m->set));
	if (policy_parse(&m->set->table, "test", "test.policy", policy_text, strlen(policy_text),
			 &p, &d) < 0) {
		diagnostics_print(&d, stderr, false);
		fail_msg("the policy is not accepted");
	}
	diagnostics_free(&d);
	assert_int_equal(policy_set_add(m->set, p), 0);
	policy_set_sort(m->set);
}

static void start(struct machine *m)
{
	struct error e = {0};

	tree_make(&m->tree, false);
	assert_int_equal(sensor_new(&m->sensor, &m->tree.root, 4096, &e), 0);
	m->s = sensor_take(m->sensor, SOURCES_ALL, tree_time(0).mono_usec);
	add_policy(m);
	machine_facts_read(&m->facts, &m->tree.root, m->s);
	assert_int_equal(engine_new(&m->engine, m->set, &m->facts, m->s, &e), 0);
	m->log = (struct log){.max_level = LOG_EMERG, .program = "test"};
	acting_observe_only(&m->acting, &m->tree.root, m->s, &m->log);
	m->acting.env = m->tree.env;
	m->acting.actor = tree_actor(&m->tree, (struct actor_options){0});
}

static void stop(struct machine *m)
{
	acting_close(&m->acting, tree_time(TICKS));
	m->engine = engine_free(m->engine);
	m->set = policy_set_free(m->set);
	m->sensor = sensor_free(m->sensor);
	tree_remove(&m->tree);
}

static void tick(struct machine *m, struct act_time now)
{
	struct engine_knob_input knobs[KNOBS_MAX];
	struct engine_input in = {
		.now_usec = now.mono_usec,
		.mode = ENGINE_ENFORCE,
		.facts_changed = m->facts_changed,
		.facts = &m->facts,
		.limits = engine_limits_default(9),
		.knobs = knobs,
	};
	const struct decision *decisions;
	size_t n;

	m->s = in.snapshot = sensor_take(m->sensor, SOURCES_ALL, now.mono_usec);
	in.limits.min_hold_usec = 0;
	acting_observe(&m->acting, m->s, now);
	in.nr_knobs = acting_engine_input(&m->acting, m->s, knobs, &in.drain);
	decisions = engine_tick(m->engine, &in, &n);
	m->facts_changed = false;
	acting_apply(&m->acting, m->s, decisions, n, now);
	if (actor_busy(m->acting.actor))
		tree_settle_at(m->acting.actor, now);
	acting_dispatch(&m->acting, now);
}

static void hotplug(struct machine *m)
{
	struct tree *t = &m->tree;

	t->cpu[1].offline = !t->cpu[1].offline;
	tree_write(t, "sys/devices/system/cpu/online", t->cpu[1].offline ? "0\n" : "0-1\n");
	tree_write_zoneinfo(t);
	assert_true(sensor_rescan(m->sensor) >= 0);
	machine_facts_read(&m->facts, &t->root, m->s);
	m->facts_changed = true;
}

static void a_hundred_thousand_ticks_with_hotplug_and_changes_keep_nothing(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));
	uint64_t hotplugs = 0, writes;
	unsigned descriptors = 0;
	size_t memory = 0;

	(void)state;
	start(m);
	for (unsigned i = 1; i <= TICKS; i++) {
		if (i % HOTPLUG_EVERY == 0) {
			hotplug(m);
			hotplugs++;
		}
		if (i % CHANGE_EVERY == 0) {
			m->tree.cpu[0].count = m->tree.cpu[0].count > 10000 ? 2000 : 20000;
			tree_write_zoneinfo(&m->tree);
		}
		tick(m, tree_time(i));
		if (i == WARM_UP) {
			memory = memory_in_use();
			descriptors = descriptors_open();
		}
	}
	writes = ledger_end(actor_ledger(m->acting.actor)) - 1;
	assert_true(writes >= TICKS / CHANGE_EVERY);
	assert_int_equal(descriptors_open(), descriptors);
	if (memory_in_use() > memory + SLACK_BYTES)
		fail_msg("%zu bytes more after %u ticks", memory_in_use() - memory, TICKS);
	print_message("%u ticks, %" PRIu64 " hotplugs, %" PRIu64 " writes: %zd bytes more, %u "
		      "descriptors as before\n",
		      TICKS, hotplugs, writes, (ssize_t)(memory_in_use() - memory), descriptors);
	stop(m);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hundred_thousand_ticks_with_hotplug_and_changes_keep_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
