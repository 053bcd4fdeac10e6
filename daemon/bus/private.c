/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run/pcptune/bus: connections without a broker. sd-bus gathers a message of up to 128 MiB from
 * each peer and queues answers without end: so it talks to one end of a socket pair, and what goes
 * through the other end is whole messages of bounded length one way (gate.h), and as much as the
 * peer fetches the other way.
 */
#include "bus-internal.h"

#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <systemd/sd-id128.h>

#define PEERS_MAX    16U
#define PEERS_OF_UID 4U
/* Kept for root: others, four of whom could take every place, must not lock the operator out. */
#define PEERS_OF_ROOT 4U
/* For the rest of a greeting or of a message. */
#define SILENCE_USEC (10 * USEC_PER_SEC)
#define CHECK_USEC   (2 * USEC_PER_SEC)
#define OUT_BYTES    16384U
/* Answers that the peer does not fetch. */
#define UNREAD_MAX 32U

struct peer {
	struct bus_private *p;
	sd_bus *bus;
	int fd, inner_fd; /* to the peer; to sd-bus */
	sd_event_source *io, *inner_io;
	uid_t uid;
	uint64_t waiting_since; /* CLOCK_MONOTONIC: for the rest of something; 0: for nothing */
	struct gate *gate;
	size_t ready; /* bytes at the front of the gate's that are to be passed on */
	char *out;    /* OUT_BYTES */
	size_t out_len;
	bool open; /* sd-bus has been greeted */
	bool doomed;
};

