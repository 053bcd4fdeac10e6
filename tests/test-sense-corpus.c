/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The readers against captured files of many kernels and machines, and against the sizes that
 * kernels print themselves. What needs the captures is skipped where they are not.
 */
#include "corpus.h"
#include "sense/sizing.h"
#include "tree.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define THP "sys/kernel/mm/transparent_hugepage"

static bool capture(const char *slug, const char *file, char *path, size_t size)
{
	(void)snprintf(path, size, "%s/corpus/kernel/%s/%s", corpus_dir(), slug, file);
	return access(path, R_OK) == 0;
}

/* Calls `each` for every capture; skips the test where there are none. */
static void each_capture(void (*each)(const char *slug, void *userdata), unsigned *n)
{
	char dir[256];

	if (corpus_dir()) {
		(void)snprintf(dir, sizeof(dir), "%s/corpus/kernel", corpus_dir());
		(void)each_name(dir, each, n);
	}
	if (*n == 0) {
		print_message("    no captures beside the source tree\n");
		skip();
	}
	print_message("    %u files\n", *n);
}

static void compare_vmstat(const char *slug, void *userdata)
{
	_cleanup_(vmstat_free) struct vmstat v = {0};
	_cleanup_(text_free) struct text text = {0};
	char path[512], name[128];
	unsigned *n = userdata, lines = 0;
	struct error e = {0};
	uint64_t want;
	int used;

	if (!capture(slug, "vmstat", path, sizeof(path)))
		return;
	read_test_file(path, &text);
	if (vmstat_parse(&v, text.data, text.len, &e) < 0)
		fail_msg("%s: %s", slug, e.text);
	for (const char *p = text.data; sscanf(p, "%127s %" SCNu64 "%n", name, &want, &used) == 2;
	     p += used, lines++) {
		uint64_t value = 0;

		if (!vmstat_get(&v, name, NULL, &value) || value != want)
			fail_msg("%s: %s is %" PRIu64 ", must be %" PRIu64, slug, name, value,
				 want);
	}
	if (lines != v.nr_values)
		fail_msg("%s: %u values of %u lines", slug, v.nr_values, lines);
	(*n)++;
}

static void every_captured_vmstat_is_read_line_by_line(void **state)
{
	unsigned n = 0;

	(void)state;
	each_capture(compare_vmstat, &n);
}

static void compare_buddyinfo(const char *slug, void *userdata)
{
	_cleanup_(buddyinfo_free) struct buddyinfo b = {0};
	_cleanup_(text_free) struct text text = {0};
	char path[512], name[64];
	unsigned *n = userdata, line = 0;
	struct error e = {0};
	int node, used;

	if (!capture(slug, "buddyinfo", path, sizeof(path)))
		return;
	read_test_file(path, &text);
	if (buddyinfo_parse(&b, text.data, text.len, &e) < 0)
		fail_msg("%s: %s", slug, e.text);
	for (char *p = text.data; *p; p = strchr(p, '\n') + 1, line++) {
		const struct buddy_zone *z = &b.zones[line];
		unsigned order = 0;
		uint64_t want;
		char *q = p;

		assert_true(line < b.nr_zones);
		assert_int_equal(sscanf(q, "Node %d, zone %63s%n", &node, name, &used), 2);
		assert_int_equal(z->node, node);
		assert_string_equal(z->name, name);
		for (q += used; strchr(p, '\n') > q; q += used, order++) {
			if (sscanf(q, " %" SCNu64 "%n", &want, &used) != 1 ||
			    q + used > strchr(p, '\n'))
				break;
			if (z->free[order] != want)
				fail_msg("%s: %s order %u", slug, name, order);
		}
		assert_int_equal(z->nr_orders, order);
	}
	assert_int_equal(line, b.nr_zones);
	(*n)++;
}

static void every_captured_buddyinfo_is_read_block_by_block(void **state)
{
	unsigned n = 0;

	(void)state;
	each_capture(compare_buddyinfo, &n);
}

