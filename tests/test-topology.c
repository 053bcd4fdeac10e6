/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "corpus.h"
#include "sense/topology.h"
#include "tree.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void put_cache(const struct tree *t, unsigned cpu, unsigned index, unsigned level,
		      const char *type, const char *size, const char *shared)
{
	char rel[128];

#define PUT(name, ...)                                                                             \
	((void)snprintf(rel, sizeof(rel), "sys/devices/system/cpu/cpu%u/cache/index%u/" name, cpu, \
			index),                                                                    \
	 tree_put(t, rel, __VA_ARGS__))
	PUT("level", "%u\n", level);
	PUT("type", "%s\n", type);
	PUT("size", "%s\n", size);
	PUT("shared_cpu_list", "%s\n", shared);
#undef PUT
}

/* Four CPUs in pairs: L2 for each pair, L3 for all, an instruction cache that must not count. */
static void put_machine(const struct tree *t)
{
	tree_put(t, "sys/devices/system/cpu/online", "0-3\n");
	tree_put(t, "sys/devices/system/cpu/isolated", "\n");
	tree_put(t, "sys/devices/system/node/online", "0,2\n");
	tree_put(t, "sys/devices/system/node/node0/cpulist", "0-1\n");
	tree_put(t, "sys/devices/system/node/node2/cpulist", "2-3\n");
	for (unsigned cpu = 0; cpu < 4; cpu++) {
		put_cache(t, cpu, 0, 1, "Data", "32K", "0");
		put_cache(t, cpu, 1, 2, "Unified", cpu < 2 ? "1024K" : "2M",
			  cpu < 2 ? "0-1" : "2-3");
		put_cache(t, cpu, 2, 3, "Unified", "32768K", "0-3");
		put_cache(t, cpu, 3, 3, "Instruction", "65536K", "0-3");
	}
}

static void caches_nodes_and_cpus_are_found(void **state)
{
	_cleanup_(tree_remove) struct tree t = {0};
	_cleanup_(topology_free) struct topology topo = {0};

	(void)state;
	tree_make(&t);
	put_machine(&t);
	assert_int_equal(topology_read(&topo, &t.root), 0);
	assert_int_equal(cpuset_count(&topo.online), 4);
	assert_int_equal(cpuset_count(&topo.nodes), 2);
	assert_int_equal(topo.node_of_cpu[1], 0);
	assert_int_equal(topo.node_of_cpu[3], 2);
	assert_int_equal(topo.l2_bytes, 1024 * 1024);
	assert_int_equal(topo.l2_cpus, 2);
	assert_int_equal(topo.llc_bytes, 32768 * 1024);
	assert_int_equal(topo.llc_cpus, 4);
	assert_int_equal(topo.caches[3].l2_bytes, 2048 * 1024);
	assert_int_equal(cpuset_count(&topo.isolated), 0);
}

static void only_online_cpus_count_as_sharers(void **state)
{
	_cleanup_(tree_remove) struct tree t = {0};
	_cleanup_(topology_free) struct topology topo = {0};

	(void)state;
	tree_make(&t);
	put_machine(&t);
	tree_put(&t, "sys/devices/system/cpu/online", "1-3\n");
	assert_int_equal(topology_read(&topo, &t.root), 0);
	assert_int_equal(topo.l2_cpus, 1);
	assert_int_equal(topo.llc_cpus, 3);
	/* and after the CPU came back, what was read before is gone */
	tree_put(&t, "sys/devices/system/cpu/online", "0-3\n");
	assert_int_equal(topology_read(&topo, &t.root), 0);
	assert_int_equal(topo.llc_cpus, 4);
}

static void isolated_cpus_come_from_both_files(void **state)
{
	_cleanup_(tree_remove) struct tree t = {0};
	_cleanup_(topology_free) struct topology topo = {0};

	(void)state;
	tree_make(&t);
	put_machine(&t);
	tree_put(&t, "sys/devices/system/cpu/isolated", "3\n");
	tree_put(&t, "sys/devices/system/cpu/nohz_full", "(null)\n");
	assert_int_equal(topology_read(&topo, &t.root), 0);
	assert_int_equal(cpuset_count(&topo.isolated), 1);
	assert_int_equal(cpuset_count(&topo.nohz_full), 0);
	tree_put(&t, "sys/devices/system/cpu/nohz_full", "1-2\n");
	assert_int_equal(topology_read(&topo, &t.root), 0);
	assert_true(cpuset_has(&topo.nohz_full, 2));
}

