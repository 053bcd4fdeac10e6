/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/rule.h"

#include <assert.h>
#include <errno.h>

#define RULE(from_, event_, to_, when_)                                               \
	{                                                                             \
		.from = RULE_##from_, .event = RULE_EVENT_##event_, .to = RULE_##to_, \
		.when = (when_)                                                       \
	}
#define KNOB(from_, event_, to_, when_)                                               \
	{                                                                             \
		.from = RULE_##from_, .event = RULE_EVENT_##event_, .to = RULE_##to_, \
		.knob = true, .when = (when_)                                         \
	}

static const struct rule_transition transitions[] = {
	RULE(OFF, TRIGGER, ARMING, "Enable= or When= is true; EnableFor= or For= starts to run"),
	RULE(ARMING, TRIGGER_LOST, OFF,
	     "the condition is false or unknown before that time is over"),
	RULE(ARMING, FIRE, ON,
	     "it has held long enough, the guard is known and false, Value= is known, the limits "
	     "allow it and the knob may change"),
	RULE(ON, RELEASE, RELEASING, "Disable= or Until= is true; its time starts to run"),
	RULE(RELEASING, RELEASE_LOST, ON, "it is false or unknown before that time is over"),
	RULE(RELEASING, RELEASED, OFF, "it has held long enough"),
	RULE(ON, BLINDED, BLIND,
	     "the release (or, while it watches, the guard) was unknown for UnknownFor="),
	RULE(RELEASING, BLINDED, BLIND, "while it watches, the guard was unknown for UnknownFor="),
	RULE(BLIND, SEES, OFF, "what was unknown is known again"),
	RULE(OFF, TRIP, LOCKED_OUT,
	     "a change for the sake of another rule of this policy tripped it"),
	RULE(ARMING, TRIP, LOCKED_OUT, "likewise"),
	RULE(ON, TRIP, LOCKED_OUT, "Trip= became true within Within= of the change"),
	RULE(RELEASING, TRIP, LOCKED_OUT, "likewise"),
	RULE(BLIND, TRIP, LOCKED_OUT, "likewise"),
	RULE(LOCKED_OUT, LOCKOUT_OVER, OFF, "the lockout is over"),
	RULE(ON, DRAINED, HELD, "a trim rule has asked for its drain; Cooldown= starts to run"),
	RULE(HELD, COOLDOWN_OVER, OFF, "Cooldown= is over"),
	RULE(ARMING, ASLEEP, OFF, "[Match] no longer holds"),
	RULE(ON, ASLEEP, OFF, "[Match] no longer holds"),
	RULE(RELEASING, ASLEEP, OFF, "[Match] no longer holds"),
	RULE(BLIND, ASLEEP, OFF, "[Match] no longer holds"),

	KNOB(ANY, MUST_WAIT, HELD,
	     "what the rules want differs from what is in place, and MinHold=, a guard of the same "
	     "policy at work, or a limit on writes makes it wait"),
	KNOB(HELD, MAY_CHANGE, ANY, "the wait is over, or the rules want what is in place"),
	KNOB(ANY, PINNED, PINNED, "an operator pinned it"),
	KNOB(PINNED, UNPINNED, ANY, "unpinned, or the pin expired"),
	KNOB(ANY, PAUSED, PAUSED, "an operator paused the daemon"),
	KNOB(PAUSED, RESUMED, ANY, "resumed"),
	KNOB(ANY, FAILED, FAILED, "the kernel refused the last write"),
	KNOB(FAILED, WORKS, ANY, "a retry succeeded, or the knob was given up"),
	KNOB(ANY, FOREIGN, FOREIGN, "the knob has a value that pcptune did not write"),
	KNOB(FOREIGN, ADOPTED, ANY, "adopted, or Foreign=yield-for is over"),
};

const struct rule_transition *rule_transitions(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(transitions);
	return transitions;
}

int rule_next(enum rule_state from, enum rule_event event)
{
	for (size_t i = 0; i < ARRAY_SIZE(transitions); i++) {
		const struct rule_transition *t = &transitions[i];

		if (!t->knob && t->from == from && t->event == event)
			return (int)t->to;
	}
	return -EINVAL;
}

/* States that a knob has for a reason of its own, not for what its rules are at. */
static bool stands_above_rules(enum rule_state s)
{
	for (size_t i = 0; i < ARRAY_SIZE(transitions); i++)
		if (transitions[i].knob && transitions[i].to == s)
			return true;
	return false;
}

