/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated memory against what is known of the kernel's page lists. No mounts, no root. */
#include "fakekernel/model.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* One node with one Normal zone whose managed pages are exactly `managed`. */
static void machine(struct model *m, unsigned release, unsigned cpus, unsigned nodes,
		    uint64_t managed, unsigned page_shift)
{
	struct config c = {.cpus = cpus,
			   .nodes = nodes,
			   .release = release,
			   .page_shift = page_shift,
			   .control = CONTROL_PER_SIZE,
			   .order_stats = true,
			   .thp = true,
			   .scale_max = 5};

	for (unsigned node = 0; node < nodes; node++)
		c.zone_pages[node][ZONE_TYPE_NORMAL] = managed;
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		c.node_of_cpu[cpu] = (int)(cpu * nodes / cpus);
	assert_int_equal(model_init(m, &c), 0);
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));) {
		z->managed = managed;
		z->free = managed - managed / 8;
	}
	model_recompute(m);
}

static struct pcp *list_of(struct model *m, unsigned cpu, int node)
{
	return &model_zone(m, node, ZONE_TYPE_NORMAL)->pcp[cpu];
}

/* count is the sum of the blocks, nothing is lost, limits are in order. */
static void check_consistent(struct model *m, uint64_t pages_in_all)
{
	uint64_t pages = 0;

	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));) {
		pages += z->free;
		for (unsigned cpu = 0; cpu < m->config.cpus; cpu++) {
			const struct pcp *p = &z->pcp[cpu];
			int count = 0;

			for (unsigned order = 0; order < MODEL_ORDERS; order++)
				count += (int)p->blocks[order] << order;
			if (count != p->count)
				fail_msg("CPU %u: count %d, but its blocks make %d pages", cpu,
					 p->count, count);
			if (p->high_min > p->high_max || p->batch < 1)
				fail_msg("CPU %u: high_min %d, high_max %d, batch %d", cpu,
					 p->high_min, p->high_max, p->batch);
			pages += (uint64_t)p->count;
		}
	}
	if (pages != pages_in_all)
		fail_msg("%llu pages in all, were %llu", (unsigned long long)pages,
			 (unsigned long long)pages_in_all);
}

static void lists_are_sized_as_the_kernel_does(void **state)
{
	static const struct {
		const char *name;
		unsigned cpus, nodes;
		uint64_t managed; /* of each node */
		uint64_t fraction;
		int high;
	} rows[] = {
		{"64 CPUs, 256 GiB", 64, 1, 67108864, 8, 131072},
		{"64 CPUs, 256 GiB", 64, 1, 67108864, 16, 65536},
		{"64 CPUs, 256 GiB", 64, 1, 67108864, 32, 32768},
		{"64 CPUs, 256 GiB", 64, 1, 67108864, 100, 10485},
		{"64 CPUs, 256 GiB", 64, 1, 67108864, 1000, 1048},
		{"64 CPUs, 256 GiB: below this fraction the floor shows", 64, 1, 67108864, 4162,
		 252},
		{"64 CPUs, 256 GiB", 64, 1, 67108864, INT32_MAX, 252},
		{"256 CPUs, 2 nodes, 1 TiB", 256, 2, 134217728, 100, 10485},
		{"8 CPUs, 16 GiB", 8, 1, 4194304, 100, 5242},
		{"8 CPUs, 16 GiB", 8, 1, 4194304, 1000, 524},
		{"2 CPUs, 8 GiB", 2, 1, 2097152, 8, 131072},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct model m;
		const struct pcp *p;

		machine(&m, RELEASE(6, 12), rows[i].cpus, rows[i].nodes, rows[i].managed, 12);
		assert_int_equal(model_set_fraction(&m, rows[i].fraction), 0);
		p = list_of(&m, 0, 0);
		if (p->high_min != rows[i].high || p->high_max != rows[i].high || p->batch != 63)
			fail_msg("%s at fraction %llu: high_min %d, high_max %d, batch %d; want %d",
				 rows[i].name, (unsigned long long)rows[i].fraction, p->high_min,
				 p->high_max, p->batch, rows[i].high);
		model_free(&m);
	}
}

