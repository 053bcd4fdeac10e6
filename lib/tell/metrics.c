/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tell/metrics.h"

#include <errno.h>
#include <math.h>

#define PREFIX "pcptune_"
/* Longer names of the kernel's than this are cut off in labels. */
#define LABEL_TEXT 64U

struct family;

struct render {
	const struct metrics_input *in;
	const struct snapshot *snapshot;
	struct metrics_options o;
	struct exposition x;
	const struct family *family;
	bool open; /* the family's head is written: only once there is a sample */
	const struct zone *largest[SERIES_BASIC_ZONES];
	uint32_t nr_largest;
	struct parked parked;
};

/* A row of the table. `emit` writes the samples; `arg` is its to interpret. */
struct family {
	const char *name; /* a counter's without _total */
	enum metric_kind kind;
	enum metric_set set;
	const char *unit;
	const char *labels[4];
	uint32_t sources; /* bits: what a snapshot must have read */
	void (*emit)(struct render *r);
	size_t arg;
	const char *help;
};

/* writing samples */

static void open_family(struct render *r)
{
	const struct family *f = r->family;

	if (!r->open)
		exposition_family(&r->x, f->name, f->kind, f->unit, f->help);
	r->open = true;
}

static void put(struct render *r, double value, const char *a, const char *b, const char *c,
		const char *d)
{
	const char *const values[] = {a, b, c, d};
	struct label labels[ARRAY_SIZE(values)];
	size_t nr = 0;

	for (; nr < ARRAY_SIZE(values) && values[nr]; nr++)
		labels[nr] = (struct label){r->family->labels[nr], values[nr]};
	open_family(r);
	/* up to 2^53 a double holds whole numbers exactly, and prints slower */
	if (value >= 0 && value <= 9007199254740992.0 && value == floor(value))
		exposition_u64(&r->x, labels, nr, (uint64_t)value);
	else
		exposition_double(&r->x, labels, nr, value);
}

static void put0(struct render *r, double value)
{
	put(r, value, NULL, NULL, NULL, NULL);
}

struct number {
	char text[12];
};

static struct number number(int64_t v)
{
	struct number n;

	(void)snprintf(n.text, sizeof(n.text), "%d", (int)v);
	return n;
}

/* The kernel prints counters that fell below zero as unsigned. */
static double signed_value(uint64_t v)
{
	return v > INT64_MAX ? (double)(int64_t)v : (double)v;
}

static bool is_full(const struct render *r)
{
	return r->o.full;
}

/* zones */

static uint64_t largest_value(const struct zoneinfo *zi, const struct zone *z, enum pageset_field f,
			      bool *ret_known)
{
	uint64_t max = 0;

	*ret_known = false;
	for (uint32_t i = 0; i < z->nr_pagesets; i++) {
		const struct pageset *p = &zi->pagesets[z->first_pageset + i];

		if (!pageset_has(p, f))
			continue;
		*ret_known = true;
		max = MAX_OF(max, p->value[f]);
	}
	return max;
}

static void find_largest(struct render *r)
{
	const struct zoneinfo *zi = &r->snapshot->zoneinfo;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];
		uint32_t at = r->nr_largest;

		if (!z->populated || !snapshot_zone_counts(r->snapshot, z))
			continue;
		while (at > 0 && zone_managed(r->largest[at - 1]) < zone_managed(z))
			at--;
		if (at >= SERIES_BASIC_ZONES)
			continue;
		r->nr_largest = MIN_OF(r->nr_largest + 1, SERIES_BASIC_ZONES);
		for (uint32_t k = r->nr_largest - 1; k > at; k--)
			r->largest[k] = r->largest[k - 1];
		r->largest[at] = z;
	}
}

typedef void zone_fn(struct render *r, const struct zone *z, const char *node);

/* In the kernel's order, so that the text of two scrapes can be compared. */
static void each_zone(struct render *r, zone_fn *fn)
{
	const struct zoneinfo *zi = &r->snapshot->zoneinfo;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];
		bool wanted = is_full(r) && z->populated;

		for (uint32_t k = 0; !wanted && k < r->nr_largest; k++)
			wanted = r->largest[k] == z;
		if (wanted)
			fn(r, z, number(z->node).text);
	}
}

static void zone_parked_bytes(struct render *r, const struct zone *z, const char *node)
{
	uint64_t pages = zone_parked(&r->snapshot->zoneinfo, z);

	put(r, (double)(pages * r->snapshot->page_bytes), node, z->name, NULL, NULL);
}

static void emit_zone_parked_bytes(struct render *r)
{
	each_zone(r, zone_parked_bytes);
}

static void zone_parked_pages(struct render *r, const struct zone *z, const char *node)
{
	put(r, (double)zone_parked(&r->snapshot->zoneinfo, z), node, z->name, NULL, NULL);
}

static void emit_zone_parked_pages(struct render *r)
{
	each_zone(r, zone_parked_pages);
}

static void zone_parked_ratio(struct render *r, const struct zone *z, const char *node)
{
	uint64_t managed = zone_managed(z);

	if (managed > 0)
		put(r, (double)zone_parked(&r->snapshot->zoneinfo, z) / (double)managed, node,
		    z->name, NULL, NULL);
}

static void emit_zone_parked_ratio(struct render *r)
{
	each_zone(r, zone_parked_ratio);
}

/* arg: the field; of the CPU where it is largest */
static void zone_pageset_field(struct render *r, const struct zone *z, const char *node)
{
	bool known;
	uint64_t v = largest_value(&r->snapshot->zoneinfo, z, (enum pageset_field)r->family->arg,
				   &known);

	if (known)
		put(r, (double)v, node, z->name, NULL, NULL);
}

static void emit_zone_pageset_field(struct render *r)
{
	each_zone(r, zone_pageset_field);
}

/* arg: the field */
static void zone_field(struct render *r, const struct zone *z, const char *node)
{
	enum zone_field f = (enum zone_field)r->family->arg;

	if (zone_has(z, f))
		put(r, (double)z->value[f], node, z->name, NULL, NULL);
}

static void emit_zone_field(struct render *r)
{
	each_zone(r, zone_field);
}

static void zone_watermarks(struct render *r, const struct zone *z, const char *node)
{
	static const enum zone_field fields[] = {ZONE_MIN, ZONE_LOW, ZONE_HIGH, ZONE_PROMO};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (zone_has(z, fields[i]))
			put(r, (double)z->value[fields[i]], node, z->name,
			    zone_field_name(fields[i]), NULL);
}

static void emit_zone_watermarks(struct render *r)
{
	each_zone(r, zone_watermarks);
}

