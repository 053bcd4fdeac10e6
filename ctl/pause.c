/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl pause, resume, reload: what is said to the daemon as a whole. */
#include "client.h"

#include "base/format.h"

static int say(struct ctl *c, const char *method, const char *types, uint64_t for_usec)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(client_close) struct client cl = CLIENT_NONE;
	int r = client_need(&cl, c, true);

	return r == EXIT_DONE ? client_call(&cl, c, &reply, method, types, for_usec) : r;
}

static int done(struct ctl *c, const char *key, bool value, const char *sentence)
{
	if (c->wants_json) {
		json_put_bool(ctl_json_begin(c), key, value);
		return ctl_json_end(c);
	}
	(void)fputs(sentence, c->screen.out);
	return EXIT_DONE;
}

int verb_pause(struct ctl *c)
{
	char span[FORMAT_MAX], sentence[160];
	uint64_t for_usec;
	int r = client_for(c, &for_usec);

	if (r == EXIT_DONE)
		r = say(c, "Pause", "t", for_usec);
	if (r != EXIT_DONE)
		return r;
	(void)snprintf(sentence, sizeof(sentence), "Paused%s%s: every knob stays as it is%s.\n",
		       for_usec ? " for " : "",
		       for_usec ? format_usec(span, sizeof(span), for_usec) : "",
		       for_usec ? "" : " until \"pcptunectl resume\"");
	return done(c, "paused", true, sentence);
}

int verb_resume(struct ctl *c)
{
	int r = say(c, "Resume", "", 0);

	return r == EXIT_DONE ? done(c, "paused", false, "Policies decide again.\n") : r;
}

int verb_reload(struct ctl *c)
{
	int r = say(c, "Reload", "", 0);

	return r == EXIT_DONE ? done(c, "reloaded", true, "Read again.\n") : r;
}
