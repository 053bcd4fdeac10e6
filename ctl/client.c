/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client.h"

#include "tell/bus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>

#define READ_TIMEOUT_USEC (15 * USEC_PER_SEC)

/* Through a descriptor of the directory: a root's path may be longer than an address can be. */
static int connect_below(const struct sysroot *root, const char *dir, const char *name)
{
	_cleanup_(closep) int dirfd = -1, fd = -1;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	dirfd = sysroot_openat(root, dir, O_PATH | O_DIRECTORY, 0);
	if (dirfd < 0)
		return dirfd;
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/%s", dirfd, name);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int start_on(sd_bus **ret, int fd, bool broker)
{
	_cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
	int r = sd_bus_new(&bus);

	if (r >= 0)
		r = sd_bus_set_fd(bus, fd, fd);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	r = sd_bus_set_bus_client(bus, broker);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r >= 0)
		*ret = TAKE_PTR(bus);
	return r;
}

static int open_private(struct client *c)
{
	int fd = connect_below(&c->ctl->root, BUS_DIR_REL, BUS_SOCKET);

	c->is_private = true;
	return fd < 0 ? fd : start_on(&c->bus, fd, false);
}

static int open_system(struct client *c)
{
	int fd = connect_below(&c->ctl->root, "run/dbus", "system_bus_socket");

	c->is_private = false;
	return fd < 0 ? fd : start_on(&c->bus, fd, true);
}

int client_open(struct client *c, const struct ctl *ctl, struct error *e)
{
	int r = -ENOENT;

	*c = (struct client){.ctl = ctl};
	/* who owns the daemon needs no broker; another user's changes are polkit's to allow */
	if (geteuid() != 0 && ctl->root.host)
		r = open_system(c);
	if (r < 0)
		r = open_private(c);
	if (r >= 0)
		return EXIT_DONE;
	(void)error_set(
		e, r,
		r == -ENOENT || r == -ECONNREFUSED
			? "pcptuned does not run here: nothing listens on %s/%s/%s (systemctl "
			  "start pcptuned)"
			: "cannot connect to %s/%s/%s: %s",
		ctl->root.path, BUS_DIR_REL, BUS_SOCKET, error_name(r));
	return EXIT_NO_DAEMON;
}

void client_close(struct client *c)
{
	c->bus = sd_bus_close_unref(c->bus);
}

static int exit_code_of(enum bus_error error)
{
	switch (error) {
	case BUS_ERROR_UNKNOWN_KNOB:
	case BUS_ERROR_INVALID_VALUE:
		return EXIT_USAGE;
	case BUS_ERROR_NOT_AVAILABLE:
		return EXIT_NOT_HERE;
	case BUS_ERROR_REFUSED:
		return EXIT_REFUSED;
	default:
		return EXIT_FAILED;
	}
}

/* What came instead of an answer. */
static int failed(const struct client *c, const char *method, int r, const sd_bus_error *error,
		  struct error *e)
{
	static const char *const absent[] = {
		SD_BUS_ERROR_SERVICE_UNKNOWN,
		SD_BUS_ERROR_NAME_HAS_NO_OWNER,
	};
	enum bus_error ours = bus_error_parse(error->name);

	if (ours != BUS_ERROR_NONE) {
		(void)error_set(e, r, "%s", error->message);
		return exit_code_of(ours);
	}
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		if (sd_bus_error_has_name(error, absent[i])) {
			(void)error_set(e, -ENOENT,
					"pcptuned does not run here: nobody is " BUS_NAME
					" on the system bus (systemctl start pcptuned)");
			return EXIT_NO_DAEMON;
		}
	switch (r) {
	case -ECONNRESET:
	case -EPIPE:
	case -ENOTCONN:
		(void)error_set(e, r,
				"pcptuned ended, or closed the connection, before it answered %s; "
				"pcptunectl status shows what came of it",
				method);
		return EXIT_FAILED;
	case -ETIMEDOUT:
		(void)error_set(e, r, "pcptuned has not answered %s in time; it goes on with it",
				method);
		return EXIT_FAILED;
	default:
		(void)error_set(e, r, "pcptuned answers %s on the %s with an error: %s", method,
				c->is_private ? "private socket" : "system bus",
				error->message ? error->message : error_name(r));
		return EXIT_FAILED;
	}
}

static int call(struct client *c, const char *method, uint64_t timeout_usec, sd_bus_message **ret,
		struct error *e, const char *types, va_list ap)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	int r;

	r = sd_bus_message_new_method_call(c->bus, &m, c->is_private ? NULL : BUS_NAME, BUS_PATH,
					   BUS_MANAGER_INTERFACE, method);
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(m, isatty(STDIN_FILENO));
	/* who stopped the daemon has stopped it */
	if (r >= 0)
		r = sd_bus_message_set_auto_start(m, false);
	if (r >= 0 && types && types[0])
		r = sd_bus_message_appendv(m, types, ap);
	if (r < 0) {
		(void)error_set(e, r, "cannot ask pcptuned: %s", error_name(r));
		return EXIT_FAILED;
	}
	r = sd_bus_call(c->bus, m, timeout_usec ? timeout_usec : READ_TIMEOUT_USEC, &error, ret);
	return r < 0 ? failed(c, method, r, &error, e) : EXIT_DONE;
}

int client_call(struct client *c, const char *method, uint64_t timeout_usec, sd_bus_message **ret,
		struct error *e, const char *types, ...)
{
	va_list ap;
	int r;

	va_start(ap, types);
	r = call(c, method, timeout_usec, ret, e, types, ap);
	va_end(ap);
	return r;
}

int client_read(struct client *c, const char *method, struct text *into, struct error *e,
		const char *types, ...)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *s = "";
	va_list ap;
	int r;

	va_start(ap, types);
	r = call(c, method, 0, &reply, e, types, ap);
	va_end(ap);
	if (r != EXIT_DONE)
		return r;
	r = sd_bus_message_read_basic(reply, 's', &s);
	text_clear(into);
	text_add(into, s);
	if (r < 0 || into->failed) {
		(void)error_set(e, -EBADMSG, "pcptuned answers %s with something else than a text",
				method);
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}
