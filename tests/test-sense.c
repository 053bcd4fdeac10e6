/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "corpus.h"
#include "malloc-count.h"
#include "sense/snapshot.h"
#include "tree.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define CAPTURE           TEST_DATA "/sysroot-6.18"
#define THP               "sys/kernel/mm/transparent_hugepage"

#define assert_near(a, b) assert_true((a) - (b) < 1e-12 && (b) - (a) < 1e-12)

/* A copy of the captured machine and a sensor on it. */
struct bench {
	struct tree tree;
	struct sensor *sensor;
};

static void bench_free(struct bench *b)
{
	b->sensor = sensor_free(b->sensor);
	tree_remove(&b->tree);
}

static void open_sensor(struct bench *b)
{
	struct error e = {0};

	b->sensor = sensor_free(b->sensor);
	if (sensor_new(&b->sensor, &b->tree.root, 4096, &e) < 0)
		fail_msg("%s", e.text);
}

static void bench_make(struct bench *b)
{
	tree_make(&b->tree);
	tree_copy(&b->tree, CAPTURE);
	open_sensor(b);
}

static const struct snapshot *take(struct bench *b)
{
	return sensor_take(b->sensor, SOURCES_ALL, 42);
}

static void put_own(struct bench *b, const char *rel, const char *own)
{
	_cleanup_(text_free) struct text text = {0};
	char path[512];

	(void)snprintf(path, sizeof(path), TEST_DATA "/%s", own);
	read_test_file(path, &text);
	tree_put(&b->tree, rel, "%s", text_str(&text));
}

/* The sensor */

static void everything_a_machine_shows_is_in_the_snapshot(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct snapshot *s;
	uint64_t value;

	(void)state;
	bench_make(&b);
	s = take(&b);
	for (enum source i = 0; i < _SOURCE_MAX; i++)
		if (!snapshot_has(s, i))
			fail_msg("%s: %s", source_name(i), sensor_source(b.sensor, i)->why.text);
	assert_int_equal(s->taken_usec, 42);
	assert_int_equal(s->page_bytes, 4096);
	assert_int_equal(s->zoneinfo.nr_zones, 5);
	assert_int_equal(s->pcp_autotune, 1);
	assert_int_equal(s->missing_pagesets, 0);
	assert_true(s->has_high_fraction);
	assert_int_equal(s->high_fraction, 0);
	assert_true(s->has_stat_refresh);
	assert_true(vmstat_get(&s->vmstat, "pgfree", NULL, &value));
	assert_true(value > 0);
	assert_int_equal(s->buddy.nr_zones, 3);
	assert_int_equal(s->buddy.zones[0].nr_orders, 11);
	assert_true(s->psi_memory.some.present && s->psi_memory.full.present);
	assert_int_equal(s->mthp.pmd_order, 9);
	assert_int_equal(s->mthp.nr_sizes, 9);
	assert_int_equal(s->mthp.orders, ORDERS_NONE);
	assert_int_equal(cpuset_count(&s->topology.online), 2);
	assert_int_equal(s->topology.llc_cpus, 2);
	for (uint32_t i = 1; i < s->mthp.nr_sizes; i++)
		assert_true(s->mthp.size[i].order > s->mthp.size[i - 1].order);
}

static void only_what_is_wanted_is_read(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct snapshot *s;

	(void)state;
	bench_make(&b);
	s = sensor_take(b.sensor, SOURCE_BIT(SOURCE_VMSTAT), 1);
	assert_int_equal(s->valid, SOURCE_BIT(SOURCE_VMSTAT));
	assert_int_equal(sensor_source(b.sensor, SOURCE_VMSTAT)->reads, 1);
	assert_int_equal(sensor_source(b.sensor, SOURCE_ZONEINFO)->reads, 0);
	/* and nothing of an earlier take passes for this one's */
	(void)take(&b);
	s = sensor_take(b.sensor, SOURCE_BIT(SOURCE_PSI_MEMORY), 2);
	assert_false(snapshot_has(s, SOURCE_ZONEINFO));
}

