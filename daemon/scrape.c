/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scrape.h"

#include "gzip.h"
#include "scrape-listen.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <microhttpd.h>

#define LISTENERS_MAX   8U
#define ADDRESS_MAX     128U
#define CONNECTIONS_MAX 64U
#define PER_ADDRESS_MAX 16U    /* so that one peer cannot take every place */
#define REQUEST_MEMORY  16384U /* headers of a scrape are a few hundred bytes */
#define SEND_BUFFER     (128 << 10)

#define REQUEST_USEC    (10 * USEC_PER_SEC)
#define DELIVERY_USEC   (30 * USEC_PER_SEC)

/* Answers that slow peers still read, after newer ones were rendered. Half of it is for Unix
 * sockets. */
#define HELD_MAX (16U << 20)

/* SHA-1 and old versions off; the rest is the system's policy */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct peer {
	struct MHD_Connection *connection; /* NULL: the place is free */
	uint64_t deadline_usec;
};

struct listener {
	struct scrape *scrape;
	int fd; /* stays ours, so that another MHD_Daemon can go on with it */
	struct MHD_Daemon *mhd;
	sd_event_source *io, *timer;
	struct peer peers[CONNECTIONS_MAX];
	char unix_path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "" for TCP */
	char address[ADDRESS_MAX];
};

struct rendering {
	struct MHD_Response *response; /* shared by all connections that were given it */
	uint64_t version;
};

struct scrape {
	struct scrape_ops ops;
	sd_event *event;
	struct credentials credentials;
	struct listener listener[LISTENERS_MAX];
	size_t listeners;
	struct text body, packed;
	struct gzip *gzip; /* NULL until somebody takes it */
	struct rendering renderings[_EXPOSITION_FORMAT_MAX][2];
	size_t held; /* bytes of all renderings that somebody still has */
	char url[ADDRESS_MAX + 32];
};

static const char index_page[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><title>pcptuned</title></head><body>\n"
	"<h1>pcptuned</h1>\n<ul>\n<li><a href=\"/metrics\">/metrics</a>: what Prometheus "
	"scrapes</li>\n"
	"<li><a href=\"/healthz\">/healthz</a>: 200 while the daemon ticks, 503 and the reason "
	"when it "
	"does not</li>\n</ul>\n</body></html>\n";

static struct peer *peer_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static uint64_t now_usec(const struct scrape *s)
{
	uint64_t now;

	return sd_event_now(s->event, CLOCK_MONOTONIC, &now) < 0 ? 0 : now;
}

static void set_deadline(struct scrape *s, struct MHD_Connection *c, uint64_t usec)
{
	struct peer *p = peer_of(c);

	if (p)
		p->deadline_usec = now_usec(s) + usec;
}

static void on_connection(void *userdata, struct MHD_Connection *c, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct listener *l = userdata;
	struct peer *p = *context;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (p)
			*p = (struct peer){0};
		*context = NULL;
		return;
	}
	/* libmicrohttpd's limit is the number of places */
	for (p = l->peers; p < l->peers + CONNECTIONS_MAX; p++)
		if (!p->connection) {
			*p = (struct peer){c, now_usec(l->scrape) + REQUEST_USEC};
			*context = p;
			return;
		}
}

static void on_completed(void *userdata, struct MHD_Connection *c, void **request,
			 enum MHD_RequestTerminationCode how)
{
	struct listener *l = userdata;

	(void)request;
	(void)how;
	set_deadline(l->scrape, c, REQUEST_USEC);
}

static enum MHD_Result queue(struct scrape *s, struct MHD_Connection *c, unsigned status,
			     struct MHD_Response *response)
{
	set_deadline(s, c, DELIVERY_USEC);
	return MHD_queue_response(c, status, response);
}

