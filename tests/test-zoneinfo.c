/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "corpus.h"
#include "sense/zoneinfo.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define OWN_TEXTS    TEST_DATA "/zoneinfo"
#define CAPTURED_618 TEST_DATA "/sysroot-6.18/proc/zoneinfo"

struct parsed {
	struct text text;
	struct zoneinfo zi;
};

static void parsed_free(struct parsed *p)
{
	text_free(&p->text);
	zoneinfo_free(&p->zi);
}

static void parse_own(struct parsed *p, const char *name)
{
	struct error e = {0};
	char path[512];

	(void)snprintf(path, sizeof(path), OWN_TEXTS "/%s", name);
	read_test_file(path, &p->text);
	if (zoneinfo_parse(&p->zi, text_str(&p->text), p->text.len, 0, &e) < 0)
		fail_msg("%s: %s", name, e.text);
}

static const struct zone *find_zone(const struct zoneinfo *zi, int node, const char *name)
{
	for (uint32_t i = 0; i < zi->nr_zones; i++)
		if (zi->zones[i].node == node && streq(zi->zones[i].name, name))
			return &zi->zones[i];
	fail_msg("no zone %s on node %d", name, node);
	return NULL;
}

static const struct pageset *find_pageset(const struct zoneinfo *zi, const struct zone *z,
					  uint32_t cpu, int pcp)
{
	for (uint32_t i = 0; i < z->nr_pagesets; i++) {
		const struct pageset *p = &zi->pagesets[z->first_pageset + i];

		if (p->cpu == cpu && p->pcp == pcp)
			return p;
	}
	return NULL;
}

