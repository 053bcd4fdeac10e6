/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scrape-listen.h"

#include "base/parse.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define ADDRESS_MAX 128U

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

static int listen_unix(const char *path, struct error *e)
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

int scrape_listen(const char *address, struct error *e)
{
	return address[0] == '/' ? listen_unix(address, e) : listen_tcp(address, e);
}

unsigned scrape_bound_port(int fd)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);

	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return 0;
	return ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
					      : ((struct sockaddr_in *)&sa)->sin_port);
}
