/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPUs, memory blocks and nodes that come and go, by the kernel's uevents. A memory hot-add is a
 * message a block: they are gathered until there was quiet for a moment. Messages that the kernel
 * had to drop count as a change. Where there are no events, everything is looked at once a minute.
 */
#pragma once

#include "watch.h"

#include <systemd/sd-event.h>

#define HOTPLUG_DEBOUNCE_USEC (200 * USEC_PER_MSEC)
/* … but no longer than this after the first one */
#define HOTPLUG_DEBOUNCE_MAX_USEC (USEC_PER_SEC)
#define HOTPLUG_SCAN_USEC         (USEC_PER_MINUTE)

struct hotplug;

/* `sink` is copied. Only trouble with the loop or memory is an error: the rest is a state. */
int hotplug_new(struct hotplug **ret, sd_event *event, const struct watch_sink *sink) _must_check_;
struct hotplug *hotplug_free(struct hotplug *h);
const struct watch *hotplug_watch(const struct hotplug *h);
