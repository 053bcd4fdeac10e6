/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense/signals.h"

#include <errno.h>
#include <inttypes.h>

/* What a reader gets; it puts the value into `value` or the reason for there being none. */
struct reading {
	const struct signal_ref *ref;
	const struct snapshot *s;
	unsigned order;
	double value;
	const char *why;
};

static bool known(struct reading *r, double value)
{
	r->value = value;
	return true;
}

static bool unknown(struct reading *r, const char *why)
{
	r->why = why;
	return false;
}

static const char why_no_zone[] = "no zone is large enough to count";
static const char why_no_counter[] = "this kernel does not count that";
static const char why_no_size[] = "this kernel has no folio size of that order";
static const char why_no_bounds[] = "this kernel does not show what its lists may hold";
static const char why_no_cache[] = "this machine does not tell its caches";
static const char why_no_events[] = "needs the daemon's events";

/* vmstat */

static bool read_vmstat(struct reading *r)
{
	uint64_t value;

	if (!vmstat_get(&r->s->vmstat, r->ref->arg, NULL, &value))
		return unknown(r, why_no_counter);
	return known(r, (double)value);
}

/* mthp */

static bool find_size(struct reading *r, const struct mthp_size **ret)
{
	*ret = mthp_by_order(&r->s->mthp, r->order);
	return *ret || unknown(r, why_no_size);
}

static bool read_mthp(struct reading *r)
{
	const struct mthp_size *size;
	uint64_t value;

	if (!find_size(r, &size))
		return false;
	if (!mthp_stat_get(size, r->ref->arg, &value))
		return unknown(r, why_no_counter);
	return known(r, (double)value);
}

/* The sum of those that this kernel has; -1 where it has none of them. */
static double sum_of_stats(const struct mthp_size *size, const char *const *names, size_t n)
{
	double sum = 0;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		uint64_t value;

		if (mthp_stat_get(size, names[i], &value)) {
			sum += (double)value;
			any = true;
		}
	}
	return any ? sum : -1;
}

static const char *const alloc_stats[] = {
	"anon_fault_alloc",
	"shmem_alloc",
	"swpin",
	"collapse_alloc",
};

/* A fallback for want of a charge is counted among the fallbacks as well: not added again. */
static const char *const fallback_stats[] = {
	"anon_fault_fallback",
	"shmem_fallback",
	"swpin_fallback",
	"collapse_alloc_failed",
};

static bool read_alloc_bytes(struct reading *r)
{
	const struct mthp_size *size;
	double allocated;

	if (!find_size(r, &size))
		return false;
	allocated = sum_of_stats(size, alloc_stats, ARRAY_SIZE(alloc_stats));
	if (allocated < 0)
		return unknown(r, why_no_counter);
	return known(r, allocated * (double)size->bytes);
}

static bool read_fallbacks(struct reading *r)
{
	const struct mthp_size *size;
	double fallbacks;

	if (!find_size(r, &size))
		return false;
	fallbacks = sum_of_stats(size, fallback_stats, ARRAY_SIZE(fallback_stats));
	return fallbacks < 0 ? unknown(r, why_no_counter) : known(r, fallbacks);
}

static bool read_attempts(struct reading *r)
{
	const struct mthp_size *size;
	double fallbacks, allocated;

	if (!find_size(r, &size))
		return false;
	allocated = sum_of_stats(size, alloc_stats, ARRAY_SIZE(alloc_stats));
	fallbacks = sum_of_stats(size, fallback_stats, ARRAY_SIZE(fallback_stats));
	if (allocated < 0 || fallbacks < 0)
		return unknown(r, why_no_counter);
	return known(r, allocated + fallbacks);
}

static bool read_fallback_ratio(struct reading *r)
{
	return unknown(r, "needs the counts of a minute");
}

/* zone */

static double free_ratio(const struct zone *z)
{
	return (double)z->value[ZONE_FREE] / (double)zone_managed(z);
}

static bool read_free_ratio(struct reading *r)
{
	const struct zoneinfo *zi = &r->s->zoneinfo;
	double worst = -1;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];

		if (snapshot_zone_counts(r->s, z) && (worst < 0 || free_ratio(z) < worst))
			worst = free_ratio(z);
	}
	return worst < 0 ? unknown(r, why_no_zone) : known(r, worst);
}

