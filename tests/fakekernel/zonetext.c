/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of /proc as mm/vmstat.c prints them, release by release. */
#include "files.h"

#include <errno.h>
#include <inttypes.h>

/* The record-th online node, or -1. */
static int nth_node(const struct model *m, unsigned record)
{
	for (unsigned node = 0; node < m->config.nodes; node++)
		if (m->nodes[node].online && record-- == 0)
			return (int)node;
	return -1;
}

static void per_node_stats(const struct model *m, const struct model_node *node, struct text *t)
{
	static const struct {
		const char *name;
		unsigned since;
	} rows[] = {
		{"nr_inactive_anon", 0},
		{"nr_active_anon", 0},
		{"nr_inactive_file", 0},
		{"nr_active_file", 0},
		{"nr_unevictable", 0},
		{"nr_slab_reclaimable", 0},
		{"nr_slab_unreclaimable", 0},
		{"nr_isolated_anon", 0},
		{"nr_isolated_file", 0},
		{"workingset_nodes", 0},
		{"nr_anon_pages", 0},
		{"nr_mapped", 0},
		{"nr_file_pages", 0},
		{"nr_dirty", 0},
		{"nr_writeback", 0},
		{"nr_shmem", 0},
		{"nr_kernel_stack", RELEASE(5, 11)},
		{"nr_page_table_pages", RELEASE(5, 11)},
		{"nr_swapcached", RELEASE(5, 12)},
		{"pgpromote_success", RELEASE(5, 18)},
		{"nr_balloon_pages", RELEASE(6, 17)},
	};
	uint64_t used = 0;

	for (int z = 0; z < _ZONE_TYPE_MAX; z++)
		used += node->zones[z].managed - node->zones[z].free;
	text_add(t, "  per-node stats\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (m->config.release >= rows[i].since)
			text_addf(t, "      %-12s %" PRIu64 "\n", rows[i].name,
				  streq(rows[i].name, "nr_anon_pages") ? used / 2 : i);
}

static void zone_stats(const struct model *m, const struct model_zone *z, struct text *t)
{
	static const char *const zeroes[] = {
		"nr_zone_inactive_anon",
		"nr_zone_active_anon",
		"nr_zone_inactive_file",
		"nr_zone_active_file",
		"nr_zone_unevictable",
		"nr_zone_write_pending",
		"nr_mlock",
	};
	uint64_t whole = z->free & ~((UINT64_C(1) << m->pmd_order) - 1);

	text_addf(t, "      %-12s %" PRIu64 "\n", "nr_free_pages", z->free);
	if (release_from(m, 6, 17))
		text_addf(t, "      %-12s %" PRIu64 "\n", "nr_free_pages_blocks", whole);
	for (size_t i = 0; i < ARRAY_SIZE(zeroes); i++)
		text_addf(t, "      %-12s 0\n", zeroes[i]);
	if (!release_from(m, 5, 11))
		text_add(t, "      nr_page_table_pages 4\n      nr_kernel_stack 1024\n");
	if (!release_from(m, 6, 16))
		text_addf(t, "      %-12s 0\n", "nr_bounce");
	text_addf(t, "      %-12s 0\n      %-12s 0\n", "nr_zspages", "nr_free_cma");
	text_addf(t, "      %-12s %" PRIu64 "\n", "numa_hit", z->allocs);
	text_addf(t, "      %-12s 0\n      %-12s 0\n      %-12s 0\n", "numa_miss", "numa_foreign",
		  "numa_interleave");
	text_addf(t, "      %-12s %" PRIu64 "\n      %-12s 0\n", "numa_local", z->allocs,
		  "numa_other");
}

static void pageset(const struct model *m, const struct pcp *p, struct text *t)
{
	if (release_from(m, 6, 13)) {
		text_addf(t,
			  "              count:    %i\n              high:     %i\n"
			  "              batch:    %i\n",
			  p->count, p->high, p->batch);
		text_addf(t, "              high_min: %i\n              high_max: %i\n",
			  p->high_min, p->high_max);
	} else {
		text_addf(t,
			  "              count: %i\n              high:  %i\n"
			  "              batch: %i\n",
			  p->count, p->high, p->batch);
	}
	if (m->config.control == CONTROL_PER_SIZE && m->config.order_stats)
		for (unsigned order = 0; order <= m->pmd_order; order++)
			text_addf(t, "              order%u: %u\n", order, p->blocks[order]);
}

static void pagesets(const struct model *m, const struct model_zone *z, struct text *t)
{
	text_add(t, "  pagesets\n");
	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++) {
		if (!m->cpus[cpu].online)
			continue;
		text_addf(t, "    cpu: %u\n", cpu);
		pageset(m, &z->pcp[cpu], t);
		text_addf(t, "  vm stats threshold: %i\n", 24);
	}
}

/* What a zone keeps from allocations that may as well come from a higher one. */
static void protection(const struct model_node *node, const struct model_zone *z, struct text *t)
{
	static const uint64_t ratio[_ZONE_TYPE_MAX] = {
		[ZONE_TYPE_DMA] = 256,
		[ZONE_TYPE_DMA32] = 256,
		[ZONE_TYPE_NORMAL] = 32,
	};
	uint64_t above = 0;

	text_add(t, "\n        protection: (");
	for (int i = 0; i < _ZONE_TYPE_MAX; i++) {
		if (i > (int)z->type)
			above += node->zones[i].managed;
		text_addf(t, "%s%" PRIu64, i ? ", " : "",
			  z->managed && ratio[z->type] ? above / ratio[z->type] : 0);
	}
	text_add(t, ")\n");
}

