/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/zoneinfo as typed values (mm/vmstat.c, zoneinfo_show_print()): every format from 2.6.13 on.
 *
 * All numbers are the kernel's own: pages of the machine's page size, unless a name says bytes.
 * The kernel prints a pageset's numbers without taking its lock, so under load they may disagree
 * with each other for an instant.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* The PMD order is 13 at most (arm64 with 64 KiB pages), and nothing above it is ever cached. */
#define PCP_ORDERS_MAX 16U
#define ZONE_NAME_MAX  16U

enum pageset_field {
	PAGESET_COUNT,
	PAGESET_HIGH,
	PAGESET_BATCH,
	PAGESET_LOW,      /* up to 2.6.20 */
	PAGESET_HIGH_MIN, /* printed by 6.14 and later; computed for 6.7 to 6.13, see autotune.h */
	PAGESET_HIGH_MAX,
	PAGESET_VM_STATS_THRESHOLD,
	_PAGESET_FIELD_MAX,
};

enum zone_field {
	ZONE_FREE,
	ZONE_BOOST,
	ZONE_MIN,
	ZONE_LOW,
	ZONE_HIGH,
	ZONE_PROMO,
	ZONE_SCANNED,
	ZONE_SCAN_A,
	ZONE_SCAN_I,
	ZONE_ACTIVE,
	ZONE_INACTIVE,
	ZONE_SPANNED,
	ZONE_PRESENT,
	ZONE_MANAGED, /* printed since 3.9; `zone_managed()` falls back to present */
	ZONE_CMA,
	ZONE_NODE_SCANNED,
	ZONE_NODE_UNRECLAIMABLE,
	ZONE_ALL_UNRECLAIMABLE,
	ZONE_NODE_INACTIVE_RATIO,
	ZONE_INACTIVE_RATIO,
	ZONE_PREV_PRIORITY,
	ZONE_TEMP_PRIORITY,
	ZONE_START_PFN,
	ZONE_RESERVED_HIGHATOMIC,
	ZONE_FREE_HIGHATOMIC,
	_ZONE_FIELD_MAX,
};

/* A counter that the kernel names, read in place: `name` points into the parsed text. */
struct named_value {
	const char
		*name; /* not NUL-terminated; length 0 for the nameless counter of 4.16 to 4.19 */
	uint32_t name_len;
	uint64_t value; /* counters below zero are printed as unsigned: kept as they are */
};

struct pageset {
	uint32_t cpu;
	int32_t pcp;       /* 0 hot or 1 cold up to 2.6.24; -1 since, when there is one list */
	uint32_t has;      /* bit PAGESET_X: value[PAGESET_X] was printed */
	uint32_t computed; /* bit PAGESET_X: value[PAGESET_X] is computed, not printed */
	uint64_t value[_PAGESET_FIELD_MAX];
	uint32_t nr_orders; /* highest N of the orderN lines, plus 1; 0 where there are none */
	uint64_t order[PCP_ORDERS_MAX]; /* blocks of that order */
	uint32_t first_numa, nr_numa; /* up to 2.6.17 NUMA counters stood here: range of `values` */
};

struct zone {
	int32_t node;
	char name[ZONE_NAME_MAX];
	bool populated; /* present > 0 */
	uint64_t has;   /* bit ZONE_X */
	uint64_t value[_ZONE_FIELD_MAX];
	/* ranges of zoneinfo.protection, .values, .pagesets */
	uint32_t first_protection, nr_protection;
	uint32_t first_counter, nr_counters;
	uint32_t first_per_node,
		nr_per_node; /* printed with one zone of each node, 4.8 and later */
	uint32_t first_pageset, nr_pagesets;
};

struct zoneinfo {
	struct zone *zones;
	struct pageset *pagesets;
	struct named_value *values;
	uint64_t *protection;
	uint32_t nr_zones, nr_pagesets, nr_values, nr_protection;
	uint32_t zones_room, pagesets_room, values_room, protection_room;
	uint32_t unknown_lines; /* lines of no known form, skipped */
	bool prints_high_min;   /* some pageset has a high_min line */
	bool prints_orders;     /* some pageset has orderN lines */
};

enum zoneinfo_flags {
	ZONEINFO_LENIENT = 1 << 0, /* tests only: take an excerpt that starts or ends anywhere */
};

/*
 * Parses `len` bytes of `text` in one pass into *zi. The text must stay as long as the values are
 * used: names point into it. Arrays grow where they must and are kept, so that a steady state
 * allocates nothing.
 *
 * -EBADMSG: the text ends inside a line or an open block, or a number does not fit; the error names
 * line and byte. -ENOMEM. After any error *zi is empty: nothing half-read is handed on.
 *
 * A block is whole when it has its free and present pages, its protection and, where it has pages
 * or lists, start_pfn and every closing line that zones before it had. Zones that are missing
 * altogether do not show here: compare with the topology (snapshot.missing_pagesets).
 */
int zoneinfo_parse(struct zoneinfo *zi, const char *text, size_t len, unsigned flags,
		   struct error *e) _must_check_;
void zoneinfo_free(struct zoneinfo *zi);

const char *zone_field_name(enum zone_field f);       /* the kernel's name: "managed" */
const char *pageset_field_name(enum pageset_field f); /* "high_min" */

static inline bool zone_has(const struct zone *z, enum zone_field f)
{
	return z->has >> f & 1;
}

static inline bool pageset_has(const struct pageset *p, enum pageset_field f)
{
	return p->has >> f & 1 || p->computed >> f & 1;
}

/* managed, or present where the kernel does not print managed. Pages. */
static inline uint64_t zone_managed(const struct zone *z)
{
	return z->value[zone_has(z, ZONE_MANAGED) ? ZONE_MANAGED : ZONE_PRESENT];
}

/* Pages parked on all CPUs' lists of this zone. */
uint64_t zone_parked(const struct zoneinfo *zi, const struct zone *z);

/* A zone's or node's named counter; false where this kernel does not print it. */
bool zone_counter(const struct zoneinfo *zi, const struct zone *z, const char *name, uint64_t *ret);
