/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/zoneinfo: any text at all, strictly and leniently. */
#include "sense/zoneinfo.h"

#include "tests/fuzz.h"

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void check_values(const struct zoneinfo *zi, const char *text, size_t len)
{
	for (uint32_t i = 0; i < zi->nr_values; i++) {
		const struct named_value *v = &zi->values[i];

		MUST(v->name >= text && v->name + v->name_len <= text + len);
		MUST(!memchr(v->name, '\n', v->name_len) && !memchr(v->name, ' ', v->name_len));
	}
}

static void check_ranges(const struct zoneinfo *zi)
{
	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];

		MUST((uint64_t)z->first_counter + z->nr_counters <= zi->nr_values);
		MUST((uint64_t)z->first_per_node + z->nr_per_node <= zi->nr_values);
		MUST((uint64_t)z->first_pageset + z->nr_pagesets <= zi->nr_pagesets);
		MUST((uint64_t)z->first_protection + z->nr_protection <= zi->nr_protection);
		MUST(z->name[0] && memchr(z->name, '\0', sizeof(z->name)));
	}
	for (uint32_t i = 0; i < zi->nr_pagesets; i++) {
		const struct pageset *p = &zi->pagesets[i];

		MUST((uint64_t)p->first_numa + p->nr_numa <= zi->nr_values);
		MUST(p->nr_orders <= PCP_ORDERS_MAX && p->computed == 0);
	}
}

/* What was read before must not show in what is read now. */
static void check_equal(const struct zoneinfo *a, const struct zoneinfo *b)
{
	MUST(a->nr_zones == b->nr_zones && a->nr_pagesets == b->nr_pagesets);
	MUST(a->nr_values == b->nr_values && a->nr_protection == b->nr_protection);
	MUST(a->unknown_lines == b->unknown_lines);
	for (uint32_t i = 0; i < a->nr_zones; i++)
		MUST(memcmp(&a->zones[i], &b->zones[i], sizeof(*a->zones)) == 0);
	for (uint32_t i = 0; i < a->nr_pagesets; i++)
		MUST(memcmp(&a->pagesets[i], &b->pagesets[i], sizeof(*a->pagesets)) == 0);
	for (uint32_t i = 0; i < a->nr_protection; i++)
		MUST(a->protection[i] == b->protection[i]);
	for (uint32_t i = 0; i < a->nr_values; i++)
		MUST(a->values[i].name == b->values[i].name &&
		     a->values[i].name_len == b->values[i].name_len &&
		     a->values[i].value == b->values[i].value);
}

static const char other[] =
	"Node 0, zone   Normal\n  per-node stats\n      nr_a         1\n      nr_bcdefgh   22\n"
	"  pages free     5\n        boost    0\n        min      1\n        low      2\n"
	"        high     3\n        present  9\n        managed  9\n        protection: (0, 1)\n"
	"      nr_free_pages 5\n      nr_free_pages_blocks 5\n  pagesets\n    cpu: 0\n"
	"              count:    1\n              high:     2\n              batch:    3\n"
	"              high_min: 4\n              high_max: 5\n              order0: 6\n"
	"              order1: 7\n  vm stats threshold: 8\n  start_pfn:           0\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	for (unsigned flags = 0; flags <= ZONEINFO_LENIENT; flags++) {
		_cleanup_(zoneinfo_free) struct zoneinfo fresh = {0}, used = {0};
		struct error e = {0};
		int r = zoneinfo_parse(&fresh, text, size, flags, &e);

		MUST(zoneinfo_parse(&used, other, sizeof(other) - 1, 0, NULL) == 0);
		MUST(zoneinfo_parse(&used, text, size, flags, NULL) == r);
		MUST(zoneinfo_parse(&used, text, size, flags, NULL) == r);
		MUST(r == 0 || (e.code == r && strncmp(e.text, "line ", 5) == 0));
		MUST(r == 0 || (fresh.nr_zones == 0 && fresh.nr_values == 0));
		check_values(&fresh, text, size);
		check_ranges(&fresh);
		check_equal(&fresh, &used);
	}
	return 0;
}
