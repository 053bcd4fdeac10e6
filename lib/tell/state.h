/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a running daemon tells about itself: to `pcptunectl status` through the file
 * run/pcptune/state.json, and, in part, to the metrics.
 *
 * The file is replaced whole (temporary file and rename) at each change, so a reader always finds
 * one consistent state, and it is readable for everyone. It is removed at a clean stop; whether a
 * daemon runs is decided by the lock, never by this file. Schema, in this order of keys:
 *
 *   {
 *     "schema": 1,                        grows when a key changes its meaning or goes
 *     "version": "0.1",                   of the daemon
 *     "pid": 123,
 *     "mode": "enforce",                  or "observe"
 *     "mode_reason": "",                  why it only observes, where that was not asked for
 *     "started": 1760000000.123456,       seconds since 1970, as every time here
 *     "written": 1760000012.000001,
 *     "interval_seconds": 1,
 *     "page_bytes": 4096,
 *     "metrics": "127.0.0.1:9978",        "" while nothing listens
 *     "paused_until": null,               a time; 0 without end; null not paused
 *     "knobs": [{"knob": "high_fraction", "value": 0, "baseline": 0, "owner": "kernel",
 *                "state": "off", "policy": "", "rule": "", "reason": "", "since": 1760000000.0}],
 *     "policies": [{"policy": "trim-under-pressure", "priority": 90, "mode": "enforce",
 *                   "state": "active", "reason": ""}],
 *     "decisions": [{"time": …, "knob": "high_fraction", "from": 0, "to": 100, "policy": "…",
 *                    "rule": "HighFraction small", "result": "done", "reason": "…"}],
 *     "drains": [{"time": …, "mode": "trim", "policy": "…", "rule": "Trim idle", "result": "done",
 *                 "before_pages": 9000, "after_pages": 400, "passes": 12, "seconds": 0.4,
 *                 "reason": "…"}],
 *     "drain_blocked": false,
 *     "events": [{"source": "hotplug", "state": "events", "reason": ""}]   or "scan", "absent", …
 *   }
 *
 * A value or baseline that is not known is null. Decisions and drains come newest first.
 */
#pragma once

#include "base/sysroot.h"
#include "sense/knobs.h"

#define STATE_REL    "run/pcptune/state.json"
#define STATE_SCHEMA 1

/* Whose value a knob has. */
enum shown_owner {
	OWNER_KERNEL, /* nobody of us: the baseline */
	OWNER_POLICY,
	OWNER_PIN,
	OWNER_FOREIGN, /* somebody wrote it after us */
	_OWNER_MAX,
};

/* The states of a knob, as every part prints them. */
enum shown_state {
	SHOWN_OFF,
	SHOWN_ARMING,
	SHOWN_ON,
	SHOWN_RELEASING,
	SHOWN_HELD,
	SHOWN_LOCKED_OUT,
	SHOWN_BLIND,
	SHOWN_PINNED,
	SHOWN_PAUSED,
	SHOWN_FOREIGN,
	SHOWN_FAILED,
	_SHOWN_MAX,
};

const char *shown_owner_name(enum shown_owner o); /* "policy" */
const char *shown_state_name(enum shown_state s); /* "locked out" */

#define STATE_WORD 64U
#define STATE_WHY  256U

struct state_knob {
	char name[KNOB_NAME_MAX];
	bool has_value, has_baseline; /* no baseline: never written, so the value is the baseline */
	uint64_t value, baseline;
	enum shown_owner owner;
	enum shown_state state;
	char policy[STATE_WORD], rule[STATE_WORD]; /* that decided; "" none */
	char reason[STATE_WHY];
	uint64_t since_usec; /* CLOCK_REALTIME, when it came into this state */
};

struct state_policy {
	char name[STATE_WORD];
	int priority;
	bool enforce;
	char state[STATE_WORD]; /* "active", "sleeping", "invalid" */
	char reason[STATE_WHY]; /* why it sleeps or is not used */
};

struct state_decision {
	uint64_t time_usec; /* CLOCK_REALTIME */
	char knob[KNOB_NAME_MAX];
	uint64_t from, to;
	char policy[STATE_WORD], rule[STATE_WORD];
	char result[STATE_WORD]; /* "done", "observed", "refused", "skipped", "unverified" */
	char reason[STATE_WHY];
};

struct state_drain {
	uint64_t time_usec;
	char mode[16]; /* "trim", "squeeze", "kernel" */
	char policy[STATE_WORD], rule[STATE_WORD];
	char result[STATE_WORD];
	uint64_t before_pages, after_pages, passes, took_usec;
	char reason[STATE_WHY];
};

/* A source of events that is configured. */
struct state_event {
	char source[STATE_WORD];
	char state[STATE_WORD]; /* "events": it works; "off", "scan", "absent", "denied", "broken"
				 */
	char reason[STATE_WHY];
};

#define STATE_EVENTS_MAX    4U
#define STATE_KNOBS_MAX     24U /* the fraction and one for each order */
#define STATE_DECISIONS_MAX 16U
#define STATE_DRAINS_MAX    8U

/*
 * The daemon owns one and keeps it up to date; nothing in it but `policies` is allocated. The
 * histories are kept newest first with state_add_decision() and state_add_drain().
 */
struct daemon_state {
	char version[32];
	pid_t pid;
	bool enforce;
	char mode_reason[STATE_WHY];
	uint64_t started_usec, written_usec,
		interval_usec; /* CLOCK_REALTIME; written by the writer */
	uint64_t page_bytes;
	char metrics[STATE_WORD * 2];
	bool paused;
	uint64_t paused_until_usec; /* 0: without end */
	struct state_knob knobs[STATE_KNOBS_MAX];
	uint32_t nr_knobs;
	struct state_policy *policies;
	uint32_t nr_policies;
	struct state_decision decisions[STATE_DECISIONS_MAX];
	uint32_t nr_decisions;
	struct state_drain drains[STATE_DRAINS_MAX];
	uint32_t nr_drains;
	bool drain_blocked;
	struct state_event events[STATE_EVENTS_MAX];
	uint32_t nr_events;
};

/* Frees `policies` (by free(3)) and clears everything. */
void state_free(struct daemon_state *s);

/* Put one in front; the oldest falls out. */
void state_add_decision(struct daemon_state *s, const struct state_decision *d);
void state_add_drain(struct daemon_state *s, const struct state_drain *d);

/* The file's text. Fails only as text->failed. */
void state_to_json(const struct daemon_state *s, struct text *out);

/*
 * Replaces the file; run/pcptune must exist. `scratch` keeps its room between calls. Sets
 * s->written_usec to `now_usec`.
 */
int state_write(struct daemon_state *s, const struct sysroot *root, uint64_t now_usec,
		struct text *scratch, struct error *e) _must_check_;

/* Removes the file; that there was none is no error. */
int state_remove(const struct sysroot *root);

/*
 * Reads it. -ENOENT: none there (no daemon, or one that has not got that far). -EPROTONOSUPPORT: a
 * newer schema. -EBADMSG: not this file. Unknown keys are passed over. state_free() afterwards.
 */
int state_read(struct daemon_state *ret, const struct sysroot *root, struct error *e) _must_check_;
int state_from_json(struct daemon_state *ret, const char *json, struct error *e) _must_check_;
