/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tree.h"

#include "fake.h"

#include <errno.h>
#include <fnmatch.h>

const struct sysctl_row sysctl_rows[_SYSCTL_MAX] = {
	[SYSCTL_MIN_FREE_KBYTES] = {"min_free_kbytes", 0, 0, INT32_MAX},
	[SYSCTL_WATERMARK_SCALE_FACTOR] = {"watermark_scale_factor", 10, 1, 3000},
	[SYSCTL_WATERMARK_BOOST_FACTOR] = {"watermark_boost_factor", 15000, 0, INT32_MAX},
	[SYSCTL_STAT_INTERVAL] = {"stat_interval", 1, INT32_MIN, INT32_MAX},
	[SYSCTL_NUMA_STAT] = {"numa_stat", 1, 0, 1},
	[SYSCTL_EXTFRAG_THRESHOLD] = {"extfrag_threshold", 500, 0, 1000},
	[SYSCTL_COMPACTION_PROACTIVENESS] = {"compaction_proactiveness", 20, 0, 100},
};

#define DIR_MODE 0555

_printf_(6, 7) static void add(struct tree *t, enum file_kind kind, mode_t mode, int a, int b,
			       const char *fmt, ...)
{
	struct tree_entry *e;
	va_list ap;
	int n;

	if (t->nr == t->room) {
		size_t room = t->room ? t->room * 2 : 256;
		void *grown = realloc(t->entries, room * sizeof(*t->entries));

		if (!grown) {
			t->failed = true;
			return;
		}
		t->entries = grown;
		t->room = room;
	}
	e = &t->entries[t->nr];
	*e = (struct tree_entry){.kind = kind, .mode = mode, .a = a, .b = b};
	e->lasting = kind == FILE_DIRECTORY && a;
	va_start(ap, fmt);
	n = vasprintf(&e->path, fmt, ap);
	va_end(ap);
	if (n < 0)
		t->failed = true;
	else
		t->nr++;
}

/* a != 0: lasting */
#define DIRECTORY(t, ...)         add(t, FILE_DIRECTORY, DIR_MODE, 1, 0, __VA_ARGS__)
#define PASSING_DIRECTORY(t, ...) add(t, FILE_DIRECTORY, DIR_MODE, 0, 0, __VA_ARGS__)

static void add_proc(struct tree *t, const struct fake *f)
{
	const struct model *m = &f->model;

	DIRECTORY(t, "proc");
	DIRECTORY(t, "proc/.fake");
	DIRECTORY(t, "proc/pressure");
	DIRECTORY(t, "proc/sys");
	DIRECTORY(t, "proc/sys/vm");
	DIRECTORY(t, "proc/sys/kernel");
	DIRECTORY(t, "proc/sys/kernel/random");
	add(t, FILE_CONTROL, 0600, 0, 0, "proc/.fake/control");
	add(t, FILE_ZONEINFO, release_from(m, 4, 16) ? 0444 : 0444, 0, 0, "proc/zoneinfo");
	add(t, FILE_VMSTAT, 0444, 0, 0, "proc/vmstat");
	add(t, FILE_BUDDYINFO, 0444, 0, 0, "proc/buddyinfo");
	add(t, FILE_MEMINFO, 0444, 0, 0, "proc/meminfo");
	add(t, FILE_VERSION, 0444, 0, 0, "proc/version");
	add(t, FILE_CMDLINE, 0444, 0, 0, "proc/cmdline");
	add(t, FILE_UPTIME, 0444, 0, 0, "proc/uptime");
	if (release_from(m, 4, 20))
		add(t, FILE_PSI, 0666, 0, 0, "proc/pressure/memory");
	add(t, FILE_FRACTION, 0644, 0, 0, "proc/sys/vm/percpu_pagelist_%sfraction",
	    release_from(m, 5, 14) ? "high_" : "");
	add(t, FILE_STAT_REFRESH, 0600, 0, 0, "proc/sys/vm/stat_refresh");
	for (int i = 0; i < _SYSCTL_MAX; i++)
		add(t, FILE_SYSCTL, 0644, i, 0, "proc/sys/vm/%s", sysctl_rows[i].name);
	add(t, FILE_OSTYPE, 0444, 0, 0, "proc/sys/kernel/ostype");
	add(t, FILE_OSRELEASE, 0444, 0, 0, "proc/sys/kernel/osrelease");
	add(t, FILE_HOSTNAME, 0444, 0, 0, "proc/sys/kernel/hostname");
	add(t, FILE_BOOT_ID, 0444, 0, 0, "proc/sys/kernel/random/boot_id");
	for (size_t i = 0; i < f->nr_processes; i++) {
		PASSING_DIRECTORY(t, "proc/%d", f->processes[i].pid);
		add(t, FILE_COMM, 0644, f->processes[i].pid, 0, "proc/%d/comm",
		    f->processes[i].pid);
	}
}

