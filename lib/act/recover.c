/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/actor-priv.h"

#include <errno.h>
#include <inttypes.h>

/* What an entry found at start means, by the value that the kernel has now. */
enum finding {
	FOUND_FOREIGN,
	FOUND_BASELINE, /* nothing of ours is in place */
	FOUND_OURS,
	FOUND_TRANSIENT, /* to be put back */
	FOUND_UNDONE,    /* was transient, and is back already */
};

static enum finding judge(const struct record_knob *k, uint64_t v)
{
	if (k->transient) {
		if (v == k->before)
			return FOUND_UNDONE;
		return v == k->now || v == k->intended ? FOUND_TRANSIENT : FOUND_FOREIGN;
	}
	if (k->foreign || (v != k->now && v != k->intended))
		return FOUND_FOREIGN;
	return v == k->baseline ? FOUND_BASELINE : FOUND_OURS;
}

static void settle(struct record_knob *k, uint64_t v)
{
	k->now = k->intended = v;
	k->before = 0;
	k->transient = false;
}

static void recover_slot(struct actor *a, struct slot *s, struct act_time now)
{
	struct record_knob *k = record_find(&a->record, s->id);
	char name[KNOB_NAME_MAX], text[256];
	uint64_t v, had;
	int r;

	(void)knob_name(s->id, a->o.env->page_bytes, name);
	r = knob_read(a->o.env, s->id, &v);
	if (r < 0) {
		/* Cannot be told apart yet: putting it back is tried until it can be read. */
		s->moment = k->transient ? MOMENT_ENDING : MOMENT_NONE;
		return;
	}
	s->value = v;
	s->has_value = true;
	had = k->before;
	switch (judge(k, v)) {
	case FOUND_FOREIGN:
		k->transient = false;
		slot_give_up(a, s, v, now);
		return;
	case FOUND_BASELINE:
		record_drop(&a->record, s->id);
		return;
	case FOUND_OURS:
		(void)snprintf(text, sizeof(text),
			       "%s: has %" PRIu64 " from an earlier run; its own value is %" PRIu64,
			       name, v, k->baseline);
		settle(k, v);
		actor_tell(a, ACTOR_RECOVERED, s, k->baseline, v, k->reason, text, now);
		return;
	case FOUND_TRANSIENT:
		(void)snprintf(text, sizeof(text),
			       "%s: has %" PRIu64 ", left behind by something that was killed; "
			       "putting %" PRIu64 " back",
			       name, v, had);
		s->moment = MOMENT_ENDING;
		actor_tell(a, ACTOR_RECOVERED, s, v, had, k->reason, text, now);
		return;
	case FOUND_UNDONE:
		settle(k, v);
		if (v == k->baseline && !k->foreign)
			record_drop(&a->record, s->id);
		return;
	}
}

void actor_recover(struct actor *a, struct act_time now)
{
	struct record before = a->record;
	int fd;

	if (a->record.nr_knobs == 0) {
		a->waiting = false;
		return;
	}
	fd = inflight_open(a->o.env, true);
	a->waiting = fd == -EBUSY;
	a->waiting_usec = now.mono_usec + WAITING_PAUSE_USEC;
	for (uint32_t i = 0; i < before.nr_knobs; i++) {
		struct slot *s = slot_get(a, before.knob[i].id);

		if (s && !a->waiting)
			recover_slot(a, s, now);
	}
	closep(&fd);
	if (a->waiting)
		return;
	(void)actor_store(a, now, NULL);
	for (unsigned i = 0; i < a->nr_slots; i++)
		slot_step(a, &a->slot[i], now);
}

/* Quoted for a shell where it must be. */
static void add_path(struct text *t, const char *root, const char *rel)
{
	bool plain = root[strspn(root, "/.-_+0123456789abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';

	if (plain) {
		text_addf(t, "%s/%s", root, rel);
		return;
	}
	text_add(t, "'");
	for (const char *p = root; *p; p++)
		if (*p == '\'')
			text_add(t, "'\\''");
		else
			text_add_n(t, p, 1);
	text_addf(t, "/%s'", rel);
}

static bool command(const struct act_env *env, const struct record_knob *k, struct text *into)
{
	char name[KNOB_NAME_MAX], rel[KNOB_REL_MAX];
	enum finding f = FOUND_OURS;
	uint64_t v = 0;
	int r = knob_read(env, k->id, &v);

	(void)knob_name(k->id, env->page_bytes, name);
	(void)knob_rel(k->id, env->orders, env->page_bytes, rel, sizeof(rel));
	if (r == 0)
		f = judge(k, v);
	if (f == FOUND_FOREIGN) {
		text_addf(into,
			  "# %s: has %" PRIu64 ", which somebody else wrote (pcptune wrote %" PRIu64
			  ", before that it had %" PRIu64 "): left alone\n",
			  name, v, k->intended, k->baseline);
		return false;
	}
	if (r == 0 && v == k->baseline) {
		text_addf(into, "# %s: has its own value, %" PRIu64 "\n", name, v);
		return false;
	}
	if (r < 0)
		text_addf(into, "# %s: cannot be read now: %s\n", name, error_name(r));
	else
		text_addf(into, "# %s: %" PRIu64 "%s%s\n", name, v, k->reason[0] ? ", " : "",
			  k->reason);
	text_addf(into, "echo %" PRIu64 " > ", knob_to_file(k->id, env->orders, k->baseline));
	add_path(into, env->root->path, rel);
	text_add(into, "\n");
	return true;
}

int rollback_commands(const struct act_env *env, struct text *into, unsigned *ret_commands,
		      struct error *e)
{
	_cleanup_(freep) struct record *record = calloc(1, sizeof(*record));
	unsigned n = 0;
	int r;

	if (!record)
		return error_set(e, -ENOMEM, "out of memory");
	r = record_load(record, env, NULL, e);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < record->nr_knobs; i++)
		n += command(env, &record->knob[i], into);
	*ret_commands = n;
	return into->failed ? error_set(e, -ENOMEM, "out of memory") : 0;
}
