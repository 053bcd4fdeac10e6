/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "counters.h"

#include "base/util.h"

#define R(major, minor) ((major)*1000U + (minor))
#define KNOWN(id, name)        \
	{                      \
		name, 0, 0, id \
	}
#define ROW(name)                                       \
	{                                               \
		name, 0, 0, _VMSTAT_KNOWN + __COUNTER__ \
	}
#define SINCE(name, r)                                  \
	{                                               \
		name, r, 0, _VMSTAT_KNOWN + __COUNTER__ \
	}
#define UNTIL(name, r)                                  \
	{                                               \
		name, 0, r, _VMSTAT_KNOWN + __COUNTER__ \
	}

static const struct counter_row vmstat_rows[] = {
	KNOWN(VMSTAT_NR_FREE_PAGES, "nr_free_pages"),
	SINCE("nr_free_pages_blocks", R(6, 17)),
	ROW("nr_zone_inactive_anon"),
	ROW("nr_zone_active_anon"),
	ROW("nr_zone_inactive_file"),
	ROW("nr_zone_active_file"),
	ROW("nr_zone_unevictable"),
	ROW("nr_zone_write_pending"),
	ROW("nr_mlock"),
	UNTIL("nr_page_table_pages", R(5, 11)),
	UNTIL("nr_kernel_stack", R(5, 11)),
	ROW("nr_zspages"),
	ROW("nr_free_cma"),
	KNOWN(VMSTAT_NUMA_HIT, "numa_hit"),
	ROW("numa_miss"),
	ROW("numa_foreign"),
	ROW("numa_interleave"),
	KNOWN(VMSTAT_NUMA_LOCAL, "numa_local"),
	KNOWN(VMSTAT_NUMA_OTHER, "numa_other"),
	ROW("nr_inactive_anon"),
	ROW("nr_active_anon"),
	ROW("nr_inactive_file"),
	ROW("nr_active_file"),
	ROW("nr_unevictable"),
	ROW("nr_slab_reclaimable"),
	ROW("nr_slab_unreclaimable"),
	ROW("nr_isolated_anon"),
	ROW("nr_isolated_file"),
	ROW("workingset_nodes"),
	ROW("nr_anon_pages"),
	ROW("nr_mapped"),
	ROW("nr_file_pages"),
	ROW("nr_dirty"),
	ROW("nr_writeback"),
	ROW("nr_shmem"),
	ROW("nr_anon_transparent_hugepages"),
	ROW("nr_dirtied"),
	ROW("nr_written"),
	SINCE("nr_balloon_pages", R(6, 17)),
	ROW("nr_dirty_threshold"),
	ROW("nr_dirty_background_threshold"),
	ROW("pgpgin"),
	ROW("pgpgout"),
	ROW("pswpin"),
	ROW("pswpout"),
	KNOWN(VMSTAT_PGALLOC_DMA, "pgalloc_dma"),
	KNOWN(VMSTAT_PGALLOC_DMA32, "pgalloc_dma32"),
	KNOWN(VMSTAT_PGALLOC_NORMAL, "pgalloc_normal"),
	KNOWN(VMSTAT_PGALLOC_MOVABLE, "pgalloc_movable"),
	KNOWN(VMSTAT_ALLOCSTALL_DMA, "allocstall_dma"),
	KNOWN(VMSTAT_ALLOCSTALL_DMA32, "allocstall_dma32"),
	KNOWN(VMSTAT_ALLOCSTALL_NORMAL, "allocstall_normal"),
	KNOWN(VMSTAT_ALLOCSTALL_MOVABLE, "allocstall_movable"),
	KNOWN(VMSTAT_PGFREE, "pgfree"),
	ROW("pgactivate"),
	ROW("pgdeactivate"),
	KNOWN(VMSTAT_PGFAULT, "pgfault"),
	ROW("pgmajfault"),
	ROW("pgrefill"),
	SINCE("pgreuse", R(5, 9)),
	KNOWN(VMSTAT_PGSTEAL_KSWAPD, "pgsteal_kswapd"),
	KNOWN(VMSTAT_PGSTEAL_DIRECT, "pgsteal_direct"),
	SINCE("pgsteal_khugepaged", R(6, 1)),
	KNOWN(VMSTAT_PGSCAN_KSWAPD, "pgscan_kswapd"),
	KNOWN(VMSTAT_PGSCAN_DIRECT, "pgscan_direct"),
	SINCE("pgscan_khugepaged", R(6, 1)),
	ROW("pgscan_direct_throttle"),
	ROW("slabs_scanned"),
	ROW("kswapd_low_wmark_hit_quickly"),
	ROW("kswapd_high_wmark_hit_quickly"),
	ROW("pageoutrun"),
	ROW("drop_pagecache"),
	ROW("drop_slab"),
	ROW("oom_kill"),
	ROW("numa_pages_migrated"),
	ROW("pgmigrate_success"),
	ROW("pgmigrate_fail"),
	ROW("thp_migration_success"),
	ROW("compact_migrate_scanned"),
	ROW("compact_free_scanned"),
	ROW("compact_isolated"),
	KNOWN(VMSTAT_COMPACT_STALL, "compact_stall"),
	KNOWN(VMSTAT_COMPACT_FAIL, "compact_fail"),
	KNOWN(VMSTAT_COMPACT_SUCCESS, "compact_success"),
	ROW("compact_daemon_wake"),
	ROW("htlb_buddy_alloc_success"),
	ROW("htlb_buddy_alloc_fail"),
	KNOWN(VMSTAT_THP_FAULT_ALLOC, "thp_fault_alloc"),
	KNOWN(VMSTAT_THP_FAULT_FALLBACK, "thp_fault_fallback"),
	SINCE("thp_fault_fallback_charge", R(5, 8)),
	ROW("thp_collapse_alloc"),
	ROW("thp_collapse_alloc_failed"),
	ROW("thp_split_page"),
	ROW("thp_swpout"),
	ROW("thp_swpout_fallback"),
	ROW("swap_ra"),
	ROW("swap_ra_hit"),
};

