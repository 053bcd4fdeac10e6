/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What wakes the daemon besides its timer: four sources, each of which may be missing without harm
 * to the others. A source that is absent, not permitted or breaks later is told once.
 */
#pragma once

#include "base/log.h"
#include "sense/snapshot.h"
#include "watch.h"

#include <systemd/sd-event.h>

enum event_source {
	EVENT_HOTPLUG,
	EVENT_LINKS,
	EVENT_PROCESSES,
	EVENT_PRESSURE,
	_EVENT_SOURCE_MAX,
};

const char *event_source_name(enum event_source s); /* "hotplug", as in metrics */
const char *event_source_key(enum event_source s);  /* "Hotplug", as in [Events] */

/* Called on the loop's thread, never from within a call of anything here. */
struct event_ops {
	void (*topology_changed)(void *user); /* CPUs, memory or nodes */
	void (*facts_changed)(void *user);    /* what event_sources_fill() gives */
	void (*pressure)(void *user);         /* tasks begin to stall for memory */
	void *user;
};

struct event_options {
	bool on[_EVENT_SOURCE_MAX];
	uint64_t
		scan_usec; /* between looks at /proc, where the kernel does not tell of processes */
};

struct event_sources;

/*
 * `root` and `log` must outlive it. Below a root that is a capture nothing happens, so nothing is
 * watched; below a fake kernel only hotplug and pressure, since links and processes are this
 * machine's. Fails only for want of memory or of the loop.
 */
int event_sources_new(struct event_sources **ret, sd_event *event, const struct sysroot *root,
		      const struct log *log, const struct event_options *o,
		      const struct event_ops *ops) _must_check_;
struct event_sources *event_sources_free(struct event_sources *es);

/* The names of processes that policies ask for; looks for them at once. */
int event_sources_want_processes(struct event_sources *es, const char *const *names,
				 size_t n) _must_check_;

/* What the sources know now, for sensor_set_events(). Valid until the loop runs again. */
void event_sources_fill(struct event_sources *es, struct events *ret);

/* How a source stands. */
const struct watch *event_sources_watch(const struct event_sources *es, enum event_source s);