static void a_steady_machine_is_read_without_allocating(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	uint64_t before, takes = 100;

	(void)state;
	bench_make(&b);
	(void)take(&b);
	(void)take(&b);
	before = malloc_count();
	assert_true(before > 0); /* the counter counts */
	for (uint64_t i = 0; i < takes; i++)
		assert_int_equal(take(&b)->valid, SOURCES_ALL);
	if (malloc_count() != before)
		fail_msg("%llu takes asked for memory %llu times", (unsigned long long)takes,
			 (unsigned long long)(malloc_count() - before));
}

static void a_missing_file_is_unknown_and_comes_back(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct source_state *psi;
	const struct snapshot *s;

	(void)state;
	bench_make(&b);
	tree_delete(&b.tree, "proc/pressure");
	open_sensor(&b);
	s = take(&b);
	psi = sensor_source(b.sensor, SOURCE_PSI_MEMORY);
	assert_int_equal(s->valid, SOURCES_ALL & ~SOURCE_BIT(SOURCE_PSI_MEMORY));
	assert_int_equal(psi->error, -ENOENT);
	assert_int_equal(psi->errors, 1);
	assert_non_null(strstr(psi->why.text, "/proc/pressure/memory is not there"));
	tree_put(&b.tree, "proc/pressure/memory",
		 "some avg10=1.50 avg60=0.00 avg300=100.00 total=2500000\n");
	s = take(&b);
	assert_true(snapshot_has(s, SOURCE_PSI_MEMORY));
	assert_int_equal(psi->error, 0);
	assert_int_equal(psi->errors, 1);
	assert_near(s->psi_memory.some.avg10, 0.015);
	assert_near(s->psi_memory.some.avg300, 1);
	assert_int_equal(s->psi_memory.some.total_usec, 2500000);
	assert_false(s->psi_memory.full.present);
}

static void a_text_that_is_cut_off_leaves_nothing_and_says_where(void **state)
{
	static const struct {
		enum source source;
		const char *text, *why;
	} rows[] = {
		{SOURCE_ZONEINFO, "Node 0, zone      DMA\n  pages fr",
		 "/proc/zoneinfo: line 2, byte 32"},
		{SOURCE_VMSTAT, "nr_free_pages 5\npgfree 1", "/proc/vmstat: line 2, byte 24"},
		{SOURCE_BUDDYINFO, "Node 0, zone      DMA      1      2",
		 "/proc/buddyinfo: line 1, byte 35"},
		{SOURCE_PSI_MEMORY, "some avg10=0.00 avg60=0.00",
		 "/proc/pressure/memory: line 1, byte 26"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(bench_free) struct bench b = {0};
		const struct source_state *source;
		const struct snapshot *s;

		bench_make(&b);
		(void)take(&b);
		tree_put(&b.tree, source_rel(rows[i].source), "%s", rows[i].text);
		s = take(&b);
		source = sensor_source(b.sensor, rows[i].source);
		assert_int_equal(s->valid, SOURCES_ALL & ~SOURCE_BIT(rows[i].source));
		assert_int_equal(source->error, -EBADMSG);
		if (!strstr(source->why.text, rows[i].why))
			fail_msg("%s: %s", source_name(rows[i].source), source->why.text);
	}
}

static void lists_without_a_cpu_are_counted_as_missing(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};

	(void)state;
	bench_make(&b);
	tree_put(&b.tree, "sys/devices/system/cpu/online", "0-3\n");
	assert_int_equal(sensor_rescan(b.sensor), 0);
	/* two CPUs lack a list in each of three zones that have pages */
	assert_int_equal(take(&b)->missing_pagesets, 6);
}

/* Bounds that the kernel does not print */

static const struct pageset *first_list(const struct snapshot *s, uint32_t zone)
{
	return &s->zoneinfo.pagesets[s->zoneinfo.zones[zone].first_pageset];
}