static bool count_below(struct reading *r, enum zone_field watermark)
{
	const struct zoneinfo *zi = &r->s->zoneinfo;
	unsigned n = 0;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];

		n += snapshot_zone_counts(r->s, z) && z->value[ZONE_FREE] < z->value[watermark];
	}
	return known(r, n);
}

static bool read_below_low(struct reading *r)
{
	return count_below(r, ZONE_LOW);
}

static bool read_below_min(struct reading *r)
{
	return count_below(r, ZONE_MIN);
}

static bool read_free_bytes(struct reading *r)
{
	const struct zoneinfo *zi = &r->s->zoneinfo;
	double pages = 0;

	for (uint32_t i = 0; i < zi->nr_zones; i++)
		pages += (double)zi->zones[i].value[ZONE_FREE];
	return known(r, pages * (double)r->s->page_bytes);
}

/* node */

struct node_sums {
	double managed, free, parked;
};

static bool sum_node(struct reading *r, struct node_sums *ret)
{
	const struct zoneinfo *zi = &r->s->zoneinfo;
	struct node_sums sum = {0};
	uint64_t node;

	if (parse_u64(r->ref->arg, &node) < 0)
		return unknown(r, "no node of that number");
	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];

		if ((uint64_t)z->node != node)
			continue;
		sum.managed += (double)zone_managed(z);
		sum.free += (double)z->value[ZONE_FREE];
		sum.parked += (double)zone_parked(zi, z);
	}
	*ret = sum;
	return sum.managed > 0 || unknown(r, "no memory on a node of that number");
}

static bool read_node_free_ratio(struct reading *r)
{
	struct node_sums sum;

	return sum_node(r, &sum) && known(r, sum.free / sum.managed);
}

static bool read_node_pcp_share(struct reading *r)
{
	struct node_sums sum;

	return sum_node(r, &sum) && known(r, sum.parked / sum.managed);
}

static bool read_node_bytes(struct reading *r)
{
	struct node_sums sum;

	return sum_node(r, &sum) && known(r, sum.managed * (double)r->s->page_bytes);
}

/* pcp */

static bool read_pcp_bytes(struct reading *r)
{
	return known(r, (double)snapshot_parked(r->s).pages * (double)r->s->page_bytes);
}

static bool read_pcp_share(struct reading *r)
{
	struct parked p = snapshot_parked(r->s);

	if (!p.managed)
		return unknown(r, why_no_zone);
	return known(r, (double)p.pages / (double)p.managed);
}

static bool read_pcp_share_max(struct reading *r)
{
	struct parked p = snapshot_parked(r->s);

	return p.worst ? known(r, p.share_max) : unknown(r, why_no_zone);
}

static bool read_pcp_fill(struct reading *r)
{
	struct parked p = snapshot_parked(r->s);

	if (!p.bounds_known || !p.high_max)
		return unknown(r, why_no_bounds);
	return known(r, (double)p.pages_within / (double)p.high_max);
}

static bool read_pcp_excess(struct reading *r)
{
	struct parked p = snapshot_parked(r->s);

	if (!p.excess_known || !p.managed)
		return unknown(r, why_no_bounds);
	return known(r, (double)p.excess / (double)p.managed);
}

static bool read_pcp_fits(struct reading *r)
{
	struct parked p = snapshot_parked(r->s);

	if (!p.bounds_known || r->order >= 64)
		return unknown(r, why_no_bounds);
	return known(r, (double)(p.least_high_min >> r->order));
}

/* frag */

/* Zones come in the same order in both files, so that the search goes on where it was. */
static const struct buddy_zone *next_buddy(const struct buddyinfo *b, const struct zone *z,
					   uint32_t *at)
{
	for (uint32_t i = 0; i < b->nr_zones; i++) {
		const struct buddy_zone *buddy = &b->zones[(*at + i) % b->nr_zones];

		if (buddy->node == z->node && streq(buddy->name, z->name)) {
			*at += i + 1;
			return buddy;
		}
	}
	return NULL;
}