static enum MHD_Result reply(struct scrape *s, struct MHD_Connection *c, unsigned status,
			     const char *type, const char *body)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	/* libmicrohttpd copies the body and does not write to what it is given */
	response = MHD_create_response_from_buffer(strlen(body), (void *)(uintptr_t)body,
						   MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (status == MHD_HTTP_UNAUTHORIZED)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	result = queue(s, c, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result reply_text(struct scrape *s, struct MHD_Connection *c, unsigned status,
				  const char *line)
{
	return reply(s, c, status, "text/plain; charset=utf-8", line);
}

struct held_body {
	struct scrape *scrape;
	size_t len;
	char bytes[];
};

static void release_body(void *userdata)
{
	struct held_body *b = userdata;

	b->scrape->held -= b->len;
	free(b);
}

static struct MHD_Response *response_of(struct scrape *s, const struct text *body,
					enum exposition_format format, bool gzipped)
{
	struct held_body *b = malloc(sizeof(*b) + body->len);
	struct MHD_Response *response;

	if (!b)
		return NULL;
	b->scrape = s;
	b->len = body->len;
	memcpy(b->bytes, text_str(body), body->len);
	response = MHD_create_response_from_buffer_with_free_callback_cls(body->len, b->bytes,
									  release_body, b);
	if (!response) {
		free(b);
		return NULL;
	}
	s->held += b->len;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				      exposition_content_type(format));
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
	if (gzipped)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	return response;
}

/* NULL: out of memory */
static struct MHD_Response *render(struct scrape *s, enum exposition_format format, bool gzipped)
{
	text_clear(&s->body);
	if (s->ops.render(s->ops.userdata, format, &s->body) < 0 || s->body.failed)
		return NULL;
	if (!gzipped)
		return response_of(s, &s->body, format, false);
	if ((!s->gzip && gzip_new(&s->gzip) < 0) ||
	    gzip_text(s->gzip, text_str(&s->body), s->body.len, &s->packed) < 0)
		return NULL;
	return response_of(s, &s->packed, format, true);
}

static enum MHD_Result reply_metrics(struct listener *l, struct MHD_Connection *c)
{
	enum exposition_format format = exposition_negotiate(
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
	bool gzipped = exposition_wants_gzip(
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING));
	struct scrape *s = l->scrape;
	struct rendering *kept = &s->renderings[format][gzipped];
	uint64_t version = s->ops.refresh(s->ops.userdata);

	if (kept->response && kept->version != version) {
		MHD_destroy_response(kept->response);
		kept->response = NULL;
	}
	if (!kept->response && s->held > (l->unix_path[0] ? HELD_MAX : HELD_MAX / 2))
		return reply_text(s, c, MHD_HTTP_SERVICE_UNAVAILABLE,
				  "too many clients read their answers too slowly: try again in "
				  "half a minute\n");
	if (!kept->response) {
		kept->response = render(s, format, gzipped);
		kept->version = version;
	}
	if (!kept->response)
		return reply_text(s, c, MHD_HTTP_INTERNAL_SERVER_ERROR,
				  "the metrics could not be rendered: out of memory\n");
	return queue(s, c, MHD_HTTP_OK, kept->response);
}

static enum MHD_Result reply_health(struct scrape *s, struct MHD_Connection *c)
{
	const char *why = s->ops.unhealthy(s->ops.userdata);
	char line[256];

	if (!why)
		return reply_text(s, c, MHD_HTTP_OK, "ok\n");
	(void)snprintf(line, sizeof(line), "%s\n", why);
	return reply_text(s, c, MHD_HTTP_SERVICE_UNAVAILABLE, line);
}

/* NULL where this peer may read; otherwise why not, with the status to say it by. */
static const char *refuse(const struct listener *l, struct MHD_Connection *c, unsigned *status)
{
	const struct credentials *want = &l->scrape->credentials;
	const union MHD_ConnectionInfo *info;
	const char *why = NULL;

	if (l->unix_path[0])
		return NULL;
	*status = MHD_HTTP_FORBIDDEN;
	if (want->client_ca) {
		info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
		why = info ? credentials_refuse_peer((gnutls_session_t)info->tls_session)
			   : "there is no TLS session";
	}
	if (!why &&
	    !credentials_allow(want, MHD_lookup_connection_value(c, MHD_HEADER_KIND,
								 MHD_HTTP_HEADER_AUTHORIZATION))) {
		*status = MHD_HTTP_UNAUTHORIZED;
		why = "this server wants its bearer token";
	}
	return why;
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **request)
{
	static char seen; /* its address marks a request whose headers were seen */
	struct listener *l = userdata;
	struct scrape *s = l->scrape;
	unsigned status;
	const char *why;
	char line[128];

	(void)version;
	(void)upload;
	/* The first call comes after the headers: an answer given there would close the connection
	 * of a client that goes on with a body. */
	if (*request != &seen) {
		*request = &seen;
		return MHD_YES;
	}
	if (*upload_size) {
		*upload_size = 0;
		return MHD_YES;
	}
	why = refuse(l, c, &status);
	if (why) {
		(void)snprintf(line, sizeof(line), "%s\n", why);
		return reply_text(s, c, status, line);
	}
	if (!streq(method, MHD_HTTP_METHOD_GET) && !streq(method, MHD_HTTP_METHOD_HEAD))
		return reply_text(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (streq(url, "/metrics"))
		return reply_metrics(l, c);
	if (streq(url, "/healthz"))
		return reply_health(s, c);
	if (streq(url, "/"))
		return reply(s, c, MHD_HTTP_OK, "text/html; charset=utf-8", index_page);
	return reply_text(s, c, MHD_HTTP_NOT_FOUND, "there is /metrics, /healthz and /\n");
}

/*
 * Ends what is over its time. Only the socket is shut down: libmicrohttpd sees it by epoll and
 * closes the connection by itself.
 */
static void end_overdue(struct listener *l, uint64_t now)
{
	for (struct peer *p = l->peers; p < l->peers + CONNECTIONS_MAX; p++) {
		const union MHD_ConnectionInfo *info;

		if (!p->connection || p->deadline_usec > now)
			continue;
		p->deadline_usec = USEC_INFINITY;
		info = MHD_get_connection_info(p->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		if (info)
			(void)shutdown(info->connect_fd, SHUT_RDWR);
	}
}

/* Wakes when libmicrohttpd wants to run even if nothing comes in, and at the next deadline. */
static int rearm(struct listener *l)
{
	uint64_t next = USEC_INFINITY, now = now_usec(l->scrape);
	MHD_UNSIGNED_LONG_LONG msec;

	if (MHD_get_timeout(l->mhd, &msec) == MHD_YES)
		next = now + msec * USEC_PER_MSEC;
	for (const struct peer *p = l->peers; p < l->peers + CONNECTIONS_MAX; p++)
		if (p->connection)
			next = MIN_OF(next, p->deadline_usec);
	if (next == USEC_INFINITY)
		return sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	if (sd_event_source_set_time(l->timer, next) < 0)
		return -EIO;
	return sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

static int serve(struct listener *l)
{
	(void)MHD_run(l->mhd);
	return rearm(l);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	(void)source;
	(void)fd;
	(void)revents;
	return serve(userdata);
}

static int on_timer(sd_event_source *source, uint64_t scheduled, void *userdata)
{
	struct listener *l = userdata;

	(void)source;
	(void)scheduled;
	end_overdue(l, now_usec(l->scrape));
	return serve(l);
}

static void note_url(struct scrape *s, const char *address, unsigned port)
{
	const char *colon = strrchr(address, ':');
	const char *scheme = s->credentials.certificate ? "https" : "http";
	int len = (int)(colon - address);

	if (len == 0 || address[0] == '*')
		(void)snprintf(s->url, sizeof(s->url), "%s://localhost:%u/metrics", scheme, port);
	else
		(void)snprintf(s->url, sizeof(s->url), "%s://%.*s:%u/metrics", scheme, len, address,
			       port);
}

static void listener_stop(struct listener *l)
{
	l->io = sd_event_source_disable_unref(l->io);
	l->timer = sd_event_source_disable_unref(l->timer);
	if (l->mhd)
		MHD_stop_daemon(l->mhd);
	l->mhd = NULL;
}

/* On l->fd, with the credentials of now. */
static int listener_start(struct listener *l, struct error *e)
{
	struct scrape *s = l->scrape;
	const struct credentials *c = &s->credentials;
	bool tls = c->certificate && !l->unix_path[0];
	const struct MHD_OptionItem tls_options[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, c->certificate},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, c->key},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
		{c->client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, c->client_ca},
		{MHD_OPTION_END, 0, NULL},
	};
	const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
	const union MHD_DaemonInfo *info;
	int fd, r;

	fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return error_set(e, -errno, "cannot start the scrape server on %s: %s", l->address,
				 error_name(errno));
	l->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | (tls ? MHD_USE_TLS : 0U), 0, NULL, NULL, on_request, l,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, l->unix_path[0] ? 0U : PER_ADDRESS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MEMORY,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, l, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, l, MHD_OPTION_ARRAY, tls ? tls_options : none, MHD_OPTION_END);
	if (!l->mhd) {
		(void)close(fd);
		return error_set(e, -ENOMEM, "cannot start the scrape server on %s%s", l->address,
				 tls ? ": libmicrohttpd does not take what is configured; it may "
				       "have been built without TLS"
				     : "");
	}
	info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	r = info ? sd_event_add_io(s->event, &l->io, info->epoll_fd, EPOLLIN, on_io, l) : -EIO;
	if (r >= 0)
		r = sd_event_add_time_relative(s->event, &l->timer, CLOCK_MONOTONIC, 0, 0, on_timer,
					       l);
	if (r < 0)
		return error_set(e, r, "cannot watch the scrape socket %s: %s", l->address,
				 error_name(r));
	/* ticks come first: a scrape that waits a moment does no harm */
	(void)sd_event_source_set_priority(l->io, SD_EVENT_PRIORITY_IDLE);
	(void)sd_event_source_set_priority(l->timer, SD_EVENT_PRIORITY_IDLE);
	return 0;
}

static int listener_add(struct scrape *s, const char *address, struct error *e)
{
	struct listener *l = &s->listener[s->listeners];
	int fd = scrape_listen(address, e);

	if (fd < 0)
		return fd;
	*l = (struct listener){.scrape = s, .fd = fd};
	s->listeners++;
	memcpy(l->address, address, strlen(address) + 1);
	/* what a slow reader leaves in its socket is memory that counts for the daemon's limit */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){SEND_BUFFER}, sizeof(int));
	if (address[0] == '/')
		memcpy(l->unix_path, address, strlen(address) + 1);
	else if (!s->url[0])
		note_url(s, address, scrape_bound_port(fd));
	return listener_start(l, e);
}