static void bounds_that_6_12_does_not_print_are_computed_and_marked(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct pageset *p;
	const struct snapshot *s;

	(void)state;
	bench_make(&b);
	put_own(&b, "proc/zoneinfo", "zoneinfo/6.12-unprinted-bounds.txt");
	open_sensor(&b);
	s = take(&b);
	assert_int_equal(s->pcp_autotune, 1); /* high differs between CPUs */
	p = first_list(s, 1);
	assert_int_equal(p->has >> PAGESET_HIGH_MIN & 1, 0);
	assert_true(pageset_has(p, PAGESET_HIGH_MIN));
	assert_int_equal(p->value[PAGESET_HIGH_MIN], 9275 / 2);
	assert_int_equal(p->value[PAGESET_HIGH_MAX], 772808 / 8 / 2);
	assert_true(s->parked.excess_known);
	assert_int_equal(s->parked.excess,
			 (4700 - 9275 / 2) + (23371 - 11797 / 2) + (19756 - 11797 / 2));
	/* a fraction of somebody's choice is both bounds, and the kernel stays what it is */
	tree_put(&b.tree, "proc/sys/vm/percpu_pagelist_high_fraction", "100\n");
	s = take(&b);
	p = first_list(s, 1);
	assert_int_equal(s->high_fraction, 100);
	assert_int_equal(s->pcp_autotune, 1);
	assert_int_equal(p->value[PAGESET_HIGH_MIN], 772808 / 100 / 2);
	assert_int_equal(p->value[PAGESET_HIGH_MAX], 772808 / 100 / 2);
	/* the floor of four batches */
	tree_put(&b.tree, "proc/sys/vm/percpu_pagelist_high_fraction", "2147483647\n");
	assert_int_equal(first_list(take(&b), 1)->value[PAGESET_HIGH_MIN], 4 * 63);
}

static void printed_bounds_are_left_as_they_are(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct snapshot *s;

	(void)state;
	bench_make(&b);
	s = take(&b);
	for (uint32_t i = 0; i < s->zoneinfo.nr_pagesets; i++)
		assert_int_equal(s->zoneinfo.pagesets[i].computed, 0);
}

static void lists_of_one_fixed_size_do_not_tune_themselves(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct snapshot *s;

	(void)state;
	bench_make(&b);
	put_own(&b, "proc/zoneinfo", "zoneinfo/3.10-counters-before-protection.txt");
	open_sensor(&b);
	/* with the knob of 5.14: high 0 in DMA cannot be a fixed size */
	assert_int_equal(take(&b)->pcp_autotune, 1);
	/* without it: an older kernel */
	tree_delete(&b.tree, "proc/sys/vm/percpu_pagelist_high_fraction");
	put_own(&b, "proc/zoneinfo", "zoneinfo/4.8-node-lines.txt");
	open_sensor(&b);
	s = take(&b);
	assert_int_equal(s->pcp_autotune, 0);
	assert_false(s->has_high_fraction);
	assert_false(s->parked.excess_known);
	assert_int_equal(first_list(s, 0)->computed, 0);
	/* and with neither file nobody can tell */
	tree_delete(&b.tree, "proc/sys");
	open_sensor(&b);
	assert_int_equal(take(&b)->pcp_autotune, -1);
}

