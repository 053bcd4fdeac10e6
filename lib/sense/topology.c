/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense/topology.h"

#include "sense/files.h"

#include <errno.h>

#define CPU_DIR  "sys/devices/system/cpu"
#define NODE_DIR "sys/devices/system/node"
#define REL_MAX  160U

struct reader {
	struct topology *t;
	const struct sysroot *root;
	struct text text; /* of the list or map at hand */
	struct cpuset set;
};

static void reader_free(struct reader *r)
{
	text_free(&r->text);
	cpuset_free(&r->set);
}

static bool hex_digit(char c, unsigned *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	if (at)
		*ret = (unsigned)(at - digits);
	return at;
}

/* "00000000,0000000f": words of 32 bits, the highest first (include/linux/bitmap.h) */
static int parse_cpumap(const char *s, struct cpuset *into)
{
	size_t n = strcspn(s, "\n");
	unsigned bit = 0;

	cpuset_clear(into);
	for (size_t i = n; i-- > 0;) {
		unsigned digit;

		if (s[i] == ',')
			continue;
		if (!hex_digit(s[i], &digit))
			return -EINVAL;
		for (unsigned b = 0; b < 4; b++)
			if (digit >> b & 1) {
				int r = cpuset_add(into, bit + b);

				if (r < 0)
					return r;
			}
		bit += 4;
	}
	return 0;
}

/* A list file, or where the kernel is too old for it, the map beside it. -ENOENT: neither. */
static int read_set(struct reader *rd, const char *list_rel, const char *map_rel,
		    struct cpuset *into)
{
	int r = sysroot_read(rd->root, list_rel, &rd->text);

	if (r == 0)
		r = parse_cpulist(text_str(&rd->text), into);
	if (r == 0 || r == -ENOMEM || !map_rel)
		return r;
	r = sysroot_read(rd->root, map_rel, &rd->text);
	return r < 0 ? r : parse_cpumap(text_str(&rd->text), into);
}

static void *zero_grown(void *array, uint32_t from, uint32_t to, size_t item)
{
	char *p = realloc(array, to * item);

	if (p)
		memset(p + from * item, 0, (to - from) * item);
	return p;
}

