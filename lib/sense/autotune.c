/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense/autotune.h"

#include "sense/sizing.h"

/* Lists of one fixed size have the same high on every CPU. */
static bool highs_differ(const struct zoneinfo *zi, const struct zone *z)
{
	for (uint32_t i = 1; i < z->nr_pagesets; i++) {
		const struct pageset *p = &zi->pagesets[z->first_pageset + i];

		if (p->pcp < 0 && p->value[PAGESET_HIGH] != p[-1].value[PAGESET_HIGH])
			return true;
	}
	return false;
}

/* Since 5.14 a fixed size is four batches at least, while one that tunes itself starts at 0. */
static bool below_floor(const struct zoneinfo *zi, const struct zone *z)
{
	const uint64_t *value;

	if (z->nr_pagesets == 0)
		return false;
	value = zi->pagesets[z->first_pageset].value;
	return value[PAGESET_HIGH] < 4 * value[PAGESET_BATCH];
}

int autotune_find(const struct snapshot *s)
{
	const struct zoneinfo *zi = &s->zoneinfo;

	/* pcp_enabled of each size is younger than 6.7 */
	if (zi->prints_high_min || s->mthp.orders == ORDERS_PER_SIZE)
		return 1;
	for (uint32_t i = 0; i < zi->nr_zones; i++)
		if (highs_differ(zi, &zi->zones[i]) ||
		    (s->has_high_fraction && below_floor(zi, &zi->zones[i])))
			return 1;
	if (zi->nr_pagesets == 0)
		return -1;
	if (!s->has_high_fraction) /* before 5.14, or a capture without proc/sys */
		return s->has_stat_refresh ? 0 : -1;
	/* at a fraction of somebody's choice either kind of list looks the same */
	return s->high_fraction == 0 ? 0 : -1;
}

static void compute(struct pageset *p, enum pageset_field f, uint64_t value)
{
	if (p->has >> f & 1)
		return;
	p->computed |= 1U << f;
	p->value[f] = value;
}

/* mm/page_alloc.c, zone_set_pageset_high_and_batch(): at 0, from the low watermark to 1/8. */
void autotune_compute_high(struct snapshot *s)
{
	struct zoneinfo *zi = &s->zoneinfo;
	uint64_t fraction = s->high_fraction;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];
		struct pcp_sizing sizing;
		uint64_t high_min, high_max;

		if (!pcp_sizing_of(s, z, &sizing))
			continue;
		high_min = pcp_highsize(&sizing, fraction);
		high_max = pcp_highsize(&sizing, fraction ? fraction : HIGH_FRACTION_MIN);
		for (uint32_t j = 0; j < z->nr_pagesets; j++) {
			struct pageset *p = &zi->pagesets[z->first_pageset + j];

			compute(p, PAGESET_HIGH_MIN, high_min);
			compute(p, PAGESET_HIGH_MAX, high_max);
		}
	}
}