/* The captured kernels whose version is known say the same as what is found by looking. */
static void captured_kernels_tune_their_lists_from_6_7_on(void **state)
{
	static const struct {
		const char *slug;
		bool has_fraction;
		int autotune;
	} rows[] = {
		{"pcp-meminfo-006", false, 0},
		{"hotsos-5.4-k8s", false, 0},
		{"c9s-5.14-1cpu", true, 0},
		{"vm-stock-6.1-amd64-4cpu-2node", true, 0},
		{"lkml-6.6-x86-2node-cmaline", true, 0},
		{"vm-stock-6.12-amd64-4cpu-2node", true, 1},
		{"vm-stock-6.12-amd64-16cpu-memless-node1", true, 1},
		{"vm-stock-6.12-cloud-4cpu-2node", true, 1},
		{"local-6.18-fc-2cpu", true, 1},
	};
	unsigned n = 0;

	(void)state;
	for (size_t i = 0; corpus_dir() && i < ARRAY_SIZE(rows); i++) {
		_cleanup_(bench_free) struct bench b = {0};
		_cleanup_(text_free) struct text text = {0};
		const struct snapshot *s;
		char path[512];

		(void)snprintf(path, sizeof(path), "%s/corpus/kernel/%s/zoneinfo", corpus_dir(),
			       rows[i].slug);
		if (access(path, R_OK) < 0)
			continue;
		read_test_file(path, &text);
		tree_make(&b.tree);
		tree_put(&b.tree, "proc/zoneinfo", "%s", text_str(&text));
		tree_put(&b.tree, "proc/sys/vm/stat_refresh", "%s", "");
		if (rows[i].has_fraction)
			tree_put(&b.tree, "proc/sys/vm/percpu_pagelist_high_fraction", "0\n");
		open_sensor(&b);
		s = take(&b);
		if (!snapshot_has(s, SOURCE_ZONEINFO))
			fail_msg("%s: %s", rows[i].slug,
				 sensor_source(b.sensor, SOURCE_ZONEINFO)->why.text);
		if (s->pcp_autotune != rows[i].autotune)
			fail_msg("%s: autotune is %d", rows[i].slug, s->pcp_autotune);
		n++;
	}
	if (n == 0) {
		print_message("    no captures beside the source tree\n");
		skip();
	}
}

/* Parked memory */

static void parked_pages_are_summed_and_small_zones_do_not_lead(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct snapshot *s;
	struct snapshot by_hand;
	struct parked p;

	(void)state;
	bench_make(&b);
	put_own(&b, "proc/zoneinfo", "zoneinfo/6.12-unprinted-bounds.txt");
	open_sensor(&b);
	s = take(&b);
	p = snapshot_parked(s);
	assert_int_equal(p.pages, 4700 + 23371 + 19756);
	assert_int_equal(p.managed, 3840 + 772808 + 983040);
	assert_string_equal(p.worst->name, "Normal");
	assert_near(p.share_max, (23371 + 19756) / 983040.0);
	assert_false(snapshot_zone_counts(s, &s->zoneinfo.zones[0])); /* DMA: below 1% */
	assert_true(snapshot_zone_counts(s, &s->zoneinfo.zones[1]));
	assert_false(snapshot_zone_counts(s, &s->zoneinfo.zones[3])); /* no pages */
	assert_true(p.bounds_known);
	assert_int_equal(p.least_high_min, 9275 / 2);
	/* a snapshot that was made by hand has no sums yet */
	by_hand = *s;
	by_hand.summed = false;
	by_hand.parked = (struct parked){0};
	assert_int_equal(snapshot_parked(&by_hand).pages, p.pages);
	assert_false(snapshot_zone_counts(&by_hand, &s->zoneinfo.zones[0]));
}

/* vmstat, buddyinfo, PSI */

static void counters_are_found_by_whole_name_and_summed_over_zones(void **state)
{
	static const char text[] =
		"nr_free_pages 7\npgalloc_dma 1\npgalloc_dma32 2\n"
		"pgalloc_normal 4\npgalloc_movable 8\nallocstall 3\n"
		"odd line here\nallocstall_normal 9\npgfree 18446744073709551615\n";
	_cleanup_(vmstat_free) struct vmstat v = {0};
	struct vmstat without_index;
	uint64_t value;
	uint32_t hint = 0;

	(void)state;
	assert_int_equal(vmstat_parse(&v, text, strlen(text), NULL), 0);
	assert_int_equal(v.nr_values, 8);
	assert_true(vmstat_get(&v, "pgalloc", &hint, &value));
	assert_int_equal(value, 15);
	assert_true(vmstat_get(&v, "allocstall", &hint, &value));
	assert_int_equal(value, 3); /* there under its own name: no sum */
	assert_true(vmstat_get(&v, "pgfree", &hint, &value));
	assert_true(value == UINT64_MAX);
	assert_int_equal(hint, 7);
	assert_true(vmstat_get(&v, "nr_free_pages", &hint, &value));
	assert_int_equal(value, 7);
	assert_false(vmstat_get(&v, "nr_free", &hint, &value));
	assert_false(vmstat_get(&v, "pgalloc_", &hint, &value));
	without_index = v;
	without_index.index = NULL;
	assert_true(vmstat_get(&without_index, "pgalloc", NULL, &value));
	assert_int_equal(value, 15);
	assert_false(vmstat_get(&without_index, "gone", NULL, &value));
}

