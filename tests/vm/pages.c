/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the cases in a guest need one process for that does not fork while it works: a shell loop
 * frees pages on every CPU with each command, which by itself drains the lists it wants to see.
 * Loads in pages of a size, and the counts of /proc/zoneinfo read and compared.
 */
#include "base/parse.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum {
	ORDERS = 16,
	PAGESETS = 1024,
	KIB = 1024,
	REGION = 64 * KIB * KIB,   /* what a process maps, touches and gives back in a round */
	ALIGNMENT = 2 * KIB * KIB, /* of every size up to the PMD's */
	ZONEINFO_SIZE = 512 * KIB, /* 16 CPUs, 2 nodes and 5 zones with their orders take 60 KiB */
	SNAPSHOT_PAUSE = 2 * 1000000 /* ns: what is torn is whole again when it is over */
};

struct pageset {
	unsigned node, cpu;
	char zone[16];
	long count, high, order[ORDERS];
	bool orders_seen;
};

static struct pageset sets[PAGESETS], earlier[PAGESETS];
static char text[ZONEINFO_SIZE];

static void die(const char *what)
{
	fprintf(stderr, "pages: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t number(const char *word)
{
	uint64_t n;

	if (parse_u64(word, &n) < 0 || n > INT_MAX) {
		fprintf(stderr, "pages: '%s' is no number\n", word);
		exit(2);
	}
	return n;
}

/* zoneinfo: a parser of its own, so that what checks pcptune does not share its mistakes */

static void zoneinfo_read(void)
{
	_cleanup_(closep) int fd = open("/proc/zoneinfo", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		die("/proc/zoneinfo");
	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0 || len >= sizeof(text) - 1)
		die("reading /proc/zoneinfo");
	text[len] = '\0';
}

static size_t snapshot(struct pageset *into)
{
	struct pageset *set = NULL;
	char zone[16] = "";
	unsigned node = 0, cpu, order;
	size_t n_sets = 0;
	char *line, *rest = text;
	long value;

	zoneinfo_read();
	while ((line = strsep(&rest, "\n"))) {
		if (sscanf(line, "Node %u, zone %15s", &node, zone) == 2) {
			set = NULL;
		} else if (sscanf(line, "    cpu: %u", &cpu) == 1) {
			if (n_sets == PAGESETS) {
				fputs("pages: more pagesets than this tool has room for\n", stderr);
				exit(1);
			}
			set = &into[n_sets++];
			*set = (struct pageset){.node = node, .cpu = cpu};
			memcpy(set->zone, zone, sizeof(zone));
		} else if (set && sscanf(line, " count: %ld", &value) == 1) {
			set->count = value;
		} else if (set && sscanf(line, " high: %ld", &value) == 1) {
			set->high = value;
		} else if (set && sscanf(line, " order%u: %ld", &order, &value) == 2) {
			if (order < ORDERS)
				set->order[order] = value;
			set->orders_seen = true;
		}
	}
	return n_sets;
}

static long orders_sum(const struct pageset *set)
{
	long sum = 0;

	for (unsigned i = 0; i < ORDERS; i++)
		sum += set->order[i] * (1L << i);
	return sum;
}

static int verb_order(char *argv[])
{
	unsigned order = (unsigned)number(argv[0]);
	size_t n = snapshot(sets);
	long sum = 0;

	for (size_t i = 0; i < n && order < ORDERS; i++)
		sum += sets[i].order[order];
	printf("%ld\n", sum);
	return 0;
}

static int verb_parked(char *argv[])
{
	size_t n = snapshot(sets);
	long sum = 0;

	(void)argv;
	for (size_t i = 0; i < n; i++)
		sum += sets[i].count;
	printf("%ld\n", sum);
	return 0;
}

static int verb_pagesets(char *argv[])
{
	size_t n = snapshot(sets);

	(void)argv;
	for (size_t i = 0; i < n; i++)
		printf("%u %s %u %ld %ld\n", sets[i].node, sets[i].zone, sets[i].cpu, sets[i].count,
		       sets[i].high);
	return 0;
}

static void pause_briefly(long ns)
{
	struct timespec t = {.tv_nsec = ns};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/*
 * A count that disagrees with its orders was read while the list changed if the next snapshot shows
 * other numbers; the same wrong numbers twice in a row are the kernel's own.
 */
static bool stuck(const struct pageset *now, const struct pageset *before)
{
	return now->count == before->count && orders_sum(before) != before->count &&
	       memcmp(now->order, before->order, sizeof(now->order)) == 0;
}

static int verb_counts(char *argv[])
{
	uint64_t snapshots = number(argv[0]), torn = 0, wrong = 0, checked = 0;
	size_t n_earlier = 0;

	for (uint64_t s = 0; s < snapshots; s++) {
		size_t n = snapshot(sets);

		for (size_t i = 0; i < n; i++) {
			const struct pageset *set = &sets[i];

			if (!set->orders_seen) {
				fputs("pages: zoneinfo has no counts of orders\n", stderr);
				return 1;
			}
			checked++;
			if (orders_sum(set) == set->count)
				continue;
			torn++;
			if (n == n_earlier && stuck(set, &earlier[i])) {
				wrong++;
				fprintf(stderr, "node %u %s cpu %u: count %ld, orders %ld\n",
					set->node, set->zone, set->cpu, set->count,
					orders_sum(set));
			}
		}
		memcpy(earlier, sets, n * sizeof(sets[0]));
		n_earlier = n;
		pause_briefly(SNAPSHOT_PAUSE);
	}
	printf("snapshots=%" PRIu64 " pagesets=%" PRIu64 " differ=%" PRIu64 " stay=%" PRIu64 "\n",
	       snapshots, checked, torn, wrong);
	return wrong > 0;
}

/* loads */

static void pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("cannot stay on one CPU");
}

static char *map(size_t size, int advice)
{
	char *p = mmap(NULL, size + ALIGNMENT, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	p += -(uintptr_t)p % ALIGNMENT;
	if (madvise(p, size, advice) < 0 && errno != EINVAL)
		die("madvise");
	return p;
}

/* Touches `faults` blocks of `size` bytes, a region at a time, each given back before the next. */
static void fault(size_t size, uint64_t faults, time_t seconds)
{
	char *p = map(REGION, size > 4 * KIB ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	time_t end = time(NULL) + seconds;
	uint64_t done = 0;

	while (seconds ? time(NULL) < end : done < faults) {
		size_t used = 0;

		while (used < REGION && (seconds || done < faults)) {
			((volatile char *)p)[used] = 1;
			used += size;
			done++;
		}
		if (madvise(p, REGION, MADV_DONTNEED) < 0)
			die("madvise");
	}
}

/* One process a CPU, from the first allowed one on, all started before any works. */
static int on_cpus(uint64_t processes, size_t size, uint64_t faults, time_t seconds)
{
	int gate[2], status, worst = 0;
	cpu_set_t allowed;
	unsigned cpu = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0 || pipe(gate) < 0)
		die("setting up");
	for (uint64_t i = 0; i < processes; i++, cpu++) {
		while (!CPU_ISSET(cpu % CPU_SETSIZE, &allowed))
			cpu++;
		pid_t pid = fork();
		if (pid < 0)
			die("fork");
		if (pid == 0) {
			char c;

			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			pin(cpu % CPU_SETSIZE);
			close(gate[1]);
			(void)!read(gate[0], &c, 1);
			fault(size, faults, seconds);
			_exit(0);
		}
	}
	close(gate[1]);
	close(gate[0]);
	while (wait(&status) > 0)
		worst |= status;
	return worst != 0;
}

static int verb_faults(char *argv[])
{
	return on_cpus(number(argv[2]), number(argv[0]) * KIB, number(argv[1]), 0);
}

static int verb_load(char *argv[])
{
	return on_cpus(number(argv[2]), number(argv[0]) * KIB, 0, (time_t)number(argv[1]));
}

/* Parks what fits: touches and frees `mib` MiB of base pages on one CPU, and leaves it alone. */
static int verb_park(char *argv[])
{
	size_t size = number(argv[1]) * KIB * KIB, page = (size_t)sysconf(_SC_PAGESIZE);
	char *p;

	pin((unsigned)number(argv[0]));
	p = map(size, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < size; at += page)
		((volatile char *)p)[at] = 1;
	if (madvise(p, size, MADV_DONTNEED) < 0)
		die("madvise");
	return 0;
}

/* Reads stat_refresh, from the first CPU, so that nothing is allocated or freed on the others. */
static int verb_passes(char *argv[])
{
	uint64_t passes = number(argv[0]);
	char c[64];

	pin(0);
	for (uint64_t i = 0; i < passes; i++) {
		_cleanup_(closep) int fd = open("/proc/sys/vm/stat_refresh", O_RDONLY | O_CLOEXEC);

		if (fd < 0 || read(fd, c, sizeof(c)) < 0)
			die("/proc/sys/vm/stat_refresh");
	}
	return 0;
}

/*
 * Takes memory until `mib` MiB are left free, then gives every other page of it back: plenty of
 * free memory, none of it in blocks. Says so with a line and waits to be killed.
 */
static int verb_fragment(char *argv[])
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), left = number(argv[0]) * KIB * KIB;
	size_t size = (size_t)sysconf(_SC_AVPHYS_PAGES) * page;
	char *p;

	if (size <= left) {
		fputs("pages: less is free than is to be left\n", stderr);
		return 1;
	}
	size -= left;
	p = map(size, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < size; at += page)
		((volatile char *)p)[at] = 1;
	for (size_t at = 0; at < size; at += 2 * page)
		if (madvise(p + at, page, MADV_DONTNEED) < 0)
			die("madvise");
	puts("fragmented");
	(void)fflush(stdout);
	pause();
	return 0;
}

static const struct verb {
	const char *name, *args, *help;
	int n_args;
	int (*run)(char *argv[]);
} verbs[] = {
	{"order", "N", "blocks of order N on all lists", 1, verb_order},
	{"parked", "", "pages on all lists", 0, verb_parked},
	{"pagesets", "", "node, zone, CPU, count and high, a line each", 0, verb_pagesets},
	{"counts", "N", "in N snapshots every count is that of its orders", 1, verb_counts},
	{"faults", "KB N PROCESSES", "N faults of a size by each process", 3, verb_faults},
	{"load", "KB SECONDS PROCESSES", "faults of a size for a time", 3, verb_load},
	{"park", "CPU MIB", "touch and free base pages on a CPU", 2, verb_park},
	{"passes", "N", "read stat_refresh N times", 1, verb_passes},
	{"fragment", "MIB", "leave so much alone, fragment the rest, wait", 1, verb_fragment},
};

int main(int argc, char *argv[])
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(verbs); i++)
		if (streq(argv[1], verbs[i].name) && argc - 2 == verbs[i].n_args)
			return verbs[i].run(argv + 2);

	fputs("Usage:\n", stderr);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(stderr, "  pages %s %s\t%s\n", verbs[i].name, verbs[i].args, verbs[i].help);
	return 2;
}
