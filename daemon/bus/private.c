/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run/pcptune/bus: connections without a broker. sd-bus gathers a message of up to 128 MiB from
 * each peer and queues answers without end, so that who may connect, for how long with half a
 * message, and with how much unread, is watched here.
 */
#include "bus-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <systemd/sd-id128.h>

#define PEERS_MAX    16U
#define PEERS_OF_UID 4U
/* Kept for root: others, four of whom could take every place, must not lock the operator out. */
#define PEERS_OF_ROOT 4U
/* Half a message, or none since the connection was made. */
#define SILENCE_USEC (10 * USEC_PER_SEC)
#define CHECK_USEC   (2 * USEC_PER_SEC)
#define KICK_USEC    (20 * USEC_PER_MSEC)
/* No request is longer than some hundred bytes. */
#define HALF_BYTES_MAX (256U << 10)
/* Answers that the peer does not fetch. */
#define UNREAD_MAX 32U

struct peer {
	struct bus_private *p;
	sd_bus *bus;
	sd_event_source *watch; /* sees bytes before sd-bus takes them */
	int watch_fd;
	uid_t uid;
	uint64_t waiting_since; /* CLOCK_MONOTONIC: for the rest of a message; 0: for none */
	size_t bytes;           /* seen since the last whole message, at least */
	bool greeted, doomed;
};

struct bus_private {
	struct bus *b;
	int fd, dir_fd;
	sd_event_source *io, *check, *reap, *kick;
	sd_id128_t id;
	struct peer peer[PEERS_MAX];
};

static struct peer *peer_of(const struct bus *b, sd_bus *connection)
{
	for (size_t i = 0; b->private && i < PEERS_MAX; i++)
		if (b->private->peer[i].bus == connection && connection)
			return &b->private->peer[i];
	return NULL;
}

bool bus_private_uid(const struct bus *b, sd_bus *connection, uid_t *ret)
{
	const struct peer *peer = peer_of(b, connection);

	if (peer)
		*ret = peer->uid;
	return peer != NULL;
}

static void peer_close(struct peer *peer)
{
	sd_event_source_disable_unref(peer->watch);
	if (peer->watch_fd >= 0)
		(void)close(peer->watch_fd);
	if (peer->bus)
		sd_bus_close(peer->bus);
	sd_bus_unref(peer->bus);
	*peer = (struct peer){.p = peer->p, .watch_fd = -1};
}

static int on_reap(sd_event_source *s, void *userdata)
{
	struct bus_private *p = userdata;

	(void)s;
	for (size_t i = 0; i < PEERS_MAX; i++)
		if (p->peer[i].doomed)
			peer_close(&p->peer[i]);
	return 0;
}

