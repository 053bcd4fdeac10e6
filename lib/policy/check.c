/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/check.h"

#include "policy/expr-internal.h"
#include "policy/policy-internal.h"

#include "base/format.h"
#include "base/nearest.h"

#include <math.h>

struct checking {
	const struct policy *p;
	const struct expr_table *t;
	const struct snapshot *s;
	struct diagnostics *d;
};

static const struct ini_value *value_of(const struct checking *c, const char *section,
					const char *key)
{
	const struct ini_section *s = ini_doc_section(&c->p->doc, section);

	return s ? ini_section_get(s, key) : NULL;
}

static void warn_at(const struct checking *c, const struct ini_value *v, size_t offset,
		    const char *nearest, const char *fmt, ...) _printf_(5, 6);
static void warn_at(const struct checking *c, const struct ini_value *v, size_t offset,
		    const char *nearest, const char *fmt, ...)
{
	char message[400];
	const char *raw;
	struct ini_pos pos;
	va_list ap;

	if (!v)
		return;
	pos = ini_value_pos(v, offset, &raw);
	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	diagnostics_warn(c->d, &pos, raw, nearest, "%s", message);
}

/* The names that a family with free names has here, to find the nearest. */
static const char *nearest_here(const struct checking *c, const struct signal_ref *ref, char *buf,
				size_t size)
{
	const struct signal_info *info = signal_describe(ref);
	struct nearest n = NEAREST(ref->arg);
	const struct mthp *m = &c->s->mthp;
	char name[64];

	*buf = '\0';
	for (uint32_t i = 0; strncmp(info->name, "vmstat.", 7) == 0 && i < c->s->vmstat.nr_values;
	     i++) {
		const struct named_value *v = &c->s->vmstat.values[i];

		(void)snprintf(name, sizeof(name), "%.*s", (int)v->name_len, v->name);
		nearest_try(&n, name);
		if (n.best == name) {
			(void)snprintf(buf, size, "%s", name);
			n.best = buf;
		}
	}
	for (uint32_t i = 0; strncmp(info->name, "mthp.", 5) == 0 && i < m->nr_sizes; i++)
		for (uint32_t k = 0; k < m->size[i].nr_stats; k++) {
			nearest_try(&n, m->size[i].stat[k].name);
			if (n.best == m->size[i].stat[k].name)
				(void)snprintf(buf, size, "%s", n.best);
		}
	return *buf ? buf : NULL;
}

/* A counter that this kernel does not have: a slip of the fingers, or another kernel's. */
static void check_slot(const struct checking *c, const struct ini_value *v, uint32_t id)
{
	const struct expr_slot *slot = &c->t->slots[id];
	const char *why = NULL, *nearest, *at;
	char shown[SIGNAL_NAME_MAX], name[64];
	double value;

	if (!*slot->ref.arg || strncmp(signal_describe(&slot->ref)->name, "vmstat.", 7) != 0)
		return;
	if (!snapshot_has(c->s, SOURCE_VMSTAT) || signal_read(&slot->ref, c->s, 0, &value, &why))
		return;
	nearest = nearest_here(c, &slot->ref, name, sizeof(name));
	(void)signal_name(&slot->ref, c->t->page_bytes, shown, sizeof(shown));
	at = strstr(v->text, shown);
	warn_at(c, v, at ? (size_t)(at - v->text) : 0, nearest, "%s is unknown on this machine: %s",
		shown, why);
}

static void check_uses(const struct checking *c, const struct ini_value *v, const struct expr *e)
{
	struct expr_use use;
	size_t it = 0;

	while (v && expr_next_use(e, &it, &use)) {
		if (use.is_series)
			check_uses(c, v, c->t->series[use.id].arg);
		else
			check_slot(c, v, use.id);
	}
}

static void check_condition(const struct checking *c, const char *section, const char *key,
			    const struct expr *e, const char *always)
{
	const struct ini_value *v = value_of(c, section, key);

	if (!e)
		return;
	if (c->s)
		check_uses(c, v, e);
	if (expr_never(e))
		warn_at(c, v, 0, NULL, "this can never be true");
	else if (expr_always(e))
		warn_at(c, v, 0, NULL, "this is always true%s", always);
}

static void check_release(const struct checking *c, const struct policy_rule *r)
{
	const struct ini_value *v =
		value_of(c, r->section, r->kind == RULE_ORDER ? "Disable" : "Until");
	const char *text = "";
	size_t len = 0;

	if (r->off && v && expr_overlaps(r->on, r->off, &text, &len))
		warn_at(c, v, (size_t)(text - expr_text(r->off)), NULL,
			"the release overlaps the trigger: `%.*s` can hold while %s= does, and the rule "
			"would turn on and off",
			(int)MIN_OF(len, (size_t)80), text,
			r->kind == RULE_ORDER ? "Enable" : "When");
}

/*
 * A rule means to shrink the lists when it looks out for much that is parked or little that is
 * free, or says how to drain afterwards.
 */
