/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The metrics: one table of families (metrics.c) from which the exposition, the selection of what
 * must be read, and doc/metrics.md are made.
 *
 * Every name starts with pcptune_, except the process_ ones that every exporter has under those
 * names. Units are bytes, seconds and ratios; pages where the kernel's own unit is what matters.
 */
#pragma once

#include "sense/snapshot.h"
#include "tell/exposition.h"
#include "tell/state.h"

enum metric_set {
	SERIES_BASIC, /* at most SERIES_BASIC_MAX on any machine */
	SERIES_FULL,  /* everything in the snapshot as well */
	SERIES_PERCPU,
	_SERIES_SET_MAX,
};
/*
 * No machine has more in basic, whatever its size: zones are shown on their own only as far as the
 * number below, the largest first, and the last of the knobs are left out where there are too many.
 */
#define SERIES_BASIC_MAX   60U
#define SERIES_BASIC_ZONES 4U

enum write_result {
	WRITE_DONE,       /* the kernel took it and reads back so */
	WRITE_REFUSED,    /* EINVAL, EACCES, … */
	WRITE_UNVERIFIED, /* taken, but something else is read back */
	_WRITE_RESULT_MAX,
};

enum drain_mode_metric {
	DRAIN_METRIC_KERNEL,
	DRAIN_METRIC_TRIM,
	DRAIN_METRIC_SQUEEZE,
	_DRAIN_METRIC_MAX,
};

/* Of this process; see process_stats_read(). */
struct process_stats {
	double cpu_seconds, start_time_seconds; /* user and system; since 1970 */
	uint64_t resident_bytes, virtual_bytes, open_fds, max_fds;
};

/* What only the daemon knows. All counters since its start; times in microseconds. */
struct self_stats {
	uint64_t ticks, tick_usec, tick_max_usec; /* longest of the last minute or so */
	uint64_t decisions;                       /* that were to change something */
	uint64_t writes[_WRITE_RESULT_MAX];
	uint64_t drains[_DRAIN_METRIC_MAX], drained_pages, drain_usec;
	uint64_t guard_trips, foreign_writes;
	uint64_t policies_active, policies_sleeping, policies_invalid;
	/* in the order of daemon_state.events */
	uint64_t events[STATE_EVENTS_MAX], event_overruns[STATE_EVENTS_MAX];
	struct process_stats process;
};

/* Everything that a rendering looks at; nothing is kept. */
struct metrics_input {
	const struct snapshot *snapshot;
	const struct source_state *source[_SOURCE_MAX]; /* NULL: not told */
	double snapshot_age_seconds;
	/* both NULL without a daemon (pcptunectl metrics): the machine's part only */
	const struct self_stats *self;
	const struct daemon_state *state;
};

struct metrics_options {
	enum exposition_format format;
	bool full;   /* Series=full */
	bool percpu; /* PerCPU=yes */
};

/* The sources a snapshot must have for these options: bits for sensor_take(). */
uint32_t metrics_sources(const struct metrics_options *o);

/* Renders into `out` (cleared first). *ret_series may be NULL. 0 or -ENOMEM. */
int metrics_render(const struct metrics_input *in, const struct metrics_options *o,
		   struct text *out, uint32_t *ret_series) _must_check_;

/* Fills source[] from a sensor. */
void metrics_input_sources(struct metrics_input *in, const struct sensor *sensor);

/* One family of the table, for documentation; NULL behind its end. */
struct metric_info {
	char name[64]; /* as scraped in text 0.0.4: a counter's ends in _total */
	enum metric_kind kind;
	enum metric_set set;
	const char *unit, *help;
	const char *labels[4]; /* NULL behind the last */
};
bool metric_info_at(size_t i, struct metric_info *ret);

/* The tables of doc/metrics.md, between its markers. */
void metrics_document(struct text *out);

/*
 * Numbers of the calling process, without allocating. Start time is left alone: it is filled once,
 * with process_stats_start().
 */
int process_stats_read(struct process_stats *p);
void process_stats_start(struct process_stats *p, uint64_t realtime_usec);
