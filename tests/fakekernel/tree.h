/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which files there are: a sorted list of paths, made anew when CPUs, nodes or processes change. */
#pragma once

#include "model.h"

#include <sys/types.h>

struct fake;

enum file_kind {
	FILE_DIRECTORY,
	FILE_LINK, /* a: node; cpuN/nodeM */
	FILE_CONTROL,
	FILE_ZONEINFO,
	FILE_VMSTAT,
	FILE_BUDDYINFO,
	FILE_MEMINFO,
	FILE_PSI,
	FILE_VERSION,
	FILE_CMDLINE,
	FILE_UPTIME,
	FILE_FRACTION,
	FILE_STAT_REFRESH,
	FILE_SYSCTL, /* a: enum sysctl_id */
	FILE_OSTYPE,
	FILE_OSRELEASE,
	FILE_HOSTNAME,
	FILE_BOOT_ID,
	FILE_COMM, /* a: pid */
	FILE_CPU_SET,
	FILE_CPU_ONLINE, /* a: CPU */
	FILE_CPU_TOPOLOGY,
	FILE_CACHE, /* a: CPU, b: index * 8 + field */
	FILE_NODE_SET,
	FILE_NODE_CPULIST, /* a: node */
	FILE_NODE_DISTANCE,
	FILE_NODE_MEMINFO,
	FILE_THP_ENABLED,
	FILE_THP_DEFRAG,
	FILE_THP_SHMEM,
	FILE_PMD_SIZE,
	FILE_PCP_ALLOW,
	FILE_SIZE_ENABLED, /* a: order */
	FILE_SIZE_SHMEM,
	FILE_PCP_ENABLED,
	FILE_MTHP_STAT, /* a: order, b: enum mthp_stat_id */
	FILE_PCP_ORDER_STAT,
};

enum sysctl_id {
	SYSCTL_MIN_FREE_KBYTES,
	SYSCTL_WATERMARK_SCALE_FACTOR,
	SYSCTL_WATERMARK_BOOST_FACTOR,
	SYSCTL_STAT_INTERVAL,
	SYSCTL_NUMA_STAT,
	SYSCTL_EXTFRAG_THRESHOLD,
	SYSCTL_COMPACTION_PROACTIVENESS,
	_SYSCTL_MAX,
};
struct sysctl_row {
	const char *name;
	int initial, min, max;
};
extern const struct sysctl_row sysctl_rows[_SYSCTL_MAX];

enum cpu_set_file {
	CPUS_ONLINE,
	CPUS_OFFLINE,
	CPUS_PRESENT,
	CPUS_POSSIBLE,
	CPUS_ISOLATED,
	CPUS_NOHZ_FULL,
	CPUS_KERNEL_MAX,
	_CPUS_FILE_MAX,
};

enum node_set_file {
	NODES_ONLINE,
	NODES_POSSIBLE,
	NODES_HAS_CPU,
	NODES_HAS_MEMORY,
	_NODES_FILE_MAX,
};

enum cpu_topology_file {
	TOPOLOGY_PACKAGE_ID,
	TOPOLOGY_CORE_ID,
	TOPOLOGY_THREADS,
	TOPOLOGY_PACKAGE_CPUS,
	_TOPOLOGY_FILE_MAX,
};

enum cache_file {
	CACHE_LEVEL,
	CACHE_TYPE,
	CACHE_SIZE,
	CACHE_SHARED,
	CACHE_LINE_SIZE,
	_CACHE_FILE_MAX,
};
#define CACHE_INDEXES 4U /* L1 data, L1 instruction, L2, L3 */

struct tree_entry {
	char *path; /* "proc/zoneinfo" */
	enum file_kind kind;
	mode_t mode;  /* permissions */
	bool lasting; /* a directory that hotplug does not take away */
	int a, b;
};

struct tree {
	struct tree_entry *entries; /* sorted by path */
	size_t nr, room;
	bool failed;
};

/* All files of `f` as it is now. 0 or -ENOMEM; the old tree is kept then. */
int tree_build(struct tree *t, const struct fake *f);
void tree_free(struct tree *t);
const struct tree_entry *tree_find(const struct tree *t, const char *path);
/* The children of `dir`, one at a time: start with *cursor 0; NULL behind the last. */
const struct tree_entry *tree_child(const struct tree *t, const char *dir, size_t *cursor);
