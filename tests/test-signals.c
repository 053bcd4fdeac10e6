/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "malloc-count.h"
#include "sense/signals.h"
#include "tree.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define CAPTURE TEST_DATA "/sysroot-6.18"
#define THP     "sys/kernel/mm/transparent_hugepage"

struct machine {
	struct tree tree;
	struct sensor *sensor;
	const struct snapshot *s;
};

static void machine_free(struct machine *m)
{
	m->sensor = sensor_free(m->sensor);
	tree_remove(&m->tree);
}

static void look(struct machine *m)
{
	struct error e = {0};

	m->sensor = sensor_free(m->sensor);
	if (sensor_new(&m->sensor, &m->tree.root, 4096, &e) < 0)
		fail_msg("%s", e.text);
	m->s = sensor_take(m->sensor, SOURCES_ALL, 0);
}

/* Two zones that count and a small one, with round numbers. */
static void put_zones(const struct tree *t, unsigned normal_free)
{
	static const char tail[] = "  node_unreclaimable:  0\n  start_pfn:           1\n";
	char list[512];

#define LIST(count, high, min, max)                                                   \
	((void)snprintf(list, sizeof(list),                                           \
			"  pagesets\n    cpu: 0\n              count:    %d\n"        \
			"              high:     %d\n              batch:    63\n"    \
			"              high_min: %d\n              high_max: %d\n%s", \
			count, high, min, max, tail),                                 \
	 list)
	char small[512], dma32[512];

	memcpy(small, LIST(5, 5, 1, 10), sizeof(small));
	memcpy(dma32, LIST(1000, 2000, 500, 4000), sizeof(dma32));
	tree_put(t, "proc/zoneinfo",
		 "Node 0, zone      DMA\n  pages free     10\n        min      3\n"
		 "        low      20\n        high     30\n        present  100\n"
		 "        managed  100\n        protection: (0, 0)\n%s"
		 "Node 0, zone    DMA32\n  pages free     50000\n        min      100\n"
		 "        low      200\n        high     300\n        present  100000\n"
		 "        managed  100000\n        protection: (0, 0)\n%s"
		 "Node 1, zone   Normal\n  pages free     %u\n        min      1000\n"
		 "        low      2000\n        high     3000\n        present  300000\n"
		 "        managed  299900\n        protection: (0, 0)\n%s",
		 small, dma32, normal_free, LIST(3000, 3000, 2600, 6000));
#undef LIST
	tree_put(t, "proc/buddyinfo",
		 "Node 0, zone      DMA     10      0      0\n"
		 "Node 0, zone    DMA32  10000      0  10000\n"
		 "Node 1, zone   Normal      0      0   1000\n");
}

static void machine_make(struct machine *m)
{
	tree_make(&m->tree);
	tree_copy(&m->tree, CAPTURE);
	put_zones(&m->tree, 30000);
	tree_put(&m->tree, "proc/vmstat",
		 "nr_free_pages 12\npgalloc_dma 1\npgalloc_normal 5\nallocstall_dma 2\n"
		 "allocstall_normal 3\ncompact_stall 7\nnr_dirtied 9\n");
	tree_put(&m->tree, "proc/pressure/memory",
		 "some avg10=12.50 avg60=6.00 avg300=3.00 total=2500000\n"
		 "full avg10=1.00 avg60=0.50 avg300=0.25 total=1000000\n");
	tree_put(&m->tree, THP "/hugepages-64kB/stats/anon_fault_alloc", "100\n");
	tree_put(&m->tree, THP "/hugepages-64kB/stats/shmem_alloc", "20\n");
	tree_put(&m->tree, THP "/hugepages-64kB/stats/swpin", "3\n");
	tree_put(&m->tree, THP "/hugepages-64kB/stats/anon_fault_fallback", "40\n");
	tree_put(&m->tree, THP "/hugepages-64kB/stats/anon_fault_fallback_charge", "9\n");
	tree_put(&m->tree, THP "/hugepages-64kB/stats/shmem_fallback", "2\n");
	tree_put(&m->tree, THP "/hugepages-64kB/stats/swpin_fallback", "0\n");
	tree_put(&m->tree, THP "/hugepages-64kB/stats/nr_anon", "17\n");
	look(m);
}

