/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parking.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

int park_on_cpu(unsigned cpu, size_t mib)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = mib << 20;
	cpu_set_t set;
	char *p;

	CPU_ZERO(&set);
	if (cpu >= CPU_SETSIZE)
		return -ERANGE;
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return -errno;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	(void)madvise(p, len, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < len; at += page)
		((volatile char *)p)[at] = 1;
	return munmap(p, len) < 0 ? -errno : 0;
}
