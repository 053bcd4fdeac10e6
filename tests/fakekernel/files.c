/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "files.h"

#include <errno.h>
#include <inttypes.h>

/* Sets of CPUs and nodes as lists. */

struct set_of {
	const struct model *m;
	int which; /* the file, a node, a CPU */
	unsigned shared;
};

static bool in_cpu_set(const void *of, unsigned cpu)
{
	const struct set_of *s = of;
	const struct model *m = s->m;

	switch ((enum cpu_set_file)s->which) {
	case CPUS_ONLINE:
		return m->cpus[cpu].online;
	case CPUS_OFFLINE:
		return !m->cpus[cpu].online;
	case CPUS_PRESENT:
	case CPUS_POSSIBLE:
		return true;
	case CPUS_ISOLATED:
		return cpuset_has(&m->config.isolated, cpu);
	case CPUS_NOHZ_FULL:
		return cpuset_has(&m->config.nohz_full, cpu);
	case CPUS_KERNEL_MAX:
	case _CPUS_FILE_MAX:
		break;
	}
	return false;
}

static bool in_node_set(const void *of, unsigned node)
{
	const struct set_of *s = of;
	const struct model *m = s->m;

	if (s->which == NODES_POSSIBLE)
		return true;
	if (!m->nodes[node].online)
		return false;
	if (s->which == NODES_ONLINE)
		return true;
	if (s->which == NODES_HAS_CPU) {
		for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
			if (m->cpus[cpu].online && m->cpus[cpu].node == (int)node)
				return true;
		return false;
	}
	for (int t = 0; t < _ZONE_TYPE_MAX; t++)
		if (zone_populated(&m->nodes[node].zones[t]))
			return true;
	return false;
}

static bool in_node(const void *of, unsigned cpu)
{
	const struct set_of *s = of;

	return s->m->cpus[cpu].online && s->m->cpus[cpu].node == s->which;
}

/* CPUs that share something are neighbours: groups of `shared` numbers within the node; 0: all. */
static bool shares_with(const void *of, unsigned cpu)
{
	const struct set_of *s = of;
	const struct model_cpu *cpus = s->m->cpus;

	if (!cpus[cpu].online || cpus[cpu].node != cpus[s->which].node)
		return false;
	return s->shared == 0 || cpu / s->shared == (unsigned)s->which / s->shared;
}

static void add_set(struct text *t, const struct model *m, unsigned limit, int which,
		    unsigned shared, bool (*has)(const void *, unsigned))
{
	struct set_of s = {.m = m, .which = which, .shared = shared};

	add_cpulist(t, limit, has, &s);
}

static void cpu_set_text(const struct model *m, int which, struct text *t)
{
	if (which == CPUS_KERNEL_MAX)
		text_addf(t, "%u\n", MAX_OF(m->config.cpus, 8192U) - 1);
	else
		add_set(t, m, m->config.cpus, which, 0, in_cpu_set);
}

static void topology_text(const struct model *m, int cpu, int file, struct text *t)
{
	if (file == TOPOLOGY_PACKAGE_ID)
		text_addf(t, "%d\n", m->cpus[cpu].node);
	else if (file == TOPOLOGY_CORE_ID)
		text_addf(t, "%d\n", cpu / (int)MAX_OF(m->config.l2_cpus, 1U));
	else
		add_set(t, m, m->config.cpus, cpu,
			file == TOPOLOGY_THREADS ? MAX_OF(m->config.l2_cpus, 1U) : 0, shares_with);
}