static void names_that_come_and_go_are_still_found(void **state)
{
	static const char *const texts[] = {"a 1\nb 2\nc 3\n", "a 1\nc 3\n",
					    "c 4\nb 5\na 6\nz 1\n"};
	_cleanup_(vmstat_free) struct vmstat v = {0};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(vmstat_parse(&v, texts[i], strlen(texts[i]), NULL), 0);
	assert_true(vmstat_get(&v, "a", NULL, &value));
	assert_int_equal(value, 6);
	assert_true(vmstat_get(&v, "b", NULL, &value));
	assert_int_equal(value, 5);
	assert_int_equal(vmstat_parse(&v, texts[1], strlen(texts[1]), NULL), 0);
	assert_false(vmstat_get(&v, "b", NULL, &value));
}

static void free_blocks_tell_what_cannot_serve_an_order(void **state)
{
	static const char text[] = "Node 0, zone      DMA      1      0      1 \n"
				   "something else\n"
				   "Node 1, zone  Movable      8      0      2\n"
				   "Node 2, zone   Normal      0      0      0\n";
	_cleanup_(buddyinfo_free) struct buddyinfo b = {0};
	struct zone z = {.node = 1, .name = "Movable"};
	const struct buddy_zone *found;

	(void)state;
	assert_int_equal(buddyinfo_parse(&b, text, strlen(text), NULL), 0);
	assert_int_equal(b.nr_zones, 3);
	assert_int_equal(b.zones[0].nr_orders, 3);
	found = buddy_by_zone(&b, &z);
	assert_non_null(found);
	assert_near(buddy_unusable(found, 0), 0);
	assert_near(buddy_unusable(found, 1), 0.5);
	assert_near(buddy_unusable(found, 2), 0.5);
	assert_near(buddy_unusable(found, 3), 1);
	assert_near(buddy_unusable(&b.zones[2], 0), 1); /* nothing is free */
}

