/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hotplug.h"

#include "netlink.h"
#include "uevent.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/epoll.h>

#define KERNEL_GROUP 1

struct hotplug {
	sd_event *event;
	struct watch_sink sink;
	struct watch watch;
	struct nl_sock *socket;
	sd_event_source *io, *debounce, *retry;
	uint64_t first_usec; /* of the events that wait to be told; 0: none */
	char message[UEVENT_MAX];
};

static void open_socket(struct hotplug *h);

static int arm(struct hotplug *h, sd_event_source **s, uint64_t usec, sd_event_time_handler_t f)
{
	int r;

	if (!*s)
		return sd_event_add_time_relative(h->event, s, CLOCK_MONOTONIC, usec,
						  10 * USEC_PER_MSEC, f, h);
	r = sd_event_source_set_time_relative(*s, usec);
	return r < 0 ? r : sd_event_source_set_enabled(*s, SD_EVENT_ONESHOT);
}

static void close_socket(struct hotplug *h)
{
	h->io = sd_event_source_disable_unref(h->io);
	h->socket = netlink_close(h->socket);
}

/* Without events: a look from time to time, which is when the socket is tried again as well. */
static int on_retry(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	struct hotplug *h = userdata;

	(void)s;
	(void)scheduled;
	if (h->watch.state == WATCH_BROKEN)
		open_socket(h);
	watch_tell(&h->sink);
	if (h->watch.state == WATCH_EVENTS)
		return 0;
	return arm(h, &h->retry, HOTPLUG_SCAN_USEC, on_retry);
}

static void fall_back(struct hotplug *h, int error, const char *what)
{
	struct error why = {0};

	(void)error_set(&why, error,
			"%s: %s; CPUs and memory that come or go are noticed within a minute", what,
			error_name(error));
	close_socket(h);
	watch_set(&h->watch, &h->sink, watch_state_of(error), &why);
	(void)arm(h, &h->retry, HOTPLUG_SCAN_USEC, on_retry);
}

static int on_debounced(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	struct hotplug *h = userdata;

	(void)s;
	(void)scheduled;
	h->first_usec = 0;
	watch_tell(&h->sink);
	return 0;
}

static void note(struct hotplug *h)
{
	uint64_t now = 0, wait = HOTPLUG_DEBOUNCE_USEC, left;

	(void)sd_event_now(h->event, CLOCK_MONOTONIC, &now);
	if (!h->first_usec)
		h->first_usec = now;
	left = h->first_usec + HOTPLUG_DEBOUNCE_MAX_USEC;
	left = left > now ? left - now : 0;
	(void)arm(h, &h->debounce, MIN_OF(wait, left), on_debounced);
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct hotplug *h = userdata;
	struct uevent u;
	ssize_t n;

	(void)s;
	(void)revents;
	while ((n = netlink_receive(fd, h->message, sizeof(h->message))) != -EAGAIN) {
		if (n == -ENOBUFS) {
			h->watch.overruns++;
			note(h);
		} else if (n < 0) {
			fall_back(h, (int)n, "the kernel's device messages cannot be read");
			return 0;
		} else if (n > 0 && uevent_parse(h->message, (size_t)n, &u) == 0 &&
			   uevent_is_topology(&u)) {
			h->watch.events++;
			note(h);
		}
	}
	return 0;
}

static void open_socket(struct hotplug *h)
{
	int r = netlink_open(&h->socket, NETLINK_KOBJECT_UEVENT, KERNEL_GROUP);

	if (r >= 0)
		r = sd_event_add_io(h->event, &h->io, netlink_fd(h->socket), EPOLLIN, on_io, h);
	if (r < 0)
		fall_back(h, r, "the kernel's device messages are not to be had");
	else
		watch_set(&h->watch, &h->sink, WATCH_EVENTS, NULL);
}

int hotplug_new(struct hotplug **ret, sd_event *event, const struct watch_sink *sink)
{
	struct hotplug *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->event = sd_event_ref(event);
	h->sink = *sink;
	open_socket(h);
	*ret = h;
	return 0;
}

struct hotplug *hotplug_free(struct hotplug *h)
{
	if (!h)
		return NULL;
	close_socket(h);
	sd_event_source_disable_unref(h->debounce);
	sd_event_source_disable_unref(h->retry);
	sd_event_unref(h->event);
	free(h);
	return NULL;
}

const struct watch *hotplug_watch(const struct hotplug *h)
{
	return &h->watch;
}
