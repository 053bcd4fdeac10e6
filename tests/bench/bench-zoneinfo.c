/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What reading a machine costs: parsing zoneinfo beside the kernel's own time to print it, on this
 * machine and on the text of a large one, and what a take and the signals add to that.
 */
#include "bench.h"
#include "sense/signals.h"

#define ROUNDS       3000U
#define PARSE_BUDGET 0.10
#define LARGE_NODES  8U
#define LARGE_CPUS   256U
#define BLOCK_NSEC   1000.0 /* the kernel's time for one CPU's block in one zone, about */
#define NR_SIGNALS   200U

static int die(const char *what, const struct error *e)
{
	fprintf(stderr, "%s: %s\n", what, e->text);
	return 1;
}

static double best_parse(const struct text *text, unsigned rounds)
{
	struct zoneinfo zi = {0};
	double best = 1e18;

	for (unsigned i = 0; i < rounds; i++) {
		double start = bench_nsec();

		if (zoneinfo_parse(&zi, text_str(text), text->len, 0, NULL) < 0)
			abort();
		best = MIN_OF(best, bench_nsec() - start);
	}
	zoneinfo_free(&zi);
	return best;
}

/* Turn by turn, so that what disturbs the one disturbs the other as well. */
static bool bench_this_machine(const struct sysroot *root)
{
	struct kept_file file = KEPT_FILE("proc/zoneinfo");
	double read_best = 1e18, parse_best = 1e18;
	_cleanup_(text_free) struct text text = {0};
	struct zoneinfo zi = {0};
	char what[64];

	for (unsigned i = 0; i < ROUNDS; i++) {
		double start = bench_nsec(), middle;

		if (kept_file_read(&file, root, &text) < 0)
			abort();
		middle = bench_nsec();
		if (zoneinfo_parse(&zi, text_str(&text), text.len, 0, NULL) < 0)
			abort();
		read_best = MIN_OF(read_best, middle - start);
		parse_best = MIN_OF(parse_best, bench_nsec() - middle);
	}
	kept_file_close(&file);
	zoneinfo_free(&zi);
	(void)snprintf(what, sizeof(what), "parse zoneinfo, this machine, %zu bytes", text.len);
	return bench_ratio(what, parse_best, "kernel", read_best, PARSE_BUDGET);
}

static void add_large_zone(struct text *t, unsigned node, const char *name)
{
	text_addf(t, "Node %u, zone %8s\n", node, name);
	if (name[0] == 'D' || node > 0) {
		text_add(t, "  per-node stats\n");
		for (unsigned i = 0; i < 50; i++)
			text_addf(t, "      nr_of_node_%-4u %u\n", i, i * i * i * i * 37);
	}
	text_addf(t,
		  "  pages free     %u\n        boost    0\n        min      5632\n"
		  "        low      37120\n        high     68608\n        promo    100096\n"
		  "        spanned  33554432\n        present  33554432\n"
		  "        managed  33012345\n        cma      0\n"
		  "        protection: (0, 0, 0, 0, 0)\n",
		  node * 1234567 + 99);
	for (unsigned i = 0; i < 17; i++)
		text_addf(t, "      nr_of_zone_%-4u %u\n", i, i * i * i * i * 9973);
	text_add(t, "  pagesets\n");
	for (unsigned cpu = 0; cpu < LARGE_CPUS; cpu++)
		text_addf(t,
			  "    cpu: %u\n              count:    %u\n              high:     %u\n"
			  "              batch:    63\n              high_min: 1160\n"
			  "              high_max: 128954\n  vm stats threshold: 125\n",
			  cpu, cpu * 7919 % 30011, cpu * 104729 % 60013);
	text_add(t, "  node_unreclaimable:  0\n  start_pfn:           1048576\n");
}

static bool bench_large_machine(void)
{
	static const char *const first[] = {"DMA", "DMA32", "Normal"};
	_cleanup_(text_free) struct text text = {0};
	unsigned zones = ARRAY_SIZE(first) + LARGE_NODES - 1;
	char what[64];

	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		add_large_zone(&text, 0, first[i]);
	for (unsigned node = 1; node < LARGE_NODES; node++)
		add_large_zone(&text, node, "Normal");
	(void)snprintf(what, sizeof(what), "parse zoneinfo, %u CPUs, %zu bytes", LARGE_CPUS,
		       text.len);
	return bench_ratio(what, best_parse(&text, ROUNDS / 10), "1us a CPU's block",
			   BLOCK_NSEC * LARGE_CPUS * zones, PARSE_BUDGET);
}

static double best_take(struct sensor *sensor, uint32_t wanted)
{
	double best = 1e18;

	for (unsigned i = 0; i < ROUNDS / 10; i++) {
		double start = bench_nsec();

		(void)sensor_take(sensor, wanted, 0);
		best = MIN_OF(best, bench_nsec() - start);
	}
	return best;
}

static double best_signals(const struct snapshot *s)
{
	static const char *const names[] = {
		"vmstat.compact_stall", "vmstat.allocstall", "mthp.64kB.alloc_bytes",
		"zone.free_ratio",      "pcp.share",         "pcp.fits.64kB",
		"frag.unusable.64kB",   "machine.cpus",      "psi.memory.some.avg10",
		"pcp.excess",
	};
	struct signal_ref refs[NR_SIGNALS];
	double best = 1e18, value = 0, sum = 0;

	for (unsigned i = 0; i < NR_SIGNALS; i++)
		if (signal_resolve(names[i % ARRAY_SIZE(names)], s->page_bytes, &refs[i]) < 0)
			abort();
	for (unsigned round = 0; round < ROUNDS / 10; round++) {
		double start = bench_nsec();

		for (unsigned i = 0; i < NR_SIGNALS; i++)
			sum += signal_read(&refs[i], s, 4, &value, NULL) ? value : 0;
		best = MIN_OF(best, bench_nsec() - start);
	}
	if (sum < 0)
		abort();
	return best;
}

static void bench_takes(struct sensor *sensor)
{
	for (enum source i = 0; i < _SOURCE_MAX; i++)
		printf("take %-39s %10.2f us\n", source_name(i),
		       best_take(sensor, SOURCE_BIT(i)) / 1e3);
	printf("%-44s %10.2f us\n", "take everything", best_take(sensor, SOURCES_ALL) / 1e3);
	printf("%-44s %10.2f us\n", "read 200 signals",
	       best_signals(sensor_take(sensor, SOURCES_ALL, 0)) / 1e3);
}

int main(void)
{
	_cleanup_(sysroot_close) struct sysroot root = {.dirfd = -1};
	_cleanup_(sensor_freep) struct sensor *sensor = NULL;
	struct error e = {0};
	bool met;

	if (sysroot_open(&root, "/", &e) < 0)
		return die("bench-zoneinfo", &e);
	if (sensor_new(&sensor, &root, 0, &e) < 0)
		return die("bench-zoneinfo", &e);
	met = bench_this_machine(&root);
	met = bench_large_machine() && met;
	bench_takes(sensor);
	return met ? 0 : 1;
}
