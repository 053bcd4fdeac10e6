/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl zones: free and parked pages, watermarks, list sizes. */
#include "filter.h"

#include "base/format.h"

/* The list that has most, for the sizes that differ between CPUs only for an instant. */
static struct pageset largest_sizes(const struct zoneinfo *zi, const struct zone *z)
{
	struct pageset max = {0};

	for (uint32_t i = 0; i < z->nr_pagesets; i++) {
		const struct pageset *p = &zi->pagesets[z->first_pageset + i];

		max.has |= p->has;
		max.computed |= p->computed;
		for (int f = 0; f < _PAGESET_FIELD_MAX; f++)
			max.value[f] = MAX_OF(max.value[f], p->value[f]);
	}
	return max;
}

/* Of pages beyond high_min; false where some list's high_min is not known. */
static bool zone_excess(const struct zoneinfo *zi, const struct zone *z, uint64_t *ret)
{
	*ret = 0;
	for (uint32_t i = 0; i < z->nr_pagesets; i++) {
		const struct pageset *p = &zi->pagesets[z->first_pageset + i];
		uint64_t count = p->value[PAGESET_COUNT], min = p->value[PAGESET_HIGH_MIN];

		if (!pageset_has(p, PAGESET_HIGH_MIN) && count > 0)
			return false;
		if (pageset_has(p, PAGESET_HIGH_MIN) && count > min)
			*ret += count - min;
	}
	return true;
}

static double share(uint64_t pages, const struct zone *z)
{
	uint64_t managed = zone_managed(z);

	return managed ? (double)pages / (double)managed : 0;
}

static void bytes_cell(struct table *t, const struct ctl *c, bool known, uint64_t pages)
{
	char buf[FORMAT_MAX];

	table_cell(t, "%s",
		   known ? format_bytes(buf, sizeof(buf), pages * c->snapshot->page_bytes) : "-");
}

static void add_row(struct table *t, const struct ctl *c, const struct zone *z)
{
	static const enum zone_field fields[] = {ZONE_FREE, ZONE_LOW};
	const struct zoneinfo *zi = &c->snapshot->zoneinfo;
	struct pageset sizes = largest_sizes(zi, z);
	uint64_t parked = zone_parked(zi, z), excess;
	bool known = zone_excess(zi, z, &excess);
	char buf[FORMAT_MAX];

	table_cell(t, "%d", z->node);
	table_cell(t, "%s", z->name);
	bytes_cell(t, c, true, zone_managed(z));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		bytes_cell(t, c, zone_has(z, fields[i]), z->value[fields[i]]);
	bytes_cell(t, c, true, parked);
	table_cell(t, "%s", format_ratio(buf, sizeof(buf), share(parked, z)));
	bytes_cell(t, c, known, excess);
	table_cell(t, "%s", pageset_cell(&sizes, PAGESET_HIGH_MIN, buf, sizeof(buf)));
	table_cell(t, "%s", pageset_cell(&sizes, PAGESET_HIGH_MAX, buf, sizeof(buf)));
	table_cell(t, "%s", pageset_cell(&sizes, PAGESET_BATCH, buf, sizeof(buf)));
}

static bool is_shown(const struct filter *f, const struct zone *z)
{
	return filter_zone(f, z) && (f->all || z->populated);
}

static bool below_low(const struct zone *z)
{
	return z->populated && zone_managed(z) > 0 && z->value[ZONE_FREE] < z->value[ZONE_LOW];
}

static int print_table(const struct ctl *c, const struct filter *f)
{
	static const char *const names[] = {"NODE",     "ZONE",     "MANAGED", "FREE",
					    "LOW",      "PARKED",   "SHARE",   "EXCESS",
					    "HIGH_MIN", "HIGH_MAX", "BATCH"};
	_cleanup_(table_freep) struct table *t = table_new(ARRAY_SIZE(names));
	const struct zoneinfo *zi = &c->snapshot->zoneinfo;
	bool computed = false;

	if (!t)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		table_cell(t, "%s", names[i]);
	table_align_left(t, 1);
	for (uint32_t i = 0; i < zi->nr_zones; i++)
		if (is_shown(f, &zi->zones[i])) {
			add_row(t, c, &zi->zones[i]);
			computed = computed || largest_sizes(zi, &zi->zones[i]).computed;
		}
	if (table_print(t, c->screen.out) < 0)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	if (computed)
		(void)fputs("\n~ computed: this kernel does not print it.\n", c->screen.out);
	for (uint32_t i = 0; i < zi->nr_zones; i++)
		if (is_shown(f, &zi->zones[i]) && below_low(&zi->zones[i]))
			(void)fprintf(c->screen.out,
				      "%sNode %d, zone %s is below its low watermark: the kernel "
				      "reclaims there.%s\n",
				      shade(&c->screen, SHADE_WARNING), zi->zones[i].node,
				      zi->zones[i].name, shade(&c->screen, SHADE_PLAIN));
	return EXIT_DONE;
}

static void put_zone(struct json_out *j, const struct ctl *c, const struct zone *z)
{
	static const enum zone_field fields[] = {
		ZONE_FREE,  ZONE_BOOST,   ZONE_MIN,     ZONE_LOW,     ZONE_HIGH,
		ZONE_PROMO, ZONE_SPANNED, ZONE_PRESENT, ZONE_MANAGED, ZONE_CMA};
	const struct zoneinfo *zi = &c->snapshot->zoneinfo;
	struct pageset sizes = largest_sizes(zi, z);
	uint64_t parked = zone_parked(zi, z), excess;
	bool known = zone_excess(zi, z, &excess);

	json_begin_object(j, NULL);
	json_put_i64(j, "node", z->node);
	json_put_str(j, "zone", z->name);
	json_put_bool(j, "populated", z->populated);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (zone_has(z, fields[i]))
			json_put_u64(j, zone_field_name(fields[i]), z->value[fields[i]]);
	json_put_u64(j, "parked", parked);
	json_put_u64(j, "parked_bytes", parked * c->snapshot->page_bytes);
	json_put_double(j, "share", share(parked, z));
	if (known)
		json_put_u64(j, "excess", excess);
	else
		json_put_null(j, "excess");
	json_put_u64(j, "lists", z->nr_pagesets);
	put_pageset_field(j, &sizes, PAGESET_HIGH_MIN);
	put_pageset_field(j, &sizes, PAGESET_HIGH_MAX);
	put_pageset_field(j, &sizes, PAGESET_BATCH);
	json_put_bool(j, "computed", sizes.computed != 0);
	json_end_object(j);
}

static int print_json(struct ctl *c, const struct filter *f)
{
	const struct zoneinfo *zi = &c->snapshot->zoneinfo;
	struct json_out *j = ctl_json_begin(c);

	json_put_u64(j, "page_bytes", c->snapshot->page_bytes);
	json_begin_array(j, "zones");
	for (uint32_t i = 0; i < zi->nr_zones; i++)
		if (filter_zone(f, &zi->zones[i]))
			put_zone(j, c, &zi->zones[i]);
	json_end_array(j);
	return ctl_json_end(c);
}

int verb_zones(struct ctl *c)
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