static void compare_psi(const char *slug, void *userdata)
{
	static const char *const files[] = {"pressure-memory", "pressure_memory"};
	_cleanup_(text_free) struct text text = {0};
	struct psi psi = {0};
	unsigned *n = userdata;
	struct error e = {0};
	uint64_t total;
	char path[512];
	double avg10;

	if (!capture(slug, files[0], path, sizeof(path)) &&
	    !capture(slug, files[1], path, sizeof(path)))
		return;
	read_test_file(path, &text);
	if (psi_parse(&psi, text.data, text.len, &e) < 0)
		fail_msg("%s: %s", slug, e.text);
	assert_int_equal(sscanf(text.data, "some avg10=%lf avg60=%*f avg300=%*f total=%" SCNu64,
				&avg10, &total),
			 2);
	assert_true(psi.some.total_usec == total);
	assert_true(psi.some.avg10 * 100 - avg10 < 1e-9 && avg10 - psi.some.avg10 * 100 < 1e-9);
	(*n)++;
}

static void every_captured_pressure_is_read(void **state)
{
	unsigned n = 0;

	(void)state;
	each_capture(compare_psi, &n);
}

static void statistics_of_6_10_are_found_by_their_present_names(void **state)
{
	_cleanup_(tree_remove) struct tree t = {0};
	_cleanup_(sensor_freep) struct sensor *sensor = NULL;
	const struct snapshot *s;
	unsigned found = 0;
	char dir[512];
	uint64_t value;

	(void)state;
	if (!corpus_dir() || !capture("mthp-6.10rc-anon_swpout", "thp", dir, sizeof(dir))) {
		print_message("    no captures beside the source tree\n");
		skip();
	}
	tree_make(&t);
	tree_put(&t, THP "/enabled", "always\n");
	tree_copy_to(&t, dir, THP);
	assert_int_equal(sensor_new(&sensor, &t.root, 4096, NULL), 0);
	s = sensor_take(sensor, SOURCES_ALL, 0);
	assert_true(s->mthp.nr_sizes > 0);
	for (uint32_t i = 0; i < s->mthp.nr_sizes; i++)
		found += mthp_stat_get(&s->mthp.size[i], "swpout", &value) &&
			 mthp_stat_get(&s->mthp.size[i], "swpout_fallback", &value);
	assert_int_equal(found, s->mthp.nr_sizes);
}

/* Sizes that the kernel computed itself */

static void must_be_size(const char *what, const struct zone *z, const char *field, uint64_t have,
			 uint64_t printed)
{
	if (have != printed)
		fail_msg("%s, zone %s: %s is %" PRIu64 ", the kernel printed %" PRIu64, what,
			 z->name, field, have, printed);
}

static unsigned compare_sizes(const char *what, const struct snapshot *s)
{
	unsigned compared = 0;

	for (uint32_t i = 0; i < s->zoneinfo.nr_zones; i++) {
		const struct zone *z = &s->zoneinfo.zones[i];
		const uint64_t *printed;
		struct pcp_sizing sizing;

		if (z->nr_pagesets == 0)
			continue;
		printed = s->zoneinfo.pagesets[z->first_pageset].value;
		assert_true(pcp_sizing_of(s, z, &sizing));
		must_be_size(what, z, "batch", pcp_batch(sizing.managed, s->page_bytes),
			     printed[PAGESET_BATCH]);
		if (s->zoneinfo.prints_high_min) {
			must_be_size(what, z, "high_min", pcp_highsize(&sizing, 0),
				     printed[PAGESET_HIGH_MIN]);
			must_be_size(what, z, "high_max", pcp_highsize(&sizing, HIGH_FRACTION_MIN),
				     printed[PAGESET_HIGH_MAX]);
		} else if (s->pcp_autotune == 0) {
			must_be_size(what, z, "high", pcp_highsize(&sizing, 0),
				     printed[PAGESET_HIGH]);
		}
		compared++;
	}
	return compared;
}