static void fraction_0_leaves_room_between_low_watermark_and_an_eighth(void **state)
{
	static const struct {
		unsigned cpus, nodes;
		uint64_t managed;
		int high_min, high_max;
		unsigned page_shift;
		bool three_zones; /* THP's share of min_free_kbytes is that of three zones */
	} rows[] = {
		{64, 1, 67108864, 1312, 131072, 12, true},
		{16, 1, 16777216, 2104, 131072, 12, true},
		{8, 1, 4194304, 2640, 65536, 12, true},
		{2, 1, 2097152, 10560, 131072, 12, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct model m;
		const struct pcp *p;

		machine(&m, RELEASE(6, 12), rows[i].cpus, rows[i].nodes, rows[i].managed,
			rows[i].page_shift);
		if (rows[i].three_zones)
			model_set_min_free(&m, 67584);
		p = list_of(&m, 0, 0);
		if (p->high_min != rows[i].high_min || p->high_max != rows[i].high_max)
			fail_msg("%u CPUs: high_min %d, high_max %d; want %d, %d", rows[i].cpus,
				 p->high_min, p->high_max, rows[i].high_min, rows[i].high_max);
		model_free(&m);
	}
}

static void batch_follows_zone_and_page_size(void **state)
{
	static const struct {
		uint64_t managed;
		unsigned page_shift;
		int batch;
	} rows[] = {{3840, 12, 1},     {262144, 12, 63}, {67108864, 12, 63},
		    {1 << 20, 14, 15}, {1 << 20, 16, 3}, {786432, 12, 63}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct model m;

		machine(&m, RELEASE(6, 12), 2, 1, 1 << 20, rows[i].page_shift);
		assert_int_equal(zone_batch(&m, rows[i].managed), rows[i].batch);
		model_free(&m);
	}
}

static void settings_act_at_once_and_high_follows_only_on_use(void **state)
{
	struct model m;
	struct pcp *p;

	(void)state;
	machine(&m, RELEASE(6, 12), 2, 1, 2097152, 12);
	p = list_of(&m, 0, 0);
	assert_int_equal(model_park(&m, 0, ZONE_TYPE_NORMAL, 0, 0, 105510), 0);
	assert_int_equal(model_set_fraction(&m, INT32_MAX), 0);
	assert_int_equal(p->high_min, 252);
	assert_int_equal(p->high_max, 252);
	assert_int_equal(p->high, 105510);
	assert_int_equal(p->count, 105510);
	/* a free on that CPU clamps high; the next pass then empties the list down to it */
	pcp_free(&m, model_zone(&m, 0, ZONE_TYPE_NORMAL), 0, 0);
	assert_int_equal(p->high, 252);
	model_refresh_cpu(&m, 0);
	assert_in_range(p->count, 0, 252);
	model_free(&m);

	machine(&m, RELEASE(6, 6), 2, 1, 2097152, 12);
	assert_int_equal(model_set_fraction(&m, 100), 0);
	assert_int_equal(list_of(&m, 0, 0)->high, 10485);
	model_free(&m);
}

static unsigned passes_until(struct model *m, unsigned cpu, int floor_pages)
{
	unsigned passes = 0;

	for (; list_of(m, cpu, 0)->count > floor_pages && passes < 2000; passes++)
		model_refresh_cpu(m, cpu);
	return passes;
}

static void a_squeeze_takes_as_many_passes_as_on_a_real_kernel(void **state)
{
	static const struct {
		uint64_t pages;
		unsigned passes, passes_if_high_is_twice;
	} rows[] = {
		{500, 6, 11},     {1000, 11, 16},   {2000, 16, 21},     {4000, 21, 26},
		{8064, 27, 32},   {16128, 32, 37},  {32768, 40, 45},    {65536, 56, 61},
		{110592, 79, 84}, {131072, 89, 94}, {262144, 154, 159}, {1048576, 544, 549},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int twice = 0; twice < 2; twice++) {
			unsigned want = twice ? rows[i].passes_if_high_is_twice : rows[i].passes,
				 got;
			struct model m;

			machine(&m, RELEASE(6, 12), 2, 1, 1 << 24, 12);
			assert_int_equal(model_park(&m, 0, ZONE_TYPE_NORMAL, 0, 0, rows[i].pages),
					 0);
			list_of(&m, 0, 0)->high = (int)(rows[i].pages << twice);
			assert_int_equal(model_set_fraction(&m, INT32_MAX), 0);
			got = passes_until(&m, 0, 252);
			if (twice ? got + 1 < want || got > want + 1 : got != want)
				fail_msg("%llu pages, high %s: %u passes, a kernel takes %u",
					 (unsigned long long)rows[i].pages,
					 twice ? "twice" : "same", got, want);
			model_free(&m);
		}
}

static void a_trim_takes_as_many_passes_as_on_a_real_kernel(void **state)
{
	static const struct {
		uint64_t pages;
		unsigned passes;
	} rows[] = {{2000, 4}, {8064, 14}, {16128, 19}, {65536, 44}, {131072, 76}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct model m;
		unsigned got;

		machine(&m, RELEASE(6, 12), 64, 1, 67108864, 12);
		model_set_min_free(&m, 67584);
		assert_int_equal(list_of(&m, 0, 0)->high_min, 1312);
		assert_int_equal(model_park(&m, 0, ZONE_TYPE_NORMAL, 0, 0, rows[i].pages), 0);
		got = passes_until(&m, 0, 1312);
		if (got != rows[i].passes)
			fail_msg("%llu pages: %u passes, a kernel takes %u",
				 (unsigned long long)rows[i].pages, got, rows[i].passes);
		model_free(&m);
	}
}

static void with_64k_pages_the_floor_is_12_and_a_pass_takes_96(void **state)
{
	static const struct {
		uint64_t pages;
		unsigned passes;
	} rows[] = {{100, 19}, {500, 31}, {2000, 47}, {8192, 111}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct model m;
		unsigned got;

		machine(&m, RELEASE(6, 12), 2, 1, 1 << 20, 16);
		assert_int_equal(model_set_fraction(&m, INT32_MAX), 0);
		assert_int_equal(list_of(&m, 0, 0)->high_min, 12);
		assert_int_equal(model_park(&m, 0, ZONE_TYPE_NORMAL, 0, 0, rows[i].pages), 0);
		list_of(&m, 0, 0)->high = (int)rows[i].pages;
		got = passes_until(&m, 0, 12);
		if (got != rows[i].passes)
			fail_msg("%llu pages: %u passes, a kernel takes %u",
				 (unsigned long long)rows[i].pages, got, rows[i].passes);
		model_free(&m);
	}
}

static void before_6_7_a_pass_drains_only_other_nodes_memory(void **state)
{
	struct model m;

	(void)state;
	machine(&m, RELEASE(6, 1), 4, 2, 2097152, 12);
	assert_int_equal(model_set_fraction(&m, INT32_MAX), 0);
	assert_int_equal(model_park(&m, 0, ZONE_TYPE_NORMAL, 0, 0, 14600), 0);
	assert_int_equal(model_park(&m, 1, ZONE_TYPE_NORMAL, 0, 0, 1000), 0);
	for (int pass = 0; pass < 40; pass++)
		model_refresh_cpu(&m, 0);
	assert_int_equal(list_of(&m, 0, 0)->count, 14600);
	assert_in_range(list_of(&m, 0, 1)->count, 1, 1000 - 63);
	/* frees on that CPU do it: 63 to 189 pages each */
	for (int n = 0; n < 14600 / 63 && list_of(&m, 0, 0)->count > 252; n++)
		pcp_free(&m, model_zone(&m, 0, ZONE_TYPE_NORMAL), 0, 0);
	assert_in_range(list_of(&m, 0, 0)->count, 0, 252);
	model_free(&m);
}

static void busy_lists_grow_to_high_max_and_fall_back_when_idle_only_by_passes(void **state)
{
	uint64_t all = 2097152 - 2097152 / 8;
	struct model m;
	struct load l = {.name = "burst", .rate = 2UL << 30, .burst = 1UL << 30, .anon = true};

	(void)state;
	machine(&m, RELEASE(6, 12), 2, 1, 2097152, 12);
	assert_int_equal(cpuset_add(&l.cpus, 0), 0);
	m.loads[m.nr_loads++] = l;
	model_advance(&m, 5 * USEC_PER_SEC);
	check_consistent(&m, all);
	if (list_of(&m, 0, 0)->count < 60000)
		fail_msg("bursts of 1 GiB park only %d pages", list_of(&m, 0, 0)->count);
	assert_int_equal(list_of(&m, 1, 0)->count, 0);
	assert_true(m.vmstat[VMSTAT_PGALLOC_NORMAL] > 1000000);

	cpuset_clear(&m.loads[0].cpus);
	m.cpus[0].busy = false;
	{
		int parked = list_of(&m, 0, 0)->count;

		model_advance(&m, 60 * USEC_PER_SEC);
		assert_int_equal(list_of(&m, 0, 0)->count, parked); /* an idle CPU keeps it */
		m.cpus[0].busy = true;
		model_advance(&m, 10 * USEC_PER_SEC);
		assert_true(list_of(&m, 0, 0)->count < parked);
	}
	check_consistent(&m, all);
	model_free(&m);
}

static void orders_that_are_off_never_reach_a_list_and_switching_off_drains(void **state)
{
	uint64_t all = 2097152 - 2097152 / 8;

	(void)state;
	for (unsigned order = 4; order <= 8; order++) {
		struct load l = {.name = "folios",
				 .rate = 256 << 20,
				 .burst = 64 << 20,
				 .order = order,
				 .anon = true};
		struct model m;

		machine(&m, RELEASE(6, 12), 4, 1, 2097152, 12);
		assert_int_equal(cpuset_add(&l.cpus, 2), 0);
		m.loads[m.nr_loads++] = l;
		model_advance(&m, USEC_PER_SEC);
		assert_int_equal(model_order_blocks(&m, order), 0);
		assert_int_equal(m.mthp[order][MTHP_ANON_FAULT_ALLOC], (256 << 20) >> (12 + order));
		model_set_order(&m, order, true);
		model_advance(&m, USEC_PER_SEC);
		assert_true(model_order_blocks(&m, order) > 0);
		check_consistent(&m, all);
		model_set_order(&m, order, false);
		assert_int_equal(model_parked(&m), 0);
		assert_int_equal(m.order_drains, 1);
		check_consistent(&m, all);
		model_free(&m);
	}
}

static void shortage_stops_growth_and_fragmentation_makes_folios_fall_back(void **state)
{
	struct load l = {.name = "l", .rate = 64 << 20, .burst = 1 << 20, .order = 4, .anon = true};
	struct model m;
	struct model_zone *z;

	(void)state;
	machine(&m, RELEASE(6, 12), 2, 1, 2097152, 12);
	z = model_zone(&m, 0, ZONE_TYPE_NORMAL);
	assert_int_equal(cpuset_add(&l.cpus, 0), 0);
	m.loads[m.nr_loads++] = l;
	z->unusable = 1;
	z->unusable_from = 3;
	model_advance(&m, USEC_PER_SEC);
	assert_int_equal(m.mthp[4][MTHP_ANON_FAULT_ALLOC], 0);
	assert_true(m.mthp[4][MTHP_ANON_FAULT_FALLBACK] > 0);
	zone_set_free(&m, z, z->low / 2);
	assert_true(z->below_high && z->reclaim_active);
	model_advance(&m, USEC_PER_SEC);
	assert_true(m.vmstat[VMSTAT_PGSCAN_KSWAPD] > 0);
	model_free(&m);
}

static void hotplug_divides_the_lists_anew_and_an_offline_cpu_parks_nothing(void **state)
{
	struct model m;

	(void)state;
	machine(&m, RELEASE(6, 12), 4, 1, 4194304, 12);
	assert_int_equal(model_set_fraction(&m, 100), 0);
	assert_int_equal(list_of(&m, 0, 0)->high_min, 10485);
	assert_int_equal(model_park(&m, 0, ZONE_TYPE_NORMAL, 3, 3, 8000), 0);
	assert_int_equal(model_cpu_set(&m, 3, false), 0);
	assert_int_equal(list_of(&m, 3, 0)->count, 0);
	assert_int_equal(list_of(&m, 0, 0)->high_min, 41943 / 3);
	assert_int_equal(model_park(&m, 0, ZONE_TYPE_NORMAL, 3, 0, 10), -ENOENT);
	assert_int_equal(model_cpu_set(&m, 3, true), 0);
	assert_int_equal(list_of(&m, 0, 0)->high_min, 10485);
	assert_int_equal(model_node_set(&m, 0, false), -EBUSY);
	model_free(&m);
}

static void the_largest_machine_is_simulated_too(void **state)
{
	struct model m;

	(void)state;
	machine(&m, RELEASE(6, 12), 1024, 16, 67108864, 12);
	for (unsigned cpu = 0; cpu < 1024; cpu++)
		assert_int_equal(model_park(&m, (int)(cpu / 64), ZONE_TYPE_NORMAL, cpu, 0, 1000),
				 0);
	assert_int_equal(model_parked(&m), 1024 * 1000);
	for (unsigned cpu = 0; cpu < 1024; cpu++)
		model_refresh_cpu(&m, cpu);
	model_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_sized_as_the_kernel_does),
		cmocka_unit_test(fraction_0_leaves_room_between_low_watermark_and_an_eighth),
		cmocka_unit_test(batch_follows_zone_and_page_size),
		cmocka_unit_test(settings_act_at_once_and_high_follows_only_on_use),
		cmocka_unit_test(a_squeeze_takes_as_many_passes_as_on_a_real_kernel),
		cmocka_unit_test(a_trim_takes_as_many_passes_as_on_a_real_kernel),
		cmocka_unit_test(with_64k_pages_the_floor_is_12_and_a_pass_takes_96),
		cmocka_unit_test(before_6_7_a_pass_drains_only_other_nodes_memory),
		cmocka_unit_test(
			busy_lists_grow_to_high_max_and_fall_back_when_idle_only_by_passes),
		cmocka_unit_test(orders_that_are_off_never_reach_a_list_and_switching_off_drains),
		cmocka_unit_test(shortage_stops_growth_and_fragmentation_makes_folios_fall_back),
		cmocka_unit_test(hotplug_divides_the_lists_anew_and_an_offline_cpu_parks_nothing),
		cmocka_unit_test(the_largest_machine_is_simulated_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
