/* SPDX-License-Identifier: GPL-2.0-or-later */
/* park --mib=N --cpu=K|all [--hold]: see parking.h. --hold: stays until it is killed. */
#include "parking.h"

#include "base/error.h"
#include "base/parse.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>

static int usage(void)
{
	(void)fputs("usage: park --mib=N --cpu=K|all [--hold]\n", stderr);
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

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"mib", required_argument, NULL, 'm'},
		{"cpu", required_argument, NULL, 'c'},
		{"hold", no_argument, NULL, 'h'},
		{0},
	};
	uint64_t mib = 0, cpu = 0;
	bool all = false, one = false, hold = false;
	int c, failed = 0;
	cpu_set_t allowed;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'm' && (parse_u64(optarg, &mib) < 0 || mib > SIZE_MAX >> 20))
			return usage();
		if (c == 'c') {
			all = streq(optarg, "all");
			one = !all && parse_u64(optarg, &cpu) == 0 && cpu < CPU_SETSIZE;
		}
		hold = hold || c == 'h';
		if (c == '?')
			return usage();
	}
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