static bool sum_unusable(struct reading *r, double *ret_mean, double *ret_worst)
{
	const struct zoneinfo *zi = &r->s->zoneinfo;
	double weighted = 0, weight = 0, worst = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];
		const struct buddy_zone *buddy;
		double unusable;

		if (!snapshot_zone_counts(r->s, z))
			continue;
		buddy = next_buddy(&r->s->buddy, z, &at);
		if (!buddy)
			continue;
		unusable = buddy_unusable(buddy, r->order);
		weighted += unusable * (double)zone_managed(z);
		weight += (double)zone_managed(z);
		worst = MAX_OF(worst, unusable);
	}
	if (weight <= 0)
		return unknown(r, why_no_zone);
	*ret_mean = weighted / weight;
	*ret_worst = worst;
	return true;
}

static bool read_unusable(struct reading *r)
{
	double mean, worst;

	return sum_unusable(r, &mean, &worst) && known(r, mean);
}

static bool read_unusable_max(struct reading *r)
{
	double mean, worst;

	return sum_unusable(r, &mean, &worst) && known(r, worst);
}

/* psi.memory.* */

#define PSI_READER(line, field, scale)                                                  \
	static bool read_psi_##line##_##field(struct reading *r)                        \
	{                                                                               \
		const struct psi_line *l = &r->s->psi_memory.line;                      \
                                                                                        \
		return l->present ? known(r, (double)l->field / (scale))                \
				  : unknown(r, "this kernel does not print that line"); \
	}
PSI_READER(some, avg10, 1)
PSI_READER(some, avg60, 1)
PSI_READER(some, avg300, 1)
PSI_READER(some, total_usec, 1e6)
PSI_READER(full, avg10, 1)
PSI_READER(full, avg60, 1)
PSI_READER(full, avg300, 1)
PSI_READER(full, total_usec, 1e6)

/* machine */

static bool known_unless_0(struct reading *r, uint64_t value, const char *why)
{
	return value ? known(r, (double)value) : unknown(r, why);
}

static bool read_cpus(struct reading *r)
{
	return known_unless_0(r, cpuset_count(&r->s->topology.online),
			      "this machine does not tell its CPUs");
}

static bool read_nodes(struct reading *r)
{
	/* a kernel without NUMA has no node directories and one node */
	return known(r, (double)MAX_OF(cpuset_count(&r->s->topology.nodes), (size_t)1));
}

static bool read_isolated_cpus(struct reading *r)
{
	const struct topology *t = &r->s->topology;
	unsigned n = 0;

	for (int c = cpuset_next(&t->online, 0); c >= 0; c = cpuset_next(&t->online, c + 1))
		n += cpuset_has(&t->isolated, (unsigned)c) ||
		     cpuset_has(&t->nohz_full, (unsigned)c);
	return known(r, n);
}

static bool read_memory_bytes(struct reading *r)
{
	double pages = (double)snapshot_parked(r->s).managed;

	return known(r, pages * (double)r->s->page_bytes);
}

static bool read_page_bytes(struct reading *r)
{
	return known(r, (double)r->s->page_bytes);
}

static bool read_l2_bytes(struct reading *r)
{
	return known_unless_0(r, r->s->topology.l2_bytes, why_no_cache);
}

static bool read_l2_cpus(struct reading *r)
{
	return known_unless_0(r, r->s->topology.l2_cpus, why_no_cache);
}

static bool read_llc_bytes(struct reading *r)
{
	return known_unless_0(r, r->s->topology.llc_bytes, why_no_cache);
}

static bool read_llc_cpus(struct reading *r)
{
	return known_unless_0(r, r->s->topology.llc_cpus, why_no_cache);
}

static bool read_autotune(struct reading *r)
{
	if (r->s->pcp_autotune < 0)
		return unknown(r, "the lists do not show yet whether they tune themselves");
	return known(r, r->s->pcp_autotune);
}

/* link, process */

static bool read_mtu_max(struct reading *r)
{
	if (!r->s->events.has_links)
		return unknown(r, why_no_events);
	return known(r, (double)r->s->events.mtu_max);
}

static bool read_link_count(struct reading *r)
{
	if (!r->s->events.has_links)
		return unknown(r, why_no_events);
	return known(r, r->s->events.nr_links);
}

