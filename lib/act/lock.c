/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/lock.h"

#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define LOCK_TRIES      5
#define LOCK_PAUSE_USEC 10000U

static int access_error(const struct act_env *env, const char *what, const char *rel, int code,
			struct error *e)
{
	const char *root = env->root->path;

	switch (code) {
	case -EACCES:
	case -EPERM:
		return error_set(e, -EACCES,
				 "cannot %s %s/%s: %s; run as root, since only root may change the "
				 "kernel's settings",
				 what, root, rel, error_name(code));
	case -EROFS:
		return error_set(e, code,
				 "cannot %s %s/%s: %s; mount %s/run writable, since nothing is "
				 "changed without a record of how to undo it",
				 what, root, rel, error_name(code), root);
	case -ENOSPC:
	case -EDQUOT:
		return error_set(e, code, "cannot %s %s/%s: %s; make room in %s/run", what, root,
				 rel, error_name(code), root);
	default:
		return error_set(e, code, "cannot %s %s/%s: %s", what, root, rel, error_name(code));
	}
}

static int make_rundir(const struct act_env *env)
{
	_cleanup_(closep) int run = -1;

	run = sysroot_openat(env->root, "run", O_PATH | O_DIRECTORY, 0);
	if (run == -ENOENT) {
		if (mkdirat(env->root->dirfd, "run", 0755) < 0 && errno != EEXIST)
			return -errno;
		run = sysroot_openat(env->root, "run", O_PATH | O_DIRECTORY, 0);
	}
	if (run < 0)
		return run;
	if (mkdirat(run, "pcptune", 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	/* the umask may have taken more away */
	return fchmodat(run, "pcptune", 0755, 0) < 0 ? -errno : 0;
}

/* Who else may write here could forge what we believe. */
static bool is_trusted(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & 022);
}

int rundir_open(const struct act_env *env, bool create, struct error *e)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;
	int r;

	fd = sysroot_openat(env->root, RUN_DIR_REL, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd == -ENOENT && create) {
		r = make_rundir(env);
		if (r < 0)
			return access_error(env, "make", RUN_DIR_REL, r, e);
		fd = sysroot_openat(env->root, RUN_DIR_REL, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	if (fd < 0)
		return access_error(env, "open", RUN_DIR_REL, fd, e);
	if (fstat(fd, &st) < 0)
		return access_error(env, "look at", RUN_DIR_REL, -errno, e);
	if (!is_trusted(&st))
		return error_set(e, -EPERM,
				 "%s/%s belongs to user %u with mode %04o, so that others could "
				 "forge what is in it; remove it, or make it root's with mode 0755",
				 env->root->path, RUN_DIR_REL, (unsigned)st.st_uid,
				 (unsigned)st.st_mode & 07777);
	return TAKE_FD(fd);
}

static void read_holder(int fd, struct lock_holder *h)
{
	char text[128], *name, *since;
	ssize_t n;
	uint64_t v;

	*h = (struct lock_holder){0};
	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return;
	text[n] = '\0';
	name = strchr(text, '\t');
	since = name ? strchr(name + 1, '\t') : NULL;
	if (!since)
		return;
	*name++ = '\0';
	*since++ = '\0';
	if (parse_u64(text, &v) == 0 && v <= INT32_MAX)
		h->pid = (int64_t)v;
	if (parse_u64(since, &v) == 0)
		h->since_usec = v;
	(void)snprintf(h->program, sizeof(h->program), "%s", name);
}

static int write_holder(const struct act_env *env, int fd, const char *program, struct act_time now)
{
	char text[128];
	int len, r;

	r = act_pass_point(env, ACT_LOCK_WRITE, LOCK_REL);
	if (r < 0)
		return r;
	len = snprintf(text, sizeof(text), "%ld\t%.31s\t%llu\n", (long)getpid(), program,
		       (unsigned long long)now.real_usec);
	if (ftruncate(fd, 0) < 0)
		return -errno;
	return pwrite(fd, text, (size_t)len, 0) == len ? 0 : -EIO;
}

static int busy_error(const struct act_env *env, const struct lock_holder *h, struct error *e)
{
	time_t sec = (time_t)(h->since_usec / USEC_PER_SEC);
	char since[64] = "";
	struct tm tm;

	if (h->since_usec > 0 && localtime_r(&sec, &tm))
		(void)strftime(since, sizeof(since), " since %Y-%m-%d %H:%M:%S", &tm);
	if (h->pid == 0)
		return error_set(e, -EBUSY,
				 "another pcptune program holds %s/%s; only one may write to the "
				 "kernel at a time: wait until it has ended, or stop it",
				 env->root->path, LOCK_REL);
	return error_set(e, -EBUSY,
			 "%s (pid %lld) runs%s and holds %s/%s; only one may write to the kernel "
			 "at a time: wait until it has ended, or stop it",
			 h->program, (long long)h->pid, since, env->root->path, LOCK_REL);
}

/* A reader that asks who holds the lock takes it for an instant: that is not worth a refusal. */
static int try_lock(int fd)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		(void)usleep(LOCK_PAUSE_USEC);
	}
	return -EBUSY;
}

int lock_take(struct instance_lock *ret, const struct act_env *env, const char *program,
	      struct act_time now, struct lock_holder *holder, struct error *e)
{
	_cleanup_(closep) int dir = rundir_open(env, true, e), fd = -1;
	struct lock_holder h;
	int r;

	if (dir < 0)
		return dir;
	r = act_pass_point(env, ACT_LOCK_OPEN, LOCK_REL);
	if (r == 0) {
		/* 0600: who can open it can hold it */
		fd = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			    0600);
		r = fd < 0 ? -errno : 0;
	}
	if (r < 0)
		return access_error(env, "open", LOCK_REL, r, e);
	r = try_lock(fd);
	if (r == -EBUSY) {
		read_holder(fd, &h);
		if (holder)
			*holder = h;
		return busy_error(env, &h, e);
	}
	if (r == 0)
		r = write_holder(env, fd, program, now);
	if (r < 0)
		return access_error(env, "lock", LOCK_REL, r, e);
	ret->fd = TAKE_FD(fd);
	return 0;
}

void lock_release(struct instance_lock *lock)
{
	if (lock->fd < 0)
		return;
	(void)ftruncate(lock->fd, 0);
	closep(&lock->fd);
	lock->fd = -1;
}

int lock_query(const struct act_env *env, struct lock_holder *ret)
{
	_cleanup_(closep) int dir = rundir_open(env, false, NULL), fd = -1;

	if (dir == -ENOENT)
		return 0;
	if (dir < 0)
		return dir;
	fd = openat(dir, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return -errno;
	read_holder(fd, ret);
	return 1;
}

int inflight_open(const struct act_env *env, bool alone)
{
	_cleanup_(closep) int dir = rundir_open(env, true, NULL), fd = -1;

	if (dir < 0)
		return dir;
	fd = openat(dir, "inflight", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return TAKE_FD(fd);
}