static void zone_protection(struct render *r, const struct zone *z, const char *node)
{
	const uint64_t *protection = r->snapshot->zoneinfo.protection;

	for (uint32_t i = 0; i < z->nr_protection; i++)
		put(r, (double)protection[z->first_protection + i], node, z->name, number(i).text,
		    NULL);
}

static void emit_zone_protection(struct render *r)
{
	each_zone(r, zone_protection);
}

static void zone_parked_blocks(struct render *r, const struct zone *z, const char *node)
{
	const struct zoneinfo *zi = &r->snapshot->zoneinfo;
	uint64_t blocks[PCP_ORDERS_MAX] = {0};
	uint32_t nr = 0;

	for (uint32_t i = 0; i < z->nr_pagesets; i++) {
		const struct pageset *p = &zi->pagesets[z->first_pageset + i];

		for (uint32_t k = 0; k < p->nr_orders; k++)
			blocks[k] += p->order[k];
		nr = MAX_OF(nr, p->nr_orders);
	}
	for (uint32_t k = 0; k < nr; k++)
		put(r, (double)blocks[k], node, z->name, number(k).text, NULL);
}

static void emit_zone_parked_blocks(struct render *r)
{
	each_zone(r, zone_parked_blocks);
}

/* the kernel's named counters */

static bool starts_with(const struct named_value *v, const char *word)
{
	size_t n = strlen(word);

	return v->name_len >= n && memcmp(v->name, word, n) == 0;
}

/*
 * Does it only grow? What the kernel calls nr_… is an amount, with the exceptions below; all
 * other names but workingset_nodes count events (include/linux/mmzone.h, vm_event_item.h).
 */
static bool counts_events(const struct named_value *v)
{
	static const char *const growing[] = {
		"nr_vmscan_",  "nr_dirtied",    "nr_written",         "nr_throttled_written",
		"nr_foll_pin", "nr_tlb_remote", "nr_tlb_local_flush",
	};

	if (starts_with(v, "workingset_nodes"))
		return false;
	if (!starts_with(v, "nr_"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(growing); i++)
		if (starts_with(v, growing[i]))
			return true;
	return false;
}

/* Those of the family's kind; nameless ones cannot be told apart and are left out. */
static void put_counters(struct render *r, const struct named_value *v, uint32_t nr,
			 const char *node, const char *zone)
{
	bool events = r->family->kind == METRIC_COUNTER;

	for (uint32_t i = 0; i < nr; i++) {
		char name[LABEL_TEXT];
		double value = events ? (double)v[i].value : signed_value(v[i].value);

		if (v[i].name_len == 0 || counts_events(&v[i]) != events)
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)v[i].name_len, v[i].name);
		if (zone)
			put(r, value, node, zone, name, NULL);
		else if (node)
			put(r, value, node, name, NULL, NULL);
		else
			put(r, value, name, NULL, NULL, NULL);
	}
}

static void zone_counters(struct render *r, const struct zone *z, const char *node)
{
	put_counters(r, r->snapshot->zoneinfo.values + z->first_counter, z->nr_counters, node,
		     z->name);
}

static void emit_zone_counters(struct render *r)
{
	each_zone(r, zone_counters);
}

static void node_counters(struct render *r, const struct zone *z, const char *node)
{
	put_counters(r, r->snapshot->zoneinfo.values + z->first_per_node, z->nr_per_node, node,
		     NULL);
}

static void emit_node_counters(struct render *r)
{
	each_zone(r, node_counters);
}

static void emit_vmstat(struct render *r)
{
	put_counters(r, r->snapshot->vmstat.values, r->snapshot->vmstat.nr_values, NULL, NULL);
}

/* free blocks and fragmentation */

static bool buddy_is_empty(const struct buddy_zone *z)
{
	for (uint32_t k = 0; k < z->nr_orders; k++)
		if (z->free[k])
			return false;
	return true;
}

/* arg: 0 the blocks, 1 the share that is of no use to the order */
static void emit_buddy(struct render *r)
{
	const struct buddyinfo *b = &r->snapshot->buddy;

	for (uint32_t i = 0; i < b->nr_zones; i++) {
		const struct buddy_zone *z = &b->zones[i];
		bool unusable = r->family->arg;

		/* without free memory there is nothing that could be fragmented */
		for (uint32_t k = 0; k < z->nr_orders && !(unusable && buddy_is_empty(z)); k++)
			put(r, unusable ? buddy_unusable(z, k) : (double)z->free[k],
			    number(z->node).text, z->name, number(k).text, NULL);
	}
}

/* folio sizes */

typedef void size_fn(struct render *r, const struct mthp_size *s, const char *order,
		     const char *size);

static void each_size(struct render *r, size_fn *fn)
{
	const struct mthp *m = &r->snapshot->mthp;

	for (uint32_t i = 0; i < m->nr_sizes; i++) {
		char size[24];

		(void)snprintf(size, sizeof(size), "%llukB",
			       (unsigned long long)(m->size[i].bytes / 1024));
		fn(r, &m->size[i], number(m->size[i].order).text, size);
	}
}

static bool stat_is_pcp(const struct mthp_stat *st)
{
	return streq(st->name, "pcp_order_stat");
}

static void size_events(struct render *r, const struct mthp_size *s, const char *order,
			const char *size)
{
	bool events = r->family->kind == METRIC_COUNTER;

	for (uint32_t i = 0; i < s->nr_stats; i++) {
		const struct mthp_stat *st = &s->stat[i];
		bool amount = strncmp(st->name, "nr_", 3) == 0;

		if (!st->valid || stat_is_pcp(st) || amount == events)
			continue;
		put(r, signed_value(st->value), order, size, st->name, NULL);
	}
}

static void emit_size_events(struct render *r)
{
	each_size(r, size_events);
}

static void size_pcp_blocks(struct render *r, const struct mthp_size *s, const char *order,
			    const char *size)
{
	for (uint32_t i = 0; i < s->nr_stats; i++)
		if (s->stat[i].valid && stat_is_pcp(&s->stat[i]))
			put(r, (double)s->stat[i].value, order, size, NULL, NULL);
}

static void emit_size_pcp_blocks(struct render *r)
{
	each_size(r, size_pcp_blocks);
}

/* arg: 0 anonymous memory, 1 shmem */
static void size_mode(struct render *r, const struct mthp_size *s, const char *order,
		      const char *size)
{
	static const char *const words[2][6] = {
		{"always", "inherit", "madvise", "never"},
		{"always", "inherit", "within_size", "advise", "never"},
	};
	bool shmem = r->family->arg;
	const char *mode = shmem ? s->shmem_enabled : s->enabled;

	for (size_t i = 0; mode[0] && i < ARRAY_SIZE(words[0]) && words[shmem][i]; i++)
		put(r, streq(mode, words[shmem][i]), order, size, words[shmem][i], NULL);
}