static void add_cache(struct tree *t, unsigned cpu)
{
	static const char *const names[_CACHE_FILE_MAX] = {
		[CACHE_LEVEL] = "level",
		[CACHE_TYPE] = "type",
		[CACHE_SIZE] = "size",
		[CACHE_SHARED] = "shared_cpu_list",
		[CACHE_LINE_SIZE] = "coherency_line_size",
	};

	PASSING_DIRECTORY(t, "sys/devices/system/cpu/cpu%u/cache", cpu);
	for (unsigned i = 0; i < CACHE_INDEXES; i++) {
		PASSING_DIRECTORY(t, "sys/devices/system/cpu/cpu%u/cache/index%u", cpu, i);
		for (int file = 0; file < _CACHE_FILE_MAX; file++)
			add(t, FILE_CACHE, 0444, (int)cpu, (int)i * 8 + file,
			    "sys/devices/system/cpu/cpu%u/cache/index%u/%s", cpu, i, names[file]);
	}
}

/* An offline CPU keeps its directory; caches and topology go. */
static void add_cpu(struct tree *t, const struct model *m, unsigned cpu)
{
	static const char *const topology[_TOPOLOGY_FILE_MAX] = {
		[TOPOLOGY_PACKAGE_ID] = "physical_package_id",
		[TOPOLOGY_CORE_ID] = "core_id",
		[TOPOLOGY_THREADS] = "thread_siblings_list",
		[TOPOLOGY_PACKAGE_CPUS] = "package_cpus_list",
	};

	DIRECTORY(t, "sys/devices/system/cpu/cpu%u", cpu);
	add(t, FILE_CPU_ONLINE, 0644, (int)cpu, 0, "sys/devices/system/cpu/cpu%u/online", cpu);
	if (m->nodes[m->cpus[cpu].node].online)
		add(t, FILE_LINK, 0777, m->cpus[cpu].node, 0, "sys/devices/system/cpu/cpu%u/node%d",
		    cpu, m->cpus[cpu].node);
	if (!m->cpus[cpu].online)
		return;
	PASSING_DIRECTORY(t, "sys/devices/system/cpu/cpu%u/topology", cpu);
	for (int i = 0; i < _TOPOLOGY_FILE_MAX; i++)
		add(t, FILE_CPU_TOPOLOGY, 0444, (int)cpu, i,
		    "sys/devices/system/cpu/cpu%u/topology/%s", cpu, topology[i]);
	add_cache(t, cpu);
}

static void add_devices(struct tree *t, const struct model *m)
{
	static const char *const cpu_sets[_CPUS_FILE_MAX] = {
		"online", "offline", "present", "possible", "isolated", "nohz_full", "kernel_max",
	};
	static const char *const node_sets[_NODES_FILE_MAX] = {
		"online",
		"possible",
		"has_cpu",
		"has_memory",
	};

	DIRECTORY(t, "sys/devices");
	DIRECTORY(t, "sys/devices/system");
	DIRECTORY(t, "sys/devices/system/cpu");
	DIRECTORY(t, "sys/devices/system/node");
	for (int i = 0; i < _CPUS_FILE_MAX; i++)
		add(t, FILE_CPU_SET, 0444, i, 0, "sys/devices/system/cpu/%s", cpu_sets[i]);
	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
		add_cpu(t, m, cpu);
	for (int i = 0; i < _NODES_FILE_MAX; i++)
		add(t, FILE_NODE_SET, 0444, i, 0, "sys/devices/system/node/%s", node_sets[i]);
	for (unsigned node = 0; node < m->config.nodes; node++) {
		if (!m->nodes[node].online)
			continue;
		PASSING_DIRECTORY(t, "sys/devices/system/node/node%u", node);
		add(t, FILE_NODE_CPULIST, 0444, (int)node, 0,
		    "sys/devices/system/node/node%u/cpulist", node);
		add(t, FILE_NODE_DISTANCE, 0444, (int)node, 0,
		    "sys/devices/system/node/node%u/distance", node);
		add(t, FILE_NODE_MEMINFO, 0444, (int)node, 0,
		    "sys/devices/system/node/node%u/meminfo", node);
	}
}

#define THP_DIR "sys/kernel/mm/transparent_hugepage"