static bool read_running(struct reading *r)
{
	const struct events *e = &r->s->events;

	if (!e->has_processes)
		return unknown(r, why_no_events);
	for (uint32_t i = 0; i < e->nr_running; i++)
		if (strncmp(e->running[i], r->ref->arg, PROCESS_NAME_MAX - 1) == 0)
			return known(r, 1);
	return known(r, 0);
}

enum shape {
	SHAPE_PLAIN,   /* the name and nothing else */
	SHAPE_NAMED,   /* X stands for a counter's name, kept in ref.arg */
	SHAPE_NODE,    /* N stands for a node's number, kept in ref.arg */
	SHAPE_COMMAND, /* a command in parentheses, kept in ref.arg */
};

struct family {
	struct signal_info info;
	enum shape shape;
	bool has_order;
	bool (*read)(struct reading *r);
};

#define OF_ZONEINFO SOURCE_BIT(SOURCE_ZONEINFO)
#define OF_VMSTAT   SOURCE_BIT(SOURCE_VMSTAT)
#define OF_MTHP     SOURCE_BIT(SOURCE_MTHP)
#define OF_BUDDY    (SOURCE_BIT(SOURCE_BUDDYINFO) | SOURCE_BIT(SOURCE_ZONEINFO))
#define OF_PSI      SOURCE_BIT(SOURCE_PSI_MEMORY)

enum {
	FAMILY_VMSTAT,
	FAMILY_VMSTAT_PAGES,
	FAMILY_VMSTAT_NR,
	FAMILY_MTHP,
	FAMILY_MTHP_NR,
	_FAMILY_FIRST_FIXED,
};

#define ROW(name_, unit_, counter_, sources_, since_, text_) \
	.info = {.name = (name_),                            \
		 .dimension = {.unit = (unit_)},             \
		 .counter = (counter_),                      \
		 .sources = (sources_),                      \
		 .since = (since_),                          \
		 .description = (text_)}