static void old_kernels_without_lists_are_read_by_their_masks(void **state)
{
	_cleanup_(tree_remove) struct tree t = {0};
	_cleanup_(topology_free) struct topology topo = {0};

	(void)state;
	tree_make(&t);
	put_machine(&t);
	tree_delete(&t, "sys/devices/system/cpu/online");
	tree_delete(&t, "sys/devices/system/node/online");
	tree_put(&t, "sys/devices/system/cpu/cpu2/online", "0\n");
	tree_delete(&t, "sys/devices/system/node/node2/cpulist");
	tree_put(&t, "sys/devices/system/node/node2/cpumap", "00000000,0000000c\n");
	tree_delete(&t, "sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list");
	tree_put(&t, "sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_map", "3\n");
	assert_int_equal(topology_read(&topo, &t.root), 0);
	assert_int_equal(cpuset_count(&topo.online), 3);
	assert_int_equal(topo.node_of_cpu[3], 2);
	assert_int_equal(topo.caches[0].l2_cpus, 2);
	assert_int_equal(topo.llc_cpus, 3);
}

static void what_a_machine_does_not_tell_is_no_error(void **state)
{
	_cleanup_(tree_remove) struct tree t = {0};
	_cleanup_(topology_free) struct topology topo = {0};

	(void)state;
	tree_make(&t);
	assert_int_equal(topology_read(&topo, &t.root), 0);
	assert_int_equal(cpuset_count(&topo.online), 0);
	assert_int_equal(topo.llc_bytes, 0);
	tree_put(&t, "sys/devices/system/cpu/online", "0-2,7\n");
	put_cache(&t, 0, 0, 2, "Unified", "what", "0-2");
	assert_int_equal(topology_read(&topo, &t.root), 0);
	assert_int_equal(cpuset_count(&topo.online), 4);
	assert_int_equal(topo.l2_bytes, 0);
	assert_int_equal(topo.node_of_cpu[7], -1);
	tree_put(&t, "sys/devices/system/cpu/online", "0-999999\n");
	assert_int_equal(topology_read(&topo, &t.root), 0); /* by the directories: CPU 0 alone */
	assert_int_equal(cpuset_count(&topo.online), 1);
}

/* Real machines */

struct machine {
	const char *archive;
	unsigned online, nodes;
	uint64_t l2_kib, llc_kib;
	unsigned l2_cpus, llc_cpus;
};

static const struct machine machines[] = {
	/* two efficient cores share the smaller L2, and there is no L3 */
	{"chcpu-apple-m1pro", 8, 0, 4096, 4096, 2, 2},
	{"hwloc-128arm-2pa2n8cluster4co", 128, 4, 512, 32768, 1, 32},
	/* performance cores: 1.25 MiB for two threads; efficient ones have 2 MiB for four */
	{"hwloc-20em64t-hybrid-1p6c2t-2ca4co1t", 20, 1, 1280, 24576, 2, 20},
	{"hwloc-256ppc-8n8s4t", 256, 8, 256, 4096, 4, 4},
	{"hwloc-48amd64-4pa2n6c-sparse", 48, 8, 512, 5118, 1, 6},
	{"hwloc-8em64t-2s2ca2c-buggynuma", 8, 8, 6144, 6144, 2, 2},
	/* CPUs 4 to 20 of 24 are online: nine of them are on one socket */
	{"hwloc-offline-cpu0-node0", 17, 1, 256, 30720, 1, 9},
	{"lscpu-armv7", 2, 0, 0, 0, 0, 0},
	{"lscpu-s390-lpar", 17, 0, 0, 0, 0, 0},
	{"lscpu-x86_64-epyc_7451", 96, 8, 512, 8192, 2, 6},
};

static void must_be(const char *what, const char *key, uint64_t have, uint64_t want)
{
	if (have != want)
		fail_msg("%s: %s is %llu, must be %llu", what, key, (unsigned long long)have,
			 (unsigned long long)want);
}

static unsigned online_on_node(const struct topology *t, int node)
{
	unsigned n = 0;

	for (int c = cpuset_next(&t->online, 0); c >= 0; c = cpuset_next(&t->online, c + 1))
		n += t->node_of_cpu[c] == node;
	return n;
}

