/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/sysroot.h"

#include "base/parse.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

int sysroot_open(struct sysroot *ret, const char *path, struct error *e)
{
	_cleanup_(closep) int fd = -1;
	_cleanup_(freep) char *copy = NULL;
	struct sysroot root = {0};
	size_t len = strlen(path);

	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_set(e, -errno, "cannot open \"%s\" as the root directory: %s", path,
				 error_name(errno));
	while (len > 0 && path[len - 1] == '/')
		len--;
	copy = strndup(path, len);
	if (!copy)
		return error_set(e, -ENOMEM, "out of memory");
	root.host = len == 0;
	root.dirfd = TAKE_FD(fd);
	root.path = TAKE_PTR(copy);
	*ret = root;
	return 0;
}

void sysroot_close(struct sysroot *root)
{
	closep(&root->dirfd);
	free(root->path);
	*root = (struct sysroot){.dirfd = -1};
}

int sysroot_openat(const struct sysroot *root, const char *rel, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_IN_ROOT,
	};
	long fd;

	assert(rel[0] != '/');
	if (root->host)
		fd = openat(root->dirfd, rel, flags | O_CLOEXEC, mode);
	else
		fd = syscall(SYS_openat2, root->dirfd, rel, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/*
 * Offsets go on from piece to piece: a seq_file that is asked for any other offset than the one it
 * stopped at formats everything again from its start (fs/seq_file.c, traverse()).
 */
static int read_to_end(int fd, struct text *into)
{
	text_clear(into);
	for (;;) {
		ssize_t n;

		if (into->len > SYSROOT_FILE_MAX)
			return -EFBIG;
		if (text_reserve(into, MAX_OF(into->room / 4, (size_t)16384)) < 0)
			return -ENOMEM;
		n = pread(fd, into->data + into->len, into->room - into->len - 1, (off_t)into->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		into->len += (size_t)n;
		into->data[into->len] = '\0';
		if (n == 0)
			return 0;
	}
}

int sysroot_read(const struct sysroot *root, const char *rel, struct text *into)
{
	_cleanup_(closep) int fd = sysroot_openat(root, rel, O_RDONLY, 0);

	return fd < 0 ? fd : read_to_end(fd, into);
}

int sysroot_read_u64(const struct sysroot *root, const char *rel, uint64_t *ret)
{
	_cleanup_(closep) int fd = sysroot_openat(root, rel, O_RDONLY, 0);
	char buf[32];
	ssize_t n;

	if (fd < 0)
		return fd;
	do
		n = pread(fd, buf, sizeof(buf) - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0 || buf[n - 1] != '\n') /* cut off: what is left may be another number */
		return -EBADMSG;
	buf[n] = '\0';
	return parse_u64(buf, ret) < 0 ? -EBADMSG : 0;
}

int sysroot_write(const struct sysroot *root, const char *rel, const char *text)
{
	_cleanup_(closep) int fd = sysroot_openat(root, rel, O_WRONLY, 0);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return fd;
	do
		n = write(fd, text, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

static int write_whole(int fd, const char *s, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, s, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w < 0 ? -errno : -EIO;
		s += w;
		n -= (size_t)w;
	}
	return 0;
}

int sysroot_replace(const struct sysroot *root, const char *rel, const char *text, size_t len,
		    mode_t mode)
{
	_cleanup_(closep) int dir = -1;
	_cleanup_(closep) int fd = -1;
	const char *base = strrchr(rel, '/');
	char parent[256] = ".", temporary[NAME_MAX + 1];
	int r;

	base = base ? base + 1 : rel;
	if (base > rel)
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(base - 1 - rel), rel);
	r = snprintf(temporary, sizeof(temporary), "%s.new", base);
	if (r < 0 || (size_t)r >= sizeof(temporary))
		return -ENAMETOOLONG;
	dir = sysroot_openat(root, parent, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return dir;
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return -errno;
	r = write_whole(fd, text, len);
	if (r == 0 && renameat(dir, temporary, dir, base) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, temporary, 0);
	return r;
}

bool sysroot_exists(const struct sysroot *root, const char *rel)
{
	_cleanup_(closep) int fd = sysroot_openat(root, rel, O_PATH, 0);

	return fd >= 0;
}

static bool is_kernel_mount(const struct sysroot *root, const char *rel, long magic)
{
	_cleanup_(closep) int fd = sysroot_openat(root, rel, O_PATH | O_DIRECTORY, 0);
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == magic || fs.f_type == FUSE_SUPER_MAGIC);
}

bool sysroot_is_live(const struct sysroot *root)
{
	/* containers mount parts of sysfs, not the whole */
	return is_kernel_mount(root, "proc", PROC_SUPER_MAGIC) &&
	       (is_kernel_mount(root, "sys", SYSFS_MAGIC) ||
		is_kernel_mount(root, "sys/kernel", SYSFS_MAGIC));
}

int kept_file_read(struct kept_file *f, const struct sysroot *root, struct text *into)
{
	int r = -ENODEV;

	if (f->fd >= 0)
		r = read_to_end(f->fd, into);
	if (r == -ENODEV || r == -ENOENT || r == -ESTALE) {
		kept_file_close(f);
		f->fd = sysroot_openat(root, f->rel, O_RDONLY, 0);
		if (f->fd < 0) {
			r = f->fd;
			f->fd = -1;
			return r;
		}
		r = read_to_end(f->fd, into);
	}
	return r;
}

void kept_file_close(struct kept_file *f)
{
	closep(&f->fd);
	f->fd = -1;
}
