/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What actor.c and recover.c share; for no one else. */
#pragma once

#include "act/actor.h"
#include "act/worker.h"

#define EVENTS_MAX          64U
#define PAUSE_MIN_USEC      USEC_PER_SEC
#define PAUSE_MAX_USEC      USEC_PER_HOUR
#define UNDO_PAUSE_MIN_USEC (100 * USEC_PER_MSEC)
#define UNDO_PAUSE_MAX_USEC USEC_PER_SEC
#define WAITING_PAUSE_USEC  (200 * USEC_PER_MSEC)
#define CHECK_TICKS         3U

/* What a write is for. */
enum purpose {
	PURPOSE_NONE,
	PURPOSE_SET,     /* a decision */
	PURPOSE_MOMENT,  /* a transient value */
	PURPOSE_UNDO,    /* … away again: back to `before` */
	PURPOSE_RESTORE, /* back to the baseline */
};

struct job {
	struct worker w;
	struct knob_id id;
	uint64_t wanted, expected;
	unsigned flags;
	uint64_t took_usec;
	struct knob_report report;
};

struct slot {
	struct knob_id id;
	uint64_t value; /* last seen in the kernel */
	bool has_value;

	bool has_wanted; /* a decision that is not carried out yet */
	uint64_t wanted;
	char reason[REASON_MAX];

	bool restoring;
	enum actor_moment moment;
	bool moment_force;
	uint64_t moment_value;
	char moment_reason[REASON_MAX];

	struct job *job;
	enum purpose purpose; /* of the job */
	struct act_time started;
	bool blocked_told;

	int error; /* of the last try; 0 after one that went well */
	bool refused_told;
	uint64_t pause_usec, retry_usec;

	uint64_t written_usec; /* when the last write was over */
	unsigned check_left;
	uint64_t yield_usec; /* foreign: when the time to yield is over */

	enum knob_state last_state;
	uint64_t since_usec;
	uint64_t writes, refusals;
	struct error why;
};

struct actor {
	struct actor_options o;
	struct record record;
	struct ledger ledger;
	int fd;
	struct slot slot[RECORD_KNOBS_MAX];
	unsigned nr_slots;
	bool restoring; /* actor_restore_all() until actor_resume() */
	bool paused;    /* actor_pause() */
	bool waiting;   /* recovery waits for a write of a killed process */
	uint64_t waiting_usec;
	bool record_lost; /* the file is older than `record` */
	uint64_t record_retry_usec;
	bool limited_told;
	struct actor_event event[EVENTS_MAX];
	unsigned first_event, nr_events;
};

struct slot *slot_get(struct actor *a, struct knob_id id); /* made where missing; NULL: full */
struct slot *slot_find(const struct actor *a, struct knob_id id);

/* Adds an event; `s->why` is its text unless `text` says another. */
void actor_tell(struct actor *a, enum actor_event_kind kind, const struct slot *s,
		uint64_t old_value, uint64_t new_value, const char *reason, const char *text,
		struct act_time now);

/* Replaces the record's file; a failure is told once and mended later. */
int actor_store(struct actor *a, struct act_time now, struct error *e);

/* From now on `s` is somebody else's, who wrote `theirs`. Stores the record. */
void slot_give_up(struct actor *a, struct slot *s, uint64_t theirs, struct act_time now);

/* Starts what is to be done next, if anything is and the time has come. */
void slot_step(struct actor *a, struct slot *s, struct act_time now);

/*
 * The kernel against the record. Sets a->waiting where a write of a killed process is still under
 * way: then it is to be called again.
 */
void actor_recover(struct actor *a, struct act_time now);
