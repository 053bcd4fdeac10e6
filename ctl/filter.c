/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "filter.h"

#include "base/nearest.h"

static bool zone_is_named(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->zoneinfo.nr_zones; i++)
		if (streq(s->zoneinfo.zones[i].name, name))
			return true;
	return false;
}

static int unknown_zone(const struct ctl *c, const char *name)
{
	const struct zoneinfo *zi = &c->snapshot->zoneinfo;
	_cleanup_(text_free) struct text names = {0};
	struct nearest n = NEAREST(name);

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		bool first = true;

		for (uint32_t k = 0; k < i && first; k++)
			first = !streq(zi->zones[k].name, zi->zones[i].name);
		if (!first)
			continue;
		text_addf(&names, "%s%s", names.len ? ", " : "", zi->zones[i].name);
		nearest_try(&n, zi->zones[i].name);
	}
	if (n.best)
		return ctl_failf(c, EXIT_USAGE, "there is no zone \"%s\"; did you mean \"%s\"?",
				 name, n.best);
	return ctl_failf(c, EXIT_USAGE, "there is no zone \"%s\"; this machine has %s", name,
			 text_str(&names));
}

static bool node_exists(const struct snapshot *s, uint64_t node)
{
	for (uint32_t i = 0; i < s->zoneinfo.nr_zones; i++)
		if (node == (uint64_t)s->zoneinfo.zones[i].node)
			return true;
	return false;
}

int filter_read(struct filter *f, const struct ctl *c)
{
	const struct options *o = &c->options;

	*f = (struct filter){.all = option_given(o, OPTION_ALL)};
	if (option_given(o, OPTION_NODE)) {
		f->has_node = true;
		if (parse_u64(o->value[OPTION_NODE], &f->node) < 0)
			return ctl_failf(c, EXIT_USAGE, "--node takes a node's number, not \"%s\"",
					 o->value[OPTION_NODE]);
		if (!node_exists(c->snapshot, f->node))
			return ctl_failf(c, EXIT_USAGE,
					 "there is no node %llu; see pcptunectl zones",
					 (unsigned long long)f->node);
	}
	if (option_given(o, OPTION_ZONE)) {
		f->zone = o->value[OPTION_ZONE];
		if (!zone_is_named(c->snapshot, f->zone))
			return unknown_zone(c, f->zone);
	}
	if (option_given(o, OPTION_CPU)) {
		f->has_cpus = true;
		if (parse_cpulist(o->value[OPTION_CPU], &f->cpus) < 0)
			return ctl_failf(c, EXIT_USAGE,
					 "--cpu takes CPU numbers as in 0-3,8, not \"%s\"",
					 o->value[OPTION_CPU]);
	}
	return EXIT_DONE;
}

void filter_free(struct filter *f)
{
	cpuset_free(&f->cpus);
}

bool filter_zone(const struct filter *f, const struct zone *z)
{
	return !(f->has_node && f->node != (uint64_t)z->node) &&
	       !(f->zone && !streq(f->zone, z->name));
}

const char *pageset_cell(const struct pageset *p, enum pageset_field field, char *buf, size_t size)
{
	if (!pageset_has(p, field))
		(void)snprintf(buf, size, "-");
	else
		(void)snprintf(buf, size, "%s%llu", p->computed >> field & 1 ? "~" : "",
			       (unsigned long long)p->value[field]);
	return buf;
}

void put_pageset_field(struct json_out *j, const struct pageset *p, enum pageset_field field)
{
	if (pageset_has(p, field))
		json_put_u64(j, pageset_field_name(field), p->value[field]);
	else
		json_put_null(j, pageset_field_name(field));
}
