/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trigger on /proc/pressure/memory: the kernel wakes us when tasks begin to stall for memory, at
 * most once a window, so that the pause between ticks can be long while all is quiet.
 */
#pragma once

#include "base/sysroot.h"
#include "watch.h"

#include <systemd/sd-event.h>

/* Without CAP_SYS_RESOURCE the kernel takes windows in whole multiples of two seconds. */
#define PRESSURE_STALL_USEC  (100 * USEC_PER_MSEC)
#define PRESSURE_WINDOW_USEC (2 * USEC_PER_SEC)

struct pressure;

/* `root` must outlive it. Only trouble with the loop or memory is an error: the rest is a state. */
int pressure_new(struct pressure **ret, sd_event *event, const struct sysroot *root,
		 const struct watch_sink *sink) _must_check_;
struct pressure *pressure_free(struct pressure *p);
const struct watch *pressure_watch(const struct pressure *p);
