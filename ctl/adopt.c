/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl adopt KNOB: what somebody else wrote is the baseline from now on. */
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

static int tell(struct ctl *c, const struct actor *a, struct knob_id id)
{
	char name[KNOB_NAME_MAX];
	uint64_t baseline = 0;

	(void)actor_baseline(a, id, &baseline);
	(void)knob_name(id, c->snapshot->page_bytes, name);
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
	return r < 0 ? ctl_fail(c, EXIT_FAILED, &e) : tell(c, a, id);
}

int verb_adopt(struct ctl *c)
{
	_cleanup_(writing_end) struct writing w = WRITING_NONE;
	struct error e = {0};
	int r = ctl_take(c, SOURCE_BIT(SOURCE_KNOBS) | SOURCE_BIT(SOURCE_MTHP), 0);

	if (r != EXIT_DONE)
		return r;
	w.env = act_env_from(&c->root, c->snapshot);
	if (act_env_check_live(&w.env, &e) < 0)
		return ctl_fail(c, EXIT_NOT_HERE, &e);
	r = writing_begin(&w, c, "pcptunectl adopt");
	return r == EXIT_DONE ? adopt(c, w.actor) : r;
}