static bool means_to_shrink(const struct checking *c, const struct policy_rule *r)
{
	static const char *const much[] = {"pcp.bytes",     "pcp.share",  "pcp.share_max",
					   "pcp.fill",      "pcp.excess", "zone.below_low",
					   "zone.below_min"};
	static const char *const little[] = {"zone.free_ratio"};
	struct signal_ref refs[ARRAY_SIZE(much)];
	const struct ini_value *drain = value_of(c, r->section, "Drain");

	if (drain && r->drain != POLICY_DRAIN_NO)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(much); i++)
		if (signal_resolve(much[i], c->t->page_bytes, &refs[i]) < 0)
			return false;
	if (expr_wants(r->on, refs, ARRAY_SIZE(much), c->t, true))
		return true;
	return signal_resolve(little[0], c->t->page_bytes, &refs[0]) == 0 &&
	       expr_wants(r->on, refs, 1, c->t, false);
}

/* The zone where a fraction makes the lists largest, next to the kernel's own minimum there. */
static bool larger_somewhere(const struct snapshot *s, uint64_t fraction, struct pcp_sizing *ret,
			     const struct zone **ret_zone)
{
	uint64_t worst = 0;

	for (uint32_t i = 0; i < s->zoneinfo.nr_zones; i++) {
		const struct zone *z = &s->zoneinfo.zones[i];
		struct pcp_sizing p;
		uint64_t size;

		if (!snapshot_zone_counts(s, z) || !pcp_sizing_of(s, z, &p))
			continue;
		size = pcp_highsize(&p, fraction);
		if (size > pcp_highsize(&p, 0) && size > worst) {
			worst = size;
			*ret = p;
			*ret_zone = z;
		}
	}
	return worst > 0;
}

static void check_value(const struct checking *c, const struct policy_rule *r)
{
	_cleanup_(freep) double *slots = calloc(c->t->nr_slots + 1, sizeof(*slots));
	struct pcp_sizing sizing, worst = {0};
	struct expr_env env = {.slots = slots};
	const struct zone *zone = NULL;
	uint64_t fraction, own, size;
	char shown[2][FORMAT_MAX];

	if (!slots || !c->s || !snapshot_has(c->s, SOURCE_ZONEINFO) || !means_to_shrink(c, r))
		return;
	for (uint32_t i = 0; i < c->t->nr_slots; i++)
		slots[i] = NAN;
	expr_table_read(c->t, c->s, slots, NULL);
	if (pcp_sizing_largest(c->s, &sizing))
		env.sizing = &sizing;
	if (policy_fraction(r, &env, &fraction) < 0 ||
	    !larger_somewhere(c->s, fraction, &worst, &zone))
		return;
	own = pcp_highsize(&worst, 0);
	size = pcp_highsize(&worst, fraction);
	warn_at(c, value_of(c, r->section, "Value"), 0, NULL,
		"a fraction of %llu makes the lists larger here than the kernel's own minimum: %llu "
		"pages (%s) a CPU in zone %s of node %d, not %llu (%s)",
		(unsigned long long)fraction, (unsigned long long)size,
		format_bytes(shown[0], FORMAT_MAX, size * worst.page_bytes), zone->name, zone->node,
		(unsigned long long)own,
		format_bytes(shown[1], FORMAT_MAX, own * worst.page_bytes));
}

static void check_order(const struct checking *c, const struct policy_rule *r)
{
	const struct ini_section *s = ini_doc_section(&c->p->doc, r->section);
	struct ini_pos pos = {r->file, r->line, 1};

	if (r->any_order || !s)
		return;
	if (r->order <= 3)
		diagnostics_warn(c->d, &pos, s->raw, NULL,
				 "orders 0 to 3 are always kept on the lists: this rule sleeps");
	else if (c->s && c->s->mthp.pmd_order && r->order == c->s->mthp.pmd_order)
		diagnostics_warn(c->d, &pos, s->raw, NULL,
				 "the PMD order is always kept on the lists: this rule sleeps");
	else if (r->order == POLICY_ORDER_NONE)
		diagnostics_warn(c->d, &pos, s->raw, NULL,
				 "this machine has no folio of that size: this rule sleeps");
}

static void check_rule(const struct checking *c, const struct policy_rule *r)
{
	bool order = r->kind == RULE_ORDER;

	check_condition(c, r->section, order ? "Enable" : "When", r->on, "");
	check_condition(c, r->section, order ? "Disable" : "Until", r->off,
			", so the rule lets go at once");
	check_release(c, r);
	if (r->kind == RULE_HIGH_FRACTION)
		check_value(c, r);
	if (order)
		check_order(c, r);
}

void policy_check(const struct policy *p, const struct expr_table *t, const struct snapshot *s,
		  struct diagnostics *d)
{
	struct checking c = {p, t, s, d};
	struct ini_pos pos = {p->file, 0, 0};

	if (p->nr_rules == 0)
		diagnostics_warn(d, &pos, NULL, NULL,
				 "this policy has no rule, so it does nothing");
	for (size_t i = 0; i < p->nr_rules; i++)
		check_rule(&c, &p->rules[i]);
	check_condition(&c, "Match", "When", p->match.when, "");
	check_condition(&c, "Guard", "Trip", p->guard.trip, ", so every change is taken back");
}