#define PSI_ROW(line, field, name_, unit_, counter_, text_)                                 \
	{                                                                                   \
		ROW("psi.memory." #line "." name_, unit_, counter_, OF_PSI, "4.20", text_), \
			.read = read_psi_##line##_##field                                   \
	}

static const struct family families[] = {
	[FAMILY_VMSTAT] = {ROW("vmstat.X", UNIT_COUNT, true, OF_VMSTAT, "",
			       "An event counter of /proc/vmstat by the kernel's name; allocstall "
			       "and others that the kernel splits by zone are the sums."),
			   .shape = SHAPE_NAMED, .read = read_vmstat},
	[FAMILY_VMSTAT_PAGES] = {ROW("vmstat.pgX", UNIT_PAGES, true, OF_VMSTAT, "",
				     "An event counter of /proc/vmstat that counts pages: pgalloc "
				     "(summed over zones), pgfree, pgscan_*, pgsteal_*, pgskip and "
				     "their like."),
				 .shape = SHAPE_NAMED, .read = read_vmstat},
	[FAMILY_VMSTAT_NR] =
		{ROW("vmstat.nr_X", UNIT_PAGES, false, OF_VMSTAT, "",
		     "How many pages are in a state now, from /proc/vmstat; pages that "
		     "are parked are not in nr_free_pages."),
		 .shape = SHAPE_NAMED, .read = read_vmstat},
	[FAMILY_MTHP] = {ROW("mthp.X", UNIT_COUNT, true, OF_MTHP, "6.10",
			     "An event counter of the order at hand by its file's name in stats/; "
			     "renamed ones by their present name."),
			 .shape = SHAPE_NAMED, .has_order = true, .read = read_mthp},
	[FAMILY_MTHP_NR] =
		{ROW("mthp.nr_X", UNIT_COUNT, false, OF_MTHP, "6.12",
		     "How many folios of the order at hand are in a state now; also "
		     "pcp_order_stat, the blocks that are parked, where the kernel has it."),
		 .shape = SHAPE_NAMED, .has_order = true, .read = read_mthp},
	{ROW("mthp.alloc_bytes", UNIT_BYTES, true, OF_MTHP, "6.10",
	     "Bytes allocated in folios of the order at hand, as far as the kernel counts them: "
	     "anonymous faults, shmem, swap-in, collapse."),
	 .has_order = true, .read = read_alloc_bytes},
	{ROW("mthp.attempts", UNIT_COUNT, true, OF_MTHP, "6.10",
	     "Allocations of the order at hand that were tried."),
	 .has_order = true, .read = read_attempts},
	{ROW("mthp.fallbacks", UNIT_COUNT, true, OF_MTHP, "6.10",
	     "Allocations of the order at hand that fell back to a smaller one."),
	 .has_order = true, .read = read_fallbacks},
	{.info = {.name = "mthp.fallback_ratio",
		  .dimension = {.unit = UNIT_RATIO},
		  .sources = OF_MTHP,
		  .since = "6.10",
		  .description =
			  "The share of the attempts of the last minute at the order at hand "
			  "that fell back to a smaller one.",
		  .numerator = "mthp.fallbacks",
		  .denominator = "mthp.attempts"},
	 .has_order = true,
	 .read = read_fallback_ratio},
	{ROW("zone.free_ratio", UNIT_RATIO, false, OF_ZONEINFO, "",
	     "Free pages as a share of the managed ones, in the zone where it is least."),
	 .read = read_free_ratio},
	{ROW("zone.free_bytes", UNIT_BYTES, false, OF_ZONEINFO, "",
	     "Free memory of all zones; parked memory is not in it."),
	 .read = read_free_bytes},
	{ROW("zone.below_low", UNIT_COUNT, false, OF_ZONEINFO, "",
	     "How many zones have fewer free pages than their low watermark."),
	 .read = read_below_low},
	{ROW("zone.below_min", UNIT_COUNT, false, OF_ZONEINFO, "",
	     "How many zones have fewer free pages than their min watermark."),
	 .read = read_below_min},
	{ROW("node.N.free_ratio", UNIT_RATIO, false, OF_ZONEINFO, "",
	     "Free pages of node N as a share of its managed ones."),
	 .shape = SHAPE_NODE, .read = read_node_free_ratio},
	{ROW("node.N.pcp_share", UNIT_RATIO, false, OF_ZONEINFO, "",
	     "Parked pages of node N as a share of its managed ones."),
	 .shape = SHAPE_NODE, .read = read_node_pcp_share},
	{ROW("node.N.memory_bytes", UNIT_BYTES, false, OF_ZONEINFO, "",
	     "The memory that the kernel manages on node N."),
	 .shape = SHAPE_NODE, .read = read_node_bytes},
	{ROW("pcp.bytes", UNIT_BYTES, false, OF_ZONEINFO, "",
	     "Memory parked on the lists of all CPUs and zones."),
	 .read = read_pcp_bytes},
	{ROW("pcp.share", UNIT_RATIO, false, OF_ZONEINFO, "",
	     "Parked memory as a share of all managed memory."),
	 .read = read_pcp_share},
	{ROW("pcp.share_max", UNIT_RATIO, false, OF_ZONEINFO, "",
	     "Parked pages as a share of the zone's managed ones, in the zone where it is most."),
	 .read = read_pcp_share_max},
	{ROW("pcp.fill", UNIT_RATIO, false, OF_ZONEINFO, "",
	     "Parked pages as a share of what the lists may hold at most (high_max, or high where "
	     "it is fixed); may pass 1 for a while after the lists were made smaller."),
	 .read = read_pcp_fill},
	{ROW("pcp.excess", UNIT_RATIO, false, OF_ZONEINFO, "6.7",
	     "What exceeds high_min list by list, as a share of all managed memory: what a trim can "
	     "give back."),
	 .read = read_pcp_excess},
	{ROW("pcp.fits", UNIT_COUNT, false, OF_ZONEINFO, "5.14",
	     "How many blocks of the order at hand high_min can hold (high where it is fixed), in "
	     "the zone where it is least."),
	 .has_order = true, .read = read_pcp_fits},
	{ROW("frag.unusable", UNIT_RATIO, false, OF_BUDDY, "",
	     "The share of free memory in blocks too small for the order at hand, over zones "
	     "weighted by their managed pages."),
	 .has_order = true, .read = read_unusable},
	{ROW("frag.unusable_max", UNIT_RATIO, false, OF_BUDDY, "",
	     "The share of free memory in blocks too small for the order at hand, in the zone where "
	     "it is most."),
	 .has_order = true, .read = read_unusable_max},
	PSI_ROW(some, avg10, "avg10", UNIT_RATIO, false,
		"The share of the last 10 seconds in which some task waited for memory."),
	PSI_ROW(some, avg60, "avg60", UNIT_RATIO, false,
		"The share of the last minute in which some task waited for memory."),
	PSI_ROW(some, avg300, "avg300", UNIT_RATIO, false,
		"The share of the last 5 minutes in which some task waited for memory."),
	PSI_ROW(some, total_usec, "total", UNIT_SECONDS, true,
		"The time since boot in which some task waited for memory."),
	PSI_ROW(full, avg10, "avg10", UNIT_RATIO, false,
		"The share of the last 10 seconds in which all tasks waited for memory."),
	PSI_ROW(full, avg60, "avg60", UNIT_RATIO, false,
		"The share of the last minute in which all tasks waited for memory."),
	PSI_ROW(full, avg300, "avg300", UNIT_RATIO, false,
		"The share of the last 5 minutes in which all tasks waited for memory."),
	PSI_ROW(full, total_usec, "total", UNIT_SECONDS, true,
		"The time since boot in which all tasks waited for memory."),
	{ROW("machine.cpus", UNIT_COUNT, false, 0, "", "CPUs that are online."), .read = read_cpus},
	{ROW("machine.nodes", UNIT_COUNT, false, 0, "", "NUMA nodes that are online."),
	 .read = read_nodes},
	{ROW("machine.isolated_cpus", UNIT_COUNT, false, 0, "",
	     "Online CPUs that isolcpus= or nohz_full= set apart."),
	 .read = read_isolated_cpus},
	{ROW("machine.memory_bytes", UNIT_BYTES, false, OF_ZONEINFO, "",
	     "The memory that the kernel manages in all zones."),
	 .read = read_memory_bytes},
	{ROW("machine.page_bytes", UNIT_BYTES, false, 0, "", "The size of a page."),
	 .read = read_page_bytes},
	{ROW("machine.l2_bytes", UNIT_BYTES, false, 0, "", "The smallest level 2 cache."),
	 .read = read_l2_bytes},
	{ROW("machine.l2_cpus", UNIT_COUNT, false, 0, "",
	     "How many online CPUs share the smallest level 2 cache."),
	 .read = read_l2_cpus},
	{ROW("machine.llc_bytes", UNIT_BYTES, false, 0, "", "The smallest last-level cache."),
	 .read = read_llc_bytes},
	{ROW("machine.llc_cpus", UNIT_COUNT, false, 0, "",
	     "How many online CPUs share the smallest last-level cache."),
	 .read = read_llc_cpus},
	{ROW("machine.pcp_autotune", UNIT_BOOL, false, OF_ZONEINFO, "",
	     "Whether this kernel's lists tune their size themselves (6.7 and later)."),
	 .read = read_autotune},
	{ROW("link.mtu_max", UNIT_BYTES, false, 0, "",
	     "The largest MTU of the network links that are up, the loopback left out."),
	 .read = read_mtu_max},
	{ROW("link.count", UNIT_COUNT, false, 0, "",
	     "How many network links are up and have a carrier, the loopback left out."),
	 .read = read_link_count},
	{ROW("process.running", UNIT_BOOL, false, 0, "",
	     "Whether a process of that name runs: process.running(\"postgres\")."),
	 .shape = SHAPE_COMMAND, .read = read_running},
};

const struct signal_info *signal_info_at(size_t i)
{
	return i < ARRAY_SIZE(families) ? &families[i].info : NULL;
}

bool signal_has_order(const struct signal_info *info)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (info == &families[i].info)
			return families[i].has_order;
	return false;
}

