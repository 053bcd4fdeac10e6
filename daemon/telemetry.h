/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the daemon tells about itself: counters for the metrics, and run/pcptune/state.json, from
 * which `pcptunectl status` reads.
 */
#pragma once

#include "acting.h"
#include "policies.h"
#include "tell/metrics.h"

struct telemetry {
	struct self_stats self;
	struct daemon_state state;
	struct metrics_options options;
	const struct sysroot *root;
	bool publish; /* keep state.json: only who holds the lock may */
	bool dirty;   /* something changed since it was written */
	bool told;    /* that it could not be written */
	uint64_t page_bytes;
	uint64_t last_tick_usec; /* CLOCK_MONOTONIC */
	/* whose decision each knob's next write is */
	struct telemetry_author {
		struct knob_id id;
		char policy[STATE_WORD], rule[STATE_WORD];
	} author[KNOBS_MAX];
	size_t nr_authors;
	struct text scratch;
};

void telemetry_start(struct telemetry *t, const struct sysroot *root, const struct config *config,
		     const struct snapshot *s, bool enforce, bool publish, const char *metrics_url,
		     struct act_time now);
/* Removes state.json and frees. Also of one that was never started. */
void telemetry_stop(struct telemetry *t);

/* The mode as it is now, and why it only observes where that was not asked for ("" otherwise). */
void telemetry_mode(struct telemetry *t, bool enforce, const char *why);
/* Paused: until when, CLOCK_REALTIME; 0: without end. */
void telemetry_pause(struct telemetry *t, bool on, uint64_t until_usec);
/* How source number `i` of events stands, and what came of it so far. */
void telemetry_event_source(struct telemetry *t, uint32_t i, const char *source, const char *state,
			    const char *why, uint64_t events, uint64_t overruns);
void telemetry_note_tick(struct telemetry *t, struct act_time start, struct act_time end);
void telemetry_note_decision(struct telemetry *t, const struct decision *d, struct act_time now);
/* What acting tells its listener. */
struct acting_listener telemetry_listener(struct telemetry *t);

/* Brings knobs and policies up to date and replaces state.json where something changed. */
void telemetry_publish(struct telemetry *t, const struct snapshot *s, const struct engine *engine,
		       const struct acting *acting, const struct log *log, struct act_time now);
void telemetry_policies(struct telemetry *t, const struct policies *p, const struct engine *engine);

uint32_t telemetry_sources(const struct telemetry *t);
int telemetry_render(struct telemetry *t, const struct snapshot *s, const struct sensor *sensor,
		     const struct engine *engine, enum exposition_format format,
		     struct act_time now, struct text *into);
