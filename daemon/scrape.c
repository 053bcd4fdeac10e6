/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scrape.h"

#include "base/parse.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <microhttpd.h>

#define LISTENERS_MAX   8U
#define ADDRESS_MAX     128U
#define CONNECTIONS_MAX 64U
#define PER_ADDRESS_MAX 16U /* so that one peer cannot take every place */
#define IDLE_SECONDS    10U
#define REQUEST_MEMORY  16384U /* headers of a scrape are a few hundred bytes */

struct listener {
	struct scrape *scrape;
	struct MHD_Daemon *mhd;
	sd_event_source *io, *timer;
	char unix_path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "" for TCP */
};

struct scrape {
	struct scrape_ops ops;
	sd_event *event;
	struct listener listener[LISTENERS_MAX];
	size_t listeners;
	struct text body;
	char url[ADDRESS_MAX + 32];
};

static const char index_page[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><title>pcptuned</title></head><body>\n"
	"<h1>pcptuned</h1>\n<ul>\n<li><a href=\"/metrics\">/metrics</a>: what Prometheus "
	"scrapes</li>\n"
	"<li><a href=\"/healthz\">/healthz</a>: 200 while the daemon ticks, 503 and the reason "
	"when it "
	"does not</li>\n</ul>\n</body></html>\n";

static enum MHD_Result reply(struct MHD_Connection *c, unsigned status, const char *type,
			     const char *body, size_t len)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	/* libmicrohttpd copies the body and does not write to what it is given */
	response = MHD_create_response_from_buffer(len, (void *)(uintptr_t)body,
						   MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result reply_text(struct MHD_Connection *c, unsigned status, const char *line)
{
	return reply(c, status, "text/plain; charset=utf-8", line, strlen(line));
}

static enum MHD_Result reply_metrics(struct scrape *s, struct MHD_Connection *c)
{
	const char *accept =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	enum exposition_format format = exposition_negotiate(accept);
	int r;

	text_clear(&s->body);
	r = s->ops.render(s->ops.userdata, format, &s->body);
	if (r < 0 || s->body.failed)
		return reply_text(c, MHD_HTTP_INTERNAL_SERVER_ERROR,
				  "the metrics could not be rendered: out of memory\n");
	return reply(c, MHD_HTTP_OK, exposition_content_type(format), text_str(&s->body),
		     s->body.len);
}

static enum MHD_Result reply_health(struct scrape *s, struct MHD_Connection *c)
{
	const char *why = s->ops.unhealthy(s->ops.userdata);
	char line[256];

	if (!why)
		return reply_text(c, MHD_HTTP_OK, "ok\n");
	(void)snprintf(line, sizeof(line), "%s\n", why);
	return reply_text(c, MHD_HTTP_SERVICE_UNAVAILABLE, line);
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **request)
{
	static char seen; /* its address marks a request whose headers were seen */
	struct scrape *s = userdata;

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
	if (!streq(method, MHD_HTTP_METHOD_GET) && !streq(method, MHD_HTTP_METHOD_HEAD))
		return reply_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (streq(url, "/metrics"))
		return reply_metrics(s, c);
	if (streq(url, "/healthz"))
		return reply_health(s, c);
	if (streq(url, "/"))
		return reply(c, MHD_HTTP_OK, "text/html; charset=utf-8", index_page,
			     sizeof(index_page) - 1);
	return reply_text(c, MHD_HTTP_NOT_FOUND, "there is /metrics, /healthz and /\n");
}

/* libmicrohttpd says after each run when it wants to run next even if nothing comes in. */
static int rearm(struct listener *l)
{
	MHD_UNSIGNED_LONG_LONG msec;

	if (MHD_get_timeout(l->mhd, &msec) != MHD_YES)
		return sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	if (sd_event_source_set_time_relative(l->timer, msec * USEC_PER_MSEC) < 0)
		return -EIO;
	return sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct listener *l = userdata;

	(void)source;
	(void)fd;
	(void)revents;
	(void)MHD_run(l->mhd);
	return rearm(l);
}

static int on_timer(sd_event_source *source, uint64_t scheduled, void *userdata)
{
	struct listener *l = userdata;

	(void)source;
	(void)scheduled;
	(void)MHD_run(l->mhd);
	return rearm(l);
}

static int no_address(const char *address, const char *why, struct error *e)
{
	return error_set(
		e, -EINVAL,
		"Listen=%s: %s; write ADDRESS:PORT (127.0.0.1:9978, [::1]:9978, *:9978), the "
		"path of a Unix socket, or none",
		address, why);
}

static int cannot_listen(const char *address, int code, struct error *e)
{
	const char *next = "";

	if (code == -EADDRINUSE)
		next = "; another program has this port: stop it or choose another with Listen= in "
		       "[Metrics] (Listen=none serves no metrics)";
	else if (code == -EACCES)
		next = "; ports below 1024 are for root";
	else if (code == -EADDRNOTAVAIL)
		next = "; this machine does not have that address";
	return error_set(e, code, "cannot listen on %s for scrapes: %s%s", address,
			 error_name(code), next);
}

static int listen_unix(struct listener *l, const char *path, struct error *e)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (strlen(path) >= sizeof(sa.sun_path))
		return no_address(path, "the path is too long for a socket", e);
	memcpy(sa.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return cannot_listen(path, -errno, e);
	/* what a dead daemon left; a file that is no socket is somebody else's */
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(path);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, SOMAXCONN) < 0)
		return cannot_listen(path, -errno, e);
	memcpy(l->unix_path, path, strlen(path) + 1);
	return TAKE_FD(fd);
}

