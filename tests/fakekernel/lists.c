/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How blocks enter and leave a CPU's list, and how a list grows and shrinks. */
#include "model.h"

#include <errno.h>

bool order_always_on(const struct model *m, unsigned order)
{
	if (order == 0)
		return true;
	if (!release_from(m, 5, 14))
		return false;
	return order <= 3 || (m->config.thp && order == m->pmd_order);
}

bool order_allowed(const struct model *m, unsigned order)
{
	return order < MODEL_ORDERS && (order_always_on(m, order) || (m->orders_on >> order & 1));
}

/* Blocks of the buddy lists that can serve `order`. */
static uint64_t zone_blocks_for(const struct model_zone *z, unsigned order)
{
	double usable = order >= z->unusable_from ? 1.0 - z->unusable : 1.0;

	return (uint64_t)((double)z->free * usable) >> order;
}

static bool buddy_alloc(struct model_zone *z, unsigned order)
{
	if (zone_blocks_for(z, order) == 0)
		return false;
	z->free -= UINT64_C(1) << order;
	z->allocs++;
	return true;
}

static void buddy_free(struct model_zone *z, unsigned order)
{
	z->free += UINT64_C(1) << order;
	z->frees++;
}

static void zone_look_at_watermarks(struct model_zone *z)
{
	z->below_high = z->free < z->high;
	if (z->free < z->low)
		z->reclaim_active = true;
	else if (!z->below_high)
		z->reclaim_active = false;
}

static bool grows(const struct model *m, const struct pcp *p)
{
	return model_autotunes(m) && p->high_min != p->high_max;
}

/* How many blocks a refill brings, and what an empty list tells about high. */
static int refill_blocks(const struct model *m, struct model_zone *z, struct pcp *p, unsigned order)
{
	int want = p->batch, room;

	if (model_autotunes(m))
		p->high = (int)clamped(p->high, p->high_min, p->high_max);
	if (p->high < p->batch)
		return 1;
	if (order == 0 && model_autotunes(m))
		want = p->batch << p->alloc_factor;
	if (grows(m, p) && !z->below_high)
		p->high = MIN_OF(p->high + want, p->high_max);
	if (order == 0 && model_autotunes(m)) {
		room = MAX_OF(p->high - p->count - p->batch, p->batch);
		if (want <= room && p->alloc_factor < m->config.scale_max)
			p->alloc_factor++;
		want = MIN_OF(want, room);
	}
	return want > 1 ? MAX_OF(want >> order, 2) : want;
}

bool pcp_alloc(struct model *m, struct model_zone *z, unsigned cpu, unsigned order)
{
	struct pcp *p = &z->pcp[cpu];

	if (!order_allowed(m, order))
		return buddy_alloc(z, order);
	if (p->blocks[order] == 0)
		for (int n = refill_blocks(m, z, p, order); n > 0 && buddy_alloc(z, order); n--) {
			p->blocks[order]++;
			p->count += 1 << order;
		}
	zone_look_at_watermarks(z);
	p->free_count >>= 1;
	if (!model_autotunes(m))
		p->alloc_factor >>= 1;
	p->stat_dirty = true;
	if (p->blocks[order] == 0)
		return false;
	p->blocks[order]--;
	p->count -= 1 << order;
	return true;
}

/* The limit that this free must respect, after moving high as the kernel does. */
static int high_at_free(const struct model *m, struct model_zone *z, struct pcp *p, bool flush)
{
	int step = MAX_OF(p->free_count, p->batch);

	if (!model_autotunes(m))
		return flush ? 0 : z->reclaim_active ? MIN_OF(p->batch << 2, p->high) : p->high;
	p->high = (int)clamped(p->high, p->high_min, p->high_max);
	if (p->high == 0)
		return 0;
	if (flush) {
		p->high = MAX_OF(p->high - (p->batch << m->config.scale_max), p->high_min);
		return 0;
	}
	if (z->reclaim_active) {
		p->high = MAX_OF(p->high - step, p->high_min);
		return MIN_OF(p->batch << 2, p->high);
	}
	if (!grows(m, p))
		return p->high;
	if (z->below_high) {
		p->high = MAX_OF(p->high - step, p->high_min);
		return MAX_OF(p->count, p->high_min);
	}
	if (p->count >= p->high && p->high < p->free_count + p->batch)
		p->high = (int)clamped(p->free_count + p->batch, p->high_min, p->high_max);
	return p->high;
}

/* Before 6.7 each free over the limit takes twice as much as the last; the factor is kept here. */
static int pages_to_free_fixed(struct pcp *p, int high)
{
	int most = MAX_OF(high - p->batch, p->batch), pages = p->batch << p->alloc_factor;

	if (pages < most)
		p->alloc_factor++;
	return MIN_OF(pages, most);
}

