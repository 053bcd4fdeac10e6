/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a tick of the decision engine costs: a thousand rules over two hundred signals of the
 * running kernel, beside reading and parsing its zoneinfo, and how often it allocates (never).
 */
#include "bench.h"
#include "policy/engine.h"
#include "policy/policy.h"

#include <inttypes.h>

#define NR_RULES       1000U
#define NR_SIGNALS     200U
#define RULES_A_POLICY 50U
#define WARM_UP_TICKS  200U /* fill every window */
#define TICKS          1000U
#define BUDGET_NSEC    1e6 /* of CPU, a tick */
#define NAME_MAX_LEN   56U

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

/* Every allocation of this program goes through these (the linker's --wrap). */
static uint64_t allocations;

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}

/* The kernel's own counters by name, then what is made of other files; each a different signal. */
static unsigned pick_signals(const struct snapshot *s, char names[NR_SIGNALS][NAME_MAX_LEN])
{
	static const char *const others[] = {
		"zone.free_bytes",
		"zone.below_low",
		"zone.below_min",
		"pcp.bytes",
		"pcp.share",
		"pcp.share_max",
		"pcp.fill",
		"pcp.excess",
		"machine.memory_bytes",
		"psi.memory.some.total",
		"psi.memory.full.total",
		"psi.memory.some.avg60",
	};
	unsigned n = 0;

	for (; n < ARRAY_SIZE(others); n++)
		(void)snprintf(names[n], NAME_MAX_LEN, "%s", others[n]);
	for (uint32_t i = 0; i < s->vmstat.nr_values && n < NR_SIGNALS; i++) {
		const struct named_value *v = &s->vmstat.values[i];

		if (v->name_len < 40)
			(void)snprintf(names[n++], NAME_MAX_LEN, "vmstat.%.*s", (int)v->name_len,
				       v->name);
	}
	return n;
}

/* Never true, and not seen to be so before the last term. */
static void add_rule(struct text *t, unsigned i, char names[NR_SIGNALS][NAME_MAX_LEN], unsigned n)
{
	const char *a = names[i % n], *b = names[(i * 7 + 3) % n];

	text_addf(
		t,
		"[HighFraction r%u]\n"
		"When=delta(%s, 60s) < delta(%s, 60s) - delta(%s, 60s) and zone.free_ratio < 0%%\n"
		"For=%us\n"
		"Value=max(32, fraction_for(%uM))\n",
		i, a, a, a, i % 60, 1 + i % 16);
	text_addf(t, "Until=rate(%s) > rate(%s) + rate(%s) and zone.free_ratio > 99%%\n", b, b, b);
}

static void make_policies(struct policy_set *set, const struct snapshot *s)
{
	static char names[NR_SIGNALS][NAME_MAX_LEN];
	unsigned n = pick_signals(s, names);

	printf("%u rules over %u signals\n", NR_RULES, n);
	for (unsigned i = 0; i < NR_RULES; i += RULES_A_POLICY) {
		_cleanup_(text_free) struct text t = {0};
		struct diagnostics d = {0};
		struct policy *p;
		char name[16];

		text_addf(&t, "[Policy]\nPriority=%u\n", i % 100);
		for (unsigned j = i; j < i + RULES_A_POLICY; j++)
			add_rule(&t, j, names, n);
		text_addf(&t,
			  "[Guard]\nTrip=rate(vmstat.compact_stall) > "
			  "4 * before(rate(vmstat.compact_stall)) + %u/s\n",
			  10 + i);
		(void)snprintf(name, sizeof(name), "p%u", i);
		if (policy_parse(&set->table, name, name, text_str(&t), t.len, &p, &d) < 0 ||
		    policy_set_add(set, p) < 0) {
			diagnostics_print(&d, stderr, false);
			exit(1);
		}
		diagnostics_free(&d);
	}
	policy_set_sort(set);
}

static size_t tick(struct engine *en, const struct snapshot *s, uint64_t now_usec)
{
	const struct engine_knob_input knob = {
		.id = {.kind = KNOB_HIGH_FRACTION}, .known = true, .controllable = true};
	const struct engine_input in = {
		.now_usec = now_usec,
		.snapshot = s,
		.mode = ENGINE_ENFORCE,
		.limits = engine_limits_default(9),
		.knobs = &knob,
		.nr_knobs = 1,
	};
	size_t n;

	(void)engine_tick(en, &in, &n);
	return n;
}

struct cost {
	double engine_nsec, zoneinfo_nsec, worst_nsec;
	uint64_t allocations;
};

static void run(struct engine *en, struct sensor *sensor, struct cost *ret)
{
	uint32_t wanted = engine_sources(en);
	uint64_t now_usec = USEC_PER_HOUR;

	*ret = (struct cost){0};
	for (unsigned i = 0; i < WARM_UP_TICKS + TICKS; i++, now_usec += USEC_PER_SEC) {
		double start = bench_cpu_nsec(), took;
		const struct snapshot *s;
		uint64_t before;

		s = sensor_take(sensor, SOURCE_BIT(SOURCE_ZONEINFO), now_usec);
		if (i >= WARM_UP_TICKS)
			ret->zoneinfo_nsec += bench_cpu_nsec() - start;
		s = sensor_take(sensor, wanted, now_usec);
		before = allocations;
		start = bench_cpu_nsec();
		(void)tick(en, s, now_usec);
		took = bench_cpu_nsec() - start;
		if (i < WARM_UP_TICKS)
			continue;
		ret->engine_nsec += took;
		ret->worst_nsec = MAX_OF(ret->worst_nsec, took);
		ret->allocations += allocations - before;
	}
	ret->engine_nsec /= TICKS;
	ret->zoneinfo_nsec /= TICKS;
}

static bool tell(const struct cost *c)
{
	bool met = c->engine_nsec <= BUDGET_NSEC && c->allocations == 0;

	printf("%-44s %10.2f us   zoneinfo %10.2f us   ratio %6.2f\n", "tick of the engine, CPU",
	       c->engine_nsec / 1e3, c->zoneinfo_nsec / 1e3, c->engine_nsec / c->zoneinfo_nsec);
	printf("%-44s %10.2f us\n", "the longest one", c->worst_nsec / 1e3);
	printf("%-44s %10" PRIu64 "\n", "allocations in all ticks", c->allocations);
	printf("%-44s %s\n", "budget: 1000 us on average, no allocation", met ? "met" : "NOT MET");
	return met;
}

int main(void)
{
	_cleanup_(sysroot_close) struct sysroot root = {.dirfd = -1};
	_cleanup_(sensor_freep) struct sensor *sensor = NULL;
	_cleanup_(engine_freep) struct engine *en = NULL;
	_cleanup_(policy_set_freep) struct policy_set *set = calloc(1, sizeof(*set));
	const struct snapshot *s;
	struct error e = {0};
	struct cost cost;

	if (!set || sysroot_open(&root, "/", &e) < 0 || sensor_new(&sensor, &root, 0, &e) < 0) {
		fprintf(stderr, "bench-engine: %s\n", e.text);
		return 1;
	}
	s = sensor_take(sensor, SOURCES_ALL, 0);
	set->table.page_bytes = s->page_bytes;
	make_policies(set, s);
	if (engine_new(&en, set, NULL, s, &e) < 0) {
		fprintf(stderr, "bench-engine: %s\n", e.text);
		return 1;
	}
	run(en, sensor, &cost);
	return tell(&cost) ? 0 : 1;
}