static void cache_text(const struct model *m, int cpu, int which, struct text *t)
{
	const struct config *c = &m->config;
	const struct {
		unsigned level;
		const char *type;
		uint64_t bytes;
		unsigned cpus;
	} caches[CACHE_INDEXES] = {
		{1, "Data", 32768, c->l2_cpus},
		{1, "Instruction", 32768, c->l2_cpus},
		{2, "Unified", c->l2_bytes, c->l2_cpus},
		{3, "Unified", c->l3_bytes, c->l3_cpus},
	};
	int index = which / 8;

	switch ((enum cache_file)(which % 8)) {
	case CACHE_LEVEL:
		text_addf(t, "%u\n", caches[index].level);
		break;
	case CACHE_TYPE:
		text_addf(t, "%s\n", caches[index].type);
		break;
	case CACHE_SIZE:
		text_addf(t, "%" PRIu64 "K\n", caches[index].bytes >> 10);
		break;
	case CACHE_SHARED:
		add_set(t, m, c->cpus, cpu, caches[index].cpus, shares_with);
		break;
	case CACHE_LINE_SIZE:
	case _CACHE_FILE_MAX:
		text_add(t, "64\n");
		break;
	}
}

static void node_distance_text(const struct model *m, int node, struct text *t)
{
	for (unsigned other = 0; other < m->config.nodes; other++)
		if (m->nodes[other].online)
			text_addf(t, "%s%d", other ? " " : "", (int)other == node ? 10 : 20);
	text_add(t, "\n");
}

static void node_meminfo_text(const struct model *m, int node, struct text *t)
{
	uint64_t total = 0, free_pages = 0;

	for (int i = 0; i < _ZONE_TYPE_MAX; i++) {
		total += m->nodes[node].zones[i].managed;
		free_pages += m->nodes[node].zones[i].free;
	}
	text_addf(t, "Node %d MemTotal:       %8" PRIu64 " kB\n", node,
		  total << (m->config.page_shift - 10));
	text_addf(t, "Node %d MemFree:        %8" PRIu64 " kB\n", node,
		  free_pages << (m->config.page_shift - 10));
}

static void psi_text(const struct model *m, struct text *t)
{
	const struct psi_state *lines[] = {&m->some, &m->full};
	static const char *const names[] = {"some", "full"};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		text_addf(t, "%s avg10=%.2f avg60=%.2f avg300=%.2f total=%" PRIu64 "\n", names[i],
			  lines[i]->avg10 * 100, lines[i]->avg60 * 100, lines[i]->avg300 * 100,
			  (uint64_t)lines[i]->total_usec);
}

static void choices_text(const struct choices *c, struct text *t)
{
	for (unsigned i = 0; c->words[i]; i++)
		text_addf(t, i == c->now ? "%s[%s]" : "%s%s", i ? " " : "", c->words[i]);
	text_add(t, "\n");
}

static void comm_text(const struct fake *f, int pid, struct text *t)
{
	for (size_t i = 0; i < f->nr_processes; i++)
		if (f->processes[i].pid == pid)
			text_addf(t, "%s\n", f->processes[i].comm);
}

static int sysctl_value(const struct fake *f, int id)
{
	if (id == SYSCTL_MIN_FREE_KBYTES)
		return (int)f->model.min_free_kbytes;
	if (id == SYSCTL_WATERMARK_SCALE_FACTOR)
		return (int)f->model.watermark_scale_factor;
	return f->sysctl[id];
}

static void proc_text(struct fake *f, const struct tree_entry *e, struct text *t)
{
	const struct model *m = &f->model;

	if (e->kind == FILE_VMSTAT)
		vmstat_text(f, t);
	else if (e->kind == FILE_MEMINFO)
		meminfo_text(f, t);
	else if (e->kind == FILE_PSI)
		psi_text(m, t);
	else if (e->kind == FILE_VERSION)
		text_addf(t, "Linux version %s (fake@kernel) (gcc) #1 SMP\n",
			  m->config.release_text);
	else if (e->kind == FILE_CMDLINE)
		text_addf(t, "%s\n", m->config.cmdline);
	else if (e->kind == FILE_UPTIME)
		text_addf(t, "%.2f 0.00\n", (double)m->now_usec / (double)USEC_PER_SEC);
	else if (e->kind == FILE_FRACTION)
		text_addf(t, "%" PRIu64 "\n", m->fraction);
	else if (e->kind == FILE_SYSCTL)
		text_addf(t, "%d\n", sysctl_value(f, e->a));
	else if (e->kind == FILE_OSTYPE)
		text_add(t, "Linux\n");
	else if (e->kind == FILE_OSRELEASE)
		text_addf(t, "%s\n", m->config.release_text);
	else if (e->kind == FILE_HOSTNAME)
		text_add(t, "fake\n");
	else if (e->kind == FILE_BOOT_ID)
		text_addf(t, "%s\n", f->boot_id);
	else if (e->kind == FILE_COMM)
		comm_text(f, e->a, t);
}