static void every_format_since_2_6_13_is_read_whole(void **state)
{
	static const struct {
		const char *file;
		uint32_t zones, pagesets, values, unknown;
		bool high_min, orders;
	} rows[] = {
		{"2.6.13-numa-descending.txt", 3, 10, 30, 0, false, false},
		{"2.6.20-empty-pagesets.txt", 2, 4, 8, 0, false, false},
		{"3.10-counters-before-protection.txt", 3, 6, 15, 0, false, false},
		{"4.8-node-lines.txt", 2, 4, 6, 0, false, false},
		{"4.18-nameless-counter.txt", 4, 4, 20, 0, false, false},
		{"6.12-unprinted-bounds.txt", 4, 6, 20, 0, false, false},
		{"6.18-orders.txt", 4, 4, 20, 0, true, true},
		{"7.3-highatomic-unknown-lines.txt", 2, 2, 15, 3, true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(parsed_free) struct parsed p = {0};

		parse_own(&p, rows[i].file);
		if (p.zi.nr_zones != rows[i].zones || p.zi.nr_pagesets != rows[i].pagesets ||
		    p.zi.nr_values != rows[i].values || p.zi.unknown_lines != rows[i].unknown)
			fail_msg("%s: %u zones, %u pagesets, %u counters, %u unknown lines",
				 rows[i].file, p.zi.nr_zones, p.zi.nr_pagesets, p.zi.nr_values,
				 p.zi.unknown_lines);
		assert_int_equal(p.zi.prints_high_min, rows[i].high_min);
		assert_int_equal(p.zi.prints_orders, rows[i].orders);
	}
}

static void oldest_kernels_print_hot_and_cold_lists_with_their_numa_counters(void **state)
{
	_cleanup_(parsed_free) struct parsed p = {0};
	const struct pageset *hot, *cold;
	const struct zone *z;

	(void)state;
	parse_own(&p, "2.6.13-numa-descending.txt");
	assert_int_equal(p.zi.zones[0].node, 1); /* nodes come in descending order */
	z = find_zone(&p.zi, 1, "Normal");
	hot = find_pageset(&p.zi, z, 0, 0);
	cold = find_pageset(&p.zi, z, 0, 1);
	assert_non_null(hot);
	assert_non_null(cold);
	assert_int_equal(hot->value[PAGESET_COUNT], 61);
	assert_true(pageset_has(hot, PAGESET_LOW));
	assert_false(pageset_has(hot, PAGESET_VM_STATS_THRESHOLD));
	assert_int_equal(hot->nr_numa, 0);
	assert_int_equal(cold->nr_numa, 6);
	/* a per-CPU counter below zero is printed as a number close to 2^64 */
	assert_true(p.zi.values[cold->first_numa + 5].value == UINT64_C(18446604437880297808));
	assert_int_equal(p.zi.values[cold->first_numa].name_len, strlen("numa_hit"));
	assert_int_equal(z->value[ZONE_SCAN_A], 12);
	assert_int_equal(z->value[ZONE_ACTIVE], 250111);
	assert_false(zone_has(z, ZONE_MANAGED));
	assert_int_equal(zone_managed(z), 1010101);
	assert_int_equal(zone_parked(&p.zi, z), 61 + 100 + 60 + 11);
	/* each zone has its own list of CPUs */
	z = find_zone(&p.zi, 0, "DMA");
	assert_null(find_pageset(&p.zi, z, 0, 0));
	assert_non_null(find_pageset(&p.zi, z, 1, 0));
}

static void a_threshold_behind_hot_and_cold_belongs_to_both(void **state)
{
	_cleanup_(parsed_free) struct parsed p = {0};
	const struct zone *z;

	(void)state;
	parse_own(&p, "2.6.20-empty-pagesets.txt");
	z = find_zone(&p.zi, 0, "DMA");
	for (int pcp = 0; pcp < 2; pcp++) {
		const struct pageset *s0 = find_pageset(&p.zi, z, 0, pcp);
		const struct pageset *s1 = find_pageset(&p.zi, z, 1, pcp);

		assert_int_equal(s0->value[PAGESET_VM_STATS_THRESHOLD], 16);
		assert_int_equal(s1->value[PAGESET_VM_STATS_THRESHOLD], 18);
	}
	z = find_zone(&p.zi, 1, "DMA");
	assert_int_equal(z->nr_pagesets, 0);
	assert_true(z->populated);
	assert_int_equal(z->value[ZONE_ALL_UNRECLAIMABLE], 1);
}

static void counters_keep_their_place_whatever_stands_around_them(void **state)
{
	_cleanup_(parsed_free) struct parsed p = {0};
	const struct zone *z;
	uint64_t value;

	(void)state;
	parse_own(&p, "3.10-counters-before-protection.txt");
	z = find_zone(&p.zi, 0, "DMA");
	assert_int_equal(z->nr_counters, 5);
	assert_true(zone_counter(&p.zi, z, "numa_hit", &value));
	assert_true(value == UINT64_C(17116673798));
	assert_false(zone_counter(&p.zi, z, "numa", &value));
	assert_int_equal(z->nr_protection, 4);
	assert_int_equal(p.zi.protection[z->first_protection + 3], 31900);
	assert_int_equal(z->value[ZONE_INACTIVE_RATIO], 1);
	assert_non_null(find_pageset(&p.zi, z, 2, -1)); /* CPU numbers may have gaps */
	assert_null(find_pageset(&p.zi, z, 1, -1));
}

static void lines_of_the_node_are_told_from_those_of_the_zone(void **state)
{
	_cleanup_(parsed_free) struct parsed p4 = {0}, p5 = {0};
	const struct zone *z;
	const struct named_value *nameless;

	(void)state;
	parse_own(&p4, "4.8-node-lines.txt");
	z = find_zone(&p4.zi, 0, "DMA32");
	assert_int_equal(z->value[ZONE_NODE_SCANNED], 3);
	assert_int_equal(z->value[ZONE_NODE_INACTIVE_RATIO], 5);

	parse_own(&p5, "4.18-nameless-counter.txt");
	z = find_zone(&p5.zi, 1, "Movable");
	assert_int_equal(z->nr_per_node, 5);
	assert_int_equal(z->nr_counters, 5);
	nameless = &p5.zi.values[z->first_per_node + 2];
	assert_int_equal(nameless->name_len, 0);
	assert_int_equal(nameless->value, 83328);
	z = find_zone(&p5.zi, 0, "Normal");
	assert_false(z->populated);
	assert_int_equal(z->nr_pagesets, 0);
	assert_int_equal(p5.zi.protection[z->first_protection + 3], 1024);
}

static void bounds_and_orders_are_read_where_the_kernel_prints_them(void **state)
{
	_cleanup_(parsed_free) struct parsed p = {0};
	const struct pageset *s;

	(void)state;
	parse_own(&p, "6.18-orders.txt");
	s = find_pageset(&p.zi, find_zone(&p.zi, 0, "DMA32"), 0, -1);
	assert_int_equal(s->value[PAGESET_HIGH_MIN], 4637);
	assert_int_equal(s->value[PAGESET_HIGH_MAX], 48300);
	assert_int_equal(s->computed, 0);
	assert_int_equal(s->nr_orders, 10);
	assert_int_equal(s->order[4], 280);
	assert_int_equal(s->order[9], 1);
	s = find_pageset(&p.zi, find_zone(&p.zi, 2, "Normal"), 5, -1);
	assert_int_equal(s->order[9], 2);
}

static void unknown_lines_are_skipped_counted_and_disturb_nothing(void **state)
{
	_cleanup_(parsed_free) struct parsed p = {0};
	const struct zone *z;

	(void)state;
	parse_own(&p, "7.3-highatomic-unknown-lines.txt");
	z = find_zone(&p.zi, 0, "DMA32");
	assert_int_equal(z->value[ZONE_SPANNED], 1044480);
	assert_int_equal(z->value[ZONE_RESERVED_HIGHATOMIC], 512);
	assert_int_equal(z->value[ZONE_FREE_HIGHATOMIC], 100);
	assert_int_equal(find_pageset(&p.zi, z, 0, -1)->value[PAGESET_VM_STATS_THRESHOLD], 24);
	assert_int_equal(p.zi.unknown_lines, 3);
}

static void room_that_an_earlier_text_left_does_not_shine_through(void **state)
{
	_cleanup_(zoneinfo_free) struct zoneinfo zi = {0};
	_cleanup_(text_free) struct text orders = {0}, plain = {0};
	_cleanup_(parsed_free) struct parsed fresh = {0};

	(void)state;
	read_test_file(OWN_TEXTS "/6.18-orders.txt", &orders);
	read_test_file(OWN_TEXTS "/6.12-unprinted-bounds.txt", &plain);
	assert_int_equal(zoneinfo_parse(&zi, orders.data, orders.len, 0, NULL), 0);
	assert_int_equal(zoneinfo_parse(&zi, plain.data, plain.len, 0, NULL), 0);
	parse_own(&fresh, "6.12-unprinted-bounds.txt");
	assert_false(zi.prints_orders);
	assert_int_equal(zi.nr_values, fresh.zi.nr_values);
	assert_memory_equal(zi.zones, fresh.zi.zones, zi.nr_zones * sizeof(*zi.zones));
	for (uint32_t i = 0; i < zi.nr_pagesets; i++) {
		assert_int_equal(zi.pagesets[i].nr_orders, 0);
		assert_int_equal(zi.pagesets[i].order[4], 0);
		assert_memory_equal(zi.pagesets[i].value, fresh.zi.pagesets[i].value,
				    sizeof(zi.pagesets[i].value));
	}
	for (uint32_t i = 0; i < zi.nr_values; i++) {
		assert_int_equal(zi.values[i].name_len, fresh.zi.values[i].name_len);
		assert_int_equal(zi.values[i].value, fresh.zi.values[i].value);
	}
}

static void numbers_beyond_64_bits_and_endless_names_are_errors(void **state)
{
	static const struct {
		const char *text, *where;
	} rows[] = {
		{"Node 0, zone      DMA\n  pages free     18446744073709551616\n",
		 "line 2, byte 39:"},
		{"Node 0, zone NoKernelHasSuchALongName\n", "line 1, byte 13:"},
		{"Node 0, zone      DMA\n  pages free     5\n        min      "
		 "99999999999999999999999\n",
		 "line 3, byte 58:"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(zoneinfo_free) struct zoneinfo zi = {0};
		struct error e = {0};

		assert_int_equal(zoneinfo_parse(&zi, rows[i].text, strlen(rows[i].text), 0, &e),
				 -EBADMSG);
		if (strncmp(e.text, rows[i].where, strlen(rows[i].where)) != 0)
			fail_msg("row %zu: the error is at the wrong place: %s", i, e.text);
	}
}

static void what_is_no_zoneinfo_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"hello\n",
		"  pages free     5\n",
		"Node 0, per-node stats\n",
		"Node 0, zone      DMA\n",
		"Node 0, zone      DMA\nNode 0, zone      DMA\n",
		"Node 0, zone\n",
		"Node 4294967296, zone DMA\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(zoneinfo_free) struct zoneinfo zi = {0};
		struct error e = {0};

		if (zoneinfo_parse(&zi, texts[i], strlen(texts[i]), 0, &e) != -EBADMSG)
			fail_msg("\"%s\" was taken", texts[i]);
		assert_int_equal(e.code, -EBADMSG);
		assert_int_equal(zi.nr_zones, 0);
	}
}

