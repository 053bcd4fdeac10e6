/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense/snapshot.h"

#include "sense/autotune.h"
#include "sense/files.h"
#include "sense/mthp.h"
#include "sense/topology.h"

#include <errno.h>
#include <time.h>

/* Aggregates leave out zones smaller than this share of the machine's memory. */
#define SMALL_ZONE_DIVISOR 100U

/* The sources up to here are one file each, read whole. */
#define NR_TABLES ((enum source)(SOURCE_PSI_MEMORY + 1))

struct sensor {
	const struct sysroot *root;
	struct snapshot snapshot;
	struct source_state state[_SOURCE_MAX];
	struct kept_file file[NR_TABLES];
	struct text text[NR_TABLES]; /* the snapshot's names point into these */
	struct kept_file fraction;
	struct mthp_reader *mthp;
};

static const struct {
	const char *name, *rel;
} sources[] = {
	[SOURCE_ZONEINFO] = {"zoneinfo", "proc/zoneinfo"},
	[SOURCE_VMSTAT] = {"vmstat", "proc/vmstat"},
	[SOURCE_BUDDYINFO] = {"buddyinfo", "proc/buddyinfo"},
	[SOURCE_PSI_MEMORY] = {"psi_memory", "proc/pressure/memory"},
	[SOURCE_MTHP] = {"mthp", THP_REL},
	[SOURCE_KNOBS] = {"knobs", HIGH_FRACTION_REL},
};
_Static_assert(ARRAY_SIZE(sources) == _SOURCE_MAX, "name every source");

const char *source_name(enum source s)
{
	return s < _SOURCE_MAX ? sources[s].name : NULL;
}

const char *source_rel(enum source s)
{
	return s < _SOURCE_MAX ? sources[s].rel : NULL;
}

static uint64_t managed_pages(const struct zoneinfo *zi)
{
	uint64_t pages = 0;

	for (uint32_t i = 0; i < zi->nr_zones; i++)
		pages += zone_managed(&zi->zones[i]);
	return pages;
}

static bool zone_is_large(const struct zone *z, uint64_t all)
{
	return z->populated && zone_managed(z) > 0 && zone_managed(z) >= all / SMALL_ZONE_DIVISOR;
}

bool snapshot_zone_counts(const struct snapshot *s, const struct zone *z)
{
	return zone_is_large(z, s->summed ? s->parked.managed : managed_pages(&s->zoneinfo));
}

static void add_excess(struct parked *sum, const struct pageset *p)
{
	uint64_t count = p->value[PAGESET_COUNT];

	if (!pageset_has(p, PAGESET_HIGH_MIN)) {
		sum->excess_known = sum->excess_known && count == 0;
		return;
	}
	if (count > p->value[PAGESET_HIGH_MIN])
		sum->excess += count - p->value[PAGESET_HIGH_MIN];
}

/* Where lists have one fixed size, `high` is both bounds. */
static void add_bounds(struct parked *sum, const struct pageset *p, bool fixed)
{
	bool printed = pageset_has(p, PAGESET_HIGH_MIN) && pageset_has(p, PAGESET_HIGH_MAX);
	uint64_t high_min = p->value[printed ? PAGESET_HIGH_MIN : PAGESET_HIGH];

	sum->bounds_known = sum->bounds_known && (printed || fixed);
	sum->least_high_min = MIN_OF(sum->least_high_min, high_min);
	sum->high_max += p->value[printed ? PAGESET_HIGH_MAX : PAGESET_HIGH];
	sum->pages_within += p->value[PAGESET_COUNT];
}

static void add_zone(struct parked *sum, const struct snapshot *s, const struct zone *z)
{
	bool large = zone_is_large(z, sum->managed);
	uint64_t pages = 0;
	double share;

	for (uint32_t i = 0; i < z->nr_pagesets; i++) {
		const struct pageset *p = &s->zoneinfo.pagesets[z->first_pageset + i];

		pages += p->value[PAGESET_COUNT];
		add_excess(sum, p);
		if (large)
			add_bounds(sum, p, s->pcp_autotune == 0);
	}
	sum->pages += pages;
	if (!large)
		return;
	share = (double)pages / (double)zone_managed(z);
	if (!sum->worst || share > sum->share_max) {
		sum->share_max = share;
		sum->worst = z;
	}
}

static struct parked sum_parked(const struct snapshot *s)
{
	const struct zoneinfo *zi = &s->zoneinfo;
	struct parked sum = {
		.managed = managed_pages(zi),
		.excess_known = zi->nr_pagesets > 0,
		.bounds_known = true,
		.least_high_min = UINT64_MAX,
	};