static int order_enabled(const struct model *m, unsigned order)
{
	return order_always_on(m, order) || (m->orders_on >> order & 1);
}

static void thp_text(struct fake *f, const struct tree_entry *e, struct text *t)
{
	struct model *m = &f->model;
	unsigned order = (unsigned)e->a;

	if (e->kind == FILE_THP_ENABLED)
		choices_text(&f->thp_enabled, t);
	else if (e->kind == FILE_THP_DEFRAG)
		choices_text(&f->thp_defrag, t);
	else if (e->kind == FILE_THP_SHMEM)
		choices_text(&f->thp_shmem, t);
	else if (e->kind == FILE_PMD_SIZE)
		text_addf(t, "%" PRIu64 "\n", UINT64_C(1) << (m->config.page_shift + m->pmd_order));
	else if (e->kind == FILE_PCP_ALLOW)
		text_addf(t, "%d\n", f->pcp_allow_high_order ? 4 : 0);
	else if (e->kind == FILE_SIZE_ENABLED)
		choices_text(&f->size_enabled[order], t);
	else if (e->kind == FILE_SIZE_SHMEM)
		choices_text(&f->size_shmem[order], t);
	else if (e->kind == FILE_PCP_ENABLED)
		text_addf(t, "%d\n", order_enabled(m, order));
	else if (e->kind == FILE_MTHP_STAT)
		text_addf(t, "%" PRIu64 "\n", m->mthp[order][e->b]);
	else if (e->kind == FILE_PCP_ORDER_STAT)
		text_addf(t, "%" PRIu64 "\n", model_order_blocks(m, order));
}

static void devices_text(struct fake *f, const struct tree_entry *e, struct text *t)
{
	const struct model *m = &f->model;

	if (e->kind == FILE_CPU_SET)
		cpu_set_text(m, e->a, t);
	else if (e->kind == FILE_CPU_ONLINE)
		text_addf(t, "%d\n", m->cpus[e->a].online);
	else if (e->kind == FILE_CPU_TOPOLOGY)
		topology_text(m, e->a, e->b, t);
	else if (e->kind == FILE_CACHE)
		cache_text(m, e->a, e->b, t);
	else if (e->kind == FILE_NODE_SET)
		add_set(t, m, m->config.nodes, e->a, 0, in_node_set);
	else if (e->kind == FILE_NODE_CPULIST)
		add_set(t, m, m->config.cpus, e->a, 0, in_node);
	else if (e->kind == FILE_NODE_DISTANCE)
		node_distance_text(m, e->a, t);
	else if (e->kind == FILE_NODE_MEMINFO)
		node_meminfo_text(m, e->a, t);
}

int file_text(struct fake *f, const struct tree_entry *e, unsigned record, struct text *t)
{
	if (e->kind == FILE_ZONEINFO)
		return zoneinfo_text(f, record, t);
	if (e->kind == FILE_BUDDYINFO)
		return buddyinfo_text(f, record, t);
	if (record > 0)
		return 0;
	if (e->kind == FILE_CONTROL)
		control_show(f, t);
	proc_text(f, e, t);
	thp_text(f, e, t);
	devices_text(f, e, t);
	return 1;
}

bool file_is_sysctl(const struct tree_entry *e)
{
	return e->kind == FILE_FRACTION || e->kind == FILE_SYSCTL || e->kind == FILE_STAT_REFRESH ||
	       e->kind == FILE_OSRELEASE || e->kind == FILE_OSTYPE || e->kind == FILE_HOSTNAME ||
	       e->kind == FILE_BOOT_ID;
}
