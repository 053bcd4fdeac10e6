/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl pin KNOB VALUE, unpin KNOB: a knob fixed by hand, above every policy. */
#include "client.h"

#include "base/format.h"
#include "base/parse.h"

#include <inttypes.h>

static int show(struct ctl *c, const char *knob, uint64_t asked, uint64_t value, uint64_t for_usec)
{
	char span[FORMAT_MAX];
	struct json_out *j;

	if (c->wants_json) {
		j = ctl_json_begin(c);
		json_put_str(j, "knob", knob);
		json_put_u64(j, "value", value);
		if (for_usec)
			json_put_usec(j, "for_seconds", for_usec);
		else
			json_put_null(j, "for_seconds");
		return ctl_json_end(c);
	}
	(void)fprintf(c->screen.out,
		      "%s: pinned to %" PRIu64 "%s%s; it has %" PRIu64 "%s, read back\n", knob,
		      asked, for_usec ? " for " : "",
		      for_usec ? format_usec(span, sizeof(span), for_usec) : "", value,
		      value == asked ? "" : " by [Limits]");
	return EXIT_DONE;
}

int verb_pin(struct ctl *c)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(client_close) struct client cl = CLIENT_NONE;
	const char *knob = c->operands[0];
	uint64_t value, got = 0, for_usec;
	int r;

	if (parse_u64(c->operands[1], &value) < 0)
		return ctl_failf(
			c, EXIT_USAGE,
			"a value is a whole number, not \"%s\": high_fraction takes 0, or 8 "
			"to 2147483647, and pcp_enabled/SIZE takes 0 or 1",
			c->operands[1]);
	r = client_for(c, &for_usec);
	if (r == EXIT_DONE)
		r = client_need(&cl, c, true);
	if (r == EXIT_DONE)
		r = client_call(&cl, c, &reply, "Pin", "stt", knob, value, for_usec);
	if (r != EXIT_DONE)
		return r;
	(void)sd_bus_message_read(reply, "t", &got);
	return show(c, knob, value, got, for_usec);
}

int verb_unpin(struct ctl *c)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(client_close) struct client cl = CLIENT_NONE;
	uint64_t value = 0;
	int r = client_need(&cl, c, true);

	if (r == EXIT_DONE)
		r = client_call(&cl, c, &reply, "Unpin", "s", c->operands[0]);
	if (r != EXIT_DONE)
		return r;
	(void)sd_bus_message_read(reply, "t", &value);
	if (c->wants_json) {
		json_put_str(ctl_json_begin(c), "knob", c->operands[0]);
		json_put_u64(&c->json, "value", value);
		return ctl_json_end(c);
	}
	(void)fprintf(c->screen.out, "%s: no longer pinned; it has %" PRIu64 ", read back\n",
		      c->operands[0], value);
	return EXIT_DONE;
}
