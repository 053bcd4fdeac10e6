/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events.h"

#include "hotplug.h"
#include "links.h"
#include "message_ids.h"
#include "pressure.h"
#include "processes.h"

#include <errno.h>

struct event_sources {
	const struct log *log;
	struct event_ops ops;
	struct hotplug *hotplug;
	struct links *links;
	struct processes *processes;
	struct pressure *pressure;
	/* who a source's sink is */
	struct sink_user {
		struct event_sources *owner;
		enum event_source source;
	} user[_EVENT_SOURCE_MAX];
	enum watch_state told[_EVENT_SOURCE_MAX];
	/* what is called from within our own calls waits: the loop makes it due */
	sd_event_source *later;
	bool inside;
	bool facts_wait;
};

static const struct {
	const char *name, *key;
} sources[] = {
	[EVENT_HOTPLUG] = {"hotplug", "Hotplug"},
	[EVENT_LINKS] = {"links", "Links"},
	[EVENT_PROCESSES] = {"processes", "Processes"},
	[EVENT_PRESSURE] = {"pressure", "Pressure"},
};
_Static_assert(ARRAY_SIZE(sources) == _EVENT_SOURCE_MAX, "name every source");

const char *event_source_name(enum event_source s)
{
	return s < _EVENT_SOURCE_MAX ? sources[s].name : NULL;
}

const char *event_source_key(enum event_source s)
{
	return s < _EVENT_SOURCE_MAX ? sources[s].key : NULL;
}

static bool is_made(const struct event_sources *es, enum event_source s)
{
	switch (s) {
	case EVENT_HOTPLUG:
		return es->hotplug;
	case EVENT_LINKS:
		return es->links;
	case EVENT_PROCESSES:
		return es->processes;
	case EVENT_PRESSURE:
		return es->pressure;
	case _EVENT_SOURCE_MAX:
		break;
	}
	return false;
}

const struct watch *event_sources_watch(const struct event_sources *es, enum event_source s)
{
	static const struct watch off = {.state = WATCH_OFF};

	if (!is_made(es, s))
		return &off;
	switch (s) {
	case EVENT_HOTPLUG:
		return hotplug_watch(es->hotplug);
	case EVENT_LINKS:
		return links_watch(es->links);
	case EVENT_PROCESSES:
		return processes_watch(es->processes);
	case EVENT_PRESSURE:
		return pressure_watch(es->pressure);
	case _EVENT_SOURCE_MAX:
		break;
	}
	return &off;
}

static bool is_good(enum watch_state s)
{
	return s == WATCH_OFF || s == WATCH_EVENTS;
}

static void tell_state(struct event_sources *es, enum event_source s)
{
	const struct watch *w = event_sources_watch(es, s);
	enum watch_state was = es->told[s];
	bool good = is_good(w->state);
	char field[64];
	const char *const fields[] = {good ? MSG_EVENTS_WORK : MSG_EVENTS_LOST, field, NULL};

	es->told[s] = w->state;
	if (w->state == was || (good && is_good(was)) || (good && w->state == WATCH_OFF))
		return;
	(void)snprintf(field, sizeof(field), "PCPTUNE_EVENTS=%s", sources[s].name);
	if (good)
		log_fields(es->log, LOG_NOTICE, fields, "events: %s work again", sources[s].name);
	else
		log_fields(es->log, w->state == WATCH_BROKEN ? LOG_WARNING : LOG_NOTICE, fields,
			   "events: %s: %s", sources[s].name, w->why.text);
}

static void on_state(void *user)
{
	const struct sink_user *u = user;

	if (is_made(u->owner, u->source))
		tell_state(u->owner, u->source);
}

static int on_later(sd_event_source *s, void *userdata)
{
	struct event_sources *es = userdata;

	(void)s;
	if (es->facts_wait)
		es->ops.facts_changed(es->ops.user);
	es->facts_wait = false;
	return 0;
}

static void on_changed(void *user)
{
	const struct sink_user *u = user;
	struct event_sources *es = u->owner;

	switch (u->source) {
	case EVENT_HOTPLUG:
		es->ops.topology_changed(es->ops.user);
		break;
	case EVENT_LINKS:
	case EVENT_PROCESSES:
		if (es->inside) {
			es->facts_wait = true;
			(void)sd_event_source_set_enabled(es->later, SD_EVENT_ONESHOT);
			break;
		}
		es->ops.facts_changed(es->ops.user);
		break;
	case EVENT_PRESSURE:
		es->ops.pressure(es->ops.user);
		break;
	case _EVENT_SOURCE_MAX:
		break;
	}
}

static int make(struct event_sources *es, sd_event *event, const struct sysroot *root,
		const struct event_options *o, enum event_source s)
{
	const struct watch_sink sink = {on_changed, on_state, &es->user[s]};
	int r = 0;

	switch (s) {
	case EVENT_HOTPLUG:
		r = hotplug_new(&es->hotplug, event, &sink);
		break;
	case EVENT_LINKS:
		r = links_new(&es->links, event, &sink);
		break;
	case EVENT_PROCESSES:
		r = processes_new(&es->processes, event, root, o->scan_usec, &sink);
		break;
	case EVENT_PRESSURE:
		r = pressure_new(&es->pressure, event, root, &sink);
		break;
	case _EVENT_SOURCE_MAX:
		break;
	}
	if (r >= 0)
		tell_state(es, s);
	return r;
}

int event_sources_new(struct event_sources **ret, sd_event *event, const struct sysroot *root,
		      const struct log *log, const struct event_options *o,
		      const struct event_ops *ops)
{
	struct event_sources *es = calloc(1, sizeof(*es));
	int r;

	if (!es)
		return -ENOMEM;
	es->log = log;
	es->ops = *ops;
	es->inside = true;
	r = sd_event_add_defer(event, &es->later, on_later, es);
	if (r >= 0)
		r = sd_event_source_set_enabled(es->later, SD_EVENT_OFF);
	for (enum event_source s = 0; r >= 0 && s < _EVENT_SOURCE_MAX; s++) {
		bool elsewhere = !root->host && (s == EVENT_LINKS || s == EVENT_PROCESSES);

		es->user[s] = (struct sink_user){es, s};
		if (o->on[s] && !elsewhere && sysroot_is_live(root))
			r = make(es, event, root, o, s);
	}
	es->inside = false;
	if (r < 0) {
		event_sources_free(es);
		return r;
	}
	*ret = es;
	return 0;
}

struct event_sources *event_sources_free(struct event_sources *es)
{
	if (!es)
		return NULL;
	hotplug_free(es->hotplug);
	links_free(es->links);
	processes_free(es->processes);
	pressure_free(es->pressure);
	sd_event_source_disable_unref(es->later);
	free(es);
	return NULL;
}

int event_sources_want_processes(struct event_sources *es, const char *const *names, size_t n)
{
	int r;

	if (!es->processes)
		return 0;
	es->inside = true;
	r = processes_want(es->processes, names, n);
	es->inside = false;
	return r;
}

void event_sources_fill(struct event_sources *es, struct events *ret)
{
	*ret = (struct events){0};
	if (es->links)
		(void)links_events(es->links, ret);
	if (es->processes)
		(void)processes_events(es->processes, ret);
}
