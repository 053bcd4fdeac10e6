/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of this very process. They come from the host's own /proc, whatever the sysroot. */
#include "tell/metrics.h"

#include "base/parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static double seconds(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

/* "size resident shared …" in pages */
static int read_statm(struct process_stats *p)
{
	_cleanup_(closep) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size, resident;
	char buf[128];
	const char *s = buf;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf));
	if (n < 0)
		return -errno;
	if (parse_u64_at(&s, buf + n, &size) < 0 || s == buf + n || *s++ != ' ' ||
	    parse_u64_at(&s, buf + n, &resident) < 0)
		return -EBADMSG;
	p->virtual_bytes = size * page;
	p->resident_bytes = resident * page;
	return 0;
}

/* readdir(3) would allocate its buffer each time. */
static int count_fds(uint64_t *ret)
{
	_cleanup_(closep) int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct dirent64) char buf[4096];
	uint64_t count = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while ((n = (ssize_t)syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const struct dirent64 *)(buf + at);

			count += d->d_name[0] != '.';
			at += d->d_reclen;
		}
	if (n < 0)
		return -errno;
	*ret = count - 1; /* the one that counts */
	return 0;
}

int process_stats_read(struct process_stats *p)
{
	struct rusage usage;
	struct rlimit limit;
	int r;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		p->cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		p->max_fds = limit.rlim_cur;
	r = count_fds(&p->open_fds);
	if (r < 0)
		return r;
	return read_statm(p);
}

void process_stats_start(struct process_stats *p, uint64_t realtime_usec)
{
	p->start_time_seconds = (double)realtime_usec / 1e6;
}