static double value_of(const struct machine *m, const char *name, unsigned order)
{
	const char *why = "";
	struct signal_ref ref;
	double value = -1;

	if (signal_resolve(name, 4096, &ref) < 0)
		fail_msg("there is no signal %s", name);
	if (!signal_read(&ref, m->s, order, &value, &why))
		fail_msg("%s is unknown: %s", name, why);
	return value;
}

static void must_be_unknown(const struct machine *m, const char *name, const char *because)
{
	const char *why = NULL;
	struct signal_ref ref;
	double value = -1;

	if (signal_resolve(name, 4096, &ref) < 0)
		fail_msg("there is no signal %s", name);
	if (signal_read(&ref, m->s, 4, &value, &why))
		fail_msg("%s is %g and should be unknown", name, value);
	if (!why || !strstr(why, because))
		fail_msg("%s is unknown because \"%s\", not because of \"%s\"", name, why, because);
}

static void every_signal_has_the_value_that_the_files_give(void **state)
{
	static const struct {
		const char *name;
		double value;
	} rows[] = {
		{"vmstat.compact_stall", 7},
		{"vmstat.allocstall", 5},
		{"vmstat.pgalloc", 6},
		{"vmstat.nr_free_pages", 12},
		{"mthp.anon_fault_alloc", 100},
		{"mthp.64kB.anon_fault_alloc", 100},
		{"mthp.nr_anon", 17},
		{"mthp.alloc_bytes", 123 * 65536.0},
		{"mthp.64kB.alloc_bytes", 123 * 65536.0},
		{"mthp.fallbacks", 42},
		{"mthp.attempts", 165},
		{"zone.free_ratio", 30000 / 299900.0}, /* DMA has less and is too small to count */
		{"zone.free_bytes", 80010 * 4096.0},
		{"zone.below_low", 0}, /* DMA is below */
		{"zone.below_min", 0},
		{"node.0.free_ratio", 50010 / 100100.0},
		{"node.1.free_ratio", 30000 / 299900.0},
		{"node.0.pcp_share", 1005 / 100100.0},
		{"node.1.memory_bytes", 299900 * 4096.0},
		{"pcp.bytes", 4005 * 4096.0},
		{"pcp.share", 4005 / 400000.0},
		{"pcp.share_max", 3000 / 299900.0},
		{"pcp.fill", 4000 / 10000.0},
		{"pcp.excess", (4 + 500 + 400) / 400000.0},
		{"pcp.fits", 500 / 16}, /* whole blocks */
		{"pcp.fits.512kB", 500 / 128},
		{"frag.unusable", (0.2 * 100000 + 0 * 299900) / 399900},
		{"frag.unusable_max", 0.2},
		{"psi.memory.some.avg10", 0.125},
		{"psi.memory.some.avg60", 0.06},
		{"psi.memory.some.avg300", 0.03},
		{"psi.memory.some.total", 2.5},
		{"psi.memory.full.avg10", 0.01},
		{"psi.memory.full.avg60", 0.005},
		{"psi.memory.full.avg300", 0.0025},
		{"psi.memory.full.total", 1},
		{"machine.cpus", 2},
		{"machine.nodes", 1},
		{"machine.isolated_cpus", 0},
		{"machine.memory_bytes", 400000 * 4096.0},
		{"machine.page_bytes", 4096},
		{"machine.l2_bytes", 512 * 1024},
		{"machine.l2_cpus", 1},
		{"machine.llc_bytes", 32768 * 1024.0},
		{"machine.llc_cpus", 2},
		{"machine.pcp_autotune", 1},
	};
	_cleanup_(machine_free) struct machine m = {0};

	(void)state;
	machine_make(&m);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		/* buddyinfo here has three orders: fragmentation is asked for order 2 */
		unsigned order = strncmp(rows[i].name, "frag", 4) == 0 ? 2 : 4;
		double value = value_of(&m, rows[i].name, order);

		if (value < rows[i].value - 1e-9 || value > rows[i].value + 1e-9)
			fail_msg("%s is %.12g, must be %.12g", rows[i].name, value, rows[i].value);
	}
}

