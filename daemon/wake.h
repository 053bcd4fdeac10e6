/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the sources of events and the tick: notes what changed, asks for a tick, and hands the
 * sensor what the sources know.
 */
#pragma once

#include "config.h"
#include "events/events.h"
#include "policies.h"
#include "telemetry.h"

struct wake {
	struct event_sources *sources; /* NULL: none */
	void (*due)(void *user);       /* a tick is wanted as soon as may be */
	void *user;
	bool topology, facts; /* changed since wake_take_changes() */
};

/* 0, or a negative errno of the loop or of memory. `root` and `log` must outlive it. */
int wake_open(struct wake *w, sd_event *event, const struct sysroot *root, const struct log *log,
	      const struct config *config, void (*due)(void *user), void *user) _must_check_;
void wake_close(struct wake *w);

/* After policies were loaded: the processes that they ask for are looked for at once. */
int wake_policies(struct wake *w, const struct policies *p) _must_check_;

/* Before each take: CPUs, nodes and sizes anew after hotplug, and the events. */
void wake_prepare(struct wake *w, struct sensor *sensor);

/* Shows how each source stands. */
void wake_show(const struct wake *w, struct telemetry *t);

/* True if something changed that [Match] and Value= rest on; clears it. */
bool wake_take_changes(struct wake *w);