const char *dimension_name(struct dimension d)
{
	static const char *const names[][2] = {
		[UNIT_COUNT] = {"count", "count a second"},
		[UNIT_RATIO] = {"ratio", "ratio a second"},
		[UNIT_BYTES] = {"bytes", "bytes a second"},
		[UNIT_PAGES] = {"pages", "pages a second"},
		[UNIT_SECONDS] = {"seconds", "seconds a second"},
		[UNIT_BOOL] = {"yes or no", "yes or no a second"},
	};
	_Static_assert(ARRAY_SIZE(names) == _UNIT_MAX, "name every unit");

	return d.unit < _UNIT_MAX ? names[d.unit][d.per_second] : "unknown";
}

/* Names */

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool starts_with_any(const char *s, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (starts_with(s, prefixes[i]))
			return true;
	return false;
}

static bool is_counter_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return n > 0 && s[n] == '\0' && n < sizeof(((struct signal_ref *)NULL)->arg) &&
	       (*s < '0' || *s > '9');
}

/* Most names tell what they count; the exceptions are listed (include/linux/vm_event_item.h). */
static uint16_t vmstat_family(const char *name)
{
	static const char *const pages[] = {
		"pgalloc",
		"pgfree",
		"pgscan",
		"pgsteal",
		"pgskip",
		"pgrefill",
		"pgactivate",
		"pgdeactivate",
		"pglazyfree",
		"pgrotated",
		"pgmigrate",
		"pgpromote",
		"pgdemote",
		"pgreuse",
		"nr_dirtied",
		"nr_written",
		"nr_throttled",
		"nr_vmscan",
		"workingset_refault",
	};
	static const char *const events[] = {"nr_foll_pin", "nr_tlb"};

	if (starts_with_any(name, pages, ARRAY_SIZE(pages)))
		return FAMILY_VMSTAT_PAGES;
	if (starts_with(name, "nr_") && !starts_with_any(name, events, ARRAY_SIZE(events)))
		return FAMILY_VMSTAT_NR;
	return FAMILY_VMSTAT;
}