static void shortage_shows_in_zones_that_count(void **state)
{
	_cleanup_(machine_free) struct machine m = {0};

	(void)state;
	machine_make(&m);
	put_zones(&m.tree, 999);
	look(&m);
	assert_true(value_of(&m, "zone.below_low", 0) == 1);
	assert_true(value_of(&m, "zone.below_min", 0) == 1);
}

static void what_is_unknown_says_why(void **state)
{
	_cleanup_(machine_free) struct machine m = {0};

	(void)state;
	machine_make(&m);
	must_be_unknown(&m, "vmstat.of_tomorrow", "does not count");
	must_be_unknown(&m, "mthp.of_tomorrow", "does not count");
	must_be_unknown(&m, "mthp.4kB.anon_fault_alloc", "no folio size");
	must_be_unknown(&m, "mthp.fallback_ratio", "minute");
	must_be_unknown(&m, "node.7.free_ratio", "no memory on a node");
	must_be_unknown(&m, "link.mtu_max", "needs the daemon's events");
	must_be_unknown(&m, "process.running", "needs the daemon's events");
	tree_delete(&m.tree, "proc");
	tree_delete(&m.tree, "sys");
	look(&m);
	must_be_unknown(&m, "vmstat.pgfree", "/proc/vmstat");
	must_be_unknown(&m, "pcp.share", "/proc/zoneinfo");
	must_be_unknown(&m, "frag.unusable", "/proc/zoneinfo");
	must_be_unknown(&m, "psi.memory.some.avg10", "/proc/pressure/memory");
	must_be_unknown(&m, "mthp.alloc_bytes", "folio sizes");
	must_be_unknown(&m, "machine.cpus", "CPUs");
	must_be_unknown(&m, "machine.l2_bytes", "caches");
}

static void bounds_are_unknown_where_nothing_shows_them(void **state)
{
	_cleanup_(machine_free) struct machine m = {0};

	(void)state;
	machine_make(&m);
	tree_delete(&m.tree, "proc/sys/vm");
	tree_put(&m.tree, "proc/zoneinfo",
		 "Node 0, zone   Normal\n  pages free     10\n        low      20\n"
		 "        present  100\n        managed  100\n        protection: (0)\n"
		 "  pagesets\n    cpu: 0\n              count: 5\n              high:  8\n"
		 "              batch: 1\n  start_pfn:           1\n");
	look(&m);
	must_be_unknown(&m, "pcp.excess", "does not show");
	must_be_unknown(&m, "pcp.fits", "does not show");
	must_be_unknown(&m, "machine.pcp_autotune", "tune");
	/* an older kernel's fixed high is what its lists hold */
	tree_put(&m.tree, "proc/sys/vm/stat_refresh", "%s", "");
	look(&m);
	assert_true(value_of(&m, "pcp.fits", 2) == 2);
	assert_true(value_of(&m, "pcp.fill", 0) == 5.0 / 8);
	must_be_unknown(&m, "pcp.excess", "does not show");
}

