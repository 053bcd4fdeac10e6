/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "writing.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

/* What recovery may take before the verb begins. */
#define RECOVERY_LIMIT_USEC (10 * USEC_PER_SEC)

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
	r = actor_wait(w->actor, false, w->stop_fd, RECOVERY_LIMIT_USEC, w->on_event, w->user);
	if (r == -EINTR)
		return ctl_failf(c, EXIT_FAILED, "stopped before anything was changed");
	if (r < 0)
		return ctl_failf(c, EXIT_FAILED,
				 "a write of an earlier pcptune still waits in the kernel: %s; try "
				 "again when what holds it up has ended (memory hotplug?)",
				 error_name(r));
	return EXIT_DONE;
}

void writing_end(struct writing *w)
{
	w->actor = actor_close(w->actor);
	closep(&w->stop_fd);
	lock_release(&w->lock);
}
