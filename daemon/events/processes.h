/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of the names that policies ask for are carried by running processes.
 *
 * By the proc connector where the kernel tells us, otherwise by reading /proc from time to time.
 * Events are taken in batches, so that processes that live for a moment cost nearly nothing, and
 * each way has a bound: events that cost more than half a percent of a CPU are given up for scans
 * for a while, and a scan is followed by 250 times its duration without one.
 */
#pragma once

#include "sense/snapshot.h"
#include "watch.h"

#include <systemd/sd-event.h>

#define PROCESSES_BATCH_USEC  (25 * USEC_PER_MSEC)
#define PROCESSES_SCAN_FACTOR 250U

struct processes;

/*
 * `root` must outlive it. `scan_usec`: between scans, where there are no events. Watches nothing
 * until somebody wants a name. Only trouble with the loop or memory is an error.
 */
int processes_new(struct processes **ret, sd_event *event, const struct sysroot *root,
		  uint64_t scan_usec, const struct watch_sink *sink) _must_check_;
struct processes *processes_free(struct processes *p);

/* Makes these the wanted names and looks at once; none: stops watching. 0 or -ENOMEM. */
int processes_want(struct processes *p, const char *const *names, size_t n) _must_check_;

/* False: not known (nothing is wanted, or /proc cannot be read). Otherwise fills the part of *ret
 * that is about processes; valid until the loop runs again. */
bool processes_events(struct processes *p, struct events *ret);

const struct watch *processes_watch(const struct processes *p);

/* For tests: as if the kernel had no proc connector. */
void processes_give_up_events(struct processes *p);
