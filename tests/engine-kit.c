/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine-kit.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char *const vmstat_names[KIT_VMSTATS] = {
	"allocstall_normal", "compact_stall",  "pgalloc_normal", "pgfault",
	"thp_fault_alloc",   "pgsteal_kswapd", "pgfree",         "nr_free_pages",
};

static const struct kit_machine calm = {
	.cpus = 16,
	.managed = 16777216,
	.low = 34000,
	.free_ratio = 0.4,
	.parked = 2000,
	.high_min = 2104,
	.high_max = 131072,
	.autotune = 1,
	.has_high_fraction = true,
	.has_orders = true,
	.has_stats = true,
	.has_zoneinfo = true,
	.has_vmstat = true,
	.unusable = 0.1,
	.l2_bytes = 2 << 20,
	.llc_bytes = 96 << 20,
	.l2_cpus = 1,
	.llc_cpus = 8,
	.pgalloc = 20000,
	.pgfault = 10000,
};

struct kit *kit_new(void)
{
	struct kit *k = calloc(1, sizeof(*k));

	assert_non_null(k);
	k->m = calm;
	k->set.table.page_bytes = KIT_PAGE;
	k->now_usec = 1000 * USEC_PER_SEC;
	k->step_usec = USEC_PER_SEC;
	k->mode = ENGINE_ENFORCE;
	k->limits = engine_limits_default(9);
	k->drain = (struct engine_drain_input){.trim = true, .squeeze = true};
	k->facts = (struct machine_facts){
		.kernel = "6.18.0",
		.host = "test",
		.machine_id = "0123456789abcdef0123456789abcdef",
		.cpus = 16,
		.memory_bytes = UINT64_C(64) << 30,
	};
	return k;
}

struct kit *kit_free(struct kit *k)
{
	if (!k)
		return NULL;
	k->engine = engine_free(k->engine);
	for (size_t i = 0; i < k->set.nr; i++)
		(void)policy_free(k->set.policies[i]);
	free(k->set.policies);
	expr_table_free(&k->set.table);
	cpuset_free(&k->s.topology.online);
	cpuset_free(&k->s.topology.nodes);
	free(k);
	return NULL;
}

void kit_policy(struct kit *k, const char *name, const char *text)
{
	struct diagnostics d = {0};
	struct policy *p = NULL;
	int r = policy_parse(&k->set.table, name, name, text, strlen(text), &p, &d);

	if (r < 0) {
		diagnostics_print(&d, stderr, false);
		fail_msg("policy %s is not accepted", name);
	}
	diagnostics_free(&d);
	assert_int_equal(policy_set_add(&k->set, p), 0);
	policy_set_sort(&k->set);
}

void kit_policy_file(struct kit *k, const char *path)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	const char *slash = strrchr(path, '/');
	char text[16384], name[POLICY_NAME_MAX];
	size_t n;

	if (!f)
		fail_msg("%s cannot be opened", path);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(slash ? slash + 1 : path, "."),
		       slash ? slash + 1 : path);
	kit_policy(k, name, text);
}

static void fill_zone(struct kit *k)
{
	struct zone *z = &k->zone;
	uint64_t min = k->m.low * 4 / 5;

	*z = (struct zone){.node = 0, .name = "Normal", .populated = true};
	z->has = (UINT64_C(1) << ZONE_FREE) | (UINT64_C(1) << ZONE_MIN) |
		 (UINT64_C(1) << ZONE_LOW) | (UINT64_C(1) << ZONE_HIGH) |
		 (UINT64_C(1) << ZONE_PRESENT) | (UINT64_C(1) << ZONE_MANAGED);
	z->value[ZONE_FREE] = (uint64_t)((double)k->m.managed * k->m.free_ratio);
	z->value[ZONE_MIN] = min;
	z->value[ZONE_LOW] = k->m.low;
	z->value[ZONE_HIGH] = k->m.low + min / 4;
	z->value[ZONE_PRESENT] = z->value[ZONE_MANAGED] = k->m.managed;
	z->nr_pagesets = k->m.cpus;
	for (unsigned i = 0; i < k->m.cpus; i++) {
		struct pageset *p = &k->pagesets[i];

		*p = (struct pageset){.cpu = i, .pcp = -1};
		p->has = (1U << PAGESET_COUNT) | (1U << PAGESET_HIGH) | (1U << PAGESET_BATCH);
		if (k->m.autotune == 1)
			p->has |= (1U << PAGESET_HIGH_MIN) | (1U << PAGESET_HIGH_MAX);
		p->value[PAGESET_COUNT] = k->m.parked;
		p->value[PAGESET_HIGH] = k->m.autotune == 1 ? k->m.parked : k->m.high_min;
		p->value[PAGESET_BATCH] = 63;
		p->value[PAGESET_HIGH_MIN] = k->m.high_min;
		p->value[PAGESET_HIGH_MAX] = k->m.high_max;
	}
	k->s.zoneinfo = (struct zoneinfo){
		.zones = z,
		.nr_zones = k->m.has_zoneinfo,
		.pagesets = k->pagesets,
		.nr_pagesets = k->m.has_zoneinfo ? k->m.cpus : 0,
		.prints_high_min = k->m.autotune == 1,
	};
}