static void add_size(struct tree *t, const struct model *m, unsigned order)
{
	unsigned long kib = 1UL << (order + m->config.page_shift - 10);
	bool anon = order >= 2, shmem = release_from(m, 6, 11) && order <= 11;
	unsigned where = (anon ? MTHP_ANON : 0U) | (shmem ? MTHP_SHMEM : 0U);
	const struct mthp_row *row;

	DIRECTORY(t, THP_DIR "/hugepages-%lukB", kib);
	if (anon)
		add(t, FILE_SIZE_ENABLED, 0644, (int)order, 0, THP_DIR "/hugepages-%lukB/enabled",
		    kib);
	if (shmem)
		add(t, FILE_SIZE_SHMEM, 0644, (int)order, 0,
		    THP_DIR "/hugepages-%lukB/shmem_enabled", kib);
	if (m->config.control == CONTROL_PER_SIZE)
		add(t, FILE_PCP_ENABLED, 0644, (int)order, 0,
		    THP_DIR "/hugepages-%lukB/pcp_enabled", kib);
	if (!release_from(m, 6, 10))
		return;
	DIRECTORY(t, THP_DIR "/hugepages-%lukB/stats", kib);
	for (size_t i = 0; (row = mthp_row(i)); i++)
		if (counter_in(row->since, row->until, m->config.release) && (row->where & where))
			add(t, FILE_MTHP_STAT, 0444, (int)order, (int)row->id,
			    THP_DIR "/hugepages-%lukB/stats/%s", kib, row->name);
	if (m->config.control == CONTROL_PER_SIZE && m->config.order_stats)
		add(t, FILE_PCP_ORDER_STAT, 0444, (int)order, 0,
		    THP_DIR "/hugepages-%lukB/stats/pcp_order_stat", kib);
}

static void add_thp(struct tree *t, const struct model *m)
{
	unsigned first = release_from(m, 6, 11) ? 1 : 2;

	DIRECTORY(t, "sys/kernel");
	DIRECTORY(t, "sys/kernel/mm");
	if (!m->config.thp)
		return;
	DIRECTORY(t, THP_DIR);
	add(t, FILE_THP_ENABLED, 0644, 0, 0, THP_DIR "/enabled");
	add(t, FILE_THP_DEFRAG, 0644, 0, 0, THP_DIR "/defrag");
	add(t, FILE_THP_SHMEM, 0644, 0, 0, THP_DIR "/shmem_enabled");
	add(t, FILE_PMD_SIZE, 0444, 0, 0, THP_DIR "/hpage_pmd_size");
	if (m->config.control == CONTROL_SINGLE)
		add(t, FILE_PCP_ALLOW, 0644, 0, 0, THP_DIR "/pcp_allow_high_order");
	/* openEuler's 6.6 and the posted series stand on trees that have the directories */
	if (release_from(m, 6, 8) || m->config.control != CONTROL_NONE)
		for (unsigned order = first; order <= m->pmd_order; order++)
			add_size(t, m, order);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

static bool is_hidden(const struct fake *f, const char *path)
{
	for (size_t i = 0; i < f->nr_hidden; i++)
		if (fnmatch(f->hidden[i], path, 0) == 0)
			return true;
	return false;
}

static void drop_hidden(struct tree *t, const struct fake *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->nr; i++)
		if (is_hidden(f, t->entries[i].path))
			free(t->entries[i].path);
		else
			t->entries[kept++] = t->entries[i];
	t->nr = kept;
}

int tree_build(struct tree *t, const struct fake *f)
{
	struct tree made = {0};

	add_proc(&made, f);
	DIRECTORY(&made, "sys");
	add_devices(&made, &f->model);
	add_thp(&made, &f->model);
	if (made.failed) {
		tree_free(&made);
		return -ENOMEM;
	}
	drop_hidden(&made, f);
	qsort(made.entries, made.nr, sizeof(*made.entries), by_path);
	tree_free(t);
	*t = made;
	return 0;
}

void tree_free(struct tree *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free(t->entries[i].path);
	free(t->entries);
	*t = (struct tree){0};
}

/* The first entry that does not sort before `path`. */
static size_t lower_bound(const struct tree *t, const char *path)
{
	size_t lo = 0, hi = t->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(t->entries[mid].path, path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct tree_entry *tree_find(const struct tree *t, const char *path)
{
	size_t i = lower_bound(t, path);

	return i < t->nr && streq(t->entries[i].path, path) ? &t->entries[i] : NULL;
}

const struct tree_entry *tree_child(const struct tree *t, const char *dir, size_t *cursor)
{
	char prefix[FAKE_PATH_MAX];
	size_t len = (size_t)snprintf(prefix, sizeof(prefix), "%s/", dir);

	if (*cursor == 0)
		*cursor = lower_bound(t, prefix);
	for (; *cursor < t->nr; (*cursor)++) {
		const char *path = t->entries[*cursor].path;

		if (strncmp(path, prefix, len) != 0)
			return NULL;
		if (!strchr(path + len, '/'))
			return &t->entries[(*cursor)++];
	}
	return NULL;
}
