/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pcptunectl history: what pcptuned did. From the journal, by message ids and fields, where there
 * is one; otherwise the last decisions that the running daemon remembers.
 */
#include "client.h"

#include "../daemon/message_ids.h"
#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include <systemd/sd-journal.h>

#define LINES_DEFAULT 50U
#define LINES_MAX     1000000U

/* What changed, or would have, and who said so; not how the daemon reads and reloads. */
static const char *const told[] = {
	MSG_STARTED,       MSG_STOPPED,     MSG_DECISION,      MSG_CHANGED,      MSG_RESTORED,
	MSG_REFUSED,       MSG_ACCEPTED,    MSG_BLOCKED,       MSG_UNBLOCKED,    MSG_FOREIGN,
	MSG_OURS_AGAIN,    MSG_LIMITED,     MSG_UNLIMITED,     MSG_RECOVERED,    MSG_RECORD_LOST,
	MSG_DRAIN_STARTED, MSG_DRAIN_ENDED, MSG_DRAIN_BLOCKED, MSG_NOT_RESTORED, MSG_DISABLED,
	MSG_ENABLED,       MSG_PINNED,      MSG_UNPINNED,      MSG_ADOPTED,      MSG_PAUSED,
	MSG_RESUMED,       MSG_ROLLED_BACK,
};

struct entry {
	uint64_t time_usec; /* CLOCK_REALTIME */
	char knob[64], from[24], to[24], policy[128], result[32], reason[512], text[768];
};

