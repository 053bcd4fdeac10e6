/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl orders: what the lists may hold, who allocates it, and what free memory is worth. */
#include "ctl.h"

#include "base/format.h"

/* The kernel keeps orders up to this one on the lists (5.14 and later). */
#define COSTLY_ORDER 3U

struct order_view {
	unsigned order;
	const struct mthp_size *size; /* NULL: no folio size of this kernel */
	const char *on_lists;         /* "always", "on", "off", "no", "unknown" */
	bool controllable;
	bool has_free;
	uint64_t free; /* blocks */
	double unusable;
	bool has_parked;
	uint64_t parked; /* blocks */
};

static const char *lists_of(const struct snapshot *s, const struct order_view *v)
{
	unsigned pmd = s->mthp.pmd_order;

	/* before 5.14, which brought the knob, only single pages were kept */
	if (!s->has_high_fraction)
		return v->order == 0 ? "always" : "no";
	if (v->order <= COSTLY_ORDER || (pmd > 0 && v->order == pmd))
		return "always";
	if (!v->size || !mthp_has_switch(v->size))
		return "no";
	if (v->size->pcp_enabled < 0)
		return "unknown";
	return v->size->pcp_enabled ? "on" : "off";
}

static void add_buddy(const struct snapshot *s, struct order_view *v)
{
	double free_pages = 0, unusable_pages = 0;

	for (uint32_t i = 0; i < s->buddy.nr_zones; i++) {
		const struct buddy_zone *z = &s->buddy.zones[i];
		double pages = 0;

		if (v->order >= z->nr_orders)
			continue;
		v->has_free = true;
		v->free += z->free[v->order];
		for (uint32_t k = 0; k < z->nr_orders; k++)
			pages += (double)z->free[k] * (double)(1U << k);
		free_pages += pages;
		unusable_pages += pages > 0 ? pages * buddy_unusable(z, v->order) : 0;
	}
	v->unusable = free_pages > 0 ? unusable_pages / free_pages : 0;
}

static void add_parked(const struct snapshot *s, struct order_view *v)
{
	v->has_parked = s->zoneinfo.prints_orders;
	for (uint32_t i = 0; i < s->zoneinfo.nr_pagesets; i++) {
		const struct pageset *p = &s->zoneinfo.pagesets[i];

		v->parked += v->order < p->nr_orders ? p->order[v->order] : 0;
	}
	if (!v->has_parked && v->size)
		v->has_parked = mthp_stat_get(v->size, "pcp_order_stat", &v->parked);
}

static struct order_view view_of(const struct snapshot *s, unsigned order)
{
	struct order_view v = {.order = order, .size = mthp_by_order(&s->mthp, order)};

	v.on_lists = lists_of(s, &v);
	v.controllable = v.size && v.size->controllable;
	add_buddy(s, &v);
	add_parked(s, &v);
	return v;
}

static unsigned highest_order(const struct snapshot *s)
{
	unsigned max = COSTLY_ORDER;

	for (uint32_t i = 0; i < s->buddy.nr_zones; i++)
		if (s->buddy.zones[i].nr_orders > 0)
			max = MAX_OF(max, s->buddy.zones[i].nr_orders - 1);
	for (uint32_t i = 0; i < s->mthp.nr_sizes; i++)
		max = MAX_OF(max, s->mthp.size[i].order);
	return max;
}

static const char *or_dash(const char *word)
{
	return word && word[0] ? word : "-";
}

static void stat_cell(struct table *t, const struct mthp_size *s, const char *name)
{
	uint64_t v;

	if (s && mthp_stat_get(s, name, &v))
		table_cell(t, "%llu", (unsigned long long)v);
	else
		table_cell(t, "-");
}

static void add_row(struct table *t, const struct ctl *c, const struct order_view *v)
{
	char buf[FORMAT_MAX];

	table_cell(t, "%u", v->order);
	table_cell(t, "%s", format_folio(buf, sizeof(buf), c->snapshot->page_bytes << v->order));
	table_cell(t, "%s", v->on_lists);
	if (v->has_parked)
		table_cell(t, "%llu", (unsigned long long)v->parked);
	else
		table_cell(t, "-");
	table_cell(t, "%s", or_dash(v->size ? v->size->enabled : NULL));
	table_cell(t, "%s", or_dash(v->size ? v->size->shmem_enabled : NULL));
	stat_cell(t, v->size, "anon_fault_alloc");
	stat_cell(t, v->size, "anon_fault_fallback");
	stat_cell(t, v->size, "nr_anon");
	if (v->has_free) {
		table_cell(t, "%llu", (unsigned long long)v->free);
		table_cell(t, "%s", format_ratio(buf, sizeof(buf), v->unusable));
	} else {
		table_cell(t, "-");
		table_cell(t, "-");
	}
}