static void emit_size_mode(struct render *r)
{
	each_size(r, size_mode);
}

/* the machine as a whole */

enum total {
	TOTAL_BYTES,
	TOTAL_PAGES,
	TOTAL_RATIO,
	TOTAL_WORST,
	TOTAL_EXCESS,
};

static void emit_parked(struct render *r)
{
	const struct parked *p = &r->parked;
	uint64_t page = r->snapshot->page_bytes;

	switch ((enum total)r->family->arg) {
	case TOTAL_BYTES:
		put0(r, (double)(p->pages * page));
		break;
	case TOTAL_PAGES:
		put0(r, (double)p->pages);
		break;
	case TOTAL_RATIO:
		if (p->managed > 0)
			put0(r, (double)p->pages / (double)p->managed);
		break;
	case TOTAL_WORST:
		if (p->worst)
			put0(r, p->share_max);
		break;
	case TOTAL_EXCESS:
		if (p->excess_known)
			put0(r, (double)(p->excess * page));
		break;
	}
}

/* arg: the field, summed over every list of every zone */
static void emit_pageset_sum(struct render *r)
{
	const struct zoneinfo *zi = &r->snapshot->zoneinfo;
	enum pageset_field f = (enum pageset_field)r->family->arg;
	uint64_t sum = 0;
	bool known = false;

	for (uint32_t i = 0; i < zi->nr_pagesets; i++) {
		if (!pageset_has(&zi->pagesets[i], f))
			continue;
		sum += zi->pagesets[i].value[f];
		known = true;
	}
	if (known)
		put0(r, (double)sum);
}

static void emit_zone_free_worst(struct render *r)
{
	const struct zoneinfo *zi = &r->snapshot->zoneinfo;
	double worst = INFINITY;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];

		if (z->populated && zone_managed(z) > 0 && zone_has(z, ZONE_FREE) &&
		    snapshot_zone_counts(r->snapshot, z))
			worst = fmin(worst, (double)z->value[ZONE_FREE] / (double)zone_managed(z));
	}
	if (isfinite(worst))
		put0(r, worst);
}

static void emit_zones_below_low(struct render *r)
{
	const struct zoneinfo *zi = &r->snapshot->zoneinfo;
	unsigned below = 0;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];

		below += z->populated && snapshot_zone_counts(r->snapshot, z) &&
			 z->value[ZONE_FREE] < z->value[ZONE_LOW];
	}
	put0(r, below);
}

static void emit_psi_total(struct render *r)
{
	const struct psi *psi = &r->snapshot->psi_memory;

	if (psi->some.present)
		put(r, (double)psi->some.total_usec / 1e6, "some", NULL, NULL, NULL);
	if (psi->full.present)
		put(r, (double)psi->full.total_usec / 1e6, "full", NULL, NULL, NULL);
}

static void put_psi_averages(struct render *r, const struct psi_line *l, const char *kind)
{
	if (!l->present)
		return;
	put(r, l->avg10, kind, "10s", NULL, NULL);
	put(r, l->avg60, kind, "60s", NULL, NULL);
	put(r, l->avg300, kind, "300s", NULL, NULL);
}

static void emit_psi_averages(struct render *r)
{
	put_psi_averages(r, &r->snapshot->psi_memory.some, "some");
	put_psi_averages(r, &r->snapshot->psi_memory.full, "full");
}

enum machine_fact {
	FACT_CPUS,
	FACT_ISOLATED,
	FACT_NODES,
	FACT_PAGE_BYTES,
	FACT_L2,
	FACT_LLC,
	FACT_AUTOTUNE,
	FACT_MISSING,
	FACT_UNKNOWN_LINES,
};

static void emit_fact(struct render *r)
{
	const struct snapshot *s = r->snapshot;

	switch ((enum machine_fact)r->family->arg) {
	case FACT_CPUS:
		put0(r, (double)cpuset_count(&s->topology.online));
		break;
	case FACT_ISOLATED:
		put0(r, (double)cpuset_count(&s->topology.isolated));
		break;
	case FACT_NODES:
		put0(r, (double)cpuset_count(&s->topology.nodes));
		break;
	case FACT_PAGE_BYTES:
		put0(r, (double)s->page_bytes);
		break;
	case FACT_L2:
		if (s->topology.l2_bytes)
			put0(r, (double)s->topology.l2_bytes);
		break;
	case FACT_LLC:
		if (s->topology.llc_bytes)
			put0(r, (double)s->topology.llc_bytes);
		break;
	case FACT_AUTOTUNE:
		if (s->pcp_autotune >= 0)
			put0(r, s->pcp_autotune);
		break;
	case FACT_MISSING:
		put0(r, s->missing_pagesets);
		break;
	case FACT_UNKNOWN_LINES:
		put0(r, s->zoneinfo.unknown_lines);
		break;
	}
}

/* arg: the field */
static void percpu_field(struct render *r, const struct zone *z, const char *node)
{
	const struct zoneinfo *zi = &r->snapshot->zoneinfo;
	enum pageset_field f = (enum pageset_field)r->family->arg;

	for (uint32_t i = 0; i < z->nr_pagesets; i++) {
		const struct pageset *p = &zi->pagesets[z->first_pageset + i];

		/* up to 2.6.24 a CPU had a hot and a cold list: only the hot one, as today's */
		if (pageset_has(p, f) && p->pcp <= 0)
			put(r, (double)p->value[f], node, z->name, number(p->cpu).text, NULL);
	}
}

static void emit_percpu_field(struct render *r)
{
	each_zone(r, percpu_field);
}

/* the settings */

static bool is_order_knob(const char *name)
{
	return strncmp(name, "pcp_enabled/", 12) == 0;
}

/* The last of the basic families: orders as far as the limit allows. */
static bool has_room(const struct render *r)
{
	return is_full(r) || r->x.series < SERIES_BASIC_MAX;
}

static void emit_knob_value(struct render *r)
{
	const struct snapshot *s = r->snapshot;
	char name[KNOB_NAME_MAX];

	if (!snapshot_has(s, SOURCE_KNOBS))
		return;
	if (s->has_high_fraction)
		put(r, (double)s->high_fraction, "high_fraction", NULL, NULL, NULL);
	for (uint32_t i = 0; i < s->mthp.nr_sizes; i++) {
		const struct mthp_size *size = &s->mthp.size[i];
		struct knob_id id = {KNOB_PCP_ENABLED, size->order};

		if (mthp_has_switch(size) && size->pcp_enabled >= 0 && has_room(r) &&
		    (is_full(r) || size->controllable))
			put(r, size->pcp_enabled, knob_name(id, s->page_bytes, name), NULL, NULL,
			    NULL);
	}
}