/* The same from a program that shares no code with the library. */
static void ask_the_oracle(const char *what, const struct tree *tree, const struct topology *t)
{
	char command[512], key[64];
	unsigned long long want;
	unsigned answers = 0;
	int node;
	FILE *f;

	(void)snprintf(command, sizeof(command), "python3 '%s/topology-oracle.py' '%s'", TEST_DIR,
		       tree->path);
	f = popen(command, "re");
	assert_non_null(f);
	while (fscanf(f, "%63s %llu", key, &want) == 2) {
		answers++;
		if (streq(key, "online"))
			must_be(what, key, cpuset_count(&t->online), want);
		else if (streq(key, "nodes"))
			must_be(what, key, cpuset_count(&t->nodes), want);
		else if (streq(key, "l2_bytes"))
			must_be(what, key, t->l2_bytes, want);
		else if (streq(key, "l2_cpus"))
			must_be(what, key, t->l2_cpus, want);
		else if (streq(key, "llc_bytes"))
			must_be(what, key, t->llc_bytes, want);
		else if (streq(key, "llc_cpus"))
			must_be(what, key, t->llc_cpus, want);
		else if (sscanf(key, "node%d_cpus", &node) == 1)
			must_be(what, key, online_on_node(t, node), want);
		else
			fail_msg("%s: what is %s?", what, key);
	}
	if (pclose(f) != 0 || answers < 6)
		fail_msg("%s: the second opinion did not come", what);
}

static bool have_python(void)
{
	return system("python3 -c '' 2>/dev/null") == 0;
}

static void read_machine(const struct machine *m, bool python)
{
	_cleanup_(tree_remove) struct tree tree = {0};
	_cleanup_(topology_free) struct topology t = {0};
	char command[640];

	tree_make(&tree);
	(void)snprintf(command, sizeof(command), "tar -xJf '%s/corpus/sys/%s.tar.xz' -C '%s'",
		       corpus_dir(), m->archive, tree.path);
	if (system(command) != 0)
		fail_msg("cannot unpack %s", m->archive);
	assert_int_equal(topology_read(&t, &tree.root), 0);
	must_be(m->archive, "online", cpuset_count(&t.online), m->online);
	must_be(m->archive, "nodes", cpuset_count(&t.nodes), m->nodes);
	must_be(m->archive, "l2_bytes", t.l2_bytes, m->l2_kib * 1024);
	must_be(m->archive, "l2_cpus", t.l2_cpus, m->l2_cpus);
	must_be(m->archive, "llc_bytes", t.llc_bytes, m->llc_kib * 1024);
	must_be(m->archive, "llc_cpus", t.llc_cpus, m->llc_cpus);
	if (python)
		ask_the_oracle(m->archive, &tree, &t);
}

static void real_machines_have_the_caches_their_files_say(void **state)
{
	bool python = have_python();
	unsigned n = 0;

	(void)state;
	for (size_t i = 0; corpus_dir() && i < ARRAY_SIZE(machines); i++) {
		char path[512];

		(void)snprintf(path, sizeof(path), "%s/corpus/sys/%s.tar.xz", corpus_dir(),
			       machines[i].archive);
		if (access(path, R_OK) < 0)
			continue;
		read_machine(&machines[i], python);
		n++;
	}
	if (n == 0) {
		print_message("    no captures beside the source tree\n");
		skip();
	}
	print_message("    %u machines, %s\n", n,
		      python ? "with a second opinion" : "without python3 for a second opinion");
}

static void the_captured_machine_agrees_with_the_second_opinion(void **state)
{
	_cleanup_(tree_remove) struct tree tree = {0};
	_cleanup_(topology_free) struct topology t = {0};

	(void)state;
	tree_make(&tree);
	tree_copy(&tree, TEST_DATA "/sysroot-6.18");
	assert_int_equal(topology_read(&t, &tree.root), 0);
	must_be("6.18", "online", cpuset_count(&t.online), 2);
	must_be("6.18", "llc_cpus", t.llc_cpus, 2);
	must_be("6.18", "l2_cpus", t.l2_cpus, 1);
	if (have_python())
		ask_the_oracle("6.18", &tree, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caches_nodes_and_cpus_are_found),
		cmocka_unit_test(only_online_cpus_count_as_sharers),
		cmocka_unit_test(isolated_cpus_come_from_both_files),
		cmocka_unit_test(old_kernels_without_lists_are_read_by_their_masks),
		cmocka_unit_test(what_a_machine_does_not_tell_is_no_error),
		cmocka_unit_test(the_captured_machine_agrees_with_the_second_opinion),
		cmocka_unit_test(real_machines_have_the_caches_their_files_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
