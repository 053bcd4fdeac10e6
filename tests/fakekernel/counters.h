/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of what the kernel counts, with the releases that print them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those that the model moves itself have a name here; the others are only rows of the table. */
enum vmstat_id {
	VMSTAT_NR_FREE_PAGES,
	VMSTAT_PGALLOC_DMA,
	VMSTAT_PGALLOC_DMA32,
	VMSTAT_PGALLOC_NORMAL,
	VMSTAT_PGALLOC_MOVABLE,
	VMSTAT_PGFREE,
	VMSTAT_PGFAULT,
	VMSTAT_ALLOCSTALL_DMA,
	VMSTAT_ALLOCSTALL_DMA32,
	VMSTAT_ALLOCSTALL_NORMAL,
	VMSTAT_ALLOCSTALL_MOVABLE,
	VMSTAT_PGSCAN_KSWAPD,
	VMSTAT_PGSTEAL_KSWAPD,
	VMSTAT_PGSCAN_DIRECT,
	VMSTAT_PGSTEAL_DIRECT,
	VMSTAT_COMPACT_STALL,
	VMSTAT_COMPACT_FAIL,
	VMSTAT_COMPACT_SUCCESS,
	VMSTAT_THP_FAULT_ALLOC,
	VMSTAT_THP_FAULT_FALLBACK,
	VMSTAT_NUMA_HIT,
	VMSTAT_NUMA_LOCAL,
	VMSTAT_NUMA_OTHER,
	_VMSTAT_KNOWN,
	_VMSTAT_MAX = 128,
};

struct counter_row {
	const char *name;
	unsigned since, until; /* RELEASE(); until 0: still there, else the first without it */
	int id;                /* where its value is kept */
};

/* NULL behind the end; the order is that of the file. */
const struct counter_row *vmstat_row(size_t i);
const struct counter_row *vmstat_find(const char *name, unsigned release);

enum mthp_stat_id {
	MTHP_ANON_FAULT_ALLOC,
	MTHP_ANON_FAULT_FALLBACK,
	MTHP_ANON_FAULT_FALLBACK_CHARGE,
	MTHP_ZSWPOUT,
	MTHP_SWPIN,
	MTHP_SWPIN_FALLBACK,
	MTHP_SWPIN_FALLBACK_CHARGE,
	MTHP_SWPOUT,
	MTHP_SWPOUT_FALLBACK,
	MTHP_SHMEM_ALLOC,
	MTHP_SHMEM_FALLBACK,
	MTHP_SHMEM_FALLBACK_CHARGE,
	MTHP_SPLIT,
	MTHP_SPLIT_FAILED,
	MTHP_SPLIT_DEFERRED,
	MTHP_NR_ANON,
	MTHP_NR_ANON_PARTIALLY_MAPPED,
	MTHP_COLLAPSE_ALLOC,
	MTHP_COLLAPSE_ALLOC_FAILED,
	_MTHP_STAT_MAX,
};

enum mthp_where {
	MTHP_ANON = 1,
	MTHP_SHMEM = 2,
	MTHP_BOTH = 3,
};

struct mthp_row {
	const char *name;
	unsigned since, until;
	enum mthp_stat_id id;
	enum mthp_where where; /* a directory for shmem only lacks the files of anonymous memory */
};
const struct mthp_row *mthp_row(size_t i);
const struct mthp_row *mthp_find(const char *name, unsigned release);

bool counter_in(unsigned since, unsigned until, unsigned release);