int scrape_new(struct scrape **ret, sd_event *event, const char *listen,
	       const struct scrape_files *files, const struct scrape_ops *ops, struct error *e)
{
	_cleanup_(scrape_freep) struct scrape *s = calloc(1, sizeof(*s));
	char address[ADDRESS_MAX];
	int r;

	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->ops = *ops;
	s->event = sd_event_ref(event);
	r = credentials_load(&s->credentials, files, e);
	if (r < 0)
		return r;
	for (const char *p = listen; *p;) {
		size_t len;

		p += strspn(p, " \t");
		len = strcspn(p, " \t");
		if (len == 0)
			break;
		if (len >= sizeof(address) || s->listeners == LISTENERS_MAX)
			return error_set(e, -EINVAL,
					 "Listen=%s: an address has at most %zu bytes, and there "
					 "are at most %u",
					 listen, sizeof(address) - 1, LISTENERS_MAX);
		memcpy(address, p, len);
		address[len] = '\0';
		p += len;
		r = listener_add(s, address, e);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

int scrape_take_credentials(struct scrape *s, struct credentials *c, struct error *e)
{
	int r = 0, failed;

	if (credentials_equal(&s->credentials, c))
		return 0;
	credentials_clear(&s->credentials);
	s->credentials = *c;
	*c = (struct credentials){0};
	for (struct listener *l = s->listener; l < s->listener + s->listeners; l++) {
		if (l->unix_path[0])
			continue;
		listener_stop(l);
		failed = listener_start(l, r < 0 ? NULL : e);
		r = r < 0 ? r : failed;
	}
	return r;
}

struct scrape *scrape_free(struct scrape *s)
{
	if (!s)
		return NULL;
	for (struct listener *l = s->listener; l < s->listener + s->listeners; l++) {
		listener_stop(l);
		(void)close(l->fd);
		if (l->unix_path[0])
			(void)unlink(l->unix_path);
	}
	for (unsigned f = 0; f < _EXPOSITION_FORMAT_MAX; f++)
		for (unsigned g = 0; g < 2; g++)
			if (s->renderings[f][g].response)
				MHD_destroy_response(s->renderings[f][g].response);
	sd_event_unref(s->event);
	credentials_clear(&s->credentials);
	gzip_free(s->gzip);
	text_free(&s->body);
	text_free(&s->packed);
	free(s);
	return NULL;
}

const char *scrape_url(const struct scrape *s)
{
	return s->url[0] ? s->url : s->listeners ? s->listener[0].unix_path : "";
}
