/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl pcp: the per-CPU page lists. */
#include "filter.h"

#include "base/format.h"

struct total {
	uint64_t lists, shown, pages;
	bool computed;
};

typedef void list_fn(void *user, const struct ctl *c, const struct zone *z,
		     const struct pageset *p);

static struct total each_list(const struct ctl *c, const struct filter *f, list_fn *fn, void *user)
{
	const struct zoneinfo *zi = &c->snapshot->zoneinfo;
	struct total t = {0};

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];

		if (!filter_zone(f, z))
			continue;
		for (uint32_t k = 0; k < z->nr_pagesets; k++) {
			const struct pageset *p = &zi->pagesets[z->first_pageset + k];

			if (f->has_cpus && !cpuset_has(&f->cpus, p->cpu))
				continue;
			t.lists++;
			t.pages += p->value[PAGESET_COUNT];
			if (p->value[PAGESET_COUNT] == 0 && !f->all)
				continue;
			t.shown++;
			t.computed = t.computed || p->computed;
			fn(user, c, z, p);
		}
	}
	return t;
}

static double share_of(const struct zone *z, const struct pageset *p)
{
	uint64_t managed = zone_managed(z);

	return managed ? (double)p->value[PAGESET_COUNT] / (double)managed : 0;
}

/* the table */

static void heading(struct table *t, const struct ctl *c)
{
	static const char *const names[] = {"NODE",     "ZONE",     "CPU",   "COUNT",  "HIGH",
					    "HIGH_MIN", "HIGH_MAX", "BATCH", "MEMORY", "SHARE"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		table_cell(t, "%s", names[i]);
	if (c->snapshot->zoneinfo.prints_orders)
		table_cell(t, "BLOCKS BY ORDER");
	table_align_left(t, 1);
	if (c->snapshot->zoneinfo.prints_orders)
		table_align_left(t, ARRAY_SIZE(names));
}

static void blocks_cell(struct table *t, const struct pageset *p)
{
	char text[256] = "";
	size_t n = 0;

	for (uint32_t o = 0; o < p->nr_orders && n < sizeof(text); o++)
		if (p->order[o])
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u:%llu", n ? " " : "",
					      o, (unsigned long long)p->order[o]);
	table_cell(t, "%s", n ? text : "-");
}

static void add_row(void *user, const struct ctl *c, const struct zone *z, const struct pageset *p)
{
	static const enum pageset_field fields[] = {PAGESET_COUNT, PAGESET_HIGH, PAGESET_HIGH_MIN,
						    PAGESET_HIGH_MAX, PAGESET_BATCH};
	struct table *t = user;
	char buf[FORMAT_MAX];

	table_cell(t, "%d", z->node);
	table_cell(t, "%s", z->name);
	table_cell(t, "%u%s", p->cpu, p->pcp < 0 ? "" : p->pcp == 0 ? " hot" : " cold");
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		table_cell(t, "%s", pageset_cell(p, fields[i], buf, sizeof(buf)));
	table_cell(
		t, "%s",
		format_bytes(buf, sizeof(buf), p->value[PAGESET_COUNT] * c->snapshot->page_bytes));
	table_cell(t, "%s", format_ratio(buf, sizeof(buf), share_of(z, p)));
	if (c->snapshot->zoneinfo.prints_orders)
		blocks_cell(t, p);
}

static int print_table(const struct ctl *c, const struct filter *f)
{
	size_t columns = c->snapshot->zoneinfo.prints_orders ? 11 : 10;
	_cleanup_(table_freep) struct table *t = table_new(columns);
	char bytes[FORMAT_MAX];
	struct total total;

	if (!t)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	heading(t, c);
	total = each_list(c, f, add_row, t);
	if (total.shown > 0 && table_print(t, c->screen.out) < 0)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	(void)fprintf(c->screen.out, "%s%llu of %llu lists hold %llu pages, %s.\n",
		      total.shown > 0 ? "\n" : "", (unsigned long long)total.shown,
		      (unsigned long long)total.lists, (unsigned long long)total.pages,
		      format_bytes(bytes, sizeof(bytes), total.pages * c->snapshot->page_bytes));
	if (total.computed)
		(void)fputs("~ computed: this kernel does not print it.\n", c->screen.out);
	return EXIT_DONE;
}

/* JSON */

static void add_object(void *user, const struct ctl *c, const struct zone *z,
		       const struct pageset *p)
{
	struct json_out *j = user;

	json_begin_object(j, NULL);
	json_put_i64(j, "node", z->node);
	json_put_str(j, "zone", z->name);
	json_put_u64(j, "cpu", p->cpu);
	if (p->pcp >= 0)
		json_put_i64(j, "pcp", p->pcp);
	put_pageset_field(j, p, PAGESET_COUNT);
	if (pageset_has(p, PAGESET_LOW))
		put_pageset_field(j, p, PAGESET_LOW);
	put_pageset_field(j, p, PAGESET_HIGH);
	put_pageset_field(j, p, PAGESET_BATCH);
	put_pageset_field(j, p, PAGESET_HIGH_MIN);
	put_pageset_field(j, p, PAGESET_HIGH_MAX);
	json_put_bool(j, "computed", p->computed != 0);
	json_put_u64(j, "bytes", p->value[PAGESET_COUNT] * c->snapshot->page_bytes);
	json_put_double(j, "share", share_of(z, p));
	if (p->nr_orders > 0) {
		json_begin_array(j, "orders");
		for (uint32_t o = 0; o < p->nr_orders; o++)
			json_put_u64(j, NULL, p->order[o]);
		json_end_array(j);
	}
	json_end_object(j);
}

static int print_json(struct ctl *c, struct filter *f)
{
	struct json_out *j = ctl_json_begin(c);
	struct total total;

	f->all = true;
	json_put_u64(j, "page_bytes", c->snapshot->page_bytes);
	json_begin_array(j, "pcp");
	total = each_list(c, f, add_object, j);
	json_end_array(j);
	json_put_u64(j, "pages", total.pages);
	return ctl_json_end(c);
}

int verb_pcp(struct ctl *c)
{
	_cleanup_(filter_free) struct filter f = {0};
	uint32_t zoneinfo = SOURCE_BIT(SOURCE_ZONEINFO);
	int r = ctl_take(c, zoneinfo, zoneinfo);

	if (r == EXIT_DONE)
		r = filter_read(&f, c);
	if (r != EXIT_DONE)
		return r;
	return c->wants_json ? print_json(c, &f) : print_table(c, &f);
}
