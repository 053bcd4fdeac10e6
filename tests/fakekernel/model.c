/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Zones, watermarks, the sizes of the lists, and what hotplug does to them. */
#include "model.h"

#include <assert.h>
#include <errno.h>

static const char *const type_names[_ZONE_TYPE_MAX] = {
	[ZONE_TYPE_DMA] = "DMA",       [ZONE_TYPE_DMA32] = "DMA32",
	[ZONE_TYPE_NORMAL] = "Normal", [ZONE_TYPE_MOVABLE] = "Movable",
	[ZONE_TYPE_DEVICE] = "Device",
};

const char *zone_type_name(enum zone_type t)
{
	return type_names[t];
}

static unsigned page_kib(const struct model *m)
{
	return 1U << (m->config.page_shift - 10);
}

/* Page tables of one page of 8-byte entries: 2 MiB for 4 KiB pages, 32 MiB for 16, 512 for 64. */
static unsigned pmd_order_of(unsigned page_shift)
{
	return page_shift - 3;
}

static int zone_init(struct model *m, struct model_zone *z, int node, enum zone_type t,
		     uint64_t start_pfn)
{
	*z = (struct model_zone){
		.type = t,
		.node = node,
		.present = m->config.zone_pages[node][t],
		.start_pfn = start_pfn,
		.unusable_from = 0,
	};
	/* what the kernel keeps for itself before there is an allocator: about 2% */
	z->managed = z->present - z->present / 48;
	z->free = z->managed - z->managed / 8;
	z->pcp = calloc(m->config.cpus, sizeof(*z->pcp));
	return z->pcp ? 0 : -ENOMEM;
}

int model_init(struct model *m, struct config *config)
{
	uint64_t pfn = 1;

	*m = (struct model){.config = *config, .watermark_scale_factor = 10};
	*config = (struct config){0};
	m->pmd_order = pmd_order_of(m->config.page_shift);
	assert(m->pmd_order < MODEL_ORDERS);
	m->nodes = calloc(m->config.nodes, sizeof(*m->nodes));
	m->cpus = calloc(m->config.cpus, sizeof(*m->cpus));
	if (!m->nodes || !m->cpus)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++) {
		m->cpus[cpu].online = true;
		m->cpus[cpu].node = m->config.node_of_cpu[cpu];
	}
	for (unsigned node = 0; node < m->config.nodes; node++) {
		m->nodes[node].online = true;
		for (int t = 0; t < _ZONE_TYPE_MAX; t++) {
			struct model_zone *z = &m->nodes[node].zones[t];
			int r = zone_init(m, z, (int)node, (enum zone_type)t, pfn);

			if (r < 0)
				return r;
			pfn = (pfn + z->present + 511) & ~UINT64_C(511);
		}
	}
	model_recompute(m);
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
			z->pcp[cpu].high = z->pcp[cpu].high_min;
	return 0;
}

void model_free(struct model *m)
{
	for (unsigned node = 0; m->nodes && node < m->config.nodes; node++)
		for (int t = 0; t < _ZONE_TYPE_MAX; t++)
			free(m->nodes[node].zones[t].pcp);
	for (size_t i = 0; i < m->nr_loads; i++)
		cpuset_free(&m->loads[i].cpus);
	cpuset_free(&m->config.isolated);
	cpuset_free(&m->config.nohz_full);
	free(m->nodes);
	free(m->cpus);
	*m = (struct model){0};
}

struct model_zone *model_zone(struct model *m, int node, enum zone_type t)
{
	if (node < 0 || (unsigned)node >= m->config.nodes || !m->nodes[node].online ||
	    !zone_populated(&m->nodes[node].zones[t]))
		return NULL;
	return &m->nodes[node].zones[t];
}

struct model_zone *model_next_zone(struct model *m, const struct model_zone *after)
{
	unsigned node = after ? (unsigned)after->node : 0;
	int t = after ? (int)after->type + 1 : 0;

	for (; node < m->config.nodes; node++, t = 0)
		for (; t < _ZONE_TYPE_MAX; t++) {
			struct model_zone *z = model_zone(m, (int)node, (enum zone_type)t);

			if (z)
				return z;
		}
	return NULL;
}

