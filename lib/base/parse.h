/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text to numbers, strictly: no sign, no locale, no trailing rubbish, overflow is an error.
 * Nothing here does I/O or allocates.
 */
#pragma once

#include "base/util.h"

#include <stdbool.h>

/*
 * Reads decimal digits at *s and moves *s behind them.
 * -EINVAL: no digit there; -ERANGE: more than 64 bits.
 */
int parse_u64_at(const char **s, const char *end, uint64_t *ret);

/* The whole of `s` is one decimal number. A final newline, as in sysfs, is accepted. */
int parse_u64(const char *s, uint64_t *ret);

/*
 * A time as systemd writes it: "20s", "1min 30s", "500ms", "2h"; a bare number is seconds.
 * Units: us, ms, s, sec, m, min, h, hr, d, day, days, w. Result in microseconds.
 */
int parse_timespan(const char *s, uint64_t *ret_usec);

/* Bytes, in powers of 1,024: "64kB", "2M", "1.5G", "16GiB"; a bare number is bytes. */
int parse_bytes(const char *s, uint64_t *ret_bytes);

/* "12.5%" as 0.125; "0.125" as well. -ERANGE outside 0 to 1. */
int parse_ratio(const char *s, double *ret);

/* yes/no, true/false, on/off, 1/0. */
int parse_bool(const char *s, bool *ret);

/* A set of CPU (or node) numbers that grows as it needs to. */
struct cpuset {
	uint64_t *bits;
	size_t words;
};

void cpuset_free(struct cpuset *set);
void cpuset_clear(struct cpuset *set);
int cpuset_add(struct cpuset *set, unsigned cpu); /* 0, -ENOMEM, or -ERANGE above CPU_LIMIT */
bool cpuset_has(const struct cpuset *set, unsigned cpu);
size_t cpuset_count(const struct cpuset *set);
/* The first member >= from, or -1. for (int c = cpuset_next(s, 0); c >= 0; c = cpuset_next(s, c +
 * 1)) */
int cpuset_next(const struct cpuset *set, int from);

/* The highest CPU number that is believed: eight times what any kernel is built for. */
#define CPU_LIMIT 65536U

/* "0-3,8,10-11", as /sys/devices/system/cpu/online; "" and "\n" are the empty set. */
int parse_cpulist(const char *s, struct cpuset *into);