static void fill_buddy(struct kit *k)
{
	double free_pages = (double)k->zone.value[ZONE_FREE];

	k->buddy = (struct buddy_zone){.node = 0, .name = "Normal", .nr_orders = 11};
	k->buddy.free[0] = (uint64_t)(free_pages * k->m.unusable);
	k->buddy.free[10] = (uint64_t)(free_pages * (1 - k->m.unusable)) >> 10;
	k->s.buddy = (struct buddyinfo){.zones = &k->buddy, .nr_zones = k->m.has_zoneinfo};
}

static void fill_vmstat(struct kit *k)
{
	for (unsigned i = 0; i < KIT_VMSTATS; i++)
		k->vmstats[i] = (struct named_value){
			.name = vmstat_names[i],
			.name_len = (uint32_t)strlen(vmstat_names[i]),
			.value = (uint64_t)k->counters[i],
		};
	k->s.vmstat = (struct vmstat){
		.values = k->vmstats,
		.nr_values = k->m.has_vmstat ? KIT_VMSTATS : 0,
	};
}

static void stat_set(struct mthp_size *z, const char *name, double value)
{
	struct mthp_stat *s = &z->stat[z->nr_stats++];

	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	s->value = (uint64_t)value;
	s->valid = true;
}

static void fill_mthp(struct kit *k)
{
	struct mthp *m = &k->s.mthp;

	memset(m, 0, sizeof(*m));
	m->pmd_order = 9;
	m->orders = k->m.has_orders ? ORDERS_PER_SIZE : ORDERS_NONE;
	for (unsigned order = 2; order <= 9; order++) {
		struct mthp_size *z = &m->size[m->nr_sizes++];

		z->order = order;
		z->bytes = (uint64_t)KIT_PAGE << order;
		z->has_pcp_enabled = k->m.has_orders;
		z->controllable = k->m.has_orders && order > 3 && order < 9;
		if (!k->m.has_stats)
			continue;
		stat_set(z, "anon_fault_alloc", order == 4 ? k->alloc_count : 0);
		stat_set(z, "anon_fault_fallback", order == 4 ? k->fallback_count : 0);
	}
}

static void fill_topology(struct kit *k)
{
	struct topology *t = &k->s.topology;

	for (unsigned i = 0; i < KIT_CPUS_MAX; i++)
		k->node_of_cpu[i] = 0;
	cpuset_clear(&t->online);
	for (unsigned i = 0; i < k->m.cpus; i++)
		assert_int_equal(cpuset_add(&t->online, i), 0);
	assert_int_equal(cpuset_add(&t->nodes, 0), 0);
	t->node_of_cpu = k->node_of_cpu;
	t->cpu_room = KIT_CPUS_MAX;
	t->l2_bytes = k->m.l2_bytes;
	t->l2_cpus = k->m.l2_cpus;
	t->llc_bytes = k->m.llc_bytes;
	t->llc_cpus = k->m.llc_cpus;
}

void kit_snapshot(struct kit *k)
{
	struct snapshot *s = &k->s;

	s->taken_usec = k->now_usec;
	s->page_bytes = KIT_PAGE;
	s->valid = SOURCES_ALL;
	if (!k->m.has_zoneinfo)
		s->valid &= ~(SOURCE_BIT(SOURCE_ZONEINFO) | SOURCE_BIT(SOURCE_BUDDYINFO));
	if (!k->m.has_vmstat)
		s->valid &= ~SOURCE_BIT(SOURCE_VMSTAT);
	fill_zone(k);
	fill_buddy(k);
	fill_vmstat(k);
	fill_mthp(k);
	fill_topology(k);
	s->has_high_fraction = k->m.has_high_fraction;
	s->has_stat_refresh = true;
	s->pcp_autotune = k->m.autotune;
	s->high_fraction = k->nr_knobs ? k->knobs[0].current : 0;
}

static void make_knobs(struct kit *k)
{
	k->nr_knobs = 0;
	if (k->m.has_high_fraction)
		k->knobs[k->nr_knobs++] = (struct engine_knob_input){.id = KIT_FRACTION};
	for (unsigned order = 4; k->m.has_orders && order < 9; order++)
		k->knobs[k->nr_knobs++] = (struct engine_knob_input){
			.id = {.kind = KNOB_PCP_ENABLED, .order = order}};
	for (size_t i = 0; i < k->nr_knobs; i++)
		k->knobs[i].known = k->knobs[i].controllable = true;
}

void kit_start(struct kit *k)
{
	struct error e = {0};

	if (k->nr_knobs == 0)
		make_knobs(k);
	kit_snapshot(k);
	if (engine_new(&k->engine, &k->set, &k->facts, &k->s, &e) < 0)
		fail_msg("no engine: %s", e.text);
}

