/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * park --mib=N --cpu=K|all [--hold]: see parking.h. --hold: stays until it is killed.
 * park --faults --seconds=S --cpu=K: how many page faults a second one CPU takes.
 */
#include "parking.h"

#include "base/error.h"
#include "base/parse.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

static int usage(void)
{
	(void)fputs("usage: park --mib=N --cpu=K|all [--hold]\n"
		    "       park --faults --seconds=S --cpu=K\n",
		    stderr);
	return 2;
}

static int park(unsigned cpu, size_t mib)
{
	int r = park_on_cpu(cpu, mib);

	if (r < 0)
		(void)fprintf(stderr, "park: CPU %u: %s\n", cpu, error_name(r));
	else
		(void)printf("CPU %u: touched and freed %zu MiB\n", cpu, mib);
	return r < 0;
}

static uint64_t now_usec(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

/* Maps, touches and unmaps 2 MiB over and over: every page is a fault and a way through a list. */
static int count_faults(unsigned cpu, uint64_t usec)
{
	const size_t len = (size_t)2 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t start, faults = 0, took;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		return -errno;
	start = now_usec();
	do {
		char *m =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (m == MAP_FAILED)
			return -errno;
		(void)madvise(m, len, MADV_NOHUGEPAGE);
		for (size_t i = 0; i < len; i += page)
			((volatile char *)m)[i] = 1;
		(void)munmap(m, len);
		faults += len / page;
		took = now_usec() - start;
	} while (took < usec);
	(void)printf("%.0f faults a second\n", (double)faults / ((double)took / 1e6));
	return 0;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"mib", required_argument, NULL, 'm'},     {"cpu", required_argument, NULL, 'c'},
		{"hold", no_argument, NULL, 'h'},          {"faults", no_argument, NULL, 'f'},
		{"seconds", required_argument, NULL, 's'}, {0},
	};
	uint64_t mib = 0, cpu = 0;
	uint64_t seconds = 0;
	bool all = false, one = false, hold = false, faults = false;
	int c, failed = 0;
	cpu_set_t allowed;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'm' && (parse_u64(optarg, &mib) < 0 || mib > SIZE_MAX >> 20))
			return usage();
		if (c == 'c') {
			all = streq(optarg, "all");
			one = !all && parse_u64(optarg, &cpu) == 0 && cpu < CPU_SETSIZE;
		}
		if (c == 's' && (parse_u64(optarg, &seconds) < 0 || seconds > 3600))
			return usage();
		hold = hold || c == 'h';
		faults = faults || c == 'f';
		if (c == '?')
			return usage();
	}
	if (faults && one && seconds)
		return count_faults((unsigned)cpu, seconds * USEC_PER_SEC) < 0;
	if (mib == 0 || (!all && !one) || sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return usage();
	if (one)
		failed = park((unsigned)cpu, (size_t)mib);
	for (unsigned i = 0; all && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed))
			failed |= park(i, (size_t)mib);
	(void)fflush(stdout);
	while (hold)
		(void)pause();
	return failed;
}