static void events_make_links_and_processes_known(void **state)
{
	static const char running[][PROCESS_NAME_MAX] = {"init", "postgres", "a_name_of_15_ch"};
	const struct events events = {
		.has_links = true,
		.has_processes = true,
		.mtu_max = 9000,
		.running = running,
		.nr_running = ARRAY_SIZE(running),
	};
	_cleanup_(machine_free) struct machine m = {0};
	struct signal_ref ref;
	double value;

	(void)state;
	machine_make(&m);
	sensor_set_events(m.sensor, &events);
	m.s = sensor_take(m.sensor, 0, 1);
	assert_true(value_of(&m, "link.mtu_max", 0) == 9000);
	assert_int_equal(signal_resolve("process.running", 4096, &ref), 0);
	(void)strcpy(ref.arg, "postgres");
	assert_true(signal_read(&ref, m.s, 0, &value, NULL) && value == 1);
	(void)strcpy(ref.arg, "postgre");
	assert_true(signal_read(&ref, m.s, 0, &value, NULL) && value == 0);
	/* the kernel keeps 15 letters of a name */
	(void)strcpy(ref.arg, "a_name_of_15_characters_and_more");
	assert_true(signal_read(&ref, m.s, 0, &value, NULL) && value == 1);
}

static void names_that_are_no_signal_are_refused(void **state)
{
	static const struct {
		const char *name;
		int want;
	} rows[] = {
		{"", -ENOENT},
		{"pcp", -ENOENT},
		{"pcp.", -ENOENT},
		{"pcp.shares", -ENOENT},
		{"pcp.share.64kB", -ENOENT},
		{"vmstat.", -ENOENT},
		{"vmstat.a b", -ENOENT},
		{"vmstat.a_name_that_is_longer_than_any_counter_of_a_kernel", -ENOENT},
		{"mthp.", -ENOENT},
		{"mthp.64kB", -ENOENT},
		{"mthp.64kB.", -ENOENT},
		{"mthp.48kB.split", -EINVAL},
		{"mthp.1T.split", -EINVAL},
		{"mthp.64parsec.split", -EINVAL},
		{"mthp.big.split", -ENOENT},
		{"frag.unusable.48kB", -EINVAL},
		{"frag.unusable.", -ENOENT},
		{"node..free_ratio", -ENOENT},
		{"node.0.", -ENOENT},
		{"node.x.free_ratio", -ENOENT},
		{"node.0.free", -ENOENT},
		{"psi.cpu.some.avg10", -ENOENT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct signal_ref ref;
		int r = signal_resolve(rows[i].name, 4096, &ref);

		if (r != rows[i].want)
			fail_msg("\"%s\": %d", rows[i].name, r);
	}
}

static void a_name_survives_being_resolved_and_named_again(void **state)
{
	static const char *const names[] = {
		"vmstat.compact_stall",
		"vmstat.pgalloc",
		"vmstat.nr_free_pages",
		"mthp.anon_fault_alloc",
		"mthp.64kB.nr_anon",
		"mthp.64kB.alloc_bytes",
		"mthp.fallback_ratio",
		"mthp.2048kB.fallback_ratio",
		"pcp.fits",
		"pcp.fits.64kB",
		"frag.unusable.1024kB",
		"frag.unusable_max",
		"node.12.free_ratio",
		"psi.memory.full.total",
		"machine.isolated_cpus",
		"link.mtu_max",
	};
	char buf[SIGNAL_NAME_MAX];
	struct signal_ref ref, again;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(signal_resolve(names[i], 4096, &ref), 0);
		assert_string_equal(signal_name(&ref, 4096, buf, sizeof(buf)), names[i]);
		assert_int_equal(signal_resolve(buf, 4096, &again), 0);
		assert_memory_equal(&ref, &again, sizeof(ref)); /* plain data */
	}
	assert_int_equal(signal_resolve("process.running", 4096, &ref), 0);
	(void)strcpy(ref.arg, "postgres");
	assert_string_equal(signal_name(&ref, 4096, buf, sizeof(buf)),
			    "process.running(\"postgres\")");
	assert_int_equal(signal_resolve("mthp.64K.split", 4096, &ref), 0);
	assert_string_equal(signal_name(&ref, 4096, buf, sizeof(buf)), "mthp.64kB.split");
}

