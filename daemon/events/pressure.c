/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

#define PRESSURE_REL "proc/pressure/memory"

struct pressure {
	sd_event *event;
	const struct sysroot *root;
	struct watch_sink sink;
	struct watch watch;
	sd_event_source *io, *retry;
	uint64_t pause_usec;
};

static void open_trigger(struct pressure *p);

static int on_retry(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	(void)s;
	(void)scheduled;
	open_trigger(userdata);
	return 0;
}

static void fail(struct pressure *p, int error, const char *what)
{
	enum watch_state state = watch_state_of(error);
	struct error why = {0};

	(void)error_set(&why, error,
			"%s/" PRESSURE_REL ": %s: %s; shortage is noticed at the next tick instead",
			p->root->path, what,
			error == -EOPNOTSUPP ? "PSI is switched off (boot with psi=1)"
					     : error_name(error));
	p->io = sd_event_source_disable_unref(p->io);
	watch_set(&p->watch, &p->sink, state, &why);
	if (state != WATCH_BROKEN)
		return;
	p->pause_usec = watch_next_pause(p->pause_usec);
	if (!p->retry) {
		(void)sd_event_add_time_relative(p->event, &p->retry, CLOCK_MONOTONIC,
						 p->pause_usec, USEC_PER_SEC / 10, on_retry, p);
		return;
	}
	(void)sd_event_source_set_time_relative(p->retry, p->pause_usec);
	(void)sd_event_source_set_enabled(p->retry, SD_EVENT_ONESHOT);
}

static int on_pressure(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct pressure *p = userdata;

	(void)s;
	(void)fd;
	if (revents & EPOLLERR) {
		fail(p, -EIO, "the trigger is gone");
		return 0;
	}
	p->pause_usec = 0;
	p->watch.events++;
	watch_tell(&p->sink);
	return 0;
}

static void open_trigger(struct pressure *p)
{
	_cleanup_(closep) int fd = sysroot_openat(p->root, PRESSURE_REL, O_RDWR | O_NONBLOCK, 0);
	char trigger[32];
	int len, r;

	if (fd < 0) {
		fail(p, fd, "cannot set a trigger");
		return;
	}
	len = snprintf(trigger, sizeof(trigger), "some %u %u", (unsigned)PRESSURE_STALL_USEC,
		       (unsigned)PRESSURE_WINDOW_USEC);
	/* with the NUL: the kernel puts one over the last byte it was given */
	if (write(fd, trigger, (size_t)len + 1) < 0) {
		fail(p, errno == EINVAL ? -EPERM : -errno, "cannot set a trigger");
		return;
	}
	r = sd_event_add_io(p->event, &p->io, fd, EPOLLPRI, on_pressure, p);
	if (r >= 0)
		r = sd_event_source_set_io_fd_own(p->io, true);
	if (r < 0) {
		fail(p, r, "cannot watch the trigger");
		return;
	}
	(void)TAKE_FD(fd);
	watch_set(&p->watch, &p->sink, WATCH_EVENTS, NULL);
}

int pressure_new(struct pressure **ret, sd_event *event, const struct sysroot *root,
		 const struct watch_sink *sink)
{
	struct pressure *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->event = sd_event_ref(event);
	p->root = root;
	p->sink = *sink;
	open_trigger(p);
	*ret = p;
	return 0;
}

struct pressure *pressure_free(struct pressure *p)
{
	if (!p)
		return NULL;
	sd_event_source_disable_unref(p->io);
	sd_event_source_disable_unref(p->retry);
	sd_event_unref(p->event);
	free(p);
	return NULL;
}

const struct watch *pressure_watch(const struct pressure *p)
{
	return &p->watch;
}