static void apply(struct kit *k, const struct decision *d)
{
	struct engine_knob_input *knob;

	if (k->nr_log < KIT_LOG_MAX)
		k->log[k->nr_log++] = (struct kit_entry){.at_usec = k->now_usec, .d = *d};
	if (d->kind == DECISION_DRAIN && d->write)
		k->m.parked = MIN_OF(k->m.parked, k->m.high_min);
	if (d->kind != DECISION_VALUE || !d->write)
		return;
	knob = kit_knob(k, d->knob);
	knob->report = k->refuse_writes ? ENGINE_REPORT_FAILED : ENGINE_REPORT_NONE;
	if (!k->refuse_writes)
		knob->current = d->value;
}

void kit_tick(struct kit *k)
{
	const struct engine_input in = {
		.now_usec = k->now_usec,
		.snapshot = &k->s,
		.mode = k->mode,
		.paused = k->paused,
		.facts_changed = k->facts_changed,
		.facts = &k->facts,
		.interval_usec = k->step_usec,
		.limits = k->limits,
		.knobs = k->knobs,
		.nr_knobs = k->nr_knobs,
		.drain = k->drain,
	};
	const struct decision *d;
	size_t n;

	if (!k->engine)
		kit_start(k);
	kit_snapshot(k);
	d = engine_tick(k->engine, &in, &n);
	k->facts_changed = false;
	for (size_t i = 0; i < n; i++)
		apply(k, &d[i]);
}

static void count_up(struct kit *k)
{
	double s = (double)k->step_usec / (double)USEC_PER_SEC;
	const double a_second[KIT_VMSTATS] = {
		k->m.allocstall, k->m.compact_stall,   k->m.pgalloc,
		k->m.pgfault,    k->m.thp_fault_alloc,
	};
	double allocs = k->m.alloc_bytes / (KIT_PAGE << 4);

	for (unsigned i = 0; i < KIT_VMSTATS; i++)
		k->counters[i] += a_second[i] * s;
	k->alloc_count += allocs * s;
	if (k->m.fallback_share < 1)
		k->fallback_count += allocs * s * k->m.fallback_share / (1 - k->m.fallback_share);
}

const struct decision *kit_run(struct kit *k, uint64_t usec)
{
	uint64_t end = k->now_usec + usec;
	size_t before = k->nr_log;

	while (k->now_usec < end) {
		k->now_usec += k->step_usec;
		count_up(k);
		kit_tick(k);
	}
	return k->nr_log > before ? &k->log[k->nr_log - 1].d : NULL;
}

struct engine_knob_input *kit_knob(struct kit *k, struct knob_id id)
{
	for (size_t i = 0; i < k->nr_knobs; i++)
		if (knob_id_eq(k->knobs[i].id, id))
			return &k->knobs[i];
	fail_msg("the test asks for a knob that this machine does not have");
	return NULL;
}

uint64_t kit_value(struct kit *k, struct knob_id id)
{
	return kit_knob(k, id)->current;
}

struct engine_knob_view kit_view(struct kit *k, struct knob_id id)
{
	struct engine_knob_view view = {0};
	int i = engine_find_knob(k->engine, id);

	if (i < 0)
		fail_msg("the engine does not know a knob that the test asks for");
	engine_knob_view(k->engine, (size_t)i, &view);
	return view;
}

struct engine_rule_view kit_rule(struct kit *k, const char *policy, const char *rule)
{
	struct engine_rule_view view = {0};

	for (size_t i = 0; i < engine_nr_rules(k->engine); i++) {
		engine_rule_view(k->engine, i, &view);
		if (streq(view.policy, policy) && streq(view.rule, rule))
			return view;
	}
	fail_msg("the engine has no rule %s/%s", policy, rule);
	return view;
}

void kit_dump(const struct kit *k)
{
	for (size_t i = 0; i < k->nr_log; i++) {
		const struct decision *d = &k->log[i].d;
		char name[KNOB_NAME_MAX];

		(void)fprintf(stderr,
			      "%8.1fs %s %s %" PRIu64 " -> %" PRIu64
			      "%s %s (%s -> %s, %s, drain %s)\n",
			      (double)k->log[i].at_usec / 1e6 - 1000,
			      d->kind == DECISION_DRAIN ? "drain" : "value",
			      d->kind == DECISION_DRAIN ? "" : knob_name(d->knob, KIT_PAGE, name),
			      d->old_value, d->value, d->write ? "" : " (observed)", d->reason,
			      rule_state_name(d->was), rule_state_name(d->state),
			      decision_cause_name(d->cause), engine_drain_name(d->drain));
	}
}

void kit_expect_state(struct kit *k, struct knob_id id, enum rule_state state)
{
	struct engine_knob_view view = kit_view(k, id);

	if (view.state == state)
		return;
	kit_dump(k);
	fail_msg("the knob is %s, and should be %s", rule_state_name(view.state),
		 rule_state_name(state));
}