struct bus_private {
	struct bus *b;
	int fd, dir_fd;
	sd_event_source *io, *check, *reap;
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
	sd_event_source_disable_unref(peer->io);
	sd_event_source_disable_unref(peer->inner_io);
	if (peer->bus)
		sd_bus_close(peer->bus);
	sd_bus_unref(peer->bus);
	closep(&peer->fd);
	closep(&peer->inner_fd);
	free(peer->gate);
	free(peer->out);
	*peer = (struct peer){.p = peer->p, .fd = -1, .inner_fd = -1};
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
	(void)sd_event_source_set_enabled(peer->io, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(peer->inner_io, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(peer->p->reap, SD_EVENT_ONESHOT);
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

/* Since when something is owed: since now, where `progress` was made meanwhile. */
static void note_waiting(struct peer *peer, bool progress)
{
	if (progress || !gate_waits(peer->gate) || peer->ready > 0)
		peer->waiting_since = 0;
	if (!gate_waits(peer->gate) || peer->ready > 0 || peer->waiting_since)
		return;
	peer->waiting_since = act_time_now().mono_usec;
	(void)sd_event_source_set_time_relative(peer->p->check, CHECK_USEC);
	(void)sd_event_source_set_enabled(peer->p->check, SD_EVENT_ONESHOT);
}

/* Each side is read only while the other one takes what comes. */
static void update_interest(const struct peer *peer)
{
	(void)sd_event_source_set_io_events(peer->io, (peer->ready ? 0U : EPOLLIN) |
							      (peer->out_len ? EPOLLOUT : 0U));
	(void)sd_event_source_set_io_events(peer->inner_io,
					    (peer->out_len && peer->open ? 0U : EPOLLIN) |
						    (peer->ready && peer->open ? EPOLLOUT : 0U));
}

/* Sends what it can of `n` bytes; what was sent, or -1: the other end is gone. */
static ssize_t send_some(int fd, const void *bytes, size_t n)
{
	ssize_t sent = n ? send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return sent;
}

static int pass_on(struct peer *peer)
{
	ssize_t sent = peer->open ? send_some(peer->inner_fd, peer->gate->bytes, peer->ready) : 0;

	if (sent < 0)
		return -EPIPE;
	gate_drop(peer->gate, (size_t)sent);
	peer->ready -= (size_t)sent;
	return 0;
}

static int give_back(struct peer *peer)
{
	ssize_t sent = send_some(peer->fd, peer->out, peer->out_len);

	if (sent < 0)
		return -EPIPE;
	memmove(peer->out, peer->out + sent, peer->out_len - (size_t)sent);
	peer->out_len -= (size_t)sent;
	return 0;
}

static int hear_peer(struct peer *peer)
{
	char reply[GATE_REPLY_MAX];
	size_t room, len;
	uint8_t *to = gate_room(peer->gate, &room);
	ssize_t n = recv(peer->fd, to, room, MSG_DONTWAIT), ready;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
	ready = gate_take(peer->gate, (size_t)n, reply, &len);
	if (ready < 0 || send_some(peer->fd, reply, len) != (ssize_t)len)
		return -EPROTO;
	peer->ready = (size_t)ready;
	note_waiting(peer, ready > 0);
	return pass_on(peer);
}

static int on_peer(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct peer *peer = userdata;
	int r = 0;

	(void)s;
	(void)fd;
	if (revents & EPOLLOUT)
		r = give_back(peer);
	if (r == 0 && peer->ready == 0 && (revents & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		r = hear_peer(peer);
	if (r < 0)
		doom(peer);
	else
		update_interest(peer);
	return 0;
}

/* What sd-bus says to our greeting is not for the peer. */
static void swallow_greeting(struct peer *peer)
{
	char *ok = memmem(peer->out, peer->out_len, "OK ", 3), *end;
	size_t left = ok ? peer->out_len - (size_t)(ok - peer->out) : 0;

	end = ok ? memmem(ok, left, "\r\n", 2) : NULL;
	if (!end)
		return;
	left = peer->out_len - (size_t)(end + 2 - peer->out);
	memmove(peer->out, end + 2, left);
	peer->out_len = left;
	peer->open = true;
}

static int hear_bus(struct peer *peer)
{
	ssize_t n = recv(peer->inner_fd, peer->out + peer->out_len, OUT_BYTES - peer->out_len,
			 MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
	peer->out_len += (size_t)n;
	if (!peer->open)
		swallow_greeting(peer);
	return peer->open ? give_back(peer) : 0;
}

static int on_inner(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct peer *peer = userdata;
	int r = 0;

	(void)s;
	(void)fd;
	if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR) && (peer->out_len == 0 || !peer->open))
		r = hear_bus(peer);
	if (r == 0)
		r = pass_on(peer);
	if (r < 0)
		doom(peer);
	else
		update_interest(peer);
	return 0;
}

/* Who asks and never listens is closed before the answers take memory. */
static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	struct peer *peer = userdata;
	uint64_t unread = 0;

	(void)message;
	(void)error;
	(void)sd_bus_get_n_queued_write(peer->bus, &unread);
	if (unread > UNREAD_MAX)
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

/* sd-bus at the other end of a socket pair, which trusts what comes through the gate. */
static int serve(struct peer *peer)
{
	static const char greeting[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
	struct bus_private *p = peer->p;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	peer->inner_fd = pair[0];
	if (send_some(pair[0], greeting, sizeof(greeting) - 1) != (ssize_t)sizeof(greeting) - 1) {
		(void)close(pair[1]);
		return -EIO;
	}
	r = sd_bus_new(&peer->bus);
	if (r >= 0)
		r = sd_bus_set_fd(peer->bus, pair[1], pair[1]);
	if (r < 0) {
		(void)close(pair[1]);
		return r;
	}
	r = sd_bus_set_server(peer->bus, true, p->id);
	if (r >= 0)
		r = sd_bus_set_sender(peer->bus, BUS_NAME);
	/* the end of the loop must not wait for who does not listen */
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

/* Ticks come first: who asks waits a moment. */
static int watch(struct peer *peer, int fd, sd_event_source **ret, sd_event_io_handler_t handler)
{
	int r = sd_event_add_io(peer->p->b->m->event, ret, fd, EPOLLIN, handler, peer);

	return r < 0 ? r : sd_event_source_set_priority(*ret, SD_EVENT_PRIORITY_IDLE);
}

static int peer_open(struct peer *peer, int fd, uid_t uid)
{
	int r;

	peer->fd = fd;
	peer->uid = uid;
	peer->gate = calloc(1, sizeof(*peer->gate));
	peer->out = malloc(OUT_BYTES);
	if (!peer->gate || !peer->out)
		return -ENOMEM;
	peer->gate->uid = uid;
	r = serve(peer);
	if (r >= 0)
		r = watch(peer, peer->fd, &peer->io, on_peer);
	if (r >= 0)
		r = watch(peer, peer->inner_fd, &peer->inner_io, on_inner);
	if (r >= 0)
		note_waiting(peer, false);
	return r;
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
	r = peer_open(peer, fd, cred.uid);
	if (r < 0) {
		log_debug(p->b->m->log, "cannot serve a connection to " BUS_REL ": %s",
			  error_name(r));
		peer_close(peer);
	}
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
		p->peer[i] = (struct peer){.p = p, .fd = -1, .inner_fd = -1};
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

		if (!peer->bus || !peer->gate->begun || peer->doomed)
			continue;
		(void)sd_bus_get_n_queued_write(peer->bus, &unread);
		if (unread > UNREAD_MAX)
			doom(peer);
		else
			fn(b, peer->bus, user);
	}
}
