/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The manager's parts, for manager.c and those that carry out what is asked of it. */
#pragma once

#include "manager.h"

#include "acting.h"
#include "bus/bus.h"
#include "config.h"
#include "control.h"
#include "policies.h"
#include "remembered.h"
#include "scrape.h"
#include "telemetry.h"
#include "wake.h"

#include <systemd/sd-event.h>

#define READ_COSTS 8U

struct control_op;

struct manager {
	const struct manager_options *options;
	const struct log *log;
	struct sysroot root;
	struct config config;
	bool enforce;
	sd_event *event;
	sd_event_source *tick, *acting_timer, *actor_io, *drain_io, *stop_timer;
	struct sensor *sensor;
	const struct snapshot *snapshot;
	uint64_t read_cost_usec[READ_COSTS]; /* of the last reads; a ring */
	size_t reads;
	struct policies *policies;
	struct engine *engine;
	struct acting acting;
	struct scrape *scrape;
	struct telemetry telemetry;
	struct remembered remembered;
	struct wake wake;
	struct bus *bus;
	struct control_op *ops; /* what was asked and is not answered */
	sd_event_source *ops_timer;
	struct pause pause;
	uint64_t decided;       /* ticks that decided */
	const char *disabled;   /* which kill switch is thrown, or NULL */
	char status[256];       /* as the service manager was told last */
	uint64_t watched_drain; /* the number of the drain that drain_io watches */
	uint64_t last_parked_pages;
	unsigned quiet_ticks;
	uint64_t next_interval_usec;     /* the pause before the next tick, as it was meant */
	bool source_failed[_SOURCE_MAX]; /* told */
	bool facts_changed;              /* not yet told to the engine */
	bool stopping, stop_timed_out;
};

/* As SIGHUP does: all or nothing for the configuration and for each policy; told in the log. */
int manager_reload(struct manager *m, struct error *e);
/* The next tick is now. */
int manager_tick_now(struct manager *m);
/* Call it after anything that may have changed what acting waits for, or what is shown. */
int manager_settle(struct manager *m);
/* Watches the actor's descriptor, where there is an actor. */
int manager_watch_actor(struct manager *m);
