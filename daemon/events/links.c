/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "links.h"

#include "netlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>

#include <netlink/netlink.h>
#include <netlink/socket.h>

/* Dumps come in pieces of what the reader offers, at most 32 KiB. */
#define MESSAGE_MAX     32768U
#define DUMP_AGAIN_USEC (100 * USEC_PER_MSEC)

struct link {
	int index;
	uint32_t mtu;
	bool counts;
	bool seen; /* by the dump that runs */
};

struct links {
	sd_event *event;
	struct watch_sink sink;
	struct watch watch;
	struct nl_sock *socket;
	sd_event_source *io, *retry;
	uint64_t pause_usec;
	struct link *link;
	size_t nr, room;
	bool dumping, dump_inconsistent;
	bool known;
	uint64_t told_mtu;
	uint32_t told_count;
	_Alignas(struct nlmsghdr) unsigned char message[MESSAGE_MAX];
};

static void open_socket(struct links *l);

static int on_retry(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	(void)s;
	(void)scheduled;
	open_socket(userdata);
	return 0;
}

static void arm_retry(struct links *l, uint64_t usec)
{
	if (!l->retry) {
		(void)sd_event_add_time_relative(l->event, &l->retry, CLOCK_MONOTONIC, usec,
						 USEC_PER_SEC / 10, on_retry, l);
		return;
	}
	(void)sd_event_source_set_time_relative(l->retry, usec);
	(void)sd_event_source_set_enabled(l->retry, SD_EVENT_ONESHOT);
}

static void close_socket(struct links *l)
{
	l->io = sd_event_source_disable_unref(l->io);
	l->socket = netlink_close(l->socket);
	l->dumping = false;
}

static void broken(struct links *l, int error, const char *what)
{
	struct error why = {0};
	bool was_known = l->known;

	(void)error_set(&why, error, "%s: %s; rules that need link.* wait", what,
			error_name(error));
	close_socket(l);
	l->known = false;
	watch_set(&l->watch, &l->sink, watch_state_of(error), &why);
	if (was_known)
		watch_tell(&l->sink);
	if (l->watch.state == WATCH_BROKEN) {
		l->pause_usec = watch_next_pause(l->pause_usec);
		arm_retry(l, l->pause_usec);
	}
}

static int ask_for_all(struct links *l)
{
	struct rtgenmsg all = {.rtgen_family = AF_UNSPEC};

	for (size_t i = 0; i < l->nr; i++)
		l->link[i].seen = false;
	l->dumping = true;
	l->dump_inconsistent = false;
	return nl_send_simple(l->socket, RTM_GETLINK, NLM_F_DUMP, &all, sizeof(all)) < 0 ? -EIO : 0;
}

static struct link *find(struct links *l, int index)
{
	for (size_t i = 0; i < l->nr; i++)
		if (l->link[i].index == index)
			return &l->link[i];
	return NULL;
}

static int note_link(struct links *l, const struct link_message *m)
{
	struct link *link = find(l, m->index);

	if (!link) {
		if (l->nr == l->room) {
			size_t room = l->room ? 2 * l->room : 16;
			struct link *more = realloc(l->link, room * sizeof(*more));

			if (!more)
				return -ENOMEM;
			l->link = more;
			l->room = room;
		}
		link = &l->link[l->nr++];
	}
	*link = (struct link){m->index, m->mtu, m->counts, true};
	return 0;
}

static void forget_link(struct links *l, int index)
{
	struct link *link = find(l, index);

	if (link)
		*link = l->link[--l->nr];
}

static void sum(const struct links *l, uint64_t *ret_mtu, uint32_t *ret_count)
{
	*ret_mtu = 0;
	*ret_count = 0;
	for (size_t i = 0; i < l->nr; i++) {
		if (!l->link[i].counts)
			continue;
		++*ret_count;
		*ret_mtu = MAX_OF(*ret_mtu, (uint64_t)l->link[i].mtu);
	}
}

/* Links tell of themselves for many reasons; only what we show is news. */
static void tell_if_changed(struct links *l, bool first)
{
	uint64_t mtu;
	uint32_t count;

	sum(l, &mtu, &count);
	if (!first && mtu == l->told_mtu && count == l->told_count)
		return;
	l->told_mtu = mtu;
	l->told_count = count;
	watch_tell(&l->sink);
}

static int end_dump(struct links *l)
{
	bool first = !l->known;

	l->dumping = false;
	if (l->dump_inconsistent)
		return ask_for_all(l);
	for (size_t i = 0; i < l->nr;) {
		if (l->link[i].seen)
			i++;
		else
			l->link[i] = l->link[--l->nr];
	}
	l->known = true;
	l->pause_usec = 0;
	watch_set(&l->watch, &l->sink, WATCH_EVENTS, NULL);
	tell_if_changed(l, first);
	return 0;
}

static int take(struct links *l, const struct link_message *m)
{
	l->dump_inconsistent = l->dump_inconsistent || (l->dumping && m->inconsistent);
	switch (m->kind) {
	case LINK_IS:
		l->watch.events += !l->dumping;
		return note_link(l, m);
	case LINK_GONE:
		l->watch.events++;
		forget_link(l, m->index);
		return 0;
	case LINK_DONE:
		return l->dumping ? end_dump(l) : 0;
	case LINK_FAILED:
		return m->error;
	case LINK_OTHER:
		break;
	}
	return 0;
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct links *l = userdata;
	const unsigned char *at;
	struct link_message m;
	bool overrun = false;
	size_t len;
	ssize_t n;
	int r = 0;

	(void)s;
	(void)revents;
	while (r >= 0 && (n = netlink_receive(fd, l->message, sizeof(l->message))) != -EAGAIN) {
		if (n == -ENOBUFS) {
			l->watch.overruns++;
			overrun = true;
			continue;
		}
		if (n < 0)
			r = (int)n;
		at = l->message;
		len = n > 0 ? (size_t)n : 0;
		while (r >= 0 && link_message_next(&at, &len, &m) > 0)
			r = take(l, &m);
	}
	if (r >= 0 && overrun)
		r = ask_for_all(l);
	if (r < 0)
		broken(l, r, "the kernel's messages about network links cannot be read");
	else if (l->known)
		tell_if_changed(l, false);
	return 0;
}

static void open_socket(struct links *l)
{
	int r = netlink_open(&l->socket, NETLINK_ROUTE, RTNLGRP_LINK);

	l->nr = 0;
	if (r >= 0)
		r = sd_event_add_io(l->event, &l->io, netlink_fd(l->socket), EPOLLIN, on_io, l);
	if (r >= 0)
		r = ask_for_all(l);
	if (r < 0)
		broken(l, r, "the kernel does not tell us of network links");
}

int links_new(struct links **ret, sd_event *event, const struct watch_sink *sink)
{
	struct links *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->event = sd_event_ref(event);
	l->sink = *sink;
	open_socket(l);
	*ret = l;
	return 0;
}

struct links *links_free(struct links *l)
{
	if (!l)
		return NULL;
	close_socket(l);
	sd_event_source_disable_unref(l->retry);
	sd_event_unref(l->event);
	free(l->link);
	free(l);
	return NULL;
}

bool links_events(const struct links *l, struct events *ret)
{
	if (!l->known)
		return false;
	ret->has_links = true;
	sum(l, &ret->mtu_max, &ret->nr_links);
	return true;
}

const struct watch *links_watch(const struct links *l)
{
	return &l->watch;
}
