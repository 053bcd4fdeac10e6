/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults, hooks, and everybody who sleeps because of one. */
#include "fake.h"

#include <errno.h>
#include <fnmatch.h>
#include <time.h>

static const char *const op_names[_OP_MAX] = {
	[OP_OPEN] = "open",
	[OP_OPEN_WRITE] = "open-write",
	[OP_READ] = "read",
	[OP_WRITE] = "write",
};

const char *op_name(enum op op)
{
	return op_names[op];
}

int op_from_name(const char *name)
{
	for (int i = 0; i < _OP_MAX; i++)
		if (streq(op_names[i], name))
			return i;
	return -EINVAL;
}

static bool matches(const char *pattern, const char *path)
{
	return fnmatch(pattern, path, 0) == 0;
}

void hooks_run(struct fake *f, const char *path, enum op op)
{
	for (size_t i = 0; i < f->nr_hooks; i++) {
		struct hook h = f->hooks[i];

		if (h.op != op || !matches(h.pattern, path))
			continue;
		if (--f->hooks[i].left > 0)
			continue;
		f->nr_hooks--;
		memmove(&f->hooks[i], &f->hooks[i + 1], (f->nr_hooks - i) * sizeof(h));
		i--;
		(void)control_run(f, h.command);
	}
}

bool fault_take(struct fake *f, const char *path, enum op op, struct fault *ret)
{
	for (size_t i = 0; i < f->nr_faults; i++) {
		struct fault *at = &f->faults[i];

		if (at->op != op || !matches(at->pattern, path))
			continue;
		if (at->skip > 0) {
			at->skip--;
			continue;
		}
		*ret = *at;
		if (at->times > 0 && --at->times == 0) {
			f->nr_faults--;
			memmove(at, at + 1, (f->nr_faults - i) * sizeof(*at));
		}
		return true;
	}
	return false;
}

void faults_clear(struct fake *f, const char *pattern)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->nr_faults; i++)
		if (!matches(pattern, f->faults[i].pattern) &&
		    !streq(pattern, f->faults[i].pattern))
			f->faults[kept++] = f->faults[i];
	f->nr_faults = kept;
	kept = 0;
	for (size_t i = 0; i < f->nr_hooks; i++)
		if (!matches(pattern, f->hooks[i].pattern) && !streq(pattern, f->hooks[i].pattern))
			f->hooks[kept++] = f->hooks[i];
	f->nr_hooks = kept;
	for (struct waiter *w = f->waiters; w; w = w->next)
		if (matches(pattern, w->path))
			w->released = true;
	pthread_cond_broadcast(&f->changed);
}

static void waiter_add(struct fake *f, struct waiter *w)
{
	w->next = f->waiters;
	f->waiters = w;
	f->blocked++;
}

static void waiter_remove(struct fake *f, struct waiter *w)
{
	struct waiter **at = &f->waiters;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	f->blocked--;
}

/* Model time may come to the deadline by a command or by the clock: look at both. */
static void sleep_a_little(struct fake *f)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 20000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&f->changed, &f->lock, &until);
}

void fault_sleep(struct fake *f, const char *path, double seconds)
{
	struct waiter w = {.path = path};
	uint64_t until = UINT64_MAX;

	if (seconds >= 0)
		until = f->model.now_usec + (uint64_t)(seconds * (double)USEC_PER_SEC);
	waiter_add(f, &w);
	while (!w.released && !f->stopping && f->model.now_usec < until)
		sleep_a_little(f);
	waiter_remove(f, &w);
}

void fake_sleep_until(struct fake *f, const char *path, bool (*ready)(struct fake *f))
{
	struct waiter w = {.path = path};

	waiter_add(f, &w);
	while (!w.released && !f->stopping && !ready(f))
		sleep_a_little(f);
	waiter_remove(f, &w);
}