/* Cutting */

/* Lines that close a block of a zone with pages; a text may end behind any of them. */
static bool block_is_closed(const char *text, size_t cut)
{
	const char *block = text, *p;
	bool closed = false, empty = false;

	for (p = text; p < text + cut; p = strchr(p, '\n') + 1)
		if (strncmp(p, "Node ", 5) == 0)
			block = p;
	for (p = block; p < text + cut; p = strchr(p, '\n') + 1) {
		closed |= strncmp(p, "  start_pfn:", 12) == 0;
		empty |= strncmp(p, "        present  0\n", 19) == 0;
		if (empty && strncmp(p, "        protection:", 19) == 0)
			closed = true;
	}
	return closed;
}

struct cuts {
	size_t texts, cuts, whole;
};

static void must_be_a_beginning_of(const char *what, size_t cut, const struct zoneinfo *part,
				   const struct zoneinfo *all)
{
	assert_in_range(part->nr_zones, 1, all->nr_zones);
	if (memcmp(part->zones, all->zones, (part->nr_zones - 1) * sizeof(*part->zones)) != 0 ||
	    memcmp(part->pagesets, all->pagesets, part->nr_pagesets * sizeof(*part->pagesets)) != 0)
		fail_msg("%s cut at byte %zu reads other values", what, cut);
}