typedef void knob_fn(struct render *r, const struct state_knob *k);

static void each_knob(struct render *r, knob_fn *fn)
{
	const struct daemon_state *state = r->in->state;

	for (uint32_t i = 0; state && i < state->nr_knobs; i++)
		if (is_full(r) || !is_order_knob(state->knobs[i].name))
			fn(r, &state->knobs[i]);
}

static void knob_baseline(struct render *r, const struct state_knob *k)
{
	if (k->has_baseline || k->has_value)
		put(r, (double)(k->has_baseline ? k->baseline : k->value), k->name, NULL, NULL,
		    NULL);
}

static void emit_knob_baseline(struct render *r)
{
	each_knob(r, knob_baseline);
}

static void knob_owner(struct render *r, const struct state_knob *k)
{
	for (int o = 0; o < _OWNER_MAX; o++)
		put(r, k->owner == (enum shown_owner)o, k->name,
		    shown_owner_name((enum shown_owner)o), NULL, NULL);
}

static void emit_knob_owner(struct render *r)
{
	each_knob(r, knob_owner);
}

/* "locked out" as a label's value: "locked_out" */
static const char *state_label(enum shown_state s, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s", shown_state_name(s));
	for (char *p = buf; *p; p++)
		if (*p == ' ')
			*p = '_';
	return buf;
}

static void knob_states(struct render *r, const struct state_knob *k)
{
	char label[24];

	for (int s = 0; s < _SHOWN_MAX; s++)
		put(r, k->state == (enum shown_state)s, k->name,
		    state_label((enum shown_state)s, label, sizeof(label)), NULL, NULL);
}

static void emit_knob_states(struct render *r)
{
	each_knob(r, knob_states);
}

static void knob_since(struct render *r, const struct state_knob *k)
{
	if (k->since_usec > 0)
		put(r, (double)k->since_usec / 1e6, k->name, NULL, NULL, NULL);
}

static void emit_knob_since(struct render *r)
{
	each_knob(r, knob_since);
}

/* What an alert asks for is in basic, the rest of the states in full. */
static bool is_trouble(enum shown_state s)
{
	return s == SHOWN_FOREIGN || s == SHOWN_FAILED || s == SHOWN_LOCKED_OUT || s == SHOWN_BLIND;
}

static void emit_knobs_by_state(struct render *r)
{
	const struct daemon_state *state = r->in->state;
	char label[24];

	for (int s = 0; state && s < _SHOWN_MAX; s++) {
		unsigned nr = 0;

		if (!is_full(r) && !is_trouble((enum shown_state)s))
			continue;
		for (uint32_t i = 0; i < state->nr_knobs; i++)
			nr += state->knobs[i].state == (enum shown_state)s;
		put(r, nr, state_label((enum shown_state)s, label, sizeof(label)), NULL, NULL,
		    NULL);
	}
}

/* the daemon itself */

static uint64_t self_field(const struct render *r)
{
	uint64_t v;

	memcpy(&v, (const char *)r->in->self + r->family->arg, sizeof(v));
	return v;
}

/* arg: offset of a uint64_t in struct self_stats */
static void emit_self(struct render *r)
{
	if (r->in->self)
		put0(r, (double)self_field(r));
}

static void emit_self_usec(struct render *r)
{
	if (r->in->self)
		put0(r, (double)self_field(r) / 1e6);
}

static void emit_self_double(struct render *r)
{
	double v;

	if (!r->in->self)
		return;
	memcpy(&v, (const char *)r->in->self + r->family->arg, sizeof(v));
	put0(r, v);
}

static void emit_writes(struct render *r)
{
	static const char *const results[] = {
		[WRITE_DONE] = "done",
		[WRITE_REFUSED] = "refused",
		[WRITE_UNVERIFIED] = "unverified",
	};
	_Static_assert(ARRAY_SIZE(results) == _WRITE_RESULT_MAX, "name every result");

	for (int i = 0; r->in->self && i < _WRITE_RESULT_MAX; i++)
		put(r, (double)r->in->self->writes[i], results[i], NULL, NULL, NULL);
}

static const char *drain_label(enum drain_mode_metric m)
{
	return m == DRAIN_METRIC_KERNEL ? "kernel" : m == DRAIN_METRIC_TRIM ? "trim" : "squeeze";
}

static void emit_drains(struct render *r)
{
	uint64_t sum = 0;

	for (int i = 0; r->in->self && i < _DRAIN_METRIC_MAX; i++)
		sum += r->in->self->drains[i];
	if (r->in->self)
		put0(r, (double)sum);
}

static void emit_drains_by_mode(struct render *r)
{
	for (int i = 0; r->in->self && i < _DRAIN_METRIC_MAX; i++)
		put(r, (double)r->in->self->drains[i], drain_label((enum drain_mode_metric)i), NULL,
		    NULL, NULL);
}

static void emit_drained_bytes(struct render *r)
{
	if (r->in->self)
		put0(r, (double)(r->in->self->drained_pages * r->snapshot->page_bytes));
}

static void emit_drain_blocked(struct render *r)
{
	if (r->in->state)
		put0(r, r->in->state->drain_blocked);
}

static void emit_event_source_up(struct render *r)
{
	const struct daemon_state *s = r->in->state;

	for (uint32_t i = 0; s && i < s->nr_events; i++)
		put(r, strcmp(s->events[i].state, "events") == 0, s->events[i].source, NULL, NULL,
		    NULL);
}

/* `arg` is where the counters, one a source, stand in self_stats. */
static void emit_events(struct render *r)
{
	const struct daemon_state *s = r->in->state;
	uint64_t n[STATE_EVENTS_MAX];

	if (!s || !r->in->self)
		return;
	memcpy(n, (const char *)r->in->self + r->family->arg, sizeof(n));
	for (uint32_t i = 0; i < s->nr_events; i++)
		put(r, (double)n[i], s->events[i].source, NULL, NULL, NULL);
}

static void emit_enforcing(struct render *r)
{
	if (r->in->state)
		put0(r, r->in->state->enforce && !r->in->state->paused);
}

static void emit_policies(struct render *r)
{
	const struct self_stats *self = r->in->self;

	if (!self)
		return;
	put(r, (double)self->policies_active, "active", NULL, NULL, NULL);
	put(r, (double)self->policies_sleeping, "sleeping", NULL, NULL, NULL);
	put(r, (double)self->policies_invalid, "invalid", NULL, NULL, NULL);
}

static void emit_build_info(struct render *r)
{
	put(r, 1, PACKAGE_VERSION, NULL, NULL, NULL);
}

static void emit_snapshot_age(struct render *r)
{
	put0(r, r->in->snapshot_age_seconds);
}

