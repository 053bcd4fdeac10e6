/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Everything read from the kernel at one instant, and the sensor that reads it. */
#pragma once

#include "base/parse.h"
#include "base/sysroot.h"
#include "sense/knobs.h"
#include "sense/zoneinfo.h"

enum source {
	SOURCE_ZONEINFO,
	SOURCE_VMSTAT,
	SOURCE_BUDDYINFO,
	SOURCE_PSI_MEMORY,
	SOURCE_MTHP,  /* per-size directories: enabled, shmem_enabled, stats */
	SOURCE_KNOBS, /* the fraction, pcp_enabled of each size */
	_SOURCE_MAX,
};
#define SOURCE_BIT(s) (1U << (s))
#define SOURCES_ALL   (SOURCE_BIT(_SOURCE_MAX) - 1)

const char *source_name(enum source s); /* "zoneinfo" */
const char *source_rel(enum source s);  /* its file below the root: "proc/zoneinfo" */

/* How reading a source went, since the sensor was made. */
struct source_state {
	int error; /* of the last read: 0 or a negative errno; -ENOENT: not on this kernel */
	uint64_t reads, errors;
	uint64_t last_usec; /* what the last read and parse took */
	uint64_t cost_usec; /* the CPU time of it: waiting for a CPU costs the machine nothing */
	struct error why;   /* of the last failure */
};

/* /proc/vmstat. Event counters and gauges by the kernel's names, in its order. */
struct vmstat {
	struct named_value *values;
	uint32_t nr_values, values_room;
	/* places of names, as 1 + index, by hash; NULL is fine and only slower */
	uint32_t *index;
	uint32_t index_size; /* a power of two */
	uint64_t layout;     /* of the names that `index` was made from */
};

/*
 * Parses the text in place (names point into it). -EBADMSG where it ends inside a line, -ENOMEM;
 * then *v is empty. Lines of no known form are skipped.
 */
int vmstat_parse(struct vmstat *v, const char *text, size_t len, struct error *e) _must_check_;
void vmstat_free(struct vmstat *v);

/*
 * By name; "allocstall", "pgalloc", "pgskip" and the like are the sums over the zone suffixes where
 * the kernel splits them (pgalloc_dma, pgalloc_normal, …). `hint` (may be NULL) remembers the
 * place.
 */
bool vmstat_get(const struct vmstat *v, const char *name, uint32_t *hint, uint64_t *ret);

#define BUDDY_ORDERS_MAX 16U
struct buddy_zone {
	int32_t node;
	char name[ZONE_NAME_MAX];
	uint64_t free[BUDDY_ORDERS_MAX]; /* free blocks of each order */
	uint32_t nr_orders;
};

struct buddyinfo {
	struct buddy_zone *zones;
	uint32_t nr_zones, zones_room;
};

/* As vmstat_parse(). */
int buddyinfo_parse(struct buddyinfo *b, const char *text, size_t len,
		    struct error *e) _must_check_;
void buddyinfo_free(struct buddyinfo *b);
const struct buddy_zone *buddy_by_zone(const struct buddyinfo *b, const struct zone *z);

/*
 * The share (0 to 1) of a zone's free memory that cannot serve a block of `order`
 * (mm/vmstat.c, unusable_free_index()).
 */
double buddy_unusable(const struct buddy_zone *z, unsigned order);

struct psi_line {
	double avg10, avg60, avg300; /* ratios, 0 to 1 */
	uint64_t total_usec;
	bool present;
};

struct psi {
	struct psi_line some, full;
};

/* As vmstat_parse(). Kernels before 5.13 have no "full" line for some files. */
int psi_parse(struct psi *p, const char *text, size_t len, struct error *e) _must_check_;

#define MTHP_STATS_MAX 48U
struct mthp_size {
	unsigned order;
	uint64_t bytes;
	char enabled[12], shmem_enabled[12]; /* the word in brackets: "madvise"; "" where no file */
	/* the files of stats/, renamed ones under their present name; includes pcp_order_stat */
	struct mthp_stat {
		char name[40];
		uint64_t value;
		bool valid;
	} stat[MTHP_STATS_MAX];
	uint32_t nr_stats;
	bool has_pcp_enabled; /* this size has the file */
	bool controllable;    /* an order that this kernel can switch: not one that is always on */
	int pcp_enabled;      /* 0, 1, or a negative errno (-ENOENT: nothing to switch) */
};

struct mthp {
	struct mthp_size size[PCP_ORDERS_MAX]; /* ascending order */
	uint32_t nr_sizes;
	unsigned pmd_order; /* 0 where THP is not there */
	enum order_interface orders;
};

/* Does something say whether this order may live on the lists? Its own file, or the single one. */
static inline bool mthp_has_switch(const struct mthp_size *s)
{
	return s->has_pcp_enabled || s->controllable;
}

const struct mthp_size *mthp_by_order(const struct mthp *m, unsigned order);
bool mthp_stat_get(const struct mthp_size *s, const char *name, uint64_t *ret);