static void cut_everywhere(const char *what, const struct text *text, struct cuts *cuts)
{
	_cleanup_(zoneinfo_free) struct zoneinfo all = {0}, zi = {0};
	const char *data = text_str(text);

	assert_int_equal(zoneinfo_parse(&all, data, text->len, 0, NULL), 0);
	for (size_t cut = 0; cut < text->len; cut++) {
		/* of its exact size, so that a sanitizer sees a read behind its end */
		_cleanup_(freep) char *copy = malloc(cut ? cut : 1);
		bool at_line = cut > 0 && data[cut - 1] == '\n';
		bool at_zone = at_line && strncmp(data + cut, "Node ", 5) == 0;
		struct error e = {0};
		size_t line, byte;
		int r;

		assert_non_null(copy);
		memcpy(copy, data, cut);
		r = zoneinfo_parse(&zi, copy, cut, 0, &e);
		cuts->cuts++;
		if (r == 0) {
			cuts->whole++;
			if (!at_line || !block_is_closed(data, cut))
				fail_msg("%s cut at byte %zu was taken as complete", what, cut);
			must_be_a_beginning_of(what, cut, &zi, &all);
			continue;
		}
		assert_int_equal(r, -EBADMSG);
		if (at_zone)
			fail_msg("%s cut between zones at byte %zu was refused: %s", what, cut,
				 e.text);
		if (sscanf(e.text, "line %zu, byte %zu: ", &line, &byte) != 2 || byte > cut)
			fail_msg("%s cut at byte %zu: the error names no place: %s", what, cut,
				 e.text);
		if (zi.nr_zones || zi.nr_pagesets || zi.nr_values || zi.nr_protection)
			fail_msg("%s cut at byte %zu: something half-read is left", what, cut);
	}
	cuts->texts++;
}

static void cut_own(const char *name, void *userdata)
{
	_cleanup_(text_free) struct text text = {0};
	char path[512];

	(void)snprintf(path, sizeof(path), OWN_TEXTS "/%s", name);
	read_test_file(path, &text);
	cut_everywhere(name, &text, userdata);
}

static void a_text_cut_at_any_byte_is_an_error_or_whole_to_there(void **state)
{
	_cleanup_(text_free) struct text text = {0};
	struct cuts cuts = {0};

	(void)state;
	assert_true(each_name(OWN_TEXTS, cut_own, &cuts) >= 8);
	read_test_file(CAPTURED_618, &text);
	cut_everywhere("6.18", &text, &cuts);
	print_message("    %zu texts cut at %zu bytes, %zu times between complete blocks\n",
		      cuts.texts, cuts.cuts, cuts.whole);
}