/* --since: a time of day or a date and time, a time span ago, today, yesterday. */
static int parse_since(const char *s, time_t now, uint64_t *ret_usec)
{
	static const char *const formats[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d",
					      "%H:%M:%S", "%H:%M"};
	uint64_t ago;
	struct tm tm;
	time_t t;

	if (parse_timespan(s, &ago) == 0) {
		*ret_usec =
			(uint64_t)now * USEC_PER_SEC - MIN_OF(ago, (uint64_t)now * USEC_PER_SEC);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		const char *end;

		(void)localtime_r(&now, &tm);
		tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
		end = strptime(s, formats[i], &tm);
		if (!end || *end)
			continue;
		tm.tm_isdst = -1;
		t = mktime(&tm);
		if (t > now && formats[i][1] == 'H')
			t -= 24 * 60 * 60; /* 22:00 in the morning is yesterday's */
		*ret_usec = (uint64_t)t * USEC_PER_SEC;
		return 0;
	}
	if (!streq(s, "today") && !streq(s, "yesterday"))
		return -EINVAL;
	(void)localtime_r(&now, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_mday -= s[0] == 'y';
	tm.tm_isdst = -1;
	*ret_usec = (uint64_t)mktime(&tm) * USEC_PER_SEC;
	return 0;
}

struct wish {
	uint64_t since_usec; /* 0: from the beginning */
	unsigned lines;
	bool follow;
};

static int read_options(const struct ctl *c, struct wish *w)
{
	const char *lines = c->options.value[OPTION_LINES], *since = c->options.value[OPTION_SINCE];
	uint64_t n = LINES_DEFAULT;

	*w = (struct wish){.follow = option_given(&c->options, OPTION_FOLLOW)};
	if (since && parse_since(since, time(NULL), &w->since_usec) < 0)
		return ctl_failf(
			c, EXIT_USAGE,
			"--since takes a time such as 8h (ago), 22:00, \"2026-11-30 22:00\", "
			"today or yesterday, not \"%s\"",
			since);
	if (since)
		n = LINES_MAX;
	if (lines && (parse_u64(lines, &n) < 0 || n == 0 || n > LINES_MAX))
		return ctl_failf(c, EXIT_USAGE, "--lines takes a number from 1 to %u, not \"%s\"",
				 LINES_MAX, lines);
	w->lines = (unsigned)n;
	return EXIT_DONE;
}

static void put_text(struct json_out *j, const char *key, const char *value)
{
	if (value[0])
		json_put_str(j, key, value);
	else
		json_put_null(j, key);
}

static void put_number(struct json_out *j, const char *key, const char *value)
{
	uint64_t n;

	if (parse_u64(value, &n) == 0)
		json_put_u64(j, key, n);
	else
		json_put_null(j, key);
}

static void show(struct ctl *c, const struct entry *e, FILE *out)
{
	time_t t = (time_t)(e->time_usec / USEC_PER_SEC);
	char when[32] = "";
	struct tm tm;

	if (c->wants_json) {
		json_begin_object(&c->json, NULL);
		json_put_usec(&c->json, "time", e->time_usec);
		put_text(&c->json, "knob", e->knob);
		put_number(&c->json, "from", e->from);
		put_number(&c->json, "to", e->to);
		put_text(&c->json, "policy", e->policy);
		put_text(&c->json, "result", e->result);
		put_text(&c->json, "reason", e->reason);
		json_put_str(&c->json, "message", e->text);
		json_end_object(&c->json);
		return;
	}
	(void)strftime(when, sizeof(when), "%F %T", localtime_r(&t, &tm));
	(void)fprintf(out, "%s  %s\n", when, e->text);
}

/* The journal */

static void field(sd_journal *j, const char *name, char *buf, size_t size)
{
	const char *data;
	size_t len, skip = strlen(name) + 1;

	buf[0] = '\0';
	if (sd_journal_get_data(j, name, (const void **)&data, &len) < 0 || len < skip)
		return;
	(void)snprintf(buf, size, "%.*s", (int)MIN_OF(len - skip, size - 1), data + skip);
}

static void take(sd_journal *j, struct entry *e)
{
	(void)sd_journal_get_realtime_usec(j, &e->time_usec);
	field(j, "PCPTUNE_KNOB", e->knob, sizeof(e->knob));
	field(j, "PCPTUNE_OLD", e->from, sizeof(e->from));
	field(j, "PCPTUNE_NEW", e->to, sizeof(e->to));
	field(j, "PCPTUNE_POLICY", e->policy, sizeof(e->policy));
	field(j, "PCPTUNE_RESULT", e->result, sizeof(e->result));
	field(j, "PCPTUNE_REASON", e->reason, sizeof(e->reason));
	field(j, "MESSAGE", e->text, sizeof(e->text));
}

static void journal_closep(sd_journal **j)
{
	if (*j)
		sd_journal_close(*j);
}

/* PCPTUNE_JOURNAL_FILES is for tests: the directory of another machine's journal. */
static int journal_open(sd_journal **ret)
{
	const char *elsewhere = getenv("PCPTUNE_JOURNAL_FILES");
	int r = elsewhere ? sd_journal_open_directory(ret, elsewhere, 0)
			  : sd_journal_open(ret, SD_JOURNAL_LOCAL_ONLY);

	for (size_t i = 0; i < ARRAY_SIZE(told) && r >= 0; i++)
		r = sd_journal_add_match(*ret, told[i], 0);
	return r;
}

/* To the first of the last `lines` that lie behind `since`; 1: there is one. */
static int seek(sd_journal *j, const struct wish *w)
{
	uint64_t when;
	unsigned n = 0;
	int r;

	r = sd_journal_seek_tail(j);
	while (r >= 0 && n < w->lines) {
		r = sd_journal_previous(j);
		if (r <= 0)
			break;
		n++;
		if (sd_journal_get_realtime_usec(j, &when) >= 0 && when < w->since_usec) {
			n--;
			return n ? sd_journal_next(j) : 0;
		}
	}
	if (r == 0 && n > 0) /* the very first is one of them */
		r = sd_journal_seek_head(j) < 0 ? -EIO : sd_journal_next(j);
	return r < 0 ? r : n > 0;
}

static void follow(struct ctl *c, sd_journal *j)
{
	struct entry e;

	for (;;) {
		while (sd_journal_next(j) > 0) {
			take(j, &e);
			show(c, &e, stdout);
		}
		(void)fflush(stdout);
		if (sd_journal_wait(j, UINT64_MAX) < 0)
			return;
	}
}

/* Does the journal have anything at all of ours? EXIT_DONE, or -1: it cannot tell. */
static int from_journal(struct ctl *c, const struct wish *w)
{
	_cleanup_(journal_closep) sd_journal *j = NULL;
	FILE *out = w->follow ? stdout : c->screen.out;
	struct entry e;
	int r = journal_open(&j);

	if (r < 0 || sd_journal_seek_tail(j) < 0 || sd_journal_previous(j) <= 0)
		return -1;
	r = seek(j, w);
	if (c->wants_json)
		json_begin_array(ctl_json_begin(c), "history");
	for (; r > 0; r = sd_journal_next(j)) {
		take(j, &e);
		show(c, &e, out);
	}
	if (w->follow && r >= 0)
		follow(c, j);
	if (!c->wants_json)
		return EXIT_DONE;
	json_end_array(&c->json);
	return ctl_json_end(c);
}

/* The daemon */

static int read_entry(sd_bus_message *m, struct entry *e)
{
	const char *knob, *policy, *rule, *result, *reason;
	uint64_t from, to;
	int r = sd_bus_message_read(m, "(tsttssss)", &e->time_usec, &knob, &from, &to, &policy,
				    &rule, &result, &reason);

	if (r <= 0)
		return r;
	(void)snprintf(e->knob, sizeof(e->knob), "%s", knob);
	(void)snprintf(e->from, sizeof(e->from), "%" PRIu64, from);
	(void)snprintf(e->to, sizeof(e->to), "%" PRIu64, to);
	(void)snprintf(e->policy, sizeof(e->policy), "%s", policy);
	(void)snprintf(e->result, sizeof(e->result), "%s", result);
	(void)snprintf(e->reason, sizeof(e->reason), "%s", reason);
	(void)snprintf(e->text, sizeof(e->text), "%s: %" PRIu64 " -> %" PRIu64 ", %s%s%s%s", knob,
		       from, to, result, reason[0] ? " (" : "", reason, reason[0] ? ")" : "");
	return 1;
}

/* They come newest first and are shown as a journal is, oldest first. */
static int from_daemon(struct ctl *c, const struct wish *w)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(client_close) struct client cl = CLIENT_NONE;
	struct entry entries[STATE_DECISIONS_MAX];
	size_t n = 0;
	int r = client_open(&cl, c, false);

	if (r == 0)
		return ctl_failf(c, EXIT_NO_DAEMON,
				 "no journal here has a word of pcptuned's that you may read, and "
				 "none runs that could be asked");
	r = r < 0 ? EXIT_FAILED : EXIT_DONE;
	if (r == EXIT_DONE)
		r = client_call(&cl, c, &reply, "History", "u", w->lines);
	if (r != EXIT_DONE)
		return r;
	(void)sd_bus_message_enter_container(reply, 'a', "(tsttssss)");
	while (n < ARRAY_SIZE(entries) && read_entry(reply, &entries[n]) > 0)
		n += entries[n].time_usec >= w->since_usec;
	if (c->wants_json)
		json_begin_array(ctl_json_begin(c), "history");
	while (n > 0)
		show(c, &entries[--n], c->screen.out);
	if (!c->wants_json)
		return EXIT_DONE;
	json_end_array(&c->json);
	return ctl_json_end(c);
}

int verb_history(struct ctl *c)
{
	struct wish w;
	int r = read_options(c, &w);

	if (r != EXIT_DONE)
		return r;
	if (w.follow && c->wants_json)
		return ctl_failf(c, EXIT_USAGE,
				 "--follow has no end, and a JSON document has one: use journalctl "
				 "-f -o json for that");
	r = c->root.host || getenv("PCPTUNE_JOURNAL_FILES") ? from_journal(c, &w) : -1;
	if (r >= 0)
		return r;
	if (w.follow)
		return ctl_failf(c, EXIT_NOT_HERE, "there is no journal here to follow");
	return from_daemon(c, &w);
}