static uint16_t mthp_family(const char *name)
{
	return starts_with(name, "nr_") || streq(name, "pcp_order_stat") ? FAMILY_MTHP_NR
									 : FAMILY_MTHP;
}

/* "64kB" as an order: up to `end`. -ENOENT where it does not look like a size at all. */
static int parse_order(const char *s, const char *end, uint64_t page_bytes, int16_t *ret)
{
	char word[24];
	uint64_t bytes;

	if (end - s < 1 || (size_t)(end - s) >= sizeof(word) || *s < '0' || *s > '9')
		return -ENOENT;
	memcpy(word, s, (size_t)(end - s));
	word[end - s] = '\0';
	if (parse_bytes(word, &bytes) < 0)
		return -EINVAL;
	for (unsigned order = 0; order < PCP_ORDERS_MAX; order++)
		if (page_bytes << order == bytes) {
			*ret = (int16_t)order;
			return 0;
		}
	return -EINVAL;
}

/* "node.N.free_ratio" against "node.0.free_ratio" */
static bool match_node(const char *pattern, const char *name, struct signal_ref *ref)
{
	const char *n = strstr(pattern, ".N.") + 1;
	size_t digits;

	if (strncmp(pattern, name, (size_t)(n - pattern)) != 0)
		return false;
	name += n - pattern;
	digits = strspn(name, "0123456789");
	if (digits == 0 || digits > 9 || !streq(name + digits, n + 1))
		return false;
	memcpy(ref->arg, name, digits);
	return true;
}

/* A row without X: its name, and where it has an order, a size behind it. */
static int match_row(const struct family *f, const char *name, uint64_t page_bytes,
		     struct signal_ref *ref)
{
	size_t len = strlen(f->info.name);

	if (f->shape == SHAPE_NODE)
		return match_node(f->info.name, name, ref) ? 0 : -ENOENT;
	if (strncmp(name, f->info.name, len) != 0)
		return -ENOENT;
	if (name[len] == '\0')
		return 0;
	if (!f->has_order || name[len] != '.')
		return -ENOENT;
	return parse_order(name + len + 1, name + strlen(name), page_bytes, &ref->order);
}

