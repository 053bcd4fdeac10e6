/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense/sizing.h"

#include <errno.h>

/* mm/page_alloc.c, zone_highsize(): never fewer than this many batches. */
#define FLOOR_BATCHES 4U
/* zone_batchsize(): a list is refilled by a quarter of this, or of a 1,024th of the zone. */
#define BATCH_BYTES_MAX (UINT64_C(1) << 20)

uint64_t pcp_batch(uint64_t managed, uint64_t page_bytes)
{
	uint64_t b = MIN_OF(managed >> 10, BATCH_BYTES_MAX / page_bytes) / 4;

	if (b < 1)
		b = 1;
	b += b / 2;
	b = (UINT64_C(1) << (63 - __builtin_clzll(b))) - 1;
	return MAX_OF(b, (uint64_t)1);
}

uint64_t pcp_highsize(const struct pcp_sizing *z, uint64_t fraction)
{
	uint64_t total = fraction ? z->managed / fraction : z->low;
	uint64_t share = total / MAX_OF(z->cpus, 1U);

	return MAX_OF(share, FLOOR_BATCHES * z->batch);
}

uint64_t pcp_fraction_for(const struct pcp_sizing *z, double pages)
{
	double fraction;

	if (!(pages > 0))
		return HIGH_FRACTION_MAX;
	fraction = (double)z->managed / (pages * (double)MAX_OF(z->cpus, 1U));
	if (fraction <= (double)HIGH_FRACTION_MIN)
		return HIGH_FRACTION_MIN;
	if (fraction >= (double)HIGH_FRACTION_MAX)
		return HIGH_FRACTION_MAX;
	return (uint64_t)fraction;
}

static unsigned listed_cpus(const struct zoneinfo *zi, const struct zone *z)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < z->nr_pagesets; i++)
		n += zi->pagesets[z->first_pageset + i].pcp != 1;
	return n;
}

/* Every online CPU has a list in every zone, so a zone's lists stand in for a missing topology. */
static unsigned cpus_of_node(const struct snapshot *s, const struct zone *z)
{
	const struct topology *t = &s->topology;
	unsigned online = 0, local = 0;

	for (int c = cpuset_next(&t->online, 0); c >= 0; c = cpuset_next(&t->online, c + 1)) {
		online++;
		local += (uint32_t)c < t->cpu_room && t->node_of_cpu[c] == z->node;
	}
	if (local)
		return local;
	if (!online)
		online = listed_cpus(&s->zoneinfo, z);
	return MAX_OF(online, 1U);
}

bool pcp_sizing_of(const struct snapshot *s, const struct zone *z, struct pcp_sizing *ret)
{
	uint64_t boost = z->value[ZONE_BOOST], low = z->value[ZONE_LOW];

	if (!z->populated)
		return false;
	*ret = (struct pcp_sizing){
		.managed = zone_managed(z),
		/* printed with the boost of the moment; the kernel's sizing sees it without */
		.low = low - MIN_OF(low, boost),
		.cpus = cpus_of_node(s, z),
		.page_bytes = s->page_bytes,
	};
	ret->batch = z->nr_pagesets ? s->zoneinfo.pagesets[z->first_pageset].value[PAGESET_BATCH]
				    : pcp_batch(ret->managed, s->page_bytes);
	return true;
}

bool pcp_sizing_largest(const struct snapshot *s, struct pcp_sizing *ret)
{
	const struct zoneinfo *zi = &s->zoneinfo;
	const struct zone *largest = NULL;

	for (uint32_t i = 0; i < zi->nr_zones; i++)
		if (!largest || zone_managed(&zi->zones[i]) > zone_managed(largest))
			largest = &zi->zones[i];
	return largest && pcp_sizing_of(s, largest, ret);
}