static int pages_to_free(const struct model *m, struct pcp *p, int high, bool flush)
{
	int lowest = p->batch;

	if (flush)
		return model_autotunes(m) ? MIN_OF(p->count, p->batch << m->config.scale_max)
					  : p->count;
	if (high < p->batch)
		return 1;
	if (!model_autotunes(m))
		return pages_to_free_fixed(p, high);
	return (int)clamped(p->free_count, lowest, MAX_OF(high - p->batch, lowest));
}

/* Two frees of orders 1 to 3 in a row, with many before: the list is given back. */
static bool frees_flush(const struct model *m, struct pcp *p, unsigned order)
{
	int threshold = p->batch;
	bool again = p->prev_high_order, small = order >= 1 && order <= 3;

	p->prev_high_order = small;
	if (!small || !again || !release_from(m, 5, 18))
		return false;
	if (release_from(m, 6, 16))
		threshold += p->high_min / 2;
	return p->free_count >= threshold && p->count >= p->batch;
}

void pcp_free(struct model *m, struct model_zone *z, unsigned cpu, unsigned order)
{
	struct pcp *p = &z->pcp[cpu];
	bool flush;
	int high;

	p->stat_dirty = true;
	if (!order_allowed(m, order)) {
		buddy_free(z, order);
		zone_look_at_watermarks(z);
		return;
	}
	p->blocks[order]++;
	p->count += 1 << order;
	if (model_autotunes(m))
		p->alloc_factor >>= 1;
	flush = frees_flush(m, p, order);
	if (p->free_count < p->batch << m->config.scale_max)
		p->free_count += 1 << order;
	high = high_at_free(m, z, p, flush);
	if (p->count >= high)
		pcp_drain(m, z, p, pages_to_free(m, p, high, flush));
	zone_look_at_watermarks(z);
}

void pcp_drain(const struct model *m, struct model_zone *z, struct pcp *p, int pages)
{
	if (pages > 0)
		p->stat_dirty = true;
	for (unsigned order = 0; order <= m->pmd_order; order++)
		for (; pages > 0 && p->blocks[order] > 0; pages -= 1 << order) {
			p->blocks[order]--;
			p->count -= 1 << order;
			buddy_free(z, order);
		}
}

void pcp_decay(const struct model *m, struct model_zone *z, struct pcp *p)
{
	if (p->high > p->high_min) {
		int by_eighth = p->high - (p->high >> 3);
		int by_batches = p->count - (p->batch << m->config.scale_max);

		p->high = MAX_OF(by_eighth, by_batches);
		p->high = MAX_OF(p->high, p->high_min);
	}
	pcp_drain(m, z, p, p->count - p->high);
}

/*
 * A list of another node's memory expires: three folds after its zone's statistics last moved it
 * gives back one batch, which moves them again.
 */
static void expire_remote(const struct model *m, const struct model_cpu *c, struct model_zone *z,
			  struct pcp *p)
{
	if (p->stat_dirty)
		p->expire = 3;
	p->stat_dirty = false;
	if (p->expire == 0 || p->count == 0)
		return;
	if (c->node == z->node) {
		p->expire = 0;
		return;
	}
	if (--p->expire == 0)
		pcp_drain(m, z, p, MIN_OF(p->count, p->batch));
}

void model_refresh_cpu(struct model *m, unsigned cpu)
{
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));) {
		struct pcp *p = &z->pcp[cpu];

		if (model_autotunes(m))
			pcp_decay(m, z, p);
		expire_remote(m, &m->cpus[cpu], z, p);
	}
}

void model_drain_all(struct model *m)
{
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
			pcp_drain(m, z, &z->pcp[cpu], z->pcp[cpu].count);
}

void model_set_order(struct model *m, unsigned order, bool on)
{
	bool was = m->orders_on >> order & 1;

	if (on) {
		m->orders_on |= 1U << order;
		return;
	}
	m->orders_on &= ~(1U << order);
	if (was) {
		m->order_drains++;
		model_drain_all(m);
	}
}

int model_park(struct model *m, int node, enum zone_type t, unsigned cpu, unsigned order,
	       uint64_t pages)
{
	struct model_zone *z = model_zone(m, node, t);
	struct pcp *p;

	if (!z || cpu >= m->config.cpus || !m->cpus[cpu].online)
		return -ENOENT;
	if (!order_allowed(m, order) || pages & ((UINT64_C(1) << order) - 1))
		return -EINVAL;
	if (pages > z->free || pages > INT32_MAX / 2)
		return -ENOSPC;
	p = &z->pcp[cpu];
	z->free -= pages;
	p->blocks[order] += (uint32_t)(pages >> order);
	p->count += (int)pages;
	if (model_autotunes(m) && p->high < p->count)
		p->high = p->count;
	p->stat_dirty = true;
	return 0;
}