enum source_value {
	SOURCE_VALUE_UP,
	SOURCE_VALUE_READS,
	SOURCE_VALUE_ERRORS,
	SOURCE_VALUE_SECONDS,
};

static bool source_was_tried(const struct source_state *st)
{
	return st && st->reads > 0;
}

static void emit_sources(struct render *r)
{
	for (int i = 0; i < _SOURCE_MAX; i++) {
		const struct source_state *st = r->in->source[i];
		const char *name = source_name((enum source)i);
		double v = 0;

		/* what this kernel does not have is not down */
		if (!source_was_tried(st) || st->error == -ENOENT)
			continue;
		switch ((enum source_value)r->family->arg) {
		case SOURCE_VALUE_UP:
			v = st->error == 0;
			break;
		case SOURCE_VALUE_READS:
			v = (double)st->reads;
			break;
		case SOURCE_VALUE_ERRORS:
			v = (double)st->errors;
			break;
		case SOURCE_VALUE_SECONDS:
			v = (double)st->last_usec / 1e6;
			break;
		}
		put(r, v, name, NULL, NULL, NULL);
	}
}

/* arg: as above; summed over the sources */
static void emit_sources_sum(struct render *r)
{
	uint64_t errors = 0, usec = 0;

	for (int i = 0; i < _SOURCE_MAX; i++) {
		const struct source_state *st = r->in->source[i];

		if (!source_was_tried(st))
			continue;
		errors += st->error == -ENOENT ? 0 : st->errors;
		usec += snapshot_has(r->snapshot, (enum source)i) ? st->last_usec : 0;
	}
	if (r->family->arg == SOURCE_VALUE_ERRORS)
		put0(r, (double)errors);
	else
		put0(r, (double)usec / 1e6);
}

#define ZONES            SOURCE_BIT(SOURCE_ZONEINFO)
#define GAUGE(n, s, u)   .name = PREFIX n, .kind = METRIC_GAUGE, .set = s, .unit = u
#define COUNTER(n, s, u) .name = PREFIX n, .kind = METRIC_COUNTER, .set = s, .unit = u
#define SELF(field)      offsetof(struct self_stats, field)

