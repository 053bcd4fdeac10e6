/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The simulated memory: nodes, zones, CPUs and their page lists, as mm/page_alloc.c keeps them.
 *
 * Pure: no files, no clock, no randomness. Time passes only through model_advance(). All numbers
 * of the lists are base pages, as in the kernel; what behaves differently by version asks
 * release_from().
 */
#pragma once

#include "base/parse.h"
#include "base/text.h"
#include "counters.h"

#define MODEL_ORDERS    14U /* 0 to the largest PMD order, 13 on arm64 with 64 KiB pages */
#define MODEL_CPUS_MAX  1024U
#define MODEL_NODES_MAX 64U
#define MODEL_LOADS_MAX 32U
#define MODEL_RATES_MAX 32U

enum zone_type {
	ZONE_TYPE_DMA,
	ZONE_TYPE_DMA32,
	ZONE_TYPE_NORMAL,
	ZONE_TYPE_MOVABLE,
	ZONE_TYPE_DEVICE,
	_ZONE_TYPE_MAX,
};
const char *zone_type_name(enum zone_type t);

enum order_control {
	CONTROL_NONE,
	CONTROL_PER_SIZE, /* hugepages-<size>kB/pcp_enabled */
	CONTROL_SINGLE,   /* pcp_allow_high_order */
};

#define RELEASE(major, minor) ((major)*1000U + (minor))

struct config {
	unsigned cpus, nodes;
	unsigned release; /* RELEASE() */
	char release_text[64];
	unsigned page_shift;
	enum order_control control;
	bool order_stats; /* orderN lines and pcp_order_stat */
	bool thp;
	unsigned scale_max; /* CONFIG_PCP_BATCH_SCALE_MAX */
	struct cpuset isolated, nohz_full;
	uint64_t zone_pages[MODEL_NODES_MAX][_ZONE_TYPE_MAX]; /* present pages */
	int node_of_cpu[MODEL_CPUS_MAX];
	uint64_t l2_bytes, l3_bytes;
	unsigned l2_cpus, l3_cpus; /* CPUs that share one; 0: all of the node */
	char cmdline[512];
};

/* One CPU's list of one zone: struct per_cpu_pages. */
struct pcp {
	int count, high, high_min, high_max, batch;
	int free_count;
	uint8_t alloc_factor, expire;
	bool prev_high_order; /* the last free was of order 1 to 3 */
	bool stat_dirty;      /* zone statistics changed since the last fold */
	uint32_t blocks[MODEL_ORDERS];
};

struct model_zone {
	enum zone_type type;
	int node;
	uint64_t present, managed, start_pfn;
	uint64_t free; /* in the buddy lists; what is parked is not in it */
	uint64_t min, low, high, promo;
	bool below_high, reclaim_active;
	bool lists_off;         /* memory is being taken offline: zone_pcp_disable() */
	double unusable;        /* this share of the free pages ... */
	unsigned unusable_from; /* ... lies in blocks below this order */
	uint64_t allocs, frees; /* blocks that crossed the zone lock */
	struct pcp *pcp;        /* by possible CPU; NULL while the zone has no memory */
};

struct model_node {
	bool online;
	struct model_zone zones[_ZONE_TYPE_MAX];
};

struct model_cpu {
	bool online;
	bool spinning; /* a real-time task keeps its kworkers from running */
	bool busy;     /* its vmstat work runs once a second */
	int node;
};

/* Blocks of one order taken and given back, over and over, on some CPUs. */
struct load {
	char name[32];
	struct cpuset cpus;
	unsigned order;
	uint64_t rate;  /* bytes a second on each CPU */
	uint64_t burst; /* bytes taken before the first is given back */
	bool anon;      /* faults: the mTHP statistics move */
	double owed;    /* blocks */
};

struct counter_rate {
	uint64_t *counter;
	double per_second, owed;
};

struct psi_state {
	double share; /* of the time that is stalled now */
	double avg10, avg60, avg300;
	double total_usec;
};

