/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every source of events tells of itself, and whom it tells. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum watch_state {
	WATCH_OFF,    /* not configured, or nobody asks */
	WATCH_EVENTS, /* the kernel tells */
	WATCH_SCAN,   /* it does not, so somebody looks from time to time: `why` says why */
	WATCH_ABSENT, /* not on this kernel */
	WATCH_DENIED, /* not permitted */
	WATCH_BROKEN, /* stopped working; tried again with growing pauses */
	_WATCH_STATE_MAX,
};

const char *watch_state_name(enum watch_state s); /* "events" */
/* The state that an errno from opening means: -EPERM is WATCH_DENIED, … */
enum watch_state watch_state_of(int error);

struct watch {
	enum watch_state state;
	struct error why;  /* of every state but OFF and EVENTS */
	uint64_t events;   /* that were of interest */
	uint64_t overruns; /* how often the kernel had to drop some */
};

/* Called on the loop's thread. `changed` may stay NULL. */
struct watch_sink {
	void (*changed)(void *user); /* what the source watches is not as it was */
	void (*state)(void *user);   /* watch.state is not as it was */
	void *user;
};

static inline void watch_tell(const struct watch_sink *sink)
{
	if (sink->changed)
		sink->changed(sink->user);
}

/* Sets the state, and tells it where it is another one. `why` may be NULL. */
void watch_set(struct watch *w, const struct watch_sink *sink, enum watch_state state,
	       const struct error *why);

/* Pauses between attempts to open again: a second at first, doubling up to five minutes. */
uint64_t watch_next_pause(uint64_t pause_usec);
