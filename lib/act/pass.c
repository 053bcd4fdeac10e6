/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/pass.h"

#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

/*
 * Touches and frees a few pages: upon a free, the kernel clamps `high` of this CPU's list to
 * high_min, and the next pass then gives back all that exceeds it, not an eighth.
 */
static void free_some_pages(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = KICK_PAGES * page;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	(void)madvise(p, len, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < len; at += page)
		((volatile char *)p)[at] = 1;
	(void)munmap(p, len);
}

/* On every CPU that this program may run on. This thread ends after it: no need to move back. */
static int kick_cpus(const struct act_env *env)
{
	size_t size = CPU_ALLOC_SIZE(CPU_LIMIT);
	cpu_set_t *allowed = CPU_ALLOC(CPU_LIMIT), *one = CPU_ALLOC(CPU_LIMIT);
	int r = act_pass_point(env, ACT_KICK, STAT_REFRESH_REL);

	if (!allowed || !one)
		r = -ENOMEM;
	if (r == 0 && sched_getaffinity(0, size, allowed) < 0)
		r = -errno;
	for (unsigned cpu = 0; r == 0 && cpu < CPU_LIMIT; cpu++) {
		if (!CPU_ISSET_S(cpu, size, allowed))
			continue;
		CPU_ZERO_S(size, one);
		CPU_SET_S(cpu, size, one);
		if (sched_setaffinity(0, size, one) == 0) /* else it went offline */
			free_some_pages();
	}
	CPU_FREE(allowed);
	CPU_FREE(one);
	return r;
}

static int refresh(const struct act_env *env)
{
	_cleanup_(closep) int fd = -1;
	char buf[64];
	ssize_t n;
	int r;

	r = act_pass_point(env, ACT_PASS, STAT_REFRESH_REL);
	if (r < 0)
		return r;
	fd = sysroot_openat(env->root, STAT_REFRESH_REL, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	do
		n = read(fd, buf, sizeof(buf));
	while (n < 0 && errno == EINTR);
	/* EINVAL: the pass was done, and a counter below zero was found afterwards */
	if (n < 0 && errno != EINVAL)
		return -errno;
	return act_pass_point(env, ACT_PASS_DONE, STAT_REFRESH_REL);
}

static void run_pass(struct worker *w)
{
	struct pass *p = (struct pass *)w;
	uint64_t begin;

	p->error = p->kick ? kick_cpus(&w->env) : 0;
	begin = act_time_now().mono_usec;
	if (p->error == 0)
		p->error = refresh(&w->env);
	p->took_usec = act_time_now().mono_usec - begin;
}

struct pass *pass_start(const struct act_env *env, bool kick, int notify_fd, int *error)
{
	struct pass *p = calloc(1, sizeof(*p));

	*error = -ENOMEM;
	if (!p)
		return NULL;
	p->kick = kick;
	*error = worker_start(&p->w, env, run_pass, notify_fd, -1);
	return *error < 0 ? worker_unref(&p->w) : p;
}
