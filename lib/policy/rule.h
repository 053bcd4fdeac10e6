/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The states that a rule and a knob can be in, and the only ways from one to another. Both machines
 * are one table, rule_transitions(), which the engine walks and the documentation prints.
 *
 * A rule is off, arming, on, releasing, locked out or blind (a trim rule that has fired is held
 * until its cooldown ends). A knob shows the state of the rule that has it, unless something
 * stands above the rules: a change that must wait (held), a pin, a pause, a value that somebody
 * else wrote (foreign), or a kernel that refuses (failed).
 */
#pragma once

#include "base/text.h"

enum rule_state {
	RULE_OFF,
	RULE_ARMING,
	RULE_ON,
	RULE_RELEASING,
	RULE_HELD,
	RULE_LOCKED_OUT,
	RULE_BLIND,
	RULE_PINNED,
	RULE_PAUSED,
	RULE_FOREIGN,
	RULE_FAILED,
	_RULE_STATE_MAX,
	RULE_ANY = _RULE_STATE_MAX, /* in the table only: every state, or what the rules say */
};

enum rule_event {
	RULE_EVENT_TRIGGER,      /* the condition became true */
	RULE_EVENT_TRIGGER_LOST, /* it became false or unknown before it had held long enough */
	RULE_EVENT_FIRE,         /* it has held long enough and nothing stands against it */
	RULE_EVENT_RELEASE,      /* the release became true */
	RULE_EVENT_RELEASE_LOST, /* it became false or unknown before it had held long enough */
	RULE_EVENT_RELEASED,     /* it has held long enough */
	RULE_EVENT_BLINDED,      /* the release, or the guard, was unknown for UnknownFor */
	RULE_EVENT_SEES,         /* what was unknown is known again */
	RULE_EVENT_TRIP,         /* the guard tripped */
	RULE_EVENT_LOCKOUT_OVER,
	RULE_EVENT_DRAINED, /* a trim rule has asked for its drain */
	RULE_EVENT_COOLDOWN_OVER,
	RULE_EVENT_ASLEEP,    /* the policy's [Match] no longer holds, or the rule is gone */
	RULE_EVENT_MUST_WAIT, /* a knob: the change must wait (MinHold, a guard at work, …) */
	RULE_EVENT_MAY_CHANGE,
	RULE_EVENT_PINNED,
	RULE_EVENT_UNPINNED,
	RULE_EVENT_PAUSED,
	RULE_EVENT_RESUMED,
	RULE_EVENT_FOREIGN,
	RULE_EVENT_ADOPTED,
	RULE_EVENT_FAILED,
	RULE_EVENT_WORKS,
	_RULE_EVENT_MAX,
};

struct rule_transition {
	enum rule_state from; /* RULE_ANY: from every state of a knob */
	enum rule_event event;
	enum rule_state to; /* RULE_ANY: to the state that the rules of the knob say */
	bool knob;          /* of a knob, not of a single rule */
	const char *when;   /* for the documentation: what must hold, half a sentence */
};

/* The table; *ret_n entries. */
const struct rule_transition *rule_transitions(size_t *ret_n);

/* Where `event` leads a rule from `from`; -EINVAL where the table has no such way. */
int rule_next(enum rule_state from, enum rule_event event);

/* May a knob's printed state change like this? */
bool rule_state_change_legal(enum rule_state from, enum rule_state to);

const char *rule_state_name(enum rule_state s);     /* "locked out" */
const char *rule_event_name(enum rule_event e);     /* "guard tripped" */
const char *rule_state_describe(enum rule_state s); /* one sentence */

/* The states and the table as Markdown, as doc/policy-engine.md has them. */
void rule_render_markdown(struct text *t);