static int listen_tcp(const char *address, struct error *e)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
	};
	const char *colon = strrchr(address, ':'), *host = address;
	_cleanup_(closep) int fd = -1;
	struct addrinfo *found = NULL;
	char name[ADDRESS_MAX];
	uint64_t port;
	size_t len;
	int r;

	if (!colon || parse_u64(colon + 1, &port) < 0 || port > 65535)
		return no_address(address, "there is no port from 0 to 65535 behind a colon", e);
	len = (size_t)(colon - address);
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	(void)snprintf(name, sizeof(name), "%.*s", (int)len, host);
	r = getaddrinfo(len == 0 || streq(name, "*") ? NULL : name, colon + 1, &hints, &found);
	if (r != 0)
		return no_address(address, "that is no numeric address", e);
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = fd < 0 ? -errno : 0;
	if (r == 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0)
		r = -errno;
	if (r == 0 && bind(fd, found->ai_addr, found->ai_addrlen) < 0)
		r = -errno;
	if (r == 0 && listen(fd, SOMAXCONN) < 0)
		r = -errno;
	freeaddrinfo(found);
	return r < 0 ? cannot_listen(address, r, e) : TAKE_FD(fd);
}

/* The port that was bound, which is the kernel's choice where the address says port 0. */
static unsigned bound_port(int fd)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);

	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return 0;
	return ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
					      : ((struct sockaddr_in *)&sa)->sin_port);
}

static void note_url(struct scrape *s, const char *address, unsigned port)
{
	const char *colon = strrchr(address, ':');
	int len = (int)(colon - address);

	if (len == 0 || address[0] == '*')
		(void)snprintf(s->url, sizeof(s->url), "http://localhost:%u/metrics", port);
	else
		(void)snprintf(s->url, sizeof(s->url), "http://%.*s:%u/metrics", len, address,
			       port);
}

static int listener_start(struct scrape *s, const char *address, struct error *e)
{
	struct listener *l = &s->listener[s->listeners];
	const union MHD_DaemonInfo *info;
	int fd, r;

	l->scrape = s;
	fd = address[0] == '/' ? listen_unix(l, address, e) : listen_tcp(address, e);
	if (fd < 0)
		return fd;
	if (!s->url[0] && address[0] != '/')
		note_url(s, address, bound_port(fd));
	s->listeners++;
	l->mhd = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		l->unix_path[0] ? 0U : PER_ADDRESS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MEMORY, MHD_OPTION_END);
	if (!l->mhd) {
		(void)close(fd);
		return error_set(e, -ENOMEM, "cannot start the scrape server on %s", address);
	}
	info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	r = info ? sd_event_add_io(s->event, &l->io, info->epoll_fd, EPOLLIN, on_io, l) : -EIO;
	if (r >= 0)
		r = sd_event_add_time_relative(s->event, &l->timer, CLOCK_MONOTONIC, 0, 0, on_timer,
					       l);
	if (r < 0)
		return error_set(e, r, "cannot watch the scrape socket %s: %s", address,
				 error_name(r));
	/* ticks come first: a scrape that waits a moment does no harm */
	(void)sd_event_source_set_priority(l->io, SD_EVENT_PRIORITY_IDLE);
	return 0;
}

int scrape_new(struct scrape **ret, sd_event *event, const char *listen,
	       const struct scrape_ops *ops, struct error *e)
{
	_cleanup_(scrape_freep) struct scrape *s = calloc(1, sizeof(*s));
	char address[ADDRESS_MAX];
	int r;

	if (!s)
		return error_set(e, -ENOMEM, "out of memory");
	s->ops = *ops;
	s->event = sd_event_ref(event);
	for (const char *p = listen; *p;) {
		size_t len;

		p += strspn(p, " \t");
		len = strcspn(p, " \t");
		if (len == 0)
			break;
		if (len >= sizeof(address) || s->listeners == LISTENERS_MAX)
			return no_address(listen, "too long, or too many addresses", e);
		memcpy(address, p, len);
		address[len] = '\0';
		p += len;
		r = listener_start(s, address, e);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

struct scrape *scrape_free(struct scrape *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->listeners; i++) {
		struct listener *l = &s->listener[i];

		sd_event_source_disable_unref(l->io);
		sd_event_source_disable_unref(l->timer);
		if (l->mhd)
			MHD_stop_daemon(l->mhd);
		if (l->unix_path[0])
			(void)unlink(l->unix_path);
	}
	sd_event_unref(s->event);
	text_free(&s->body);
	free(s);
	return NULL;
}

const char *scrape_url(const struct scrape *s)
{
	return s->url[0] ? s->url : s->listeners ? s->listener[0].unix_path : "";
}
