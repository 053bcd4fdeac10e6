/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl adopt KNOB: what somebody else wrote is the baseline from now on. */
#include "client.h"
#include "writing.h"

#include "base/nearest.h"

#include <errno.h>

static int unknown_knob(struct ctl *c, const struct actor *a, const char *name)
{
	struct nearest n = NEAREST(name);
	char known[RECORD_KNOBS_MAX][KNOB_NAME_MAX];
	struct actor_knob k;

	nearest_try(&n, "high_fraction");
	for (unsigned i = 0; i < RECORD_KNOBS_MAX && actor_knob_at(a, i, &k); i++)
		nearest_try(&n, knob_name(k.id, c->snapshot->page_bytes, known[i]));
	return ctl_failf(
		c, EXIT_USAGE,
		"there is no knob \"%s\"%s%s%s; knobs are high_fraction and pcp_enabled/SIZE", name,
		n.best ? ", did you mean \"" : "", n.best ? n.best : "", n.best ? "\"" : "");
}

static int tell(struct ctl *c, const char *name, uint64_t baseline)
{
	if (c->wants_json) {
		json_put_str(ctl_json_begin(c), "knob", name);
		json_put_u64(&c->json, "baseline", baseline);
		return ctl_json_end(c);
	}
	(void)fprintf(c->screen.out,
		      "%s: %llu is the baseline now, and policies may set it again\n", name,
		      (unsigned long long)baseline);
	return EXIT_DONE;
}

static int adopt(struct ctl *c, struct actor *a)
{
	const char *name = c->operands[0];
	uint64_t baseline = 0;
	struct error e = {0};
	struct knob_id id;
	int r;

	if (knob_parse(name, c->snapshot->page_bytes, &id) < 0)
		return unknown_knob(c, a, name);
	r = actor_adopt(a, id, act_time_now(), &e);
	if (r == -ENOENT || r == -EALREADY)
		return ctl_failf(c, EXIT_FAILED,
				 "%s is not foreign: nobody else has written it since pcptune did",
				 name);
	if (r < 0)
		return ctl_fail(c, EXIT_FAILED, &e);
	(void)actor_baseline(a, id, &baseline);
	return tell(c, name, baseline);
}

static int adopt_by_daemon(struct ctl *c, struct client *cl)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	uint64_t baseline = 0;
	int r = client_call(cl, c, &reply, "Adopt", "s", c->operands[0]);

	if (r != EXIT_DONE)
		return r;
	(void)sd_bus_message_read(reply, "t", &baseline);
	return tell(c, c->operands[0], baseline);
}

int verb_adopt(struct ctl *c)
{
	_cleanup_(writing_end) struct writing w = WRITING_NONE;
	_cleanup_(client_close) struct client cl = CLIENT_NONE;
	struct error e = {0};
	int r = client_open(&cl, c, true);

	if (r != 0)
		return r < 0 ? EXIT_FAILED : adopt_by_daemon(c, &cl);
	r = ctl_take(c, SOURCE_BIT(SOURCE_KNOBS) | SOURCE_BIT(SOURCE_MTHP), 0);

	if (r != EXIT_DONE)
		return r;
	w.env = act_env_from(&c->root, c->snapshot);
	if (act_env_check_live(&w.env, &e) < 0)
		return ctl_fail(c, EXIT_NOT_HERE, &e);
	r = writing_begin(&w, c, "pcptunectl adopt");
	return r == EXIT_DONE ? adopt(c, w.actor) : r;
}
