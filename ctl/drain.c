/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl drain: returns parked pages now, by hand. */
#include "client.h"
#include "writing.h"

#include "act/drain.h"
#include "base/format.h"

#include <errno.h>

/* A drain that takes longer than this shows on a terminal how far it is. */
#define PROGRESS_AFTER_USEC USEC_PER_SEC
/* … and no more often than an eye can follow. */
#define PROGRESS_EVERY_USEC (200 * USEC_PER_MSEC)

static int read_options(const struct ctl *c, struct drain_options *o)
{
	const struct options *given = &c->options;
	const char *mode = given->value[OPTION_MODE], *time = given->value[OPTION_MAX_TIME];

	*o = (struct drain_options){
		.mode = DRAIN_TRIM,
		.fast = option_given(given, OPTION_FAST),
		.isolated_too = option_given(given, OPTION_ISOLATED_TOO),
		.reason = "by hand",
	};
	if (mode && drain_mode_parse(mode, &o->mode) < 0)
		return ctl_failf(c, EXIT_USAGE, "--mode takes trim, squeeze or kernel, not \"%s\"",
				 mode);
	if (time && (parse_timespan(time, &o->max_time_usec) < 0 || o->max_time_usec == 0))
		return ctl_failf(c, EXIT_USAGE,
				 "--max-time takes a time such as 30s or 2min, not \"%s\"", time);
	return EXIT_DONE;
}

struct progress {
	uint64_t page_bytes;
	bool terminal, shown;
	uint64_t shown_usec; /* of the drain's time */
};

/* On stderr, on one line that is wiped at the end: stdout is for the report. */
static void show_progress(void *user, const struct drain_report *r)
{
	struct progress *p = user;
	char parked[FORMAT_MAX], took[FORMAT_MAX];

	if (!p->terminal || r->took_usec < PROGRESS_AFTER_USEC ||
	    r->took_usec < p->shown_usec + PROGRESS_EVERY_USEC)
		return;
	p->shown = true;
	p->shown_usec = r->took_usec;
	(void)fprintf(stderr, "\r%s: pass %u, %s, %s still parked, %llu list%s to go\033[K",
		      drain_mode_name(r->mode), r->passes,
		      format_usec(took, sizeof(took), r->took_usec),
		      format_bytes(parked, sizeof(parked), r->pages_after * p->page_bytes),
		      (unsigned long long)r->lists_above, r->lists_above == 1 ? "" : "s");
	(void)fflush(stderr);
}

static void put_report(struct json_out *j, const struct drain_report *r)
{
	json_put_str(j, "mode", drain_mode_name(r->mode));
	json_put_str(j, "end", drain_end_name(r->end));
	json_put_str(j, "reason", r->text);
	json_put_bool(j, "blocked", r->blocked);
	json_put_u64(j, "before", r->pages_before);
	json_put_u64(j, "after", r->pages_after);
	json_put_u64(j, "lists_above", r->lists_above);
	json_put_u64(j, "passes", r->passes);
	json_put_usec(j, "seconds", r->took_usec);
	json_put_usec(j, "longest_pass_seconds", r->pass_max_usec);
	json_begin_array(j, "zones");
	for (uint32_t i = 0; i < r->nr_zones; i++) {
		json_begin_object(j, NULL);
		json_put_i64(j, "node", r->zone[i].node);
		json_put_str(j, "zone", r->zone[i].name);
		json_put_u64(j, "before", r->zone[i].before);
		json_put_u64(j, "after", r->zone[i].after);
		json_end_object(j);
	}
	json_end_array(j);
}

static int show_report(struct ctl *c, const struct drain_report *r)
{
	_cleanup_(text_free) struct text text = {0};
	struct json_out *j;

	if (c->wants_json) {
		j = ctl_json_begin(c);
		json_put_u64(j, "page_bytes", c->snapshot->page_bytes);
		put_report(j, r);
		return ctl_json_end(c);
	}
	drain_report_print(r, c->snapshot->page_bytes, &text);
	(void)fputs(text_str(&text), c->screen.out);
	return EXIT_DONE;
}

static int code_of(const struct drain_report *r)
{
	switch (r->end) {
	case DRAIN_END_FLOOR:
	case DRAIN_END_NO_PROGRESS:
		return EXIT_DONE;
	case DRAIN_END_FAILED:
		return ctl_exit_code(r->error);
	case DRAIN_END_NOT_YET:
	case DRAIN_END_TIME:
	case DRAIN_END_STOPPED:
	case DRAIN_END_BLOCKED:
		break;
	}
	return EXIT_FAILED;
}