uint64_t zone_parked_pages(const struct model *m, const struct model_zone *z)
{
	uint64_t pages = 0;

	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
		pages += (uint64_t)z->pcp[cpu].count;
	return pages;
}

uint64_t model_parked(struct model *m)
{
	uint64_t pages = 0;

	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		pages += zone_parked_pages(m, z);
	return pages;
}

uint64_t model_order_blocks(struct model *m, unsigned order)
{
	uint64_t blocks = 0;

	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
			blocks += z->pcp[cpu].blocks[order];
	return blocks;
}

int zone_batch(const struct model *m, uint64_t managed)
{
	uint64_t batch = MIN_OF(managed >> 10, (UINT64_C(1) << 20) >> m->config.page_shift) / 4;
	uint64_t power = 1;

	if (batch < 1)
		batch = 1;
	while (power * 2 <= batch + batch / 2)
		power *= 2;
	return power > 1 ? (int)power - 1 : 1;
}

static unsigned online_cpus_of(const struct model *m, int node)
{
	unsigned local = 0, all = 0;

	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
		if (m->cpus[cpu].online) {
			all++;
			local += m->cpus[cpu].node == node;
		}
	return local ? local : all ? all : 1;
}

int zone_highsize(const struct model *m, const struct model_zone *z, uint64_t fraction)
{
	uint64_t total = fraction ? z->managed / fraction : z->low;
	uint64_t each = total / online_cpus_of(m, z->node);

	return (int)clamped((int64_t)each, 4 * zone_batch(m, z->managed), INT32_MAX);
}

/* Up to 5.13: a fraction is each CPU's own, and batch follows it. */
static void zone_size_lists_old(const struct model *m, const struct model_zone *z, int *batch,
				int *high)
{
	*batch = zone_batch(m, z->managed);
	*high = 6 * *batch;
	if (m->fraction) {
		*high = (int)(z->managed / m->fraction);
		*batch = (int)clamped(*high / 4, 1, m->config.page_shift * 8);
	}
}

static void zone_size_lists(const struct model *m, struct model_zone *z)
{
	int batch = zone_batch(m, z->managed), low = zone_highsize(m, z, m->fraction), top = low;

	if (model_autotunes(m) && m->fraction == 0)
		top = zone_highsize(m, z, 8);
	if (!release_from(m, 5, 14)) {
		zone_size_lists_old(m, z, &batch, &low);
		top = low;
	}
	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++) {
		struct pcp *p = &z->pcp[cpu];

		p->batch = z->lists_off ? 1 : batch;
		p->high_min = z->lists_off ? 0 : low;
		p->high_max = z->lists_off ? 0 : top;
		if (!model_autotunes(m))
			p->high = p->high_min;
	}
}

static bool is_lowmem(const struct model_zone *z)
{
	return z->type < ZONE_TYPE_MOVABLE;
}

static uint64_t isqrt(uint64_t n)
{
	uint64_t r = 0;

	for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
		if ((r + bit) * (r + bit) <= n)
			r += bit;
	return r;
}

/* min_free_kbytes as the kernel and then khugepaged choose it. */
static uint64_t wanted_min_free(struct model *m, uint64_t lowmem)
{
	uint64_t kib = isqrt(lowmem * page_kib(m) * 16), zones = 0, huge;

	kib = (uint64_t)clamped((int64_t)kib, 128, 262144);
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		zones += is_lowmem(z);
	huge = (zones * 11) << m->pmd_order;
	huge = MIN_OF(huge, lowmem / 20) * page_kib(m);
	return m->config.thp ? MAX_OF(kib, huge) : kib;
}

static void zone_set_watermarks(const struct model *m, struct model_zone *z, uint64_t lowmem)
{
	uint64_t pages_min = m->min_free_kbytes / page_kib(m), step;

	if (is_lowmem(z) && lowmem > 0)
		z->min = pages_min * z->managed / lowmem;
	else
		z->min = (uint64_t)clamped((int64_t)(z->managed / 1024), 32, 128);
	step = MAX_OF(z->min / 4, z->managed * m->watermark_scale_factor / 10000);
	z->low = z->min + step;
	z->high = z->min + 2 * step;
	z->promo = z->min + 3 * step;
}

