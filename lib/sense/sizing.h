/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the kernel sizes a per-CPU list (mm/page_alloc.c: zone_batchsize(), zone_highsize()), as
 * arithmetic over numbers that zoneinfo shows. All sizes in pages, per CPU and zone.
 */
#pragma once

#include "sense/snapshot.h"

/* What the kernel's arithmetic looks at, of one zone. */
struct pcp_sizing {
	uint64_t managed, low; /* pages; `low` is the low watermark */
	uint64_t batch;        /* pages */
	unsigned cpus; /* online CPUs of the zone's node; all online ones where it has none */
	uint64_t page_bytes;
};

/* The batch of a zone (zone_batchsize()): 63 for a zone above 1 GiB with 4 KiB pages. */
uint64_t pcp_batch(uint64_t managed, uint64_t page_bytes);

/*
 * What one CPU's list may hold at `fraction`; 0 is the kernel's own sizing from the low watermark.
 * On 6.7 and later this is high_min, and high_max too unless fraction is 0, where high_max is
 * pcp_highsize(z, 8). Before, it is `high`. Never below 4 * batch.
 */
uint64_t pcp_highsize(const struct pcp_sizing *z, uint64_t fraction);

/*
 * The fraction at which one CPU may hold about `pages`, rounded down (so that the list is no
 * smaller than asked for), within HIGH_FRACTION_MIN and HIGH_FRACTION_MAX.
 */
uint64_t pcp_fraction_for(const struct pcp_sizing *z, double pages);

/* The numbers of a zone. False where the snapshot does not have them (zone without pages). */
bool pcp_sizing_of(const struct snapshot *s, const struct zone *z, struct pcp_sizing *ret);

/* Those of the zone with the most managed pages: what fraction_for() refers to. */
bool pcp_sizing_largest(const struct snapshot *s, struct pcp_sizing *ret);
