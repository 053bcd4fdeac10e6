/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happens by itself while time passes: loads, rates, the lists' decay, pressure averages. */
#include "model.h"

#include <math.h>

#define STEP_USEC (100 * USEC_PER_MSEC)

static void count_zone_alloc(struct model *m, const struct model_zone *z, unsigned order)
{
	static const enum vmstat_id ids[] = {
		[ZONE_TYPE_DMA] = VMSTAT_PGALLOC_DMA,
		[ZONE_TYPE_DMA32] = VMSTAT_PGALLOC_DMA32,
		[ZONE_TYPE_NORMAL] = VMSTAT_PGALLOC_NORMAL,
		[ZONE_TYPE_MOVABLE] = VMSTAT_PGALLOC_MOVABLE,
	};

	if ((size_t)z->type < ARRAY_SIZE(ids))
		m->vmstat[ids[z->type]] += UINT64_C(1) << order;
}

static void count_fault(struct model *m, const struct load *l, bool ok)
{
	m->vmstat[VMSTAT_PGFAULT]++;
	if (!l->anon || l->order < 2)
		return;
	m->mthp[l->order][ok ? MTHP_ANON_FAULT_ALLOC : MTHP_ANON_FAULT_FALLBACK]++;
	if (l->order == m->pmd_order)
		m->vmstat[ok ? VMSTAT_THP_FAULT_ALLOC : VMSTAT_THP_FAULT_FALLBACK]++;
}

static void run_burst(struct model *m, const struct load *l, unsigned cpu, uint64_t blocks)
{
	struct model_zone *z = model_home_zone(m, cpu);
	bool local = z && z->node == m->cpus[cpu].node;
	uint64_t got = 0;

	for (uint64_t i = 0; z && i < blocks; i++) {
		bool ok = pcp_alloc(m, z, cpu, l->order);

		count_fault(m, l, ok);
		if (!ok)
			continue;
		got++;
		count_zone_alloc(m, z, l->order);
		m->vmstat[VMSTAT_NUMA_HIT] += local;
		m->vmstat[local ? VMSTAT_NUMA_LOCAL : VMSTAT_NUMA_OTHER]++;
	}
	for (uint64_t i = 0; i < got; i++)
		pcp_free(m, z, cpu, l->order);
	m->vmstat[VMSTAT_PGFREE] += got << l->order;
}

static void run_load(struct model *m, struct load *l, uint64_t usec)
{
	double block = (double)(UINT64_C(1) << (m->config.page_shift + l->order));
	uint64_t burst = MAX_OF((uint64_t)((double)l->burst / block), UINT64_C(1));

	l->owed += (double)l->rate * (double)usec / (double)USEC_PER_SEC / block;
	for (; l->owed >= (double)burst; l->owed -= (double)burst)
		for (int cpu = cpuset_next(&l->cpus, 0); cpu >= 0;
		     cpu = cpuset_next(&l->cpus, cpu + 1))
			if ((unsigned)cpu < m->config.cpus && m->cpus[cpu].online) {
				m->cpus[cpu].busy = true;
				run_burst(m, l, (unsigned)cpu, burst);
			}
}

static void run_rates(struct model *m, uint64_t usec)
{
	for (size_t i = 0; i < m->nr_rates; i++) {
		struct counter_rate *r = &m->rates[i];
		double whole;

		r->owed += r->per_second * (double)usec / (double)USEC_PER_SEC;
		whole = floor(r->owed);
		r->owed -= whole;
		*r->counter += (uint64_t)whole;
	}
}

/* kswapd looks through memory while a zone is short. */
static void run_reclaim(struct model *m, uint64_t usec)
{
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		if (z->reclaim_active) {
			m->vmstat[VMSTAT_PGSCAN_KSWAPD] += usec / 100;
			m->vmstat[VMSTAT_PGSTEAL_KSWAPD] += usec / 200;
		}
}

/* kernel/sched/psi.c takes a sample every two seconds; a step of this model is short enough. */
static void run_psi(struct psi_state *p, uint64_t usec)
{
	double s = (double)usec / (double)USEC_PER_SEC;

	p->total_usec += p->share * (double)usec;
	p->avg10 += (p->share - p->avg10) * (1 - exp(-s / 10));
	p->avg60 += (p->share - p->avg60) * (1 - exp(-s / 60));
	p->avg300 += (p->share - p->avg300) * (1 - exp(-s / 300));
}

/* vmstat work: once a second on CPUs that are in use. */
static void run_vmstat_work(struct model *m)
{
	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
		if (m->cpus[cpu].online && m->cpus[cpu].busy && !m->cpus[cpu].spinning &&
		    !cpuset_has(&m->config.isolated, cpu))
			model_refresh_cpu(m, cpu);
}

static void advance_step(struct model *m, uint64_t usec)
{
	for (size_t i = 0; i < m->nr_loads; i++)
		run_load(m, &m->loads[i], usec);
	run_rates(m, usec);
	run_reclaim(m, usec);
	run_psi(&m->some, usec);
	run_psi(&m->full, usec);
	m->now_usec += usec;
	if (m->now_usec / USEC_PER_SEC != m->ticks) {
		m->ticks = m->now_usec / USEC_PER_SEC;
		run_vmstat_work(m);
	}
}

void model_advance(struct model *m, uint64_t usec)
{
	while (usec > 0) {
		uint64_t step = MIN_OF(usec, STEP_USEC - m->now_usec % STEP_USEC);

		advance_step(m, step);
		usec -= step;
	}
}