/* A CPU's caches as the tuning needs them; 0 where the machine does not tell. */
struct cpu_caches {
	uint64_t l2_bytes, llc_bytes;
	uint32_t l2_cpus, llc_cpus; /* online CPUs that share it, this one included */
};

struct topology {
	struct cpuset online, isolated, nohz_full; /* CPUs */
	struct cpuset nodes;                       /* online nodes */
	int32_t *node_of_cpu;                      /* by CPU number; -1 unknown */
	struct cpu_caches *caches;                 /* by CPU number */
	uint32_t cpu_room;                         /* entries in the two arrays */
	/*
	 * The smallest L2 and the smallest last-level cache over online CPUs and how many online
	 * CPUs share that one; of several equally small ones, the one that most CPUs share.
	 */
	uint64_t l2_bytes, llc_bytes;
	uint32_t l2_cpus, llc_cpus;
};

/* What comes as events rather than by reading; the daemon keeps it, see sensor_set_events(). */
#define PROCESS_NAME_MAX 16U /* a command's name with its NUL, as /proc/PID/comm has it */
struct events {
	bool has_links, has_processes; /* this source works: what follows is complete */
	uint64_t mtu_max;              /* of links that are up, without loopback; bytes */
	uint32_t nr_links;             /* how many those are */
	const char (*running)[PROCESS_NAME_MAX];
	uint32_t nr_running;
};

/* Pages parked, summed over what zoneinfo shows: every zone, populated or not. */
struct parked {
	uint64_t pages, managed;
	bool excess_known; /* every list with pages has a high_min, printed or computed */
	uint64_t excess;   /* what exceeds each list's high_min */
	/* zones below 1% of the memory left out: */
	double share_max; /* parked / managed of the worst zone */
	const struct zone *worst;
	/*
	 * what lists may hold without question, and at most: high_min and high_max, or high where
	 * it is fixed; the smallest list of all and the sums. Known only if `bounds_known`.
	 */
	bool bounds_known;
	uint64_t least_high_min, high_max, pages_within;
};

struct snapshot {
	uint64_t taken_usec; /* CLOCK_MONOTONIC, as given */
	uint64_t page_bytes;
	uint32_t valid; /* bit SOURCE_X: the part below holds this instant's values */
	struct zoneinfo zoneinfo;
	struct vmstat vmstat;
	struct buddyinfo buddy;
	struct psi psi_memory;
	struct mthp mthp;
	struct topology topology; /* as of the last sensor_rescan() */
	/* SOURCE_KNOBS */
	bool has_high_fraction;
	uint64_t high_fraction;
	bool has_stat_refresh;
	/*
	 * Do the lists tune themselves (6.7 and later)? 1 yes, 0 no, -1 cannot be told. Found by
	 * looking: high_min lines, or high values that differ between CPUs of one zone.
	 */
	int pcp_autotune;
	/* pagesets that topology has and zoneinfo lacks: CPUs that went away or text that was cut
	 */
	uint32_t missing_pagesets;
	struct events events; /* all zero while no source of events is there */
	/* sums made once a take; `summed` false: made by whoever asks */
	bool summed;
	struct parked parked;
};

static inline bool snapshot_has(const struct snapshot *s, enum source source)
{
	return s->valid >> source & 1;
}

/* Uses what sensor_take() summed; computes it where the snapshot was made otherwise. */
struct parked snapshot_parked(const struct snapshot *s);

/* Is this zone large enough to count in an aggregate (at least 1% of the machine's memory)? */
bool snapshot_zone_counts(const struct snapshot *s, const struct zone *z);

struct sensor;

/*
 * Makes a sensor for `root` (not owned: must outlive it) and looks at what is there. The page size
 * is the host's, or what `page_bytes` says (0: find out; captures may hold it in a META file of the
 * tests only). Missing files are no error: their source stays unknown.
 */
int sensor_new(struct sensor **ret, const struct sysroot *root, uint64_t page_bytes,
	       struct error *e) _must_check_;
struct sensor *sensor_free(struct sensor *s);

static inline void sensor_freep(struct sensor **s)
{
	*s = sensor_free(*s);
}

/*
 * Reads the sources in `wanted` (bits) and returns the snapshot, which the sensor owns and the next
 * take overwrites. Never fails as a whole: a source that could not be read is not `valid` and says
 * why in its state. `now_usec` is only noted.
 */
const struct snapshot *sensor_take(struct sensor *s, uint32_t wanted, uint64_t now_usec);

/* Looks at CPUs, nodes, caches and size directories again (after hotplug). 0 or a negative errno.
 */
int sensor_rescan(struct sensor *s);

/* The events for the next takes (copied, the `running` array is not). NULL: none. */
void sensor_set_events(struct sensor *s, const struct events *events);

const struct source_state *sensor_source(const struct sensor *s, enum source source);