bool rule_state_change_legal(enum rule_state from, enum rule_state to)
{
	if (from >= _RULE_STATE_MAX || to >= _RULE_STATE_MAX)
		return false;
	/*
	 * The rules of a knob move on independently of each other and of what stands above them,
	 * so between two ticks it may show any other rule's state. What needs a way in the table
	 * is entering and leaving the states above the rules.
	 */
	if (stands_above_rules(to) || stands_above_rules(from)) {
		bool in = !stands_above_rules(to), out = !stands_above_rules(from);

		for (size_t i = 0; i < ARRAY_SIZE(transitions); i++) {
			const struct rule_transition *t = &transitions[i];

			in |= t->knob && t->to == to && (t->from == RULE_ANY || t->from == from);
			out |= t->knob && t->from == from && (t->to == RULE_ANY || t->to == to);
		}
		return in && out;
	}
	return true;
}

static const struct {
	const char *name, *describe;
} states[] = {
	[RULE_OFF] = {"off", "No rule asks for anything; the knob has its baseline."},
	[RULE_ARMING] =
		{"arming",
		 "A condition is true and has not yet held long enough, or may not yet act."},
	[RULE_ON] = {"on", "A rule has the knob: its value is what the engine decided."},
	[RULE_RELEASING] = {"releasing",
			    "As on, and the release is true but has not yet held long enough."},
	[RULE_HELD] = {"held",
		       "The rules want something else than what is in place, and it must wait; "
		       "a trim rule: its cooldown runs."},
	[RULE_LOCKED_OUT] =
		{"locked out",
		 "A guard took a change of this policy back; it may not try again yet."},
	[RULE_BLIND] = {"blind", "What would release the rule cannot be known; the knob went back "
				 "to its baseline."},
	[RULE_PINNED] = {"pinned", "An operator chose the value; policies are not asked."},
	[RULE_PAUSED] = {"paused", "An operator wants all values to stay as they are."},
	[RULE_FOREIGN] = {"foreign",
			  "Somebody else wrote the knob: hands off until it is adopted."},
	[RULE_FAILED] = {"failed",
			 "The kernel refused the last write; it is retried after growing pauses."},
};
_Static_assert(ARRAY_SIZE(states) == _RULE_STATE_MAX, "describe every state");

static const char *const events[] = {
	[RULE_EVENT_TRIGGER] = "condition true",
	[RULE_EVENT_TRIGGER_LOST] = "condition lost",
	[RULE_EVENT_FIRE] = "fires",
	[RULE_EVENT_RELEASE] = "release true",
	[RULE_EVENT_RELEASE_LOST] = "release lost",
	[RULE_EVENT_RELEASED] = "released",
	[RULE_EVENT_BLINDED] = "blinded",
	[RULE_EVENT_SEES] = "sees again",
	[RULE_EVENT_TRIP] = "guard tripped",
	[RULE_EVENT_LOCKOUT_OVER] = "lockout over",
	[RULE_EVENT_DRAINED] = "drained",
	[RULE_EVENT_COOLDOWN_OVER] = "cooldown over",
	[RULE_EVENT_ASLEEP] = "policy asleep",
	[RULE_EVENT_MUST_WAIT] = "must wait",
	[RULE_EVENT_MAY_CHANGE] = "may change",
	[RULE_EVENT_PINNED] = "pinned",
	[RULE_EVENT_UNPINNED] = "unpinned",
	[RULE_EVENT_PAUSED] = "paused",
	[RULE_EVENT_RESUMED] = "resumed",
	[RULE_EVENT_FOREIGN] = "foreign value",
	[RULE_EVENT_ADOPTED] = "adopted",
	[RULE_EVENT_FAILED] = "write refused",
	[RULE_EVENT_WORKS] = "write accepted",
};
_Static_assert(ARRAY_SIZE(events) == _RULE_EVENT_MAX, "name every event");

const char *rule_state_name(enum rule_state s)
{
	return s < _RULE_STATE_MAX ? states[s].name : "any";
}

const char *rule_state_describe(enum rule_state s)
{
	return s < _RULE_STATE_MAX ? states[s].describe : "";
}

const char *rule_event_name(enum rule_event e)
{
	return e < _RULE_EVENT_MAX ? events[e] : "";
}

static void render_rows(struct text *t, bool knob)
{
	text_add(t, "| from | when | to | that is |\n|---|---|---|---|\n");
	for (size_t i = 0; i < ARRAY_SIZE(transitions); i++) {
		const struct rule_transition *r = &transitions[i];

		if (r->knob != knob)
			continue;
		text_addf(t, "| %s | %s | %s | %s |\n", rule_state_name(r->from),
			  rule_event_name(r->event),
			  r->to == RULE_ANY ? "what its rules say" : rule_state_name(r->to),
			  r->when);
	}
}

void rule_render_markdown(struct text *t)
{
	text_add(t, "## States\n\n| state | meaning |\n|---|---|\n");
	for (enum rule_state s = 0; s < _RULE_STATE_MAX; s++)
		text_addf(t, "| %s | %s |\n", rule_state_name(s), rule_state_describe(s));
	text_add(t, "\n## Ways of a rule\n\n");
	render_rows(t, false);
	text_add(t, "\n## What stands above the rules of a knob\n\n");
	render_rows(t, true);
}