	for (uint32_t i = 0; i < zi->nr_zones; i++)
		add_zone(&sum, s, &zi->zones[i]);
	sum.bounds_known = sum.bounds_known && sum.least_high_min != UINT64_MAX;
	return sum;
}

struct parked snapshot_parked(const struct snapshot *s)
{
	return s->summed ? s->parked : sum_parked(s);
}

/* CPUs that are online and have no list in a zone that has pages. */
static uint32_t count_missing(const struct snapshot *s)
{
	const struct zoneinfo *zi = &s->zoneinfo;
	size_t online = cpuset_count(&s->topology.online);
	uint32_t missing = 0;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];
		size_t listed = 0;

		for (uint32_t j = 0; j < z->nr_pagesets; j++) {
			const struct pageset *p = &zi->pagesets[z->first_pageset + j];

			listed += p->pcp != 1 && cpuset_has(&s->topology.online, p->cpu);
		}
		if (z->populated && listed < online)
			missing += (uint32_t)(online - listed);
	}
	return missing;
}

static uint64_t clock_usec(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

static int parse_source(struct snapshot *s, enum source source, const struct text *text,
			struct error *e)
{
	const char *data = text_str(text);

	switch (source) {
	case SOURCE_ZONEINFO:
		return zoneinfo_parse(&s->zoneinfo, data, text->len, 0, e);
	case SOURCE_VMSTAT:
		return vmstat_parse(&s->vmstat, data, text->len, e);
	case SOURCE_BUDDYINFO:
		return buddyinfo_parse(&s->buddy, data, text->len, e);
	case SOURCE_PSI_MEMORY:
		return psi_parse(&s->psi_memory, data, text->len, e);
	case SOURCE_MTHP:
	case SOURCE_KNOBS:
	case _SOURCE_MAX:
		break;
	}
	return -EINVAL;
}

/* Nothing of an earlier take stays behind a failed read: the text that names point to is gone. */
static void empty_source(struct snapshot *s, enum source source)
{
	if (source == SOURCE_ZONEINFO)
		s->zoneinfo.nr_zones = s->zoneinfo.nr_pagesets = s->zoneinfo.nr_values =
			s->zoneinfo.nr_protection = 0;
	else if (source == SOURCE_VMSTAT)
		s->vmstat.nr_values = 0;
	else if (source == SOURCE_BUDDYINFO)
		s->buddy.nr_zones = 0;
	else if (source == SOURCE_PSI_MEMORY)
		s->psi_memory = (struct psi){0};
}

static int read_failed(const struct sensor *s, enum source source, int r, struct error *e)
{
	if (r == -ENOENT)
		return error_set(e, r, "%s/%s is not there: this kernel does not offer it",
				 s->root->path, source_rel(source));
	return error_set(e, r,
			 "cannot read %s/%s: %s; what is read from it stays unknown until a read "
			 "succeeds",
			 s->root->path, source_rel(source), error_name(r));
}

static int read_table(struct sensor *s, enum source source, struct error *e)
{
	int r;

	empty_source(&s->snapshot, source);
	r = kept_file_read(&s->file[source], s->root, &s->text[source]);
	if (r < 0)
		return read_failed(s, source, r, e);
	r = parse_source(&s->snapshot, source, &s->text[source], e);
	if (r < 0)
		(void)error_prefix(e, "cannot make sense of %s/%s", s->root->path,
				   source_rel(source));
	return r;
}

static int read_fraction(struct sensor *s)
{
	uint64_t value = 0;
	int r = attr_read_u64(&s->fraction, s->root, &value);

	s->snapshot.has_high_fraction = r != -ENOENT;
	s->snapshot.high_fraction = value;
	return r == -ENOENT ? 0 : r;
}

static int read_knobs(struct sensor *s, struct error *e)
{
	int r = read_fraction(s);

	if (r < 0)
		return read_failed(s, SOURCE_KNOBS, r, e);
	if (!s->mthp)
		return 0;
	r = mthp_read_knobs(s->mthp, &s->snapshot.mthp);
	if (r < 0)
		(void)error_set(e, r, "cannot read which orders the lists may hold below %s/%s: %s",
				s->root->path, THP_REL, error_name(r));
	return r;
}

/* What single statistics did is noted with each: the source counts while there is any size. */
static int read_mthp(struct sensor *s, struct error *e)
{
	int r = s->mthp ? mthp_read_stats(s->mthp, &s->snapshot.mthp) : -ENOENT;

	return r < 0 ? read_failed(s, SOURCE_MTHP, r, e) : 0;
}

static int read_source(struct sensor *s, enum source source, struct error *e)
{
	if (source < NR_TABLES)
		return read_table(s, source, e);
	return source == SOURCE_MTHP ? read_mthp(s, e) : read_knobs(s, e);
}

static void take_source(struct sensor *s, enum source source)
{
	struct source_state *state = &s->state[source];
	uint64_t start = clock_usec(CLOCK_MONOTONIC);
	uint64_t cpu_start = clock_usec(CLOCK_THREAD_CPUTIME_ID);
	struct error e = {0};
	int r = read_source(s, source, &e);

	state->cost_usec = clock_usec(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
	state->last_usec = clock_usec(CLOCK_MONOTONIC) - start;
	state->reads++;
	state->error = r;
	if (r < 0) {
		state->errors++;
		state->why = e;
	}
	if (r == 0 || (source == SOURCE_MTHP && s->snapshot.mthp.nr_sizes > 0))
		s->snapshot.valid |= SOURCE_BIT(source);
}

/* What follows from zoneinfo: sizes that are not printed, sums, gaps. */
static void finish_zoneinfo(struct sensor *s)
{
	struct snapshot *snap = &s->snapshot;

	/* a kernel that was seen to tune its lists goes on doing so at any fraction */
	if (snap->pcp_autotune != 1)
		snap->pcp_autotune = autotune_find(snap);
	if (snap->pcp_autotune == 1 && !snap->zoneinfo.prints_high_min && snap->has_high_fraction)
		autotune_compute_high(snap);
	snap->missing_pagesets = count_missing(snap);
	snap->parked = sum_parked(snap);
	snap->summed = true;
}

const struct snapshot *sensor_take(struct sensor *s, uint32_t wanted, uint64_t now_usec)
{
	struct snapshot *snap = &s->snapshot;

	snap->taken_usec = now_usec;
	snap->valid = 0;
	snap->summed = false;
	for (enum source i = 0; i < _SOURCE_MAX; i++)
		if (wanted & SOURCE_BIT(i))
			take_source(s, i);
	if (snapshot_has(snap, SOURCE_ZONEINFO)) {
		if (!(wanted & SOURCE_BIT(SOURCE_KNOBS)) && !snap->zoneinfo.prints_high_min)
			(void)read_fraction(s);
		finish_zoneinfo(s);
	}
	return snap;
}

int sensor_rescan(struct sensor *s)
{
	struct topology fresh = {0};
	int r;

	r = topology_read(&fresh, s->root);
	if (r < 0)
		return r;
	topology_free(&s->snapshot.topology);
	s->snapshot.topology = fresh;
	s->snapshot.has_stat_refresh = sysroot_exists(s->root, STAT_REFRESH_REL);
	return mthp_scan(&s->mthp, &s->snapshot.mthp, s->root, s->snapshot.page_bytes);
}

static uint64_t host_page_bytes(void)
{
	long bytes = sysconf(_SC_PAGESIZE);

	return bytes > 0 ? (uint64_t)bytes : 4096;
}

int sensor_new(struct sensor **ret, const struct sysroot *root, uint64_t page_bytes,
	       struct error *e)
{
	_cleanup_(sensor_freep) struct sensor *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->root = root;
	s->snapshot.page_bytes = page_bytes ? page_bytes : host_page_bytes();
	s->snapshot.pcp_autotune = -1;
	s->fraction = KEPT_FILE(HIGH_FRACTION_REL);
	for (enum source i = 0; i < NR_TABLES; i++)
		s->file[i] = KEPT_FILE(source_rel(i));
	r = sensor_rescan(s);
	if (r < 0)
		return error_set(e, r, "cannot read %s/sys/devices/system: %s", root->path,
				 error_name(r));
	(void)read_fraction(s);
	*ret = TAKE_PTR(s);
	return 0;
}

struct sensor *sensor_free(struct sensor *s)
{
	if (!s)
		return NULL;
	for (enum source i = 0; i < NR_TABLES; i++) {
		kept_file_close(&s->file[i]);
		text_free(&s->text[i]);
	}
	kept_file_close(&s->fraction);
	zoneinfo_free(&s->snapshot.zoneinfo);
	vmstat_free(&s->snapshot.vmstat);
	buddyinfo_free(&s->snapshot.buddy);
	topology_free(&s->snapshot.topology);
	(void)mthp_reader_free(s->mthp);
	free(s);
	return NULL;
}

void sensor_set_events(struct sensor *s, const struct events *events)
{
	s->snapshot.events = events ? *events : (struct events){0};
}

const struct source_state *sensor_source(const struct sensor *s, enum source source)
{
	return &s->state[source];
}
