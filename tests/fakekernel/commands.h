/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the commands of the control file share. Each returns 0 or a negative errno. */
#pragma once

#include "files.h"

#define WORDS_MAX 8

/* One command line, split at blanks. rest[i] is the text from word i to the end of the line. */
struct command {
	struct fake *f;
	const char *word[WORDS_MAX], *rest[WORDS_MAX];
	size_t n;
	unsigned times, skip;
};

/* Says why in the fake's last_error and returns `code`. */
int refuse(struct fake *f, int code, const char *fmt, ...) _printf_(3, 4);

/* One word as ... */
int number(struct command *c, const char *word, double *ret);
int cpus_of(struct command *c, const char *word, struct cpuset *ret); /* "0-3,8", "all" */
int zone_of(struct command *c, const char *word, int *node, enum zone_type *type); /* "0:Normal" */
int folio_of(struct command *c, const char *word, unsigned *order);                /* "4", "64kB" */
int bytes_of(struct command *c, const char *word, uint64_t *ret);

/* commands-memory.c: loads, what is parked, shortage, hotplug */
int cmd_unload(struct command *c);
int cmd_load(struct command *c);
int cmd_busy(struct command *c);
int cmd_spin(struct command *c);
int cmd_park(struct command *c);
int cmd_touch(struct command *c);
int cmd_drain(struct command *c);
int cmd_free(struct command *c);
int cmd_fragment(struct command *c);
int cmd_count(struct command *c);
int cmd_rate(struct command *c);
int cmd_pressure(struct command *c);
int cmd_cpu(struct command *c);
int cmd_node(struct command *c);
int cmd_zone(struct command *c);
int cmd_offline_memory(struct command *c);
int cmd_offline_end(struct command *c);

/* commands-files.c: time, files, faults */
int cmd_advance(struct command *c);
int cmd_clock(struct command *c);
int cmd_after(struct command *c);
int cmd_every(struct command *c);
int cmd_cancel(struct command *c);
int cmd_write(struct command *c);
int cmd_hide(struct command *c);
int cmd_show(struct command *c);
int cmd_process(struct command *c);
int cmd_fault(struct command *c);
int cmd_clear(struct command *c);
int cmd_when(struct command *c);
int cmd_race(struct command *c);
int cmd_reboot(struct command *c);
int cmd_reset(struct command *c);
