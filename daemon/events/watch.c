/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch.h"

#include <errno.h>

#define PAUSE_MAX_USEC (5 * USEC_PER_MINUTE)

const char *watch_state_name(enum watch_state s)
{
	static const char *const names[] = {
		[WATCH_OFF] = "off",       [WATCH_EVENTS] = "events", [WATCH_SCAN] = "scan",
		[WATCH_ABSENT] = "absent", [WATCH_DENIED] = "denied", [WATCH_BROKEN] = "broken",
	};
	_Static_assert(ARRAY_SIZE(names) == _WATCH_STATE_MAX, "name every state");

	return s < _WATCH_STATE_MAX ? names[s] : NULL;
}

enum watch_state watch_state_of(int error)
{
	switch (error < 0 ? -error : error) {
	case 0:
		return WATCH_EVENTS;
	case EPERM:
	case EACCES:
	case EROFS:
		return WATCH_DENIED;
	case ENOENT:
	case EOPNOTSUPP:
	case EPROTONOSUPPORT:
	case EAFNOSUPPORT:
		return WATCH_ABSENT;
	default:
		return WATCH_BROKEN;
	}
}

void watch_set(struct watch *w, const struct watch_sink *sink, enum watch_state state,
	       const struct error *why)
{
	bool told = w->state == state;

	w->state = state;
	if (why)
		w->why = *why;
	else
		w->why = (struct error){0};
	if (!told && sink->state)
		sink->state(sink->user);
}

uint64_t watch_next_pause(uint64_t pause_usec)
{
	return pause_usec ? MIN_OF(2 * pause_usec, PAUSE_MAX_USEC) : USEC_PER_SEC;
}