/* How a drain of the daemon's went. */
static int read_report(sd_bus_message *reply, struct drain_report *r)
{
	const char *mode, *end, *text, *zone;
	int blocked, error, node, n;
	uint64_t before, after;

	n = sd_bus_message_read(reply, "sssibtttutt", &mode, &end, &text, &error, &blocked,
				&r->pages_before, &r->pages_after, &r->lists_above, &r->passes,
				&r->took_usec, &r->pass_max_usec);
	if (n <= 0 || drain_mode_parse(mode, &r->mode) < 0 || drain_end_parse(end, &r->end) < 0)
		return -EBADMSG;
	r->error = -error;
	r->blocked = blocked;
	(void)snprintf(r->text, sizeof(r->text), "%s", text);
	(void)sd_bus_message_enter_container(reply, 'a', "(istt)");
	while (r->nr_zones < DRAIN_ZONES_MAX &&
	       sd_bus_message_read(reply, "(istt)", &node, &zone, &before, &after) > 0) {
		struct drain_zone *z = &r->zone[r->nr_zones++];

		z->node = node;
		(void)snprintf(z->name, sizeof(z->name), "%s", zone);
		z->before = before;
		z->after = after;
	}
	return 0;
}

static int drain_by_daemon(struct ctl *c, struct client *cl, const struct drain_options *o)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct drain_report report = {0};
	int r = client_call(cl, c, &reply, "Drain", "sbbt", drain_mode_name(o->mode), (int)o->fast,
			    (int)o->isolated_too, o->max_time_usec);

	if (r == EXIT_DONE && read_report(reply, &report) < 0)
		return ctl_failf(c, EXIT_FAILED,
				 "the daemon's answer cannot be read: it is of another version");
	if (r == EXIT_DONE)
		r = ctl_take(c, SOURCE_BIT(SOURCE_ZONEINFO), 0);
	if (r == EXIT_DONE)
		r = show_report(c, &report);
	return r == EXIT_DONE ? code_of(&report) : r;
}

static int drain(struct ctl *c, struct writing *w, const struct drain_options *o)
{
	struct progress progress = {.page_bytes = c->snapshot->page_bytes,
				    .terminal = isatty(STDERR_FILENO)};
	struct drain *d = NULL;
	struct error e = {0};
	int r, code;

	r = drain_start(&d, &w->env, w->actor, o, act_time_now(), &e);
	if (r < 0)
		return ctl_fail(c, ctl_exit_code(r), &e);
	r = drain_run(d, w->stop_fd, show_progress, &progress);
	if (progress.shown)
		(void)fputs("\r\033[K", stderr);
	code = show_report(c, drain_report(d));
	if (code == EXIT_DONE)
		code = code_of(drain_report(d));
	if (r < 0 && code == EXIT_DONE)
		code = EXIT_FAILED;
	if (drain_report(d)->end == DRAIN_END_FAILED)
		(void)ctl_failf(c, code, "%s", drain_report(d)->text);
	(void)drain_free(d, act_time_now());
	return code;
}

/* What a killed pcptune had left behind is worth a word. */
static void on_event(void *user, const struct actor_event *ev)
{
	if (ev->kind == ACTOR_RECOVERED || ev->kind == ACTOR_FOREIGN)
		(void)ctl_failf(user, 0, "%s", ev->text);
}

int verb_drain(struct ctl *c)
{
	_cleanup_(writing_end) struct writing w = WRITING_NONE;
	_cleanup_(client_close) struct client cl = CLIENT_NONE;
	struct drain_options o;
	struct error e = {0};
	int r = read_options(c, &o);

	if (r != EXIT_DONE)
		return r;
	r = client_open(&cl, c, true);
	if (r != 0)
		return r < 0 ? EXIT_FAILED : drain_by_daemon(c, &cl, &o);
	r = ctl_take(
		c, SOURCE_BIT(SOURCE_ZONEINFO) | SOURCE_BIT(SOURCE_KNOBS) | SOURCE_BIT(SOURCE_MTHP),
		SOURCE_BIT(SOURCE_ZONEINFO));
	if (r != EXIT_DONE)
		return r;
	w.env = act_env_from(&c->root, c->snapshot);
	r = act_env_check_live(&w.env, &e);
	if (r == 0)
		r = drain_check(c->snapshot, &o, &e);
	if (r < 0)
		return ctl_fail(c, EXIT_NOT_HERE, &e);
	w.on_event = on_event;
	w.user = c;
	r = writing_begin(&w, c, "pcptunectl drain");
	return r == EXIT_DONE ? drain(c, &w, &o) : r;
}