static void sizes_are_those_that_6_18_prints(void **state)
{
	_cleanup_(sensor_freep) struct sensor *sensor = NULL;
	_cleanup_(sysroot_close) struct sysroot root = {.dirfd = -1};

	(void)state;
	assert_int_equal(sysroot_open(&root, TEST_DATA "/sysroot-6.18", NULL), 0);
	assert_int_equal(sensor_new(&sensor, &root, 4096, NULL), 0);
	assert_int_equal(compare_sizes("6.18", sensor_take(sensor, SOURCES_ALL, 0)), 3);
}

static void sizes_are_those_that_6_1_uses_on_two_nodes(void **state)
{
	static const char slug[] = "vm-stock-6.1-amd64-4cpu-2node";
	_cleanup_(tree_remove) struct tree t = {0};
	_cleanup_(sensor_freep) struct sensor *sensor = NULL;
	_cleanup_(text_free) struct text text = {0};
	char path[512];

	(void)state;
	if (!corpus_dir() || !capture(slug, "zoneinfo", path, sizeof(path))) {
		print_message("    no captures beside the source tree\n");
		skip();
	}
	read_test_file(path, &text);
	tree_make(&t);
	tree_put(&t, "proc/zoneinfo", "%s", text_str(&text));
	tree_put(&t, HIGH_FRACTION_REL, "0\n");
	tree_put(&t, "sys/devices/system/cpu/online", "0-3\n");
	tree_put(&t, "sys/devices/system/node/online", "0-1\n");
	tree_put(&t, "sys/devices/system/node/node0/cpulist", "0-1\n");
	tree_put(&t, "sys/devices/system/node/node1/cpulist", "2-3\n");
	assert_int_equal(sensor_new(&sensor, &t.root, 4096, NULL), 0);
	assert_int_equal(compare_sizes(slug, sensor_take(sensor, SOURCES_ALL, 0)), 3);
}

static void a_fraction_is_found_for_a_size_and_gives_at_least_it(void **state)
{
	/* 64 CPUs, one node, 256 GiB */
	const struct pcp_sizing z = {
		.managed = 67108864, .low = 83456, .batch = 63, .cpus = 64, .page_bytes = 4096};
	uint64_t pages = 1024, fraction = pcp_fraction_for(&z, (double)pages);

	(void)state;
	assert_int_equal(pcp_highsize(&z, 0), 1304);
	assert_int_equal(pcp_highsize(&z, 8), 131072);
	assert_int_equal(pcp_highsize(&z, 100), 10485);
	assert_int_equal(pcp_highsize(&z, 1000), 1048);
	assert_int_equal(pcp_highsize(&z, HIGH_FRACTION_MAX), 252);
	assert_int_equal(fraction, 1024);
	assert_true(pcp_highsize(&z, fraction) >= pages);
	assert_int_equal(pcp_fraction_for(&z, 1e9), HIGH_FRACTION_MIN);
	assert_int_equal(pcp_fraction_for(&z, 0), HIGH_FRACTION_MAX);
	assert_int_equal(pcp_batch(67108864, 4096), 63);
	assert_int_equal(pcp_batch(67108864, 16384), 15);
	assert_int_equal(pcp_batch(67108864, 65536), 3);
	assert_int_equal(pcp_batch(3840, 4096), 1);
	assert_int_equal(pcp_batch(0, 4096), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_those_that_6_18_prints),
		cmocka_unit_test(sizes_are_those_that_6_1_uses_on_two_nodes),
		cmocka_unit_test(a_fraction_is_found_for_a_size_and_gives_at_least_it),
		cmocka_unit_test(every_captured_vmstat_is_read_line_by_line),
		cmocka_unit_test(every_captured_buddyinfo_is_read_block_by_block),
		cmocka_unit_test(every_captured_pressure_is_read),
		cmocka_unit_test(statistics_of_6_10_are_found_by_their_present_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
