/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client.h"

#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BUS_NAME  "org.pcptune1"
#define BUS_ERROR BUS_NAME ".Error."
#define BUS_REL   "run/pcptune/bus"

/* The daemon bounds what it does itself; this is for one that hangs. */
#define CALL_LIMIT_USEC (15 * USEC_PER_MINUTE)

static const struct {
	const char *name;
	int code;
} exit_codes[] = {
	{BUS_ERROR "NoSuchKnob", EXIT_USAGE},
	{BUS_ERROR "NoSuchValue", EXIT_USAGE},
	{BUS_ERROR "KernelRefused", EXIT_REFUSED},
	{BUS_ERROR "NotHere", EXIT_NOT_HERE},
	{SD_BUS_ERROR_SERVICE_UNKNOWN, EXIT_NO_DAEMON},
	{SD_BUS_ERROR_NAME_HAS_NO_OWNER, EXIT_NO_DAEMON},
};

static int connect_socket(const struct ctl *c)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	_cleanup_(closep) int dir = -1, fd = -1;

	/* a path below a root may be longer than a socket's name */
	dir = openat(c->root.dirfd, "run/pcptune", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/bus", dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int open_private(struct client *cl, const struct ctl *c)
{
	int fd = connect_socket(c), r;

	if (fd < 0)
		return fd == -ENOENT || fd == -ECONNREFUSED || fd == -ENOTDIR ? 0 : fd;
	r = sd_bus_new(&cl->bus);
	if (r >= 0)
		r = sd_bus_set_fd(cl->bus, fd, fd);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	r = sd_bus_start(cl->bus);
	return r < 0 ? r : 1;
}

static int open_system(struct client *cl)
{
	int r = sd_bus_open_system(&cl->bus);

	cl->system = true;
	if (r == -ENOENT || r == -ECONNREFUSED)
		return 0;
	/* without a daemon the verbs that can do without one say what they need */
	if (r >= 0 && sd_bus_get_name_creds(cl->bus, BUS_NAME, 0, NULL) == -ENXIO)
		return 0;
	if (r >= 0)
		r = sd_bus_set_allow_interactive_authorization(cl->bus, true);
	return r < 0 ? r : 1;
}

int client_open(struct client *cl, struct ctl *c, bool change)
{
	const bool ask_polkit = change && geteuid() != 0 && c->root.host;
	int r = ask_polkit ? open_system(cl) : open_private(cl, c);

	if (r >= 0 && cl->bus)
		(void)sd_bus_set_method_call_timeout(cl->bus, CALL_LIMIT_USEC);
	if (r < 0)
		(void)ctl_failf(c, 0, "cannot ask the daemon through %s%s: %s",
				ask_polkit ? "the system bus" : c->root.path,
				ask_polkit ? "" : "/" BUS_REL, error_name(r));
	return r;
}

void client_close(struct client *cl)
{
	cl->bus = sd_bus_close_unref(cl->bus);
}

int client_need(struct client *cl, struct ctl *c, bool change)
{
	int r = client_open(cl, c, change);

	if (r == 0)
		return ctl_failf(
			c, EXIT_NO_DAEMON,
			"no pcptuned runs here, and \"%s\" is for one that does: systemctl "
			"start pcptuned",
			c->verb->name);
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

static int failed(struct ctl *c, const sd_bus_error *error, int r)
{
	if (r == -ECONNRESET || r == -ENOTCONN || r == -EPIPE ||
	    sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY))
		return ctl_failf(c, EXIT_FAILED,
				 "pcptuned ended, or closed the connection, before it answered; "
				 "\"pcptunectl status\" shows what is set");
	for (size_t i = 0; i < ARRAY_SIZE(exit_codes); i++)
		if (sd_bus_error_has_name(error, exit_codes[i].name))
			return ctl_failf(c, exit_codes[i].code, "%s",
					 exit_codes[i].code == EXIT_NO_DAEMON
						 ? "no pcptuned runs here: systemctl start pcptuned"
						 : error->message);
	return ctl_failf(c, EXIT_FAILED, "%s", error->message ? error->message : error_name(r));
}

int client_call(struct client *cl, struct ctl *c, sd_bus_message **ret, const char *method,
		const char *types, ...)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	va_list ap;
	int r;

	r = sd_bus_message_new_method_call(cl->bus, &call, cl->system ? BUS_NAME : NULL,
					   "/org/pcptune1", BUS_NAME ".Manager", method);
	va_start(ap, types);
	if (r >= 0)
		r = sd_bus_message_appendv(call, types, ap);
	va_end(ap);
	if (r >= 0)
		r = sd_bus_call(cl->bus, call, 0, &error, ret);
	return r < 0 ? failed(c, &error, r) : EXIT_DONE;
}

int client_for(const struct ctl *c, uint64_t *ret_usec)
{
	const char *time = c->options.value[OPTION_FOR];

	*ret_usec = 0;
	if (time && (parse_timespan(time, ret_usec) < 0 || *ret_usec == 0))
		return ctl_failf(c, EXIT_USAGE,
				 "--for takes a time such as 30min or 8h, not \"%s\"", time);
	return EXIT_DONE;
}