static int resolve_row(const char *name, uint64_t page_bytes, struct signal_ref *ref)
{
	for (uint16_t i = _FAMILY_FIRST_FIXED; i < ARRAY_SIZE(families); i++) {
		int r;

		ref->family = i;
		ref->order = families[i].has_order ? SIGNAL_ORDER_AT_HAND : SIGNAL_NO_ORDER;
		r = match_row(&families[i], name, page_bytes, ref);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

/* "mthp.anon_fault_alloc", "mthp.64kB.anon_fault_alloc", "mthp.64kB.alloc_bytes" */
static int resolve_mthp(const char *name, uint64_t page_bytes, struct signal_ref *ref)
{
	const char *stat = name + strlen("mthp."), *dot = strchr(stat, '.');
	int16_t order = SIGNAL_ORDER_AT_HAND;
	char plain[64];
	int r;

	if (dot) {
		r = parse_order(stat, dot, page_bytes, &order);
		if (r < 0)
			return r;
		stat = dot + 1;
	}
	if (!is_counter_name(stat))
		return -ENOENT;
	(void)snprintf(plain, sizeof(plain), "mthp.%s", stat);
	r = resolve_row(plain, page_bytes, ref);
	if (r < 0) {
		ref->family = mthp_family(stat);
		(void)snprintf(ref->arg, sizeof(ref->arg), "%s", stat);
	}
	ref->order = order;
	return 0;
}

int signal_resolve(const char *name, uint64_t page_bytes, struct signal_ref *ret)
{
	struct signal_ref ref;
	int r = 0;

	memset(&ref, 0, sizeof(ref)); /* references are compared bytewise */
	ref.order = SIGNAL_NO_ORDER;
	if (starts_with(name, "vmstat.")) {
		name += strlen("vmstat.");
		if (!is_counter_name(name))
			return -ENOENT;
		ref.family = vmstat_family(name);
		memcpy(ref.arg, name, strlen(name));
	} else if (starts_with(name, "mthp.")) {
		r = resolve_mthp(name, page_bytes, &ref);
	} else {
		r = resolve_row(name, page_bytes, &ref);
	}
	if (r < 0)
		return r;
	*ret = ref;
	return 0;
}

const struct signal_info *signal_describe(const struct signal_ref *ref)
{
	return &families[ref->family].info;
}

struct dimension signal_dimension(const struct signal_ref *ref)
{
	return families[ref->family].info.dimension;
}

const char *signal_name(const struct signal_ref *ref, uint64_t page_bytes, char *buf, size_t size)
{
	const struct family *f = &families[ref->family];
	const char *name = f->info.name;
	char folio[32] = "";
	int head = (int)strcspn(name, ".") + 1; /* with its dot */

	if (ref->order >= 0)
		(void)snprintf(folio, sizeof(folio), "%" PRIu64 "kB",
			       (page_bytes << ref->order) / 1024);
	if (f->shape == SHAPE_NAMED)
		(void)snprintf(buf, size, "%.*s%s%s%s", head, name, folio, *folio ? "." : "",
			       ref->arg);
	else if (f->shape == SHAPE_NODE)
		(void)snprintf(buf, size, "%.*s%s%s", head, name, ref->arg, name + head + 1);
	else if (f->shape == SHAPE_COMMAND)
		(void)snprintf(buf, size, "%s(\"%s\")", name, ref->arg);
	else if (*folio && starts_with(name, "mthp."))
		(void)snprintf(buf, size, "%.*s%s.%s", head, name, folio, name + head);
	else
		(void)snprintf(buf, size, "%s%s%s", name, *folio ? "." : "", folio);
	return buf;
}

/* Reading */

static const char *why_no_source(uint32_t missing)
{
	static const char *const why[] = {
		[SOURCE_ZONEINFO] = "/proc/zoneinfo could not be read",
		[SOURCE_VMSTAT] = "/proc/vmstat could not be read",
		[SOURCE_BUDDYINFO] = "/proc/buddyinfo could not be read",
		[SOURCE_PSI_MEMORY] = "/proc/pressure/memory could not be read",
		[SOURCE_MTHP] = "this kernel has no statistics of folio sizes",
		[SOURCE_KNOBS] = "the settings could not be read",
	};
	_Static_assert(ARRAY_SIZE(why) == _SOURCE_MAX, "a reason for every source");

	return why[__builtin_ctz(missing)];
}

bool signal_read(const struct signal_ref *ref, const struct snapshot *s, unsigned order,
		 double *ret, const char **ret_why)
{
	const struct family *f = &families[ref->family];
	uint32_t missing = f->info.sources & ~s->valid;
	struct reading r = {
		.ref = ref,
		.s = s,
		.order = ref->order >= 0 ? (unsigned)ref->order : order,
	};
	bool ok = missing ? unknown(&r, why_no_source(missing)) : f->read(&r);

	if (ok)
		*ret = r.value;
	if (ret_why)
		*ret_why = ok ? NULL : r.why;
	return ok;
}
