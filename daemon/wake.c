/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wake.h"

#include <errno.h>

static void on_topology(void *user)
{
	struct wake *w = user;

	w->topology = true;
	w->due(w->user);
}

static void on_facts(void *user)
{
	struct wake *w = user;

	w->facts = true;
	w->due(w->user);
}

static void on_pressure(void *user)
{
	struct wake *w = user;

	w->due(w->user);
}

int wake_open(struct wake *w, sd_event *event, const struct sysroot *root, const struct log *log,
	      const struct config *config, void (*due)(void *user), void *user)
{
	const struct event_ops ops = {on_topology, on_facts, on_pressure, w};
	const struct event_options o = {
		.on = {[EVENT_HOTPLUG] = config->hotplug,
		       [EVENT_LINKS] = config->links,
		       [EVENT_PROCESSES] = config->processes,
		       [EVENT_PRESSURE] = config->pressure},
		.scan_usec = config->interval_usec,
	};

	*w = (struct wake){.due = due, .user = user};
	return event_sources_new(&w->sources, event, root, log, &o, &ops);
}

void wake_close(struct wake *w)
{
	w->sources = event_sources_free(w->sources);
}

int wake_policies(struct wake *w, const struct policies *p)
{
	_cleanup_(freep) const char **names = NULL;
	size_t n = policies_process_names(p, NULL, 0);

	if (!w->sources)
		return 0;
	names = calloc(n ? n : 1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	(void)policies_process_names(p, names, n);
	return event_sources_want_processes(w->sources, names, n);
}

void wake_prepare(struct wake *w, struct sensor *sensor)
{
	struct events events;

	if (!w->sources)
		return;
	/* what cannot be read now is read at the next tick */
	if (w->topology && sensor_rescan(sensor) >= 0) {
		w->topology = false;
		w->facts = true;
	}
	event_sources_fill(w->sources, &events);
	sensor_set_events(sensor, &events);
}

_Static_assert((unsigned)_EVENT_SOURCE_MAX <= STATE_EVENTS_MAX, "room for every source");

void wake_show(const struct wake *w, struct telemetry *t)
{
	for (enum event_source s = 0; w->sources && s < _EVENT_SOURCE_MAX; s++) {
		const struct watch *watch = event_sources_watch(w->sources, s);

		telemetry_event_source(t, (uint32_t)s, event_source_name(s),
				       watch_state_name(watch->state), watch->why.text,
				       watch->events, watch->overruns);
	}
}

bool wake_take_changes(struct wake *w)
{
	bool changed = w->facts;

	w->facts = false;
	return changed;
}
