/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"

#include "base/format.h"

#include <inttypes.h>

const char *report_parked(const struct snapshot *s, char *buf, size_t size)
{
	struct parked p = snapshot_parked(s);
	char bytes[FORMAT_MAX], share[FORMAT_MAX];

	if (!snapshot_has(s, SOURCE_ZONEINFO))
		(void)snprintf(buf, size, "unknown");
	else
		(void)snprintf(buf, size, "%s (%s of memory)",
			       format_bytes(bytes, sizeof(bytes), p.pages * s->page_bytes),
			       format_ratio(share, sizeof(share),
					    p.managed ? (double)p.pages / (double)p.managed : 0));
	return buf;
}

static void report_lists(const struct log *log, const struct snapshot *s)
{
	const struct zone *largest = NULL;
	const struct pageset *p;
	char min[FORMAT_MAX], max[FORMAT_MAX];

	for (uint32_t i = 0; i < s->zoneinfo.nr_zones; i++) {
		const struct zone *z = &s->zoneinfo.zones[i];

		if (z->nr_pagesets && (!largest || zone_managed(z) > zone_managed(largest)))
			largest = z;
	}
	if (!largest)
		return;
	p = &s->zoneinfo.pagesets[largest->first_pageset];
	if (s->pcp_autotune == 1 && pageset_has(p, PAGESET_HIGH_MIN))
		log_info(log,
			 "lists: tune themselves; a CPU may hold %s to %s of zone %s of node %d",
			 format_bytes(min, sizeof(min), p->value[PAGESET_HIGH_MIN] * s->page_bytes),
			 format_bytes(max, sizeof(max), p->value[PAGESET_HIGH_MAX] * s->page_bytes),
			 largest->name, largest->node);
	else if (s->pcp_autotune == 1)
		log_info(log, "lists: tune themselves");
	else if (s->pcp_autotune == 0)
		log_info(
			log,
			"lists: do not tune themselves; a CPU holds up to %s of zone %s of node %d",
			format_bytes(max, sizeof(max), p->value[PAGESET_HIGH] * s->page_bytes),
			largest->name, largest->node);
}

static void report_knobs(const struct log *log, const struct snapshot *s)
{
	if (!s->has_high_fraction)
		log_info(log, "knob: high_fraction is not on this kernel (5.14 and later have it)");
	else if (s->high_fraction == 0)
		log_info(log, "knob: high_fraction is 0, the kernel's own sizes");
	else
		log_info(log, "knob: high_fraction is %" PRIu64, s->high_fraction);

	switch (s->mthp.orders) {
	case ORDERS_PER_SIZE:
		for (unsigned i = 0; i < s->mthp.nr_sizes; i++) {
			const struct mthp_size *size = &s->mthp.size[i];
			char name[KNOB_NAME_MAX];
			const struct knob_id id = {.kind = KNOB_PCP_ENABLED, .order = size->order};

			if (size->controllable)
				log_info(log, "knob: %s is %d", knob_name(id, s->page_bytes, name),
					 size->pcp_enabled);
		}
		break;
	case ORDERS_SINGLE:
		log_info(log, "knob: order 4 alone can be switched (pcp_allow_high_order)");
		break;
	case ORDERS_NONE:
		log_info(
			log,
			"knob: pcp_enabled is not on this kernel; orders 4 and up, but for the PMD "
			"order, always take the zone lock");
		break;
	}
}

static void report_drains(const struct log *log, const struct snapshot *s)
{
	size_t isolated = cpuset_count(&s->topology.isolated);

	if (!s->has_stat_refresh || s->pcp_autotune == 0)
		log_info(log, "drains: none that reaches an idle CPU (6.7 and later have trim and "
			      "squeeze)");
	else
		log_info(log, "drains: trim%s%s", s->has_high_fraction ? ", squeeze" : "",
			 s->mthp.orders == ORDERS_NONE ? "" : ", kernel");
	if (isolated || cpuset_count(&s->topology.nohz_full))
		log_info(log,
			 "drains: none runs by itself, since %zu CPUs are isolated and every drain "
			 "wakes all",
			 MAX_OF(isolated, cpuset_count(&s->topology.nohz_full)));
}

void report_machine(const struct log *log, const struct sysroot *root, const struct snapshot *s)
{
	_cleanup_(text_free) struct text release = {0};
	struct parked p = snapshot_parked(s);
	char memory[FORMAT_MAX], excess[FORMAT_MAX], parked[96];
	size_t cpus = cpuset_count(&s->topology.online), nodes = cpuset_count(&s->topology.nodes);

	if (sysroot_read(root, "proc/sys/kernel/osrelease", &release) < 0)
		text_clear(&release);
	log_info(log, "machine: Linux %.*s, %zu %s, %zu %s, %s",
		 (int)strcspn(text_str(&release), "\n"),
		 release.len ? release.data : "of unknown release", cpus,
		 cpus == 1 ? "CPU" : "CPUs", nodes, nodes == 1 ? "node" : "nodes",
		 format_bytes(memory, sizeof(memory), p.managed * s->page_bytes));
	report_lists(log, s);
	report_knobs(log, s);
	report_drains(log, s);
	if (p.excess)
		log_info(log, "parked: %s, %s of it above high_min",
			 report_parked(s, parked, sizeof(parked)),
			 format_bytes(excess, sizeof(excess), p.excess * s->page_bytes));
	else
		log_info(log, "parked: %s", report_parked(s, parked, sizeof(parked)));
}
