/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bus-internal.h"

#include <errno.h>

/* After the system bus has gone away. */
#define RETRY_USEC (5 * USEC_PER_SEC)

static int connect_system(struct bus *b);

static int on_retry(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	(void)s;
	(void)scheduled;
	(void)connect_system(userdata);
	return 0;
}

static void disconnect_system(struct bus *b)
{
	bus_auth_forget(b, b->system);
	if (b->system)
		sd_bus_close(b->system);
	b->system = sd_bus_unref(b->system);
}

static void retry_later(struct bus *b)
{
	disconnect_system(b);
	if (!b->retry)
		(void)sd_event_add_time_relative(b->m->event, &b->retry, CLOCK_MONOTONIC,
						 RETRY_USEC, USEC_PER_SEC, on_retry, b);
	(void)sd_event_source_set_time_relative(b->retry, RETRY_USEC);
	(void)sd_event_source_set_enabled(b->retry, SD_EVENT_ONESHOT);
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	(void)message;
	(void)error;
	log_debug(((struct bus *)userdata)->m->log, "the system bus has gone; trying again");
	retry_later(userdata);
	return 0;
}

/*
 * Somebody else has the name, or the bus does not allow it (yet: while a package is installed, the
 * daemon starts before the bus has read what the package says). Told once, tried again.
 */
static int on_name(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	const sd_bus_error *refused = sd_bus_message_get_error(message);
	struct bus *b = userdata;

	(void)error;
	if (!refused)
		return 0;
	if (!b->name_told)
		log_notice(b->m->log,
			   "cannot have the name " BUS_NAME " on the system bus: %s; trying again, "
			   "root's pcptunectl works through " BUS_REL,
			   refused->message ? refused->message : refused->name);
	b->name_told = true;
	retry_later(b);
	return 0;
}

/* Asynchronous from the first step on: a system bus that hangs must not hold up a tick. */
static int connect_system(struct bus *b)
{
	const char *address = getenv("DBUS_SYSTEM_BUS_ADDRESS");
	int r = sd_bus_new(&b->system);

	if (r >= 0)
		r = sd_bus_set_address(b->system,
				       address ? address : "unix:path=/run/dbus/system_bus_socket");
	if (r >= 0)
		r = sd_bus_set_bus_client(b->system, true);
	if (r >= 0)
		r = sd_bus_set_watch_bind(b->system, true);
	/* nor may it hold up the end */
	if (r >= 0)
		r = sd_bus_set_close_on_exit(b->system, false);
	if (r >= 0)
		r = sd_bus_start(b->system);
	if (r >= 0)
		r = sd_bus_attach_event(b->system, b->m->event, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = bus_objects_add(b, b->system);
	if (r >= 0)
		r = sd_bus_match_signal_async(b->system, NULL, "org.freedesktop.DBus.Local",
					      "/org/freedesktop/DBus/Local",
					      "org.freedesktop.DBus.Local", "Disconnected",
					      on_disconnected, NULL, b);
	if (r >= 0)
		r = sd_bus_request_name_async(b->system, NULL, BUS_NAME, 0, on_name, b);
	if (r < 0) {
		log_debug(b->m->log, "cannot connect to the system bus: %s", error_name(r));
		retry_later(b);
	}
	return r;
}

int bus_new(struct bus **ret, struct manager *m, struct error *e)
{
	struct bus *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return error_set(e, -ENOMEM, "out of memory");
	b->m = m;
	r = bus_private_new(b, e);
	if (r < 0) {
		free(b);
		return r;
	}
	if (m->root.host)
		(void)connect_system(b);
	*ret = b;
	return 0;
}

struct bus *bus_free(struct bus *b)
{
	if (!b)
		return NULL;
	disconnect_system(b);
	b->private = bus_private_free(b->private);
	bus_auth_forget(b, NULL);
	sd_event_source_disable_unref(b->retry);
	free(b);
	return NULL;
}

static void emit_knob(struct bus *b, sd_bus *connection, void *user)
{
	bus_objects_emit(b, connection, user);
}

static void emit_manager(struct bus *b, sd_bus *connection, void *user)
{
	(void)user;
	bus_objects_emit_manager(b, connection);
}

static void to_all(struct bus *b, void (*emit)(struct bus *b, sd_bus *connection, void *user),
		   void *user)
{
	if (b->system && sd_bus_is_ready(b->system) > 0)
		emit(b, b->system, user);
	bus_private_each(b, emit, user);
}

static void refresh_knobs(struct bus *b, const struct daemon_state *now)
{
	for (uint32_t i = 0; i < now->nr_knobs; i++) {
		char *path = NULL;

		if (i < b->nr_shown &&
		    memcmp(&b->shown[i], &now->knobs[i], sizeof(b->shown[i])) == 0)
			continue;
		b->shown[i] = now->knobs[i];
		if (sd_bus_path_encode(BUS_KNOB_PATH, now->knobs[i].name, &path) >= 0)
			to_all(b, emit_knob, path);
		free(path);
	}
	b->nr_shown = now->nr_knobs;
}

void bus_refresh(struct bus *b)
{
	const struct daemon_state *now = b ? &b->m->telemetry.state : NULL;

	if (!b)
		return;
	refresh_knobs(b, now);
	if (b->shown_paused == now->paused && b->shown_paused_until == now->paused_until_usec &&
	    b->shown_enforce == now->enforce && b->shown_drain_blocked == now->drain_blocked)
		return;
	b->shown_paused = now->paused;
	b->shown_paused_until = now->paused_until_usec;
	b->shown_enforce = now->enforce;
	b->shown_drain_blocked = now->drain_blocked;
	to_all(b, emit_manager, NULL);
}
