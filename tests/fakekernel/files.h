/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of each file, and what writing to it does. The lock of the fake is held. */
#pragma once

#include "fake.h"

/*
 * Adds record `record` of the file (a table of one node's zones, or everything). 1; 0 where the
 * file has no such record; a negative errno.
 */
int file_text(struct fake *f, const struct tree_entry *e, unsigned record, struct text *t);

/* What write(2) returns: bytes taken, or a negative errno. May sleep, as the kernel may. */
int file_write(struct fake *f, const struct tree_entry *e, const char *buf, size_t len, off_t off);

/* sysctl files and stat_refresh act on each read; what follows the first is empty. */
bool file_is_sysctl(const struct tree_entry *e);

/* A trigger on memory pressure, as written to proc/pressure/memory. */
struct psi_trigger {
	bool full;
	uint64_t threshold_usec, window_usec, last_usec; /* window 0: none */
};
int psi_parse_trigger(const char *buf, size_t len, struct psi_trigger *ret);

/* A read of stat_refresh. Sleeps while a CPU's worker cannot run. */
void file_refresh(struct fake *f, const char *path);

/* zonetext.c */
int zoneinfo_text(struct fake *f, unsigned record, struct text *t);
int buddyinfo_text(struct fake *f, unsigned record, struct text *t);
void vmstat_text(struct fake *f, struct text *t);
void meminfo_text(struct fake *f, struct text *t);

/* numbers.c: as proc_dointvec_minmax() and kstrtoul() read them */
/* Bytes taken, with *ret_value; -EINVAL. */
int sysctl_parse_int(const char *buf, size_t len, int64_t min, int64_t max, int *ret_value);
int sysfs_parse_ulong(const char *buf, size_t len, unsigned long *ret);
void add_cpulist(struct text *t, unsigned limit, bool (*has)(const void *of, unsigned i),
		 const void *of);