_Static_assert(ARRAY_SIZE(vmstat_rows) <= _VMSTAT_MAX, "room for each counter");

/* 6.10 counted only these; the others came with 6.11, and with 6.14 those of zswap and swap-in. */
static const struct mthp_row mthp_rows[] = {
	{"anon_fault_alloc", R(6, 10), 0, MTHP_ANON_FAULT_ALLOC, MTHP_ANON},
	{"anon_fault_fallback", R(6, 10), 0, MTHP_ANON_FAULT_FALLBACK, MTHP_ANON},
	{"anon_fault_fallback_charge", R(6, 10), 0, MTHP_ANON_FAULT_FALLBACK_CHARGE, MTHP_ANON},
	{"zswpout", R(6, 13), 0, MTHP_ZSWPOUT, MTHP_BOTH},
	{"swpin", R(6, 13), 0, MTHP_SWPIN, MTHP_BOTH},
	{"swpin_fallback", R(6, 14), 0, MTHP_SWPIN_FALLBACK, MTHP_BOTH},
	{"swpin_fallback_charge", R(6, 14), 0, MTHP_SWPIN_FALLBACK_CHARGE, MTHP_BOTH},
	{"anon_swpout", R(6, 10), R(6, 11), MTHP_SWPOUT, MTHP_ANON},
	{"anon_swpout_fallback", R(6, 10), R(6, 11), MTHP_SWPOUT_FALLBACK, MTHP_ANON},
	{"swpout", R(6, 11), 0, MTHP_SWPOUT, MTHP_BOTH},
	{"swpout_fallback", R(6, 11), 0, MTHP_SWPOUT_FALLBACK, MTHP_BOTH},
	{"shmem_alloc", R(6, 11), 0, MTHP_SHMEM_ALLOC, MTHP_SHMEM},
	{"shmem_fallback", R(6, 11), 0, MTHP_SHMEM_FALLBACK, MTHP_SHMEM},
	{"shmem_fallback_charge", R(6, 11), 0, MTHP_SHMEM_FALLBACK_CHARGE, MTHP_SHMEM},
	{"split", R(6, 11), 0, MTHP_SPLIT, MTHP_BOTH},
	{"split_failed", R(6, 11), 0, MTHP_SPLIT_FAILED, MTHP_BOTH},
	{"split_deferred", R(6, 11), 0, MTHP_SPLIT_DEFERRED, MTHP_ANON},
	{"nr_anon", R(6, 12), 0, MTHP_NR_ANON, MTHP_ANON},
	{"nr_anon_partially_mapped", R(6, 12), 0, MTHP_NR_ANON_PARTIALLY_MAPPED, MTHP_ANON},
	{"collapse_alloc", R(7, 0), 0, MTHP_COLLAPSE_ALLOC, MTHP_ANON},
	{"collapse_alloc_failed", R(7, 0), 0, MTHP_COLLAPSE_ALLOC_FAILED, MTHP_ANON},
};

bool counter_in(unsigned since, unsigned until, unsigned release)
{
	return release >= since && (until == 0 || release < until);
}

const struct counter_row *vmstat_row(size_t i)
{
	return i < ARRAY_SIZE(vmstat_rows) ? &vmstat_rows[i] : NULL;
}

const struct counter_row *vmstat_find(const char *name, unsigned release)
{
	for (size_t i = 0; i < ARRAY_SIZE(vmstat_rows); i++)
		if (streq(vmstat_rows[i].name, name) &&
		    counter_in(vmstat_rows[i].since, vmstat_rows[i].until, release))
			return &vmstat_rows[i];
	return NULL;
}

const struct mthp_row *mthp_row(size_t i)
{
	return i < ARRAY_SIZE(mthp_rows) ? &mthp_rows[i] : NULL;
}

const struct mthp_row *mthp_find(const char *name, unsigned release)
{
	for (size_t i = 0; i < ARRAY_SIZE(mthp_rows); i++)
		if (streq(mthp_rows[i].name, name) &&
		    counter_in(mthp_rows[i].since, mthp_rows[i].until, release))
			return &mthp_rows[i];
	return NULL;
}
