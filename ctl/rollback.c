/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl rollback: every knob back to its baseline. */
#include "client.h"
#include "writing.h"

#include <errno.h>

/* A write that is blocked by memory hotplug may take that long (the daemon's own patience). */
#define ROLLBACK_LIMIT_USEC (60 * USEC_PER_SEC)

struct told {
	struct ctl *c;
	unsigned restored, refused, foreign;
};

static void show_restored(struct ctl *c, const char *name, uint64_t from, uint64_t to)
{
	if (!c->wants_json) {
		(void)fprintf(c->screen.out, "%s: %llu -> %llu, read back\n", name,
			      (unsigned long long)from, (unsigned long long)to);
		return;
	}
	json_begin_object(&c->json, NULL);
	json_put_str(&c->json, "knob", name);
	json_put_u64(&c->json, "from", from);
	json_put_u64(&c->json, "to", to);
	json_end_object(&c->json);
}

static void on_event(void *user, const struct actor_event *ev)
{
	struct told *t = user;
	char name[KNOB_NAME_MAX];

	switch (ev->kind) {
	case ACTOR_RESTORED:
	case ACTOR_CHANGED: /* a transient value of something that was killed is undone */
		t->restored++;
		show_restored(t->c, knob_name(ev->id, t->c->snapshot->page_bytes, name),
			      ev->old_value, ev->new_value);
		break;
	case ACTOR_REFUSED:
		t->refused++;
		(void)ctl_failf(t->c, 0, "%s", ev->text);
		break;
	case ACTOR_FOREIGN:
		t->foreign++;
		(void)ctl_failf(t->c, 0, "%s; left as it is", ev->text);
		break;
	default:
		break;
	}
}

static int outcome(struct ctl *c, struct actor *a, const struct told *t, int waited)
{
	struct error why = {0};
	unsigned left = actor_unrestored(a, &why);

	if (left > 0)
		return ctl_failf(c, t->refused ? EXIT_REFUSED : EXIT_FAILED,
				 "%u knob%s not back at the baseline%s%s%s; run it again when the "
				 "cause is gone",
				 left, left == 1 ? " is" : "s are",
				 waited == -EINTR ? " (stopped by a signal)" : "",
				 why.text[0] ? ": " : "", why.text);
	if (t->restored == 0 && t->foreign == 0 && !c->wants_json)
		(void)fputs("Nothing to put back: no knob has a value of pcptune's.\n",
			    c->screen.out);
	return EXIT_DONE;
}

static int restore(struct ctl *c, const struct writing *w, const struct told *t)
{
	int r;

	actor_restore_all(w->actor, act_time_now());
	r = actor_wait(w->actor, true, w->stop_fd, ROLLBACK_LIMIT_USEC, w->on_event, w->user);
	return outcome(c, w->actor, t, r);
}

static int write_back(struct ctl *c, struct writing *w)
{
	struct told t = {.c = c};
	int r;

	w->on_event = on_event;
	w->user = &t;
	if (c->wants_json)
		json_begin_array(ctl_json_begin(c), "restored");
	r = writing_begin(w, c, "pcptunectl rollback");
	if (r != EXIT_DONE)
		return r;
	r = restore(c, w, &t);
	if (c->wants_json) {
		json_end_array(&c->json);
		json_put_bool(&c->json, "done", r == EXIT_DONE);
		(void)ctl_json_end(c);
	}
	return r;
}

static int back_by_daemon(struct ctl *c, struct client *cl)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	uint64_t from, to;
	const char *name;
	unsigned n = 0;
	int r = client_call(cl, c, &reply, "Rollback", "");

	if (r != EXIT_DONE)
		return r;
	if (c->wants_json)
		json_begin_array(ctl_json_begin(c), "restored");
	(void)sd_bus_message_enter_container(reply, 'a', "(stt)");
	for (; sd_bus_message_read(reply, "(stt)", &name, &from, &to) > 0; n++)
		show_restored(c, name, from, to);
	if (c->wants_json) {
		json_end_array(&c->json);
		json_put_bool(&c->json, "done", true);
		return ctl_json_end(c);
	}
	if (n == 0)
		(void)fputs("Nothing to put back: no knob has a value of pcptune's.\n",
			    c->screen.out);
	(void)fputs("pcptuned pauses until \"pcptunectl resume\".\n", c->screen.out);
	return EXIT_DONE;
}

static void put_commands(struct json_out *j, const char *text)
{
	json_begin_array(j, "commands");
	for (const char *s = text; *s;) {
		size_t n = strcspn(s, "\n");
		char line[512];

		(void)snprintf(line, sizeof(line), "%.*s", (int)n, s);
		if (n > 0 && line[0] != '#')
			json_put_str(j, NULL, line);
		s += n + (s[n] == '\n');
	}
	json_end_array(j);
}

static int dry_run(struct ctl *c, const struct act_env *env)
{
	_cleanup_(text_free) struct text text = {0};
	struct error e = {0};
	unsigned nr = 0;
	int r = rollback_commands(env, &text, &nr, &e);

	if (r < 0 && r != -ENOENT)
		return ctl_fail(c, EXIT_FAILED, &e);
	if (c->wants_json) {
		put_commands(ctl_json_begin(c), text_str(&text));
		return ctl_json_end(c);
	}
	(void)fputs(text_str(&text), c->screen.out);
	if (nr == 0 && text.len == 0)
		(void)fputs("# nothing to put back: no knob has a value of pcptune's\n",
			    c->screen.out);
	return EXIT_DONE;
}

int verb_rollback(struct ctl *c)
{
	_cleanup_(writing_end) struct writing w = WRITING_NONE;
	_cleanup_(client_close) struct client cl = CLIENT_NONE;
	const bool dry = option_given(&c->options, OPTION_DRY_RUN);
	struct error e = {0};
	int r = dry ? 0 : client_open(&cl, c, true);

	if (r != 0)
		return r < 0 ? EXIT_FAILED : back_by_daemon(c, &cl);
	r = ctl_take(c, SOURCE_BIT(SOURCE_KNOBS) | SOURCE_BIT(SOURCE_MTHP), 0);

	if (r != EXIT_DONE)
		return r;
	w.env = act_env_from(&c->root, c->snapshot);
	if (dry)
		return dry_run(c, &w.env);
	if (act_env_check_live(&w.env, &e) < 0)
		return ctl_fail(c, EXIT_NOT_HERE, &e);
	return write_back(c, &w);
}