static void texts_of_no_known_form_are_refused(void **state)
{
	static const struct {
		enum source source;
		const char *text;
	} rows[] = {
		{SOURCE_VMSTAT, ""},
		{SOURCE_VMSTAT, "no numbers here\n"},
		{SOURCE_VMSTAT, "pgfree 99999999999999999999\n"},
		{SOURCE_BUDDYINFO, ""},
		{SOURCE_BUDDYINFO, "Node x, zone DMA 1\n"},
		{SOURCE_BUDDYINFO, "Node 0, zone DMA 99999999999999999999\n"},
		{SOURCE_BUDDYINFO, "Node 0, zone ANameThatNoZoneHas 1 2\n"},
		{SOURCE_BUDDYINFO, "Node 0, zone DMA 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"},
		{SOURCE_PSI_MEMORY, ""},
		{SOURCE_PSI_MEMORY, "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"},
		{SOURCE_PSI_MEMORY, "some avg10=0.0 avg60=0.00 avg300=0.00 total=0\n"},
		{SOURCE_PSI_MEMORY, "some avg10=101.00 avg60=0.00 avg300=0.00 total=0\n"},
		{SOURCE_PSI_MEMORY, "some avg10=0.00 avg60=0.00 avg300=0.00 total=0 more=1\n"},
		{SOURCE_PSI_MEMORY, "some avg10=nan avg60=0.00 avg300=0.00 total=0\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(vmstat_free) struct vmstat v = {0};
		_cleanup_(buddyinfo_free) struct buddyinfo b = {0};
		struct psi psi = {0};
		size_t len = strlen(rows[i].text);
		int r;

		if (rows[i].source == SOURCE_VMSTAT)
			r = vmstat_parse(&v, rows[i].text, len, NULL);
		else if (rows[i].source == SOURCE_BUDDYINFO)
			r = buddyinfo_parse(&b, rows[i].text, len, NULL);
		else
			r = psi_parse(&psi, rows[i].text, len, NULL);
		if (r != -EBADMSG || v.nr_values || b.nr_zones || psi.some.present)
			fail_msg("row %zu: got %d", i, r);
	}
}

/* Folio sizes */

static void statistics_have_their_present_names_and_unknown_ones_are_kept(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct mthp_size *size;
	const struct snapshot *s;
	uint64_t value;

	(void)state;
	bench_make(&b);
	tree_put(&b.tree, THP "/hugepages-64kB/stats/anon_alloc",
		 "11\n"); /* beside the present one */
	tree_delete(&b.tree, THP "/hugepages-64kB/stats/swpout");
	tree_put(&b.tree, THP "/hugepages-64kB/stats/anon_swpout", "12\n");
	tree_put(&b.tree, THP "/hugepages-64kB/stats/of_tomorrow", "13\n");
	tree_put(&b.tree, THP "/hugepages-64kB/stats/pcp_order_stat", "14\n");
	tree_put(&b.tree, THP "/hugepages-64kB/stats/anon_fault_alloc", "15\n");
	tree_put(&b.tree, THP "/hugepages-64kB/stats/split", "what\n");
	tree_put(&b.tree, THP "/hugepages-64kB/enabled", "always inherit [madvise] never\n");
	open_sensor(&b);
	s = take(&b);
	size = mthp_by_order(&s->mthp, 4);
	assert_non_null(size);
	assert_int_equal(size->bytes, 65536);
	assert_string_equal(size->enabled, "madvise");
	assert_true(mthp_stat_get(size, "anon_fault_alloc", &value));
	assert_int_equal(value, 15);
	assert_true(mthp_stat_get(size, "swpout", &value));
	assert_int_equal(value, 12);
	assert_true(mthp_stat_get(size, "anon_swpout", &value)); /* asked for by its old name */
	assert_int_equal(value, 12);
	assert_true(mthp_stat_get(size, "of_tomorrow", &value));
	assert_int_equal(value, 13);
	assert_true(mthp_stat_get(size, "pcp_order_stat", &value));
	assert_int_equal(value, 14);
	assert_false(mthp_stat_get(size, "split", &value)); /* not a number now */
	assert_true(snapshot_has(s, SOURCE_MTHP));
	assert_int_equal(sensor_source(b.sensor, SOURCE_MTHP)->error, -EBADMSG);
	assert_null(mthp_by_order(&s->mthp, 0));
	/* a size without `enabled`: only shmem uses it */
	assert_string_equal(mthp_by_order(&s->mthp, 1)->enabled, "");
	assert_string_equal(mthp_by_order(&s->mthp, 1)->shmem_enabled, "never");
}

static void orders_are_controlled_per_size_where_the_files_are(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct snapshot *s;

	(void)state;
	bench_make(&b);
	tree_put(&b.tree, THP "/hugepages-8kB/pcp_enabled", "1\n");
	tree_put(&b.tree, THP "/hugepages-64kB/pcp_enabled", "1\n");
	tree_put(&b.tree, THP "/hugepages-128kB/pcp_enabled", "0\n");
	tree_put(&b.tree, THP "/hugepages-2048kB/pcp_enabled", "1\n");
	tree_put(&b.tree, THP "/pcp_allow_high_order", "4\n"); /* the less able one */
	open_sensor(&b);
	s = take(&b);
	assert_int_equal(s->mthp.orders, ORDERS_PER_SIZE);
	assert_true(mthp_by_order(&s->mthp, 4)->controllable);
	assert_int_equal(mthp_by_order(&s->mthp, 4)->pcp_enabled, 1);
	assert_int_equal(mthp_by_order(&s->mthp, 5)->pcp_enabled, 0);
	assert_int_equal(mthp_by_order(&s->mthp, 6)->pcp_enabled, -ENOENT);
	assert_false(mthp_by_order(&s->mthp, 6)->controllable);
	/* always on: there, read, and not to be switched */
	assert_false(mthp_by_order(&s->mthp, 1)->controllable);
	assert_false(mthp_by_order(&s->mthp, 9)->controllable);
	assert_int_equal(mthp_by_order(&s->mthp, 9)->pcp_enabled, 1);
	tree_put(&b.tree, THP "/hugepages-64kB/pcp_enabled", "2\n");
	s = take(&b);
	assert_int_equal(mthp_by_order(&s->mthp, 4)->pcp_enabled, -EBADMSG);
	assert_int_equal(sensor_source(b.sensor, SOURCE_KNOBS)->error, -EBADMSG);
}

static void a_single_file_controls_order_4_alone(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct snapshot *s;

	(void)state;
	bench_make(&b);
	tree_put(&b.tree, THP "/pcp_allow_high_order", "4\n");
	open_sensor(&b);
	s = take(&b);
	assert_int_equal(s->mthp.orders, ORDERS_SINGLE);
	assert_true(mthp_by_order(&s->mthp, 4)->controllable);
	assert_false(mthp_by_order(&s->mthp, 4)->has_pcp_enabled);
	assert_int_equal(mthp_by_order(&s->mthp, 4)->pcp_enabled, 1);
	assert_false(mthp_by_order(&s->mthp, 5)->controllable);
	assert_int_equal(mthp_by_order(&s->mthp, 5)->pcp_enabled, -ENOENT);
	/* also where no size has a directory */
	tree_delete(&b.tree, THP "/hugepages-64kB");
	tree_put(&b.tree, THP "/pcp_allow_high_order", "0\n");
	open_sensor(&b);
	s = take(&b);
	assert_true(mthp_by_order(&s->mthp, 4)->controllable);
	assert_int_equal(mthp_by_order(&s->mthp, 4)->pcp_enabled, 0);
	assert_int_equal(mthp_by_order(&s->mthp, 4)->nr_stats, 0);
}

static void sizes_become_orders_by_the_machines_page(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	struct error e = {0};

	(void)state;
	tree_make(&b.tree);
	tree_put(&b.tree, THP "/hpage_pmd_size", "536870912\n");
	tree_put(&b.tree, THP "/hugepages-64kB/stats/split", "1\n");
	tree_put(&b.tree, THP "/hugepages-2048kB/stats/split", "1\n");
	tree_put(&b.tree, THP "/hugepages-3000kB/stats/split", "1\n");
	tree_put(&b.tree, THP "/hugepages-524288kB/stats/split", "1\n");
	assert_int_equal(sensor_new(&b.sensor, &b.tree.root, 65536, &e), 0);
	assert_int_equal(take(&b)->mthp.pmd_order, 13);
	assert_int_equal(take(&b)->mthp.nr_sizes, 3);
	assert_non_null(mthp_by_order(&take(&b)->mthp, 5));
	assert_non_null(mthp_by_order(&take(&b)->mthp, 13));
}

static void an_empty_root_is_no_error_and_knows_nothing(void **state)
{
	_cleanup_(bench_free) struct bench b = {0};
	const struct snapshot *s;

	(void)state;
	tree_make(&b.tree);
	open_sensor(&b);
	s = take(&b);
	assert_int_equal(s->valid, SOURCE_BIT(SOURCE_KNOBS)); /* there is no knob, for certain */
	assert_false(s->has_high_fraction);
	assert_int_equal(s->pcp_autotune, -1);
	assert_int_equal(snapshot_parked(s).pages, 0);
}

/* Knobs */

static void knobs_have_one_name_and_one_file(void **state)
{
	char buf[KNOB_REL_MAX];
	struct knob_id id;
	uint64_t value;

	(void)state;
	assert_int_equal(knob_parse("high_fraction", 4096, &id), 0);
	assert_string_equal(knob_name(id, 4096, buf), "high_fraction");
	assert_string_equal(knob_rel(id, ORDERS_NONE, 4096, buf, sizeof(buf)), HIGH_FRACTION_REL);
	assert_true(knob_value_valid(id, 0) && knob_value_valid(id, 8));
	assert_true(knob_value_valid(id, 2147483647));
	assert_false(knob_value_valid(id, 7) || knob_value_valid(id, UINT64_C(2147483648)));
	assert_int_equal(knob_parse("pcp_enabled/64kB", 4096, &id), 0);
	assert_int_equal(id.order, 4);
	assert_string_equal(knob_name(id, 4096, buf), "pcp_enabled/64kB");
	assert_string_equal(knob_rel(id, ORDERS_PER_SIZE, 4096, buf, sizeof(buf)),
			    THP "/hugepages-64kB/pcp_enabled");
	assert_string_equal(knob_rel(id, ORDERS_SINGLE, 4096, buf, sizeof(buf)),
			    THP "/pcp_allow_high_order");
	assert_int_equal(knob_to_file(id, ORDERS_SINGLE, 1), 4);
	assert_int_equal(knob_to_file(id, ORDERS_PER_SIZE, 1), 1);
	assert_int_equal(knob_from_file(id, ORDERS_SINGLE, 4, &value), 0);
	assert_int_equal(value, 1);
	assert_int_equal(knob_from_file(id, ORDERS_SINGLE, 1, &value), -EBADMSG);
	assert_int_equal(knob_from_file(id, ORDERS_PER_SIZE, 4, &value), -EBADMSG);
	assert_false(knob_value_valid(id, 2));
	assert_int_equal(knob_parse("pcp_enabled/64kB", 65536, &id), 0);
	assert_int_equal(id.order, 0);
	assert_int_equal(knob_parse("pcp_enabled/48kB", 4096, &id), -ENOENT);
	assert_int_equal(knob_parse("pcp_enabled/1kB", 4096, &id), -ENOENT);
	assert_int_equal(knob_parse("pcp_enabled/", 4096, &id), -EINVAL);
	assert_int_equal(knob_parse("pcp_enabled", 4096, &id), -EINVAL);
	assert_int_equal(knob_parse("", 4096, &id), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_a_machine_shows_is_in_the_snapshot),
		cmocka_unit_test(only_what_is_wanted_is_read),
		cmocka_unit_test(a_steady_machine_is_read_without_allocating),
		cmocka_unit_test(a_missing_file_is_unknown_and_comes_back),
		cmocka_unit_test(a_text_that_is_cut_off_leaves_nothing_and_says_where),
		cmocka_unit_test(lists_without_a_cpu_are_counted_as_missing),
		cmocka_unit_test(bounds_that_6_12_does_not_print_are_computed_and_marked),
		cmocka_unit_test(printed_bounds_are_left_as_they_are),
		cmocka_unit_test(lists_of_one_fixed_size_do_not_tune_themselves),
		cmocka_unit_test(captured_kernels_tune_their_lists_from_6_7_on),
		cmocka_unit_test(parked_pages_are_summed_and_small_zones_do_not_lead),
		cmocka_unit_test(counters_are_found_by_whole_name_and_summed_over_zones),
		cmocka_unit_test(names_that_come_and_go_are_still_found),
		cmocka_unit_test(free_blocks_tell_what_cannot_serve_an_order),
		cmocka_unit_test(texts_of_no_known_form_are_refused),
		cmocka_unit_test(statistics_have_their_present_names_and_unknown_ones_are_kept),
		cmocka_unit_test(orders_are_controlled_per_size_where_the_files_are),
		cmocka_unit_test(a_single_file_controls_order_4_alone),
		cmocka_unit_test(sizes_become_orders_by_the_machines_page),
		cmocka_unit_test(an_empty_root_is_no_error_and_knows_nothing),
		cmocka_unit_test(knobs_have_one_name_and_one_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
