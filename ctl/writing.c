/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "writing.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

/* More than memory hotplug usually takes, less than the unit's TimeoutStopSec=. */
#define RECOVERY_LIMIT_SEC 75U
#define SAY_SO_AFTER_SEC   2U

static int catch_signals(struct writing *w)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	w->stop_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return w->stop_fd < 0 ? -errno : 0;
}

static int lock_refused(const struct ctl *c, const struct lock_holder *h, struct error *e)
{
	if (h->pid > 0 && streq(h->program, "pcptuned"))
		return ctl_failf(c, EXIT_FAILED,
				 "%s (systemctl stop pcptuned, or Ctrl-C where it runs in a "
				 "terminal; both put its changes back), then run \"pcptunectl %s\" "
				 "again",
				 e->text, c->verb->name);
	return ctl_fail(c, EXIT_FAILED, e);
}

/* What the wait for an earlier run's writes came to. */
static int recovered(struct ctl *c, int r)
{
	if (r == -EINTR)
		return ctl_failf(c, EXIT_FAILED, "stopped before anything was changed");
	if (r == -ETIMEDOUT)
		return ctl_failf(c, EXIT_FAILED,
				 "a write of an earlier pcptune has been in the kernel for %u"
				 " s and more; run \"pcptunectl %s\" again when what holds it up "
				 "has ended (memory hotplug?)",
				 RECOVERY_LIMIT_SEC, c->verb->name);
	return EXIT_DONE;
}

static int wait_longer(struct writing *w, struct ctl *c)
{
	(void)fprintf(stderr,
		      "pcptunectl: a write of an earlier pcptune is still in the kernel (memory "
		      "hotplug?); waiting for it, up to %u s\n",
		      RECOVERY_LIMIT_SEC);
	return recovered(c, actor_wait(w->actor, false, w->stop_fd,
				       (RECOVERY_LIMIT_SEC - SAY_SO_AFTER_SEC) * USEC_PER_SEC,
				       w->on_event, w->user));
}

int writing_begin(struct writing *w, struct ctl *c, const char *program)
{
	struct actor_options options = {.env = &w->env};
	struct lock_holder holder = {0};
	struct error e = {0};
	int r;

	r = lock_take(&w->lock, &w->env, program, act_time_now(), &holder, &e);
	if (r == -EBUSY)
		return lock_refused(c, &holder, &e);
	if (r < 0)
		return ctl_fail(c, EXIT_FAILED, &e);
	r = catch_signals(w);
	if (r < 0)
		return ctl_failf(c, EXIT_FAILED, "cannot wait for signals: %s", error_name(r));
	r = actor_open(&w->actor, &options, act_time_now(), &e);
	if (r < 0)
		return ctl_fail(c, r == -EOPNOTSUPP ? EXIT_NOT_HERE : EXIT_FAILED, &e);
	r = actor_wait(w->actor, false, w->stop_fd, SAY_SO_AFTER_SEC * USEC_PER_SEC, w->on_event,
		       w->user);
	return r == -ETIMEDOUT ? wait_longer(w, c) : recovered(c, r);
}

void writing_end(struct writing *w)
{
	w->actor = actor_close(w->actor);
	closep(&w->stop_fd);
	lock_release(&w->lock);
}