struct model {
	struct config config;
	uint64_t now_usec, ticks; /* ticks: seconds that were evolved */
	unsigned pmd_order;
	struct model_node *nodes;
	struct model_cpu *cpus;
	uint64_t fraction;
	uint64_t min_free_kbytes;
	bool min_free_set; /* by hand: not computed again */
	unsigned watermark_scale_factor;
	uint32_t orders_on;    /* bit: order is allowed on the lists by the per-size control */
	uint64_t passes;       /* of stat_refresh */
	uint64_t order_drains; /* by switching an order off */
	uint64_t vmstat[_VMSTAT_MAX];
	uint64_t mthp[MODEL_ORDERS][_MTHP_STAT_MAX];
	struct load loads[MODEL_LOADS_MAX];
	size_t nr_loads;
	struct counter_rate rates[MODEL_RATES_MAX];
	size_t nr_rates;
	struct psi_state some, full;
};

static inline int64_t clamped(int64_t v, int64_t lo, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* Takes the configuration over (its sets too). 0 or -ENOMEM. */
int model_init(struct model *m, struct config *config);
void model_free(struct model *m);

static inline bool release_from(const struct model *m, unsigned major, unsigned minor)
{
	return m->config.release >= RELEASE(major, minor);
}

static inline bool model_autotunes(const struct model *m)
{
	return release_from(m, 6, 7);
}

static inline bool zone_populated(const struct model_zone *z)
{
	return z->present > 0;
}

/* A zone of an online node that has memory, or NULL. */
struct model_zone *model_zone(struct model *m, int node, enum zone_type t);
/* for (struct model_zone *z = NULL; (z = model_next_zone(m, z));) populated zones of online nodes
 */
struct model_zone *model_next_zone(struct model *m, const struct model_zone *after);
uint64_t model_parked(struct model *m);
uint64_t zone_parked_pages(const struct model *m, const struct model_zone *z);
uint64_t model_order_blocks(struct model *m, unsigned order);

/* What mm/page_alloc.c computes; exported for the test of the formulae. */
int zone_batch(const struct model *m, uint64_t managed);
int zone_highsize(const struct model *m, const struct model_zone *z, uint64_t fraction);
/* Watermarks and every pageset's batch and limits again, as after hotplug. */
void model_recompute(struct model *m);

/* 0 or 8 and more; -EINVAL. An unchanged value computes nothing. */
int model_set_fraction(struct model *m, uint64_t value);
/* Recomputes watermarks and lists. */
void model_set_min_free(struct model *m, uint64_t kbytes);

/* One CPU's part of a stat_refresh pass. */
void model_refresh_cpu(struct model *m, unsigned cpu);

/* The per-size control. */
bool order_always_on(const struct model *m, unsigned order);
bool order_allowed(const struct model *m, unsigned order);
void model_set_order(struct model *m, unsigned order, bool on); /* off after on drains all lists */
void model_drain_all(struct model *m);

/* One block; false where the zone has none left. Free may grow or shrink the lists. */
bool pcp_alloc(struct model *m, struct model_zone *z, unsigned cpu, unsigned order);
void pcp_free(struct model *m, struct model_zone *z, unsigned cpu, unsigned order);
/* Gives back at least `pages` (blocks are not split), or all. */
void pcp_drain(const struct model *m, struct model_zone *z, struct pcp *p, int pages);
void pcp_decay(const struct model *m, struct model_zone *z, struct pcp *p);

/*
 * Puts `pages` of free memory on a CPU's list as blocks of `order`, with high as high as count.
 * -ENOENT: no such zone or CPU; -ENOSPC: not that much free; -EINVAL: order not allowed, or no
 * multiple of it.
 */
int model_park(struct model *m, int node, enum zone_type t, unsigned cpu, unsigned order,
	       uint64_t pages);

/* Where a CPU's allocations come from: the highest zone with memory of its node or the nearest. */
struct model_zone *model_home_zone(struct model *m, unsigned cpu);

int model_cpu_set(struct model *m, unsigned cpu, bool online);
int model_node_set(struct model *m, int node, bool online);
/* Adds memory to a zone or takes it away (pages; a zone that reaches 0 is no longer populated). */
int model_zone_resize(struct model *m, int node, enum zone_type t, int64_t pages);
void zone_set_free(struct model *m, struct model_zone *z, uint64_t free);
void zone_lists_off(struct model *m, struct model_zone *z, bool off);

/* Lets time pass. */
void model_advance(struct model *m, uint64_t usec);