static void captures_cut_at_any_byte_are_an_error_or_whole_to_there(void **state)
{
	static const char *const slugs[] = {
		"lkml-2.6.15-opteron-2node-a",
		"lkml-2.6.2x-i686-12g-4cpu-hotcold",
		"442proj2-3.2-x86",
		"lkml-4.14-arm32-highmem-cma",
		"pcp-meminfo-004",
		"vm-patched-6.12-16cpu-memless-node1",
	};
	struct cuts cuts = {0};

	(void)state;
	for (size_t i = 0; corpus_dir() && i < ARRAY_SIZE(slugs); i++) {
		_cleanup_(text_free) struct text text = {0};
		char path[512];

		(void)snprintf(path, sizeof(path), "%s/corpus/kernel/%s/zoneinfo", corpus_dir(),
			       slugs[i]);
		if (access(path, R_OK) < 0)
			continue;
		read_test_file(path, &text);
		cut_everywhere(slugs[i], &text, &cuts);
	}
	if (cuts.texts == 0) {
		print_message("    no captures beside the source tree\n");
		skip();
	}
	print_message("    %zu texts cut at %zu bytes, %zu times between complete blocks\n",
		      cuts.texts, cuts.cuts, cuts.whole);
}

static void a_last_zone_without_the_closing_lines_of_the_others_is_cut_off(void **state)
{
	_cleanup_(zoneinfo_free) struct zoneinfo zi = {0};
	_cleanup_(text_free) struct text text = {0};
	struct error e = {0};
	const char *at;

	(void)state;
	read_test_file(OWN_TEXTS "/7.3-highatomic-unknown-lines.txt", &text);
	at = strstr(text_str(&text), "  start_pfn:           1048576\n");
	assert_non_null(at);
	assert_int_equal(zoneinfo_parse(&zi, text.data,
					(size_t)(at - text.data) +
						strlen("  start_pfn:           1048576\n"),
					0, &e),
			 -EBADMSG);
	assert_non_null(strstr(e.text, "ends inside a zone's block"));
}

/* A line that starts at the left margin could be a heading of tomorrow: it alone is skipped. */
static void a_text_that_starts_inside_a_block_is_refused(void **state)
{
	_cleanup_(zoneinfo_free) struct zoneinfo zi = {0};
	_cleanup_(text_free) struct text text = {0};

	(void)state;
	read_test_file(CAPTURED_618, &text);
	for (size_t from = 1; from < text.len; from++) {
		const char *p = text.data + from;
		bool zone = strncmp(p, "Node ", 5) == 0;
		bool before_zone = *p != ' ' && strncmp(strchr(p, '\n') + 1, "Node ", 5) == 0;
		int r = zoneinfo_parse(&zi, p, text.len - from, 0, NULL);

		if ((r == 0) != (zone || before_zone))
			fail_msg("started at byte %zu: %d", from, r);
		assert_int_equal(zi.unknown_lines, r == 0 && !zone);
	}
}

static void excerpts_are_read_leniently(void **state)
{
	_cleanup_(zoneinfo_free) struct zoneinfo zi = {0};
	_cleanup_(text_free) struct text text = {0};

	(void)state;
	read_test_file(CAPTURED_618, &text);
	for (size_t cut = 0; cut < text.len; cut++) {
		_cleanup_(freep) char *copy = malloc(cut ? cut : 1);

		assert_non_null(copy);
		memcpy(copy, text.data, cut);
		assert_int_equal(zoneinfo_parse(&zi, copy, cut, ZONEINFO_LENIENT, NULL), 0);
		assert_int_equal(zoneinfo_parse(&zi, text.data + cut, text.len - cut,
						ZONEINFO_LENIENT, NULL),
				 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_since_2_6_13_is_read_whole),
		cmocka_unit_test(oldest_kernels_print_hot_and_cold_lists_with_their_numa_counters),
		cmocka_unit_test(a_threshold_behind_hot_and_cold_belongs_to_both),
		cmocka_unit_test(counters_keep_their_place_whatever_stands_around_them),
		cmocka_unit_test(lines_of_the_node_are_told_from_those_of_the_zone),
		cmocka_unit_test(bounds_and_orders_are_read_where_the_kernel_prints_them),
		cmocka_unit_test(unknown_lines_are_skipped_counted_and_disturb_nothing),
		cmocka_unit_test(room_that_an_earlier_text_left_does_not_shine_through),
		cmocka_unit_test(numbers_beyond_64_bits_and_endless_names_are_errors),
		cmocka_unit_test(what_is_no_zoneinfo_is_refused),
		cmocka_unit_test(a_text_cut_at_any_byte_is_an_error_or_whole_to_there),
		cmocka_unit_test(captures_cut_at_any_byte_are_an_error_or_whole_to_there),
		cmocka_unit_test(a_last_zone_without_the_closing_lines_of_the_others_is_cut_off),
		cmocka_unit_test(a_text_that_starts_inside_a_block_is_refused),
		cmocka_unit_test(excerpts_are_read_leniently),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