void model_recompute(struct model *m)
{
	uint64_t lowmem = 0;

	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		if (is_lowmem(z))
			lowmem += z->managed;
	if (!m->min_free_set)
		m->min_free_kbytes = wanted_min_free(m, lowmem);
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));) {
		zone_set_watermarks(m, z, lowmem);
		zone_size_lists(m, z);
	}
}

int model_set_fraction(struct model *m, uint64_t value)
{
	if (value != 0 && value < 8)
		return -EINVAL;
	if (value == m->fraction)
		return 0;
	m->fraction = value;
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		zone_size_lists(m, z);
	return 0;
}

void model_set_min_free(struct model *m, uint64_t kbytes)
{
	m->min_free_kbytes = kbytes;
	m->min_free_set = true;
	model_recompute(m);
}

struct model_zone *model_home_zone(struct model *m, unsigned cpu)
{
	unsigned nodes = m->config.nodes;

	for (unsigned away = 0; away < nodes; away++) {
		unsigned node = ((unsigned)m->cpus[cpu].node + away) % nodes;

		for (int t = ZONE_TYPE_MOVABLE; t >= 0; t--) {
			struct model_zone *z = model_zone(m, (int)node, (enum zone_type)t);

			if (z && z->free > z->low)
				return z;
		}
	}
	for (int t = ZONE_TYPE_MOVABLE; t >= 0; t--) {
		struct model_zone *z = model_zone(m, m->cpus[cpu].node, (enum zone_type)t);

		if (z)
			return z;
	}
	return NULL;
}

int model_cpu_set(struct model *m, unsigned cpu, bool online)
{
	if (cpu >= m->config.cpus)
		return -ENOENT;
	if (m->cpus[cpu].online == online)
		return 0;
	if (!online)
		for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
			pcp_drain(m, z, &z->pcp[cpu], z->pcp[cpu].count);
	m->cpus[cpu].online = online;
	m->cpus[cpu].busy = false;
	model_recompute(m);
	return 0;
}

/* A node leaves with its memory; the CPUs that were its own must be offline before. */
int model_node_set(struct model *m, int node, bool online)
{
	if (node < 0 || (unsigned)node >= m->config.nodes)
		return -ENOENT;
	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
		if (!online && m->cpus[cpu].online && m->cpus[cpu].node == node)
			return -EBUSY;
	if (!online)
		for (int t = 0; t < _ZONE_TYPE_MAX; t++) {
			struct model_zone *z = &m->nodes[node].zones[t];

			for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
				pcp_drain(m, z, &z->pcp[cpu], z->pcp[cpu].count);
		}
	m->nodes[node].online = online;
	model_recompute(m);
	return 0;
}

int model_zone_resize(struct model *m, int node, enum zone_type t, int64_t pages)
{
	struct model_zone *z;
	uint64_t by = (uint64_t)(pages < 0 ? -pages : pages);

	if (node < 0 || (unsigned)node >= m->config.nodes || !m->nodes[node].online)
		return -ENOENT;
	z = &m->nodes[node].zones[t];
	if (pages >= 0) {
		z->present += by;
		z->managed += by;
		z->free += by;
	} else {
		for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
			pcp_drain(m, z, &z->pcp[cpu], z->pcp[cpu].count);
		z->present -= MIN_OF(by, z->present);
		z->managed = z->present ? z->managed - MIN_OF(by, z->managed) : 0;
		z->free = MIN_OF(z->free, z->managed);
	}
	model_recompute(m);
	return 0;
}

void zone_set_free(struct model *m, struct model_zone *z, uint64_t free_pages)
{
	uint64_t parked = zone_parked_pages(m, z);

	z->free = MIN_OF(free_pages, z->managed > parked ? z->managed - parked : 0);
	z->below_high = z->free < z->high;
	z->reclaim_active = z->free < z->low;
}

void zone_lists_off(struct model *m, struct model_zone *z, bool off)
{
	z->lists_off = off;
	if (off)
		for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
			pcp_drain(m, z, &z->pcp[cpu], z->pcp[cpu].count);
	zone_size_lists(m, z);
}
