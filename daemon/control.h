/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an operator asks of the running daemon. Each request is answered once, when its result has
 * been verified: the value was read back, every setting is back, the drain has ended.
 */
#pragma once

#include "act/drain.h"

struct manager;

enum control_kind {
	CONTROL_PIN,      /* knob, value, for_usec */
	CONTROL_UNPIN,    /* knob */
	CONTROL_ADOPT,    /* knob */
	CONTROL_PAUSE,    /* for_usec */
	CONTROL_RESUME,   /* */
	CONTROL_ROLLBACK, /* every setting back, and pause */
	CONTROL_RELOAD,   /* */
	CONTROL_DRAIN,    /* drain */
	_CONTROL_KIND_MAX,
};

enum control_code {
	CONTROL_DONE,
	CONTROL_NO_SUCH_KNOB,
	CONTROL_NO_SUCH_VALUE,
	CONTROL_NOT_NOW,  /* foreign, paused, observing, limited, a drain is under way */
	CONTROL_REFUSED,  /* by the kernel */
	CONTROL_NOT_HERE, /* not on this kernel, not on this root */
	CONTROL_FAILED,
	_CONTROL_CODE_MAX,
};

struct control_request {
	enum control_kind kind;
	const char *knob; /* its name */
	uint64_t value;
	uint64_t for_usec; /* USEC_INFINITY: without end */
	struct drain_options drain;
	const char *who; /* for the journal: "uid 0" */
};

struct control_reply {
	enum control_code code;
	struct error why;         /* a sentence, with every code but CONTROL_DONE */
	uint64_t value;           /* of the knob, as read back */
	uint64_t baseline;        /* of the knob */
	struct control_restored { /* CONTROL_ROLLBACK: what was put back */
		struct knob_id id;
		uint64_t from, to;
	} restored[RECORD_KNOBS_MAX];
	unsigned nr_restored;
	const struct drain_report
		*drain; /* CONTROL_DRAIN: how it went; NULL where it never began */
};

typedef void (*control_done)(void *user, const struct control_reply *reply);

/* Begins; `done` is called once, now or from control_dispatch(). Strings are copied. */
void control_begin(struct manager *m, const struct control_request *request, control_done done,
		   void *user);

/* Answers what can be answered. Call it after each tick and after anything that acting did. */
void control_dispatch(struct manager *m);

/* When something ends by itself: a pause, a pin. CLOCK_MONOTONIC; USEC_INFINITY: nothing does. */
uint64_t control_next_usec(const struct manager *m);
/* Ends a pause whose time is over. Call it before a tick decides. */
void control_expire(struct manager *m);

/* Answers everything with "stopping" and forgets it. */
void control_end(struct manager *m);
