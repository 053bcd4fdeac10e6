/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define STACK_BYTES ((size_t)256 << 10)

void *worker_unref(struct worker *w)
{
	if (w && atomic_fetch_sub(&w->refs, 1) == 1) {
		(void)sem_destroy(&w->started);
		free(w);
	}
	return NULL;
}

/* Leaves 0 to 2 and what is in `keep` (sorted, -1 for none) open. */
static void close_others(int a, int b, int c)
{
	int keep[3] = {a, b, c};
	unsigned from = 3;

	for (int i = 0; i < 2; i++)
		for (int j = i + 1; j < 3; j++)
			if (keep[j] < keep[i]) {
				int t = keep[i];

				keep[i] = keep[j];
				keep[j] = t;
			}
	for (int i = 0; i < 3; i++) {
		if (keep[i] < (int)from)
			continue;
		if ((unsigned)keep[i] > from)
			(void)close_range(from, (unsigned)keep[i] - 1, 0);
		from = (unsigned)keep[i] + 1;
	}
	(void)close_range(from, ~0U, 0);
}

static void *thread_main(void *arg)
{
	struct worker *w = arg;
	const uint64_t one = 1;

	w->unshared = unshare(CLONE_FILES) == 0;
	if (w->unshared)
		close_others(w->root.dirfd, w->notify_fd, w->keep_fd);
	(void)sem_post(&w->started);
	w->run(w);
	atomic_store_explicit(&w->done, true, memory_order_release);
	closep(&w->keep_fd);
	(void)!write(w->notify_fd, &one, sizeof(one));
	closep(&w->notify_fd);
	return worker_unref(w);
}

static int start_thread(struct worker *w)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, thread_main, w);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return -r;
}

int worker_start(struct worker *w, const struct act_env *env, void (*run)(struct worker *w),
		 int notify_fd, int keep_fd)
{
	int mine, r;

	atomic_store(&w->refs, 2);
	atomic_store(&w->done, false);
	w->env = *env;
	w->root = (struct sysroot){.dirfd = env->root->dirfd, .host = env->root->host};
	w->env.root = &w->root;
	w->run = run;
	w->keep_fd = keep_fd;
	w->notify_fd = mine = fcntl(notify_fd, F_DUPFD_CLOEXEC, 3);
	r = mine < 0 ? -errno : 0;
	(void)sem_init(&w->started, 0, 0);
	if (r == 0)
		r = start_thread(w);
	if (r < 0) {
		atomic_store(&w->refs, 1);
		closep(&mine);
		closep(&keep_fd);
		return r;
	}
	while (sem_wait(&w->started) < 0 && errno == EINTR)
		;
	/* The thread has both in its own table: here they would only leak. */
	if (w->unshared) {
		closep(&mine);
		closep(&keep_fd);
	}
	return 0;
}