/* clang-format off */
static const struct family families[] = {
	{ GAUGE("pcp_parked_bytes", SERIES_BASIC, "bytes"), .sources = ZONES,
	  .emit = emit_parked, .arg = TOTAL_BYTES,
	  .help = "Memory parked on the per-CPU page lists of all CPUs and zones." },
	{ GAUGE("pcp_parked_pages", SERIES_BASIC, "pages"), .sources = ZONES,
	  .emit = emit_parked, .arg = TOTAL_PAGES,
	  .help = "Pages parked on the per-CPU page lists of all CPUs and zones." },
	{ GAUGE("pcp_parked_ratio", SERIES_BASIC, "ratio"), .sources = ZONES,
	  .emit = emit_parked, .arg = TOTAL_RATIO,
	  .help = "Parked pages as a share of the memory that the kernel manages." },
	{ GAUGE("pcp_parked_worst_zone_ratio", SERIES_BASIC, "ratio"), .sources = ZONES,
	  .emit = emit_parked, .arg = TOTAL_WORST,
	  .help = "Parked pages as a share of managed memory, in the zone where it is largest. "
		  "Zones below 1% of the machine's memory do not count." },
	{ GAUGE("pcp_excess_bytes", SERIES_BASIC, "bytes"), .sources = ZONES,
	  .emit = emit_parked, .arg = TOTAL_EXCESS,
	  .help = "Parked memory beyond each list's high_min: what a trim can return." },
	{ GAUGE("pcp_high_min_pages", SERIES_BASIC, "pages"), .sources = ZONES,
	  .emit = emit_pageset_sum, .arg = PAGESET_HIGH_MIN,
	  .help = "high_min of all lists together: what they keep after a trim, if they are full." },
	{ GAUGE("pcp_high_max_pages", SERIES_BASIC, "pages"), .sources = ZONES,
	  .emit = emit_pageset_sum, .arg = PAGESET_HIGH_MAX,
	  .help = "high_max of all lists together: what they may grow to." },
	{ GAUGE("zone_parked_bytes", SERIES_BASIC, "bytes"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_parked_bytes,
	  .help = "Memory parked on the lists of a zone. Basic: of the four largest zones." },
	{ GAUGE("zone_parked_ratio", SERIES_BASIC, "ratio"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_parked_ratio,
	  .help = "Parked pages as a share of the zone's managed pages. "
		  "Basic: of the four largest zones." },
	{ GAUGE("zone_free_worst_ratio", SERIES_BASIC, "ratio"), .sources = ZONES,
	  .emit = emit_zone_free_worst,
	  .help = "Free pages as a share of managed pages, in the zone where it is smallest. "
		  "Zones below 1% of the machine's memory do not count." },
	{ GAUGE("zones_below_low", SERIES_BASIC, ""), .sources = ZONES,
	  .emit = emit_zones_below_low,
	  .help = "Zones whose free pages are below their low watermark. "
		  "Zones below 1% of the machine's memory do not count." },
	{ COUNTER("memory_pressure_seconds", SERIES_BASIC, "seconds"), .labels = { "kind" },
	  .sources = SOURCE_BIT(SOURCE_PSI_MEMORY), .emit = emit_psi_total,
	  .help = "Time in which some or all (full) tasks waited for memory." },
	{ GAUGE("source_up", SERIES_BASIC, ""), .labels = { "source" },
	  .emit = emit_sources, .arg = SOURCE_VALUE_UP,
	  .help = "1 where the last read of that kernel interface succeeded, 0 where it failed. "
		  "What the kernel does not have is left out." },
	{ COUNTER("read_errors", SERIES_BASIC, ""), .emit = emit_sources_sum,
	  .arg = SOURCE_VALUE_ERRORS, .help = "Reads of kernel interfaces that failed." },
	{ GAUGE("snapshot_age_seconds", SERIES_BASIC, "seconds"), .emit = emit_snapshot_age,
	  .help = "How long before this scrape the kernel was read." },
	{ GAUGE("snapshot_read_seconds", SERIES_BASIC, "seconds"), .emit = emit_sources_sum,
	  .arg = SOURCE_VALUE_SECONDS,
	  .help = "What reading and parsing the kernel's tables took for this snapshot." },
	{ GAUGE("build_info", SERIES_BASIC, ""), .labels = { "version" }, .emit = emit_build_info,
	  .help = "Always 1; the version is the label." },
	{ GAUGE("enforcing", SERIES_BASIC, ""), .emit = emit_enforcing,
	  .help = "1 while the daemon may write, 0 while it only observes or is paused." },
	{ COUNTER("ticks", SERIES_BASIC, ""), .emit = emit_self, .arg = SELF(ticks),
	  .help = "Rounds of reading and deciding." },
	{ COUNTER("tick_seconds", SERIES_BASIC, "seconds"), .emit = emit_self_usec,
	  .arg = SELF(tick_usec), .help = "Time spent in those rounds." },
	{ COUNTER("decisions", SERIES_BASIC, ""), .emit = emit_self, .arg = SELF(decisions),
	  .help = "Decisions to change a knob or to drain, those of observing policies included." },
	{ COUNTER("writes", SERIES_BASIC, ""), .labels = { "result" }, .emit = emit_writes,
	  .help = "Writes to knobs by result: done and read back, refused by the kernel, "
		  "or taken but not read back as written (unverified)." },
	{ COUNTER("drains", SERIES_BASIC, ""), .emit = emit_drains, .help = "Drains begun." },
	{ COUNTER("drained_bytes", SERIES_BASIC, "bytes"), .emit = emit_drained_bytes,
	  .help = "Memory that drains and orders that were switched off returned, as the "
		  "counts showed." },
	{ COUNTER("drain_seconds", SERIES_BASIC, "seconds"), .emit = emit_self_usec,
	  .arg = SELF(drain_usec), .help = "Time that drains took." },
	{ GAUGE("drain_blocked", SERIES_BASIC, ""), .emit = emit_drain_blocked,
	  .help = "1 while a pass of a drain hangs in the kernel." },
	{ COUNTER("guard_trips", SERIES_BASIC, ""), .emit = emit_self, .arg = SELF(guard_trips),
	  .help = "Changes that a guard took back." },
	{ GAUGE("knobs", SERIES_BASIC, ""), .labels = { "state" }, .emit = emit_knobs_by_state,
	  .help = "Knobs in each state. Basic: only the states that ask for a look "
		  "(foreign, failed, locked_out, blind)." },
	{ .name = "process_cpu_seconds", .kind = METRIC_COUNTER, .set = SERIES_BASIC,
	  .unit = "seconds", .emit = emit_self_double, .arg = SELF(process.cpu_seconds),
	  .help = "User and system time of the daemon." },
	{ .name = "process_resident_memory_bytes", .kind = METRIC_GAUGE, .set = SERIES_BASIC,
	  .unit = "bytes", .emit = emit_self, .arg = SELF(process.resident_bytes),
	  .help = "Resident memory of the daemon." },
	{ .name = "process_start_time_seconds", .kind = METRIC_GAUGE, .set = SERIES_BASIC,
	  .unit = "seconds", .emit = emit_self_double, .arg = SELF(process.start_time_seconds),
	  .help = "When the daemon started, in seconds since 1970." },
	{ .name = "process_open_fds", .kind = METRIC_GAUGE, .set = SERIES_BASIC, .unit = "",
	  .emit = emit_self, .arg = SELF(process.open_fds),
	  .help = "File descriptors that the daemon has open." },
	{ GAUGE("knob_baseline", SERIES_BASIC, ""), .labels = { "knob" },
	  .emit = emit_knob_baseline,
	  .help = "The value a knob had before pcptune first wrote it. Basic: of high_fraction." },
	{ GAUGE("knob_owner", SERIES_BASIC, ""), .labels = { "knob", "owner" },
	  .emit = emit_knob_owner,
	  .help = "1 for whose value a knob has: the kernel's own (its baseline), a policy's, "
		  "a pin's, or a foreign one that somebody wrote after pcptune. "
		  "Basic: of high_fraction." },
	{ GAUGE("knob_value", SERIES_BASIC, ""), .labels = { "knob" },
	  .sources = SOURCE_BIT(SOURCE_KNOBS), .emit = emit_knob_value,
	  .help = "The value of a knob now. Basic: high_fraction, and the controllable orders "
		  "as far as there is room." },
	{ GAUGE("event_source_up", SERIES_FULL, ""), .labels = { "source" },
	  .emit = emit_event_source_up,
	  .help = "1 while the kernel tells the daemon of this kind of events." },
	{ COUNTER("events", SERIES_FULL, ""), .labels = { "source" }, .emit = emit_events,
	  .arg = SELF(events), .help = "Events that the kernel told of." },
	{ COUNTER("event_overruns", SERIES_FULL, ""), .labels = { "source" },
	  .emit = emit_events, .arg = SELF(event_overruns),
	  .help = "Times that the kernel had to drop events; everything was then looked at anew." },
	/* everything else in the snapshot */
	{ GAUGE("zone_parked_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_parked_pages,
	  .help = "Pages parked on the lists of a zone." },
	{ GAUGE("zone_parked_blocks", SERIES_FULL, ""), .labels = { "node", "zone", "order" },
	  .sources = ZONES, .emit = emit_zone_parked_blocks,
	  .help = "Blocks of each order parked on the lists of a zone, where the kernel counts them." },
	{ GAUGE("zone_pcp_high_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_pageset_field, .arg = PAGESET_HIGH,
	  .help = "high of a zone's lists, on the CPU where it is largest." },
	{ GAUGE("zone_pcp_high_min_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_pageset_field, .arg = PAGESET_HIGH_MIN,
	  .help = "high_min of a zone's lists, on the CPU where it is largest." },
	{ GAUGE("zone_pcp_high_max_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_pageset_field, .arg = PAGESET_HIGH_MAX,
	  .help = "high_max of a zone's lists, on the CPU where it is largest." },
	{ GAUGE("zone_pcp_batch_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_pageset_field, .arg = PAGESET_BATCH,
	  .help = "batch of a zone's lists, on the CPU where it is largest." },
	{ GAUGE("zone_free_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_field, .arg = ZONE_FREE,
	  .help = "Free pages of a zone; parked ones are not among them." },
	{ GAUGE("zone_watermark_pages", SERIES_FULL, "pages"),
	  .labels = { "node", "zone", "watermark" }, .sources = ZONES,
	  .emit = emit_zone_watermarks, .help = "The watermarks of a zone." },
	{ GAUGE("zone_boost_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_field, .arg = ZONE_BOOST,
	  .help = "By how much the watermarks are raised at present against fragmentation." },
	{ GAUGE("zone_protection_pages", SERIES_FULL, "pages"),
	  .labels = { "node", "zone", "class" }, .sources = ZONES, .emit = emit_zone_protection,
	  .help = "Pages of a zone that are kept from allocations that could use a higher zone, "
		  "by the number of that zone (the kernel's protection)." },
	{ GAUGE("zone_spanned_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_field, .arg = ZONE_SPANNED,
	  .help = "Pages of a zone from its first to its last, holes included." },
	{ GAUGE("zone_present_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_field, .arg = ZONE_PRESENT,
	  .help = "Pages of a zone without holes." },
	{ GAUGE("zone_managed_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_field, .arg = ZONE_MANAGED,
	  .help = "Pages of a zone that the page allocator manages." },
	{ GAUGE("zone_cma_pages", SERIES_FULL, "pages"), .labels = { "node", "zone" },
	  .sources = ZONES, .emit = emit_zone_field, .arg = ZONE_CMA,
	  .help = "Pages of a zone that belong to the contiguous memory allocator." },
	{ GAUGE("zone_reserved_highatomic_pages", SERIES_FULL, "pages"),
	  .labels = { "node", "zone" }, .sources = ZONES, .emit = emit_zone_field,
	  .arg = ZONE_RESERVED_HIGHATOMIC,
	  .help = "Pages of a zone reserved for high-order atomic allocations." },
	{ GAUGE("zone_stat", SERIES_FULL, ""), .labels = { "node", "zone", "stat" },
	  .sources = ZONES, .emit = emit_zone_counters,
	  .help = "Amounts that the kernel keeps for a zone, under its names; pages unless the "
		  "name says otherwise." },
	{ COUNTER("zone_events", SERIES_FULL, ""), .labels = { "node", "zone", "event" },
	  .sources = ZONES, .emit = emit_zone_counters,
	  .help = "Events that the kernel counts for a zone, under its names." },
	{ GAUGE("node_stat", SERIES_FULL, ""), .labels = { "node", "stat" }, .sources = ZONES,
	  .emit = emit_node_counters,
	  .help = "Amounts that the kernel keeps for a node, under its names; pages unless the "
		  "name says otherwise." },
	{ COUNTER("node_events", SERIES_FULL, ""), .labels = { "node", "event" },
	  .sources = ZONES, .emit = emit_node_counters,
	  .help = "Events that the kernel counts for a node, under its names." },
	{ GAUGE("vmstat", SERIES_FULL, ""), .labels = { "stat" },
	  .sources = SOURCE_BIT(SOURCE_VMSTAT), .emit = emit_vmstat,
	  .help = "Amounts in /proc/vmstat, under the kernel's names; pages unless the name says "
		  "otherwise." },
	{ COUNTER("vmstat_events", SERIES_FULL, ""), .labels = { "event" },
	  .sources = SOURCE_BIT(SOURCE_VMSTAT), .emit = emit_vmstat,
	  .help = "Events in /proc/vmstat, under the kernel's names." },
	{ GAUGE("zone_free_blocks", SERIES_FULL, ""), .labels = { "node", "zone", "order" },
	  .sources = SOURCE_BIT(SOURCE_BUDDYINFO), .emit = emit_buddy, .arg = 0,
	  .help = "Free blocks of each order in a zone." },
	{ GAUGE("zone_unusable_free_ratio", SERIES_FULL, "ratio"),
	  .labels = { "node", "zone", "order" }, .sources = SOURCE_BIT(SOURCE_BUDDYINFO),
	  .emit = emit_buddy, .arg = 1,
	  .help = "Share of a zone's free memory in blocks too small for the order." },
	{ COUNTER("mthp_events", SERIES_FULL, ""), .labels = { "order", "size", "event" },
	  .sources = SOURCE_BIT(SOURCE_MTHP), .emit = emit_size_events,
	  .help = "Events of a folio size, under the names of its stats directory." },
	{ GAUGE("mthp_folios", SERIES_FULL, ""), .labels = { "order", "size", "stat" },
	  .sources = SOURCE_BIT(SOURCE_MTHP), .emit = emit_size_events,
	  .help = "Folios of a size, under the names of its stats directory." },
	{ GAUGE("mthp_parked_blocks", SERIES_FULL, ""), .labels = { "order", "size" },
	  .sources = SOURCE_BIT(SOURCE_MTHP), .emit = emit_size_pcp_blocks,
	  .help = "Blocks of a size on the lists of all CPUs, where the kernel counts them "
		  "(pcp_order_stat)." },
	{ GAUGE("mthp_enabled", SERIES_FULL, ""), .labels = { "order", "size", "mode" },
	  .sources = SOURCE_BIT(SOURCE_MTHP), .emit = emit_size_mode, .arg = 0,
	  .help = "1 for the mode in which a size is used for anonymous memory." },
	{ GAUGE("mthp_shmem_enabled", SERIES_FULL, ""), .labels = { "order", "size", "mode" },
	  .sources = SOURCE_BIT(SOURCE_MTHP), .emit = emit_size_mode, .arg = 1,
	  .help = "1 for the mode in which a size is used for shared memory." },
	{ GAUGE("memory_pressure_ratio", SERIES_FULL, "ratio"), .labels = { "kind", "window" },
	  .sources = SOURCE_BIT(SOURCE_PSI_MEMORY), .emit = emit_psi_averages,
	  .help = "Share of the window in which some or all (full) tasks waited for memory." },
	{ GAUGE("cpus_online", SERIES_FULL, ""), .emit = emit_fact, .arg = FACT_CPUS,
	  .help = "CPUs that are online." },
	{ GAUGE("cpus_isolated", SERIES_FULL, ""), .emit = emit_fact, .arg = FACT_ISOLATED,
	  .help = "CPUs that are isolated from the scheduler." },
	{ GAUGE("nodes_online", SERIES_FULL, ""), .emit = emit_fact, .arg = FACT_NODES,
	  .help = "Memory nodes that are online." },
	{ GAUGE("page_size_bytes", SERIES_FULL, "bytes"), .emit = emit_fact,
	  .arg = FACT_PAGE_BYTES, .help = "Size of a page." },
	{ GAUGE("cpu_l2_bytes", SERIES_FULL, "bytes"), .emit = emit_fact, .arg = FACT_L2,
	  .help = "Smallest second-level cache of any CPU." },
	{ GAUGE("cpu_llc_bytes", SERIES_FULL, "bytes"), .emit = emit_fact, .arg = FACT_LLC,
	  .help = "Smallest last-level cache of any CPU." },
	{ GAUGE("pcp_autotune", SERIES_FULL, ""), .sources = ZONES, .emit = emit_fact,
	  .arg = FACT_AUTOTUNE,
	  .help = "1 where the lists size themselves between high_min and high_max." },
	{ GAUGE("pagesets_missing", SERIES_FULL, ""), .sources = ZONES, .emit = emit_fact,
	  .arg = FACT_MISSING,
	  .help = "Lists of online CPUs that /proc/zoneinfo did not show." },
	{ GAUGE("zoneinfo_unknown_lines", SERIES_FULL, ""), .sources = ZONES, .emit = emit_fact,
	  .arg = FACT_UNKNOWN_LINES,
	  .help = "Lines of /proc/zoneinfo that were not understood and skipped." },
	{ GAUGE("source_read_seconds", SERIES_FULL, "seconds"), .labels = { "source" },
	  .emit = emit_sources, .arg = SOURCE_VALUE_SECONDS,
	  .help = "What the last read of that kernel interface took, parsing included." },
	{ COUNTER("source_reads", SERIES_FULL, ""), .labels = { "source" }, .emit = emit_sources,
	  .arg = SOURCE_VALUE_READS, .help = "Reads of that kernel interface, failed ones included." },
	{ COUNTER("source_errors", SERIES_FULL, ""), .labels = { "source" },
	  .emit = emit_sources, .arg = SOURCE_VALUE_ERRORS,
	  .help = "Reads of that kernel interface that failed." },
	{ GAUGE("knob_state", SERIES_FULL, ""), .labels = { "knob", "state" },
	  .emit = emit_knob_states, .help = "1 for the state that a knob is in." },
	{ GAUGE("knob_state_since_seconds", SERIES_FULL, "seconds"), .labels = { "knob" },
	  .emit = emit_knob_since,
	  .help = "When a knob came into its state, in seconds since 1970." },
	{ GAUGE("policies", SERIES_FULL, ""), .labels = { "state" }, .emit = emit_policies,
	  .help = "Policies that are at work, that sleep because this machine does not match, "
		  "and that are not used because of an error." },
	{ COUNTER("drains_by_mode", SERIES_FULL, ""), .labels = { "mode" },
	  .emit = emit_drains_by_mode, .help = "Drains begun, by how." },
	{ COUNTER("foreign_writes", SERIES_FULL, ""), .emit = emit_self,
	  .arg = SELF(foreign_writes), .help = "Times that somebody else wrote a knob of ours." },
	{ GAUGE("tick_max_seconds", SERIES_FULL, "seconds"), .emit = emit_self_usec,
	  .arg = SELF(tick_max_usec), .help = "The longest round of late." },
	{ .name = "process_virtual_memory_bytes", .kind = METRIC_GAUGE, .set = SERIES_FULL,
	  .unit = "bytes", .emit = emit_self, .arg = SELF(process.virtual_bytes),
	  .help = "Virtual memory of the daemon." },
	{ .name = "process_max_fds", .kind = METRIC_GAUGE, .set = SERIES_FULL, .unit = "",
	  .emit = emit_self, .arg = SELF(process.max_fds),
	  .help = "File descriptors that the daemon may have open." },

	{ GAUGE("cpu_pcp_count_pages", SERIES_PERCPU, "pages"),
	  .labels = { "node", "zone", "cpu" }, .sources = ZONES, .emit = emit_percpu_field,
	  .arg = PAGESET_COUNT, .help = "Pages on one CPU's lists of a zone." },
	{ GAUGE("cpu_pcp_high_pages", SERIES_PERCPU, "pages"),
	  .labels = { "node", "zone", "cpu" }, .sources = ZONES, .emit = emit_percpu_field,
	  .arg = PAGESET_HIGH, .help = "high of one CPU's lists of a zone." },
	{ GAUGE("cpu_pcp_batch_pages", SERIES_PERCPU, "pages"),
	  .labels = { "node", "zone", "cpu" }, .sources = ZONES, .emit = emit_percpu_field,
	  .arg = PAGESET_BATCH, .help = "batch of one CPU's lists of a zone." },
};
/* clang-format on */

static bool set_wanted(enum metric_set set, const struct metrics_options *o)
{
	switch (set) {
	case SERIES_BASIC:
		return true;
	case SERIES_FULL:
		return o->full;
	case SERIES_PERCPU:
		return o->percpu;
	case _SERIES_SET_MAX:
		break;
	}
	return false;
}

uint32_t metrics_sources(const struct metrics_options *o)
{
	uint32_t sources = 0;

	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (set_wanted(families[i].set, o))
			sources |= families[i].sources;
	return sources;
}

int metrics_render(const struct metrics_input *in, const struct metrics_options *o,
		   struct text *out, uint32_t *ret_series)
{
	struct render r = {.in = in, .snapshot = in->snapshot, .o = *o};

	exposition_start(&r.x, out, o->format);
	if (snapshot_has(in->snapshot, SOURCE_ZONEINFO)) {
		find_largest(&r);
		r.parked = snapshot_parked(in->snapshot);
	}
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		const struct family *f = &families[i];

		if (!set_wanted(f->set, o) || (in->snapshot->valid & f->sources) != f->sources)
			continue;
		r.family = f;
		r.open = false;
		f->emit(&r);
	}
	if (ret_series)
		*ret_series = r.x.series;
	return exposition_end(&r.x);
}

void metrics_input_sources(struct metrics_input *in, const struct sensor *sensor)
{
	for (int i = 0; i < _SOURCE_MAX; i++)
		in->source[i] = sensor_source(sensor, (enum source)i);
}

bool metric_info_at(size_t i, struct metric_info *ret)
{
	const struct family *f = &families[i];

	if (i >= ARRAY_SIZE(families))
		return false;
	*ret = (struct metric_info){
		.kind = f->kind, .set = f->set, .unit = f->unit, .help = f->help};
	(void)snprintf(ret->name, sizeof(ret->name), "%s%s", f->name,
		       f->kind == METRIC_COUNTER ? "_total" : "");
	memcpy(ret->labels, f->labels, sizeof(ret->labels));
	return true;
}

void metrics_document(struct text *out)
{
	static const char *const titles[_SERIES_SET_MAX] = {
		[SERIES_BASIC] = "Basic (the default)",
		[SERIES_FULL] = "Full adds",
		[SERIES_PERCPU] = "PerCPU adds",
	};
	struct metric_info m;

	for (int set = 0; set < _SERIES_SET_MAX; set++) {
		text_addf(out, "## %s\n\n", titles[set]);
		text_add(out, "| metric | kind | unit | labels | what it is |\n");
		text_add(out, "|---|---|---|---|---|\n");
		for (size_t i = 0; metric_info_at(i, &m); i++) {
			if (m.set != (enum metric_set)set)
				continue;
			text_addf(out, "| `%s` | %s | %s | ", m.name,
				  m.kind == METRIC_COUNTER ? "counter" : "gauge", m.unit);
			for (size_t k = 0; k < ARRAY_SIZE(m.labels) && m.labels[k]; k++)
				text_addf(out, "%s%s", k ? ", " : "", m.labels[k]);
			text_addf(out, " | %s |\n", m.help);
		}
		if (set + 1 < _SERIES_SET_MAX)
			text_add(out, "\n");
	}
}