/* Not now: a callback of its own connection may be running. */
static void doom(struct peer *peer)
{
	peer->doomed = true;
	(void)sd_event_source_set_enabled(peer->watch, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(peer->p->reap, SD_EVENT_ONESHOT);
}

/*
 * A message that came in one piece with the end of the greeting is in sd-bus' buffer, and nothing
 * makes it look there before the next bytes come: so it is made to, until the first message.
 */
static int on_kick(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	struct bus_private *p = userdata;
	bool waiting = false;

	(void)scheduled;
	for (size_t i = 0; i < PEERS_MAX; i++) {
		struct peer *peer = &p->peer[i];

		while (peer->bus && !peer->greeted && !peer->doomed &&
		       sd_bus_process(peer->bus, NULL) > 0)
			;
		waiting |= peer->bus && !peer->greeted && !peer->doomed;
	}
	if (!waiting)
		return 0;
	(void)sd_event_source_set_time_relative(s, KICK_USEC);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int on_check(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	struct bus_private *p = userdata;
	uint64_t now = act_time_now().mono_usec;
	bool waiting = false;

	(void)scheduled;
	for (size_t i = 0; i < PEERS_MAX; i++) {
		struct peer *peer = &p->peer[i];

		if (!peer->bus || !peer->waiting_since)
			continue;
		waiting = true;
		if (now - peer->waiting_since >= SILENCE_USEC)
			doom(peer);
	}
	if (!waiting)
		return 0;
	(void)sd_event_source_set_time_relative(s, CHECK_USEC);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static void wait_for_more(struct peer *peer)
{
	if (peer->waiting_since)
		return;
	peer->waiting_since = act_time_now().mono_usec;
	(void)sd_event_source_set_time_relative(peer->p->check, CHECK_USEC);
	(void)sd_event_source_set_enabled(peer->p->check, SD_EVENT_ONESHOT);
}

static int on_bytes(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct peer *peer = userdata;
	uint64_t unread = 0;
	int n = 0;

	(void)s;
	if (!(revents & EPOLLIN))
		return 0;
	(void)ioctl(fd, FIONREAD, &n);
	peer->bytes += n > 0 ? (size_t)n : 0;
	wait_for_more(peer);
	(void)sd_bus_get_n_queued_write(peer->bus, &unread);
	if (peer->bytes > HALF_BYTES_MAX || unread > UNREAD_MAX)
		doom(peer);
	return 0;
}

/* A whole message has come. */
static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	struct peer *peer = userdata;
	uint64_t unread = 0;

	(void)error;
	peer->waiting_since = 0;
	peer->bytes = 0;
	peer->greeted = true;
	/* many questions may have come at once, so this is asked before each answer, too */
	(void)sd_bus_get_n_queued_write(peer->bus, &unread);
	if (unread > UNREAD_MAX ||
	    sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Disconnected") > 0)
		doom(peer);
	return peer->doomed;
}

/* busctl and others talk to a broker first. */
static int on_hello(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return sd_bus_reply_method_return(message, "s", ":1.0");
}

/* All signals go to everybody: there is nothing to match. */
static int on_match(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return sd_bus_reply_method_return(message, "");
}

static const sd_bus_vtable driver_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Hello", "", "s", on_hello, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("AddMatch", "s", "", on_match, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("RemoveMatch", "s", "", on_match, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

static int serve(struct peer *peer, int fd)
{
	struct bus_private *p = peer->p;
	int r = sd_bus_new(&peer->bus);

	if (r >= 0)
		r = sd_bus_set_fd(peer->bus, fd, fd);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	r = sd_bus_set_server(peer->bus, true, p->id);
	if (r >= 0)
		r = sd_bus_set_sender(peer->bus, BUS_NAME);
	/* the end of the loop must not wait for who does not listen, or never greeted */
	if (r >= 0)
		r = sd_bus_set_close_on_exit(peer->bus, false);
	if (r >= 0)
		r = sd_bus_start(peer->bus);
	if (r >= 0)
		r = sd_bus_attach_event(peer->bus, p->b->m->event, SD_EVENT_PRIORITY_IDLE);
	if (r >= 0)
		r = sd_bus_add_filter(peer->bus, NULL, on_message, peer);
	if (r >= 0)
		r = sd_bus_add_object_vtable(peer->bus, NULL, "/org/freedesktop/DBus",
					     "org.freedesktop.DBus", driver_vtable, NULL);
	if (r >= 0)
		r = bus_objects_add(p->b, peer->bus);
	return r;
}

static int watch(struct peer *peer, int fd)
{
	int r;

	peer->watch_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (peer->watch_fd < 0)
		return -errno;
	/* by edge: sd-bus, behind it, must have its turn at what is there */
	r = sd_event_add_io(peer->p->b->m->event, &peer->watch, peer->watch_fd, EPOLLIN | EPOLLET,
			    on_bytes, peer);
	/* before sd-bus reads what is there */
	return r < 0 ? r
		     : sd_event_source_set_priority(peer->watch,
						    (int64_t)SD_EVENT_PRIORITY_IDLE - 1);
}

/* A place for one more of that user, or NULL. */
static struct peer *place_for(struct bus_private *p, uid_t uid)
{
	struct peer *free_one = NULL;
	unsigned of_uid = 0, others = 0;

	for (size_t i = 0; i < PEERS_MAX; i++) {
		if (!p->peer[i].bus) {
			free_one = &p->peer[i];
			continue;
		}
		of_uid += p->peer[i].uid == uid;
		others += p->peer[i].uid != 0;
	}
	if (of_uid >= PEERS_OF_UID || (uid != 0 && others >= PEERS_MAX - PEERS_OF_ROOT))
		return NULL;
	return free_one;
}

static int on_connection(sd_event_source *s, int listen_fd, uint32_t revents, void *userdata)
{
	struct bus_private *p = userdata;
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	struct peer *peer;
	int r, fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)s;
	(void)revents;
	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    !(peer = place_for(p, cred.uid))) {
		(void)close(fd);
		return 0;
	}
	peer->uid = cred.uid;
	if (watch(peer, fd) < 0) {
		(void)close(fd);
		peer_close(peer);
		return 0;
	}
	r = serve(peer, fd);
	if (r < 0) {
		log_debug(p->b->m->log, "cannot serve a connection to " BUS_REL ": %s",
			  error_name(r));
		peer_close(peer);
		return 0;
	}
	wait_for_more(peer);
	(void)sd_event_source_set_time_relative(p->kick, KICK_USEC);
	(void)sd_event_source_set_enabled(p->kick, SD_EVENT_ONESHOT);
	return 0;
}

/* Through the descriptor of run/pcptune: a path below a root may be longer than a socket's name. */
static int listen_here(struct bus_private *p, struct error *e)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int r;

	p->dir_fd = rundir_open(&p->b->m->acting.env, true, e);
	if (p->dir_fd < 0)
		return p->dir_fd;
	(void)unlinkat(p->dir_fd, "bus", 0);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/bus", p->dir_fd);
	p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = p->fd < 0 ? -errno : 0;
	if (r == 0 && bind(p->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		r = -errno;
	/* reading is for everyone; who may change something is asked for each request */
	if (r == 0 && fchmodat(p->dir_fd, "bus", 0666, 0) < 0)
		r = -errno;
	if (r == 0 && listen(p->fd, 32) < 0)
		r = -errno;
	if (r < 0)
		(void)error_set(e, r,
				"cannot listen on %s/" BUS_REL ": %s; pcptunectl can read, and "
				"change nothing while this daemon runs",
				p->b->m->root.path, error_name(r));
	return r;
}

int bus_private_new(struct bus *b, struct error *e)
{
	struct bus_private *p = calloc(1, sizeof(*p));
	sd_event *event = b->m->event;
	int r;

	if (!p)
		return error_set(e, -ENOMEM, "out of memory");
	p->b = b;
	p->fd = p->dir_fd = -1;
	for (size_t i = 0; i < PEERS_MAX; i++)
		p->peer[i] = (struct peer){.p = p, .watch_fd = -1};
	r = listen_here(p, e);
	if (r < 0) {
		(void)bus_private_free(p);
		return r;
	}
	r = sd_id128_randomize(&p->id);
	if (r >= 0)
		r = sd_event_add_io(event, &p->io, p->fd, EPOLLIN, on_connection, p);
	if (r >= 0)
		r = sd_event_add_time(event, &p->check, CLOCK_MONOTONIC, UINT64_MAX, 0, on_check,
				      p);
	if (r >= 0)
		r = sd_event_add_defer(event, &p->reap, on_reap, p);
	if (r >= 0)
		r = sd_event_source_set_enabled(p->reap, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(event, &p->kick, CLOCK_MONOTONIC, UINT64_MAX, 0, on_kick, p);
	if (r < 0) {
		(void)bus_private_free(p);
		return error_set(e, r, "cannot watch " BUS_REL ": %s", error_name(r));
	}
	b->private = p;
	return 0;
}

struct bus_private *bus_private_free(struct bus_private *p)
{
	if (!p)
		return NULL;
	/* what could be sent has been: nobody who does not read holds up the end */
	for (size_t i = 0; i < PEERS_MAX; i++)
		peer_close(&p->peer[i]);
	sd_event_source_disable_unref(p->io);
	sd_event_source_disable_unref(p->check);
	sd_event_source_disable_unref(p->reap);
	sd_event_source_disable_unref(p->kick);
	if (p->fd >= 0) {
		(void)close(p->fd);
		(void)unlinkat(p->dir_fd, "bus", 0);
	}
	if (p->dir_fd >= 0)
		(void)close(p->dir_fd);
	free(p);
	return NULL;
}

void bus_private_each(struct bus *b, void (*fn)(struct bus *b, sd_bus *connection, void *user),
		      void *user)
{
	for (size_t i = 0; b->private && i < PEERS_MAX; i++) {
		struct peer *peer = &b->private->peer[i];
		uint64_t unread = 0;

		if (!peer->bus || !peer->greeted || peer->doomed)
			continue;
		(void)sd_bus_get_n_queued_write(peer->bus, &unread);
		if (unread > UNREAD_MAX)
			doom(peer);
		else
			fn(b, peer->bus, user);
	}
}