static const char *interface_text(enum order_interface i)
{
	switch (i) {
	case ORDERS_PER_SIZE:
		return "This kernel controls orders one by one (pcp_enabled of each size).";
	case ORDERS_SINGLE:
		return "This kernel controls order 4 (pcp_allow_high_order).";
	case ORDERS_NONE:
		break;
	}
	return "This kernel does not let orders be controlled.";
}

static int print_table(const struct ctl *c)
{
	static const char *const names[] = {"ORDER", "SIZE",  "ON LISTS", "PARKED",
					    "ANON",  "SHMEM", "ALLOC",    "FALLBACK",
					    "NOW",   "FREE",  "UNUSABLE"};
	_cleanup_(table_freep) struct table *t = table_new(ARRAY_SIZE(names));
	unsigned max = highest_order(c->snapshot);

	if (!t)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		table_cell(t, "%s", names[i]);
	table_align_left(t, 2);
	table_align_left(t, 4);
	table_align_left(t, 5);
	for (unsigned o = 0; o <= max; o++) {
		struct order_view v = view_of(c->snapshot, o);

		add_row(t, c, &v);
	}
	if (table_print(t, c->screen.out) < 0)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	(void)fprintf(c->screen.out,
		      "\nALLOC and FALLBACK: anonymous faults since boot; NOW: folios that exist; "
		      "FREE: free blocks.\n%s\n",
		      interface_text(c->snapshot->mthp.orders));
	return EXIT_DONE;
}

static void put_order(struct json_out *j, const struct ctl *c, const struct order_view *v)
{
	json_begin_object(j, NULL);
	json_put_u64(j, "order", v->order);
	json_put_u64(j, "bytes", c->snapshot->page_bytes << v->order);
	json_put_str(j, "on_lists", v->on_lists);
	json_put_bool(j, "controllable", v->controllable);
	if (v->has_parked)
		json_put_u64(j, "parked_blocks", v->parked);
	else
		json_put_null(j, "parked_blocks");
	if (v->has_free) {
		json_put_u64(j, "free_blocks", v->free);
		json_put_double(j, "unusable", v->unusable);
	} else {
		json_put_null(j, "free_blocks");
		json_put_null(j, "unusable");
	}
	if (v->size) {
		json_put_str(j, "enabled", v->size->enabled[0] ? v->size->enabled : NULL);
		json_put_str(j, "shmem_enabled",
			     v->size->shmem_enabled[0] ? v->size->shmem_enabled : NULL);
		json_begin_object(j, "stats");
		for (uint32_t i = 0; i < v->size->nr_stats; i++)
			if (v->size->stat[i].valid)
				json_put_u64(j, v->size->stat[i].name, v->size->stat[i].value);
		json_end_object(j);
	}
	json_end_object(j);
}

static int print_json(struct ctl *c)
{
	static const char *const interfaces[] = {
		[ORDERS_NONE] = "none",
		[ORDERS_PER_SIZE] = "per_size",
		[ORDERS_SINGLE] = "single",
	};
	struct json_out *j = ctl_json_begin(c);
	unsigned max = highest_order(c->snapshot);

	json_put_u64(j, "page_bytes", c->snapshot->page_bytes);
	json_put_str(j, "interface", interfaces[c->snapshot->mthp.orders]);
	json_begin_array(j, "orders");
	for (unsigned o = 0; o <= max; o++) {
		struct order_view v = view_of(c->snapshot, o);

		put_order(j, c, &v);
	}
	json_end_array(j);
	return ctl_json_end(c);
}

int verb_orders(struct ctl *c)
{
	uint32_t zoneinfo = SOURCE_BIT(SOURCE_ZONEINFO);
	int r = ctl_take(c,
			 zoneinfo | SOURCE_BIT(SOURCE_BUDDYINFO) | SOURCE_BIT(SOURCE_MTHP) |
				 SOURCE_BIT(SOURCE_KNOBS),
			 zoneinfo);

	if (r != EXIT_DONE)
		return r;
	return c->wants_json ? print_json(c) : print_table(c);
}