static void dimensions_tell_what_a_counter_counts(void **state)
{
	static const struct {
		const char *name;
		enum unit unit;
		bool counter;
	} rows[] = {
		{"vmstat.compact_stall", UNIT_COUNT, true},
		{"vmstat.pgfault", UNIT_COUNT, true},
		{"vmstat.pgalloc", UNIT_PAGES, true},
		{"vmstat.nr_dirtied", UNIT_PAGES, true},
		{"vmstat.nr_free_pages", UNIT_PAGES, false},
		{"mthp.swpout", UNIT_COUNT, true},
		{"mthp.nr_anon", UNIT_COUNT, false},
		{"mthp.pcp_order_stat", UNIT_COUNT, false},
		{"mthp.alloc_bytes", UNIT_BYTES, true},
		{"mthp.fallback_ratio", UNIT_RATIO, false},
		{"psi.memory.some.total", UNIT_SECONDS, true},
		{"machine.pcp_autotune", UNIT_BOOL, false},
	};
	struct signal_ref ref;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(signal_resolve(rows[i].name, 4096, &ref), 0);
		if (signal_dimension(&ref).unit != rows[i].unit ||
		    signal_describe(&ref)->counter != rows[i].counter)
			fail_msg("%s is %s", rows[i].name, dimension_name(signal_dimension(&ref)));
	}
	assert_string_equal(dimension_name((struct dimension){UNIT_BYTES, true}), "bytes a second");
	assert_string_equal(dimension_name((struct dimension){UNIT_RATIO, false}), "ratio");
}

static void the_table_documents_every_signal(void **state)
{
	size_t n = 0, at_hand = 0, ratios = 0;

	(void)state;
	for (const struct signal_info *i; (i = signal_info_at(n)); n++) {
		for (size_t j = 0; j < n; j++)
			assert_string_not_equal(signal_info_at(j)->name, i->name);
		assert_true(strlen(i->description) > 10);
		assert_int_equal(i->description[strlen(i->description) - 1], '.');
		assert_non_null(i->since);
		at_hand += signal_has_order(i);
		if (i->numerator) {
			struct signal_ref ref;

			assert_int_equal(signal_resolve(i->numerator, 4096, &ref), 0);
			assert_int_equal(signal_resolve(i->denominator, 4096, &ref), 0);
			ratios++;
		}
	}
	assert_true(n >= 40);
	assert_int_equal(at_hand, 9);
	assert_int_equal(ratios, 1);
}

static void reading_signals_allocates_nothing(void **state)
{
	static const char *const names[] = {"vmstat.pgalloc",  "mthp.alloc_bytes",
					    "pcp.fits",        "frag.unusable",
					    "zone.free_ratio", "node.0.pcp_share"};
	_cleanup_(machine_free) struct machine m = {0};
	struct signal_ref refs[ARRAY_SIZE(names)];
	uint64_t before;
	double value;

	(void)state;
	machine_make(&m);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(signal_resolve(names[i], 4096, &refs[i]), 0);
	before = malloc_count();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)signal_read(&refs[i], m.s, 4, &value, NULL);
	if (malloc_count() != before)
		fail_msg("reading asked for memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_signal_has_the_value_that_the_files_give),
		cmocka_unit_test(shortage_shows_in_zones_that_count),
		cmocka_unit_test(what_is_unknown_says_why),
		cmocka_unit_test(bounds_are_unknown_where_nothing_shows_them),
		cmocka_unit_test(events_make_links_and_processes_known),
		cmocka_unit_test(names_that_are_no_signal_are_refused),
		cmocka_unit_test(a_name_survives_being_resolved_and_named_again),
		cmocka_unit_test(dimensions_tell_what_a_counter_counts),
		cmocka_unit_test(the_table_documents_every_signal),
		cmocka_unit_test(reading_signals_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