static void watermark(struct text *t, const char *name, uint64_t value)
{
	text_addf(t, "\n        %-8s %" PRIu64, name, value);
}

static void zone_text(const struct model *m, const struct model_node *node,
		      const struct model_zone *z, bool with_node, struct text *t)
{
	bool empty = !zone_populated(z);
	uint64_t floor_of_empty = empty && z->type == ZONE_TYPE_MOVABLE ? 32 : 0;

	text_addf(t, "Node %d, zone %8s\n", z->node, zone_type_name(z->type));
	if (with_node)
		per_node_stats(m, node, t);
	text_addf(t, "  pages free     %" PRIu64, empty ? 0 : z->free);
	if (release_from(m, 6, 0))
		watermark(t, "boost", 0);
	watermark(t, "min", empty ? floor_of_empty : z->min);
	watermark(t, "low", empty ? floor_of_empty : z->low);
	watermark(t, "high", empty ? floor_of_empty : z->high);
	if (release_from(m, 6, 12))
		watermark(t, "promo", empty ? floor_of_empty : z->promo);
	watermark(t, "spanned", z->present ? z->present + z->start_pfn % 512 : 0);
	watermark(t, "present", z->present);
	watermark(t, "managed", z->managed);
	if (release_from(m, 5, 12))
		watermark(t, "cma", 0);
	protection(node, z, t);
	if (empty)
		return;
	zone_stats(m, z, t);
	pagesets(m, z, t);
	text_addf(t, "  node_unreclaimable:  0\n  start_pfn:           %" PRIu64 "\n",
		  z->start_pfn);
	if (release_from(m, 7, 0))
		text_add(t, "  reserved_highatomic: 0\n  free_highatomic:     0\n");
}

int zoneinfo_text(struct fake *f, unsigned record, struct text *t)
{
	const struct model *m = &f->model;
	int node = nth_node(m, record);
	bool first = true;

	if (node < 0)
		return 0;
	for (int i = 0; i < _ZONE_TYPE_MAX; i++) {
		const struct model_zone *z = &m->nodes[node].zones[i];

		zone_text(m, &m->nodes[node], z, first && zone_populated(z), t);
		if (zone_populated(z))
			first = false;
	}
	return 1;
}

/* Free pages as blocks: what is fragmented in equal shares of the small orders, the rest large. */
static void buddy_counts(const struct model *m, const struct model_zone *z, uint64_t *blocks)
{
	unsigned top = MAX_OF(10U, m->pmd_order), from = MIN_OF(z->unusable_from, top);
	uint64_t small = from ? (uint64_t)((double)z->free * z->unusable) : 0;
	uint64_t rest = z->free - small;

	for (unsigned order = top + 1; order-- > from;) {
		blocks[order] += rest >> order;
		rest -= (rest >> order) << order;
	}
	small += rest;
	for (unsigned order = from; order-- > 0;) {
		uint64_t share = small / (order + 1);

		blocks[order] += share >> order;
		small -= (share >> order) << order;
	}
}

int buddyinfo_text(struct fake *f, unsigned record, struct text *t)
{
	const struct model *m = &f->model;
	unsigned top = MAX_OF(10U, m->pmd_order);
	int node = nth_node(m, record);

	if (node < 0)
		return 0;
	for (int i = 0; i < _ZONE_TYPE_MAX; i++) {
		const struct model_zone *z = &m->nodes[node].zones[i];
		uint64_t blocks[MODEL_ORDERS] = {0};

		if (!zone_populated(z))
			continue;
		buddy_counts(m, z, blocks);
		text_addf(t, "Node %d, zone %8s ", node, zone_type_name(z->type));
		for (unsigned order = 0; order <= top; order++)
			text_addf(t, "%6" PRIu64 " ", blocks[order]);
		text_add(t, "\n");
	}
	return 1;
}

void vmstat_text(struct fake *f, struct text *t)
{
	struct model *m = &f->model;
	const struct counter_row *row;

	m->vmstat[VMSTAT_NR_FREE_PAGES] = 0;
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		m->vmstat[VMSTAT_NR_FREE_PAGES] += z->free;
	for (size_t i = 0; (row = vmstat_row(i)); i++)
		if (counter_in(row->since, row->until, m->config.release))
			text_addf(t, "%s %" PRIu64 "\n", row->name, m->vmstat[row->id]);
}

void meminfo_text(struct fake *f, struct text *t)
{
	struct model *m = &f->model;
	unsigned kib = 1U << (m->config.page_shift - 10);
	uint64_t total = 0, free_pages = 0;

	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));) {
		total += z->managed;
		free_pages += z->free;
	}
	text_addf(t,
		  "MemTotal:       %8" PRIu64 " kB\nMemFree:        %8" PRIu64
		  " kB\nMemAvailable:   %8" PRIu64 " kB\n",
		  total * kib, free_pages * kib, free_pages * kib);
	text_add(t, "Buffers:               0 kB\nCached:                0 kB\n");
	text_add(t, "SwapTotal:             0 kB\nSwapFree:              0 kB\n");
	if (m->config.thp)
		text_addf(t, "HugePages_Total:       0\nHugepagesize:   %8u kB\n",
			  kib << m->pmd_order);
}