static int make_room(struct topology *t, unsigned cpu)
{
	uint32_t room = MAX_OF(t->cpu_room * 2, cpu + 1);
	struct cpu_caches *caches;
	int32_t *nodes;

	if (cpu < t->cpu_room)
		return 0;
	nodes = zero_grown(t->node_of_cpu, t->cpu_room, room, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	t->node_of_cpu = nodes;
	caches = zero_grown(t->caches, t->cpu_room, room, sizeof(*caches));
	if (!caches)
		return -ENOMEM;
	t->caches = caches;
	for (uint32_t i = t->cpu_room; i < room; i++)
		nodes[i] = -1;
	t->cpu_room = room;
	return 0;
}

/* Where nothing lists the online CPUs, those whose own file does not say 0 are. */
static int add_cpu_dir(const char *name, void *userdata)
{
	struct reader *rd = userdata;
	char rel[REL_MAX], word[16];
	unsigned cpu;

	if (name_number(name, "cpu", &cpu) < 0)
		return 0;
	(void)snprintf(rel, sizeof(rel), CPU_DIR "/cpu%u/online", cpu);
	if (attr_read_once(rd->root, rel, word, sizeof(word)) == 0 && streq(word, "0"))
		return 0;
	return cpuset_add(&rd->t->online, cpu);
}

static int read_cpus(struct reader *rd)
{
	struct topology *t = rd->t;
	int r = read_set(rd, CPU_DIR "/online", NULL, &t->online);

	if (r < 0 && r != -ENOMEM) {
		cpuset_clear(&t->online);
		r = dir_each(rd->root, CPU_DIR, add_cpu_dir, rd);
	}
	if (r == -ENOMEM || r == -ERANGE)
		return r;
	/* "(null)" where a kernel built with nohz_full was booted without it */
	if (read_set(rd, CPU_DIR "/isolated", NULL, &t->isolated) == -ENOMEM ||
	    read_set(rd, CPU_DIR "/nohz_full", NULL, &t->nohz_full) == -ENOMEM)
		return -ENOMEM;
	for (int c = cpuset_next(&t->online, 0); c >= 0; c = cpuset_next(&t->online, c + 1)) {
		r = make_room(t, (unsigned)c);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_node_dir(const char *name, void *userdata)
{
	struct reader *rd = userdata;
	unsigned node;

	return name_number(name, "node", &node) < 0 ? 0 : cpuset_add(&rd->t->nodes, node);
}

static int read_node_cpus(struct reader *rd, int node)
{
	char list[REL_MAX], map[REL_MAX];
	struct topology *t = rd->t;
	int r;

	(void)snprintf(list, sizeof(list), NODE_DIR "/node%d/cpulist", node);
	(void)snprintf(map, sizeof(map), NODE_DIR "/node%d/cpumap", node);
	r = read_set(rd, list, map, &rd->set);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (int c = cpuset_next(&rd->set, 0); c >= 0; c = cpuset_next(&rd->set, c + 1)) {
		r = make_room(t, (unsigned)c);
		if (r < 0)
			return r;
		t->node_of_cpu[c] = node;
	}
	return 0;
}

static int read_nodes(struct reader *rd)
{
	struct topology *t = rd->t;
	int r = read_set(rd, NODE_DIR "/online", NULL, &t->nodes);

	if (r < 0 && r != -ENOMEM) {
		cpuset_clear(&t->nodes);
		r = dir_each(rd->root, NODE_DIR, add_node_dir, rd);
	}
	if (r == -ENOMEM || r == -ERANGE)
		return r;
	for (int n = cpuset_next(&t->nodes, 0); n >= 0; n = cpuset_next(&t->nodes, n + 1)) {
		r = read_node_cpus(rd, n);
		if (r < 0)
			return r;
	}
	return 0;
}

static uint32_t count_online(const struct reader *rd)
{
	const struct cpuset *online = &rd->t->online;
	uint32_t n = 0;

	for (size_t i = 0; i < MIN_OF(online->words, rd->set.words); i++)
		n += (uint32_t)__builtin_popcountll(online->bits[i] & rd->set.bits[i]);
	return n;
}

struct cache {
	unsigned level;
	bool data; /* holds data: type is "Data" or "Unified" */
	uint64_t bytes;
	uint32_t cpus;
};

/* -ENOENT behind the last one; a leaf that does not tell its size or type has 0 there. */
static int read_cache(struct reader *rd, int cpu, unsigned index, struct cache *ret)
{
	char rel[REL_MAX], map[REL_MAX], word[64];
	struct cache c = {.cpus = 1};
	uint64_t level;
	int r;

	(void)snprintf(rel, sizeof(rel), CPU_DIR "/cpu%d/cache/index%u/level", cpu, index);
	r = attr_read_once(rd->root, rel, word, sizeof(word));
	if (r < 0)
		return -ENOENT;
	if (parse_u64(word, &level) == 0 && level < 16)
		c.level = (unsigned)level;
	(void)snprintf(rel, sizeof(rel), CPU_DIR "/cpu%d/cache/index%u/type", cpu, index);
	if (attr_read_once(rd->root, rel, word, sizeof(word)) == 0)
		c.data = streq(word, "Data") || streq(word, "Unified");
	(void)snprintf(rel, sizeof(rel), CPU_DIR "/cpu%d/cache/index%u/size", cpu, index);
	if (attr_read_once(rd->root, rel, word, sizeof(word)) < 0 ||
	    parse_bytes(word, &c.bytes) < 0)
		c.bytes = 0;
	(void)snprintf(rel, sizeof(rel), CPU_DIR "/cpu%d/cache/index%u/shared_cpu_list", cpu,
		       index);
	(void)snprintf(map, sizeof(map), CPU_DIR "/cpu%d/cache/index%u/shared_cpu_map", cpu, index);
	r = read_set(rd, rel, map, &rd->set);
	if (r == -ENOMEM)
		return r;
	if (r == 0)
		c.cpus = MAX_OF(count_online(rd), 1U);
	*ret = c;
	return 0;
}

/*
 * The last-level cache is the last leaf with a size that holds data, the one that the kernel looks
 * at too (drivers/base/cacheinfo.c, update_per_cpu_data_slice_size_cpu()).
 */
static int read_cpu_caches(struct reader *rd, int cpu)
{
	struct cpu_caches *caches = &rd->t->caches[cpu];

	for (unsigned index = 0; index < 16; index++) {
		struct cache c;
		int r = read_cache(rd, cpu, index, &c);

		if (r < 0)
			return r == -ENOENT ? 0 : r;
		if (!c.data || !c.bytes)
			continue;
		if (c.level == 2) {
			caches->l2_bytes = c.bytes;
			caches->l2_cpus = c.cpus;
		}
		if (c.level >= 2) {
			caches->llc_bytes = c.bytes;
			caches->llc_cpus = c.cpus;
		}
	}
	return 0;
}

static void take_smallest(uint64_t bytes, uint32_t cpus, uint64_t *best, uint32_t *best_cpus)
{
	if (bytes && (!*best || bytes < *best || (bytes == *best && cpus > *best_cpus))) {
		*best = bytes;
		*best_cpus = cpus;
	}
}

static int read_caches(struct reader *rd)
{
	struct topology *t = rd->t;

	for (int c = cpuset_next(&t->online, 0); c >= 0; c = cpuset_next(&t->online, c + 1)) {
		const struct cpu_caches *caches = &t->caches[c];
		int r = read_cpu_caches(rd, c);

		if (r < 0)
			return r;
		take_smallest(caches->l2_bytes, caches->l2_cpus, &t->l2_bytes, &t->l2_cpus);
		take_smallest(caches->llc_bytes, caches->llc_cpus, &t->llc_bytes, &t->llc_cpus);
	}
	return 0;
}

int topology_read(struct topology *t, const struct sysroot *root)
{
	_cleanup_(reader_free) struct reader rd = {.t = t, .root = root};
	int r;

	topology_free(t);
	r = read_cpus(&rd);
	if (r == 0)
		r = read_nodes(&rd);
	if (r == 0)
		r = read_caches(&rd);
	if (r < 0)
		topology_free(t);
	return r;
}

void topology_free(struct topology *t)
{
	cpuset_free(&t->online);
	cpuset_free(&t->isolated);
	cpuset_free(&t->nohz_full);
	cpuset_free(&t->nodes);
	free(t->node_of_cpu);
	free(t->caches);
	*t = (struct topology){0};
}
