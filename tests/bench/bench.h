/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What benches have in common: a clock, and a line that compares a cost with its budget. */
#pragma once

#include "base/util.h"

#include <stdbool.h>
#include <time.h>

static inline double bench_nsec(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* CPU time of this thread in user mode and kernel mode together. */
static inline double bench_cpu_nsec(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Prints `cost` beside its reference in the same run; false where it is above the budget. */
static inline bool bench_ratio(const char *what, double cost_nsec, const char *reference,
			       double reference_nsec, double budget)
{
	double ratio = cost_nsec / reference_nsec;

	printf("%-44s %10.2f us   %s %10.2f us   ratio %6.2f%%   budget %.0f%%%s\n", what,
	       cost_nsec / 1e3, reference, reference_nsec / 1e3, ratio * 100, budget * 100,
	       ratio <= budget ? "" : "   NOT MET");
	return ratio <= budget;
}
