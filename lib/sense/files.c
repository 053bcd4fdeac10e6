/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense/files.h"

#include "base/parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

static void closedirp(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int dir_each(const struct sysroot *root, const char *rel,
	     int (*each)(const char *name, void *userdata), void *userdata)
{
	_cleanup_(closep) int fd = sysroot_openat(root, rel, O_RDONLY | O_DIRECTORY, 0);
	_cleanup_(closedirp) DIR *dir = NULL;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)TAKE_FD(fd);
	for (;;) {
		const struct dirent *d;
		int r;

		errno = 0;
		d = readdir(dir);
		if (!d)
			return -errno;
		if (streq(d->d_name, ".") || streq(d->d_name, ".."))
			continue;
		r = each(d->d_name, userdata);
		if (r)
			return r;
	}
}

int name_number(const char *name, const char *prefix, unsigned *ret)
{
	size_t n = strlen(prefix);
	uint64_t v;

	if (strncmp(name, prefix, n) != 0 || parse_u64(name + n, &v) < 0 || v >= CPU_LIMIT)
		return -EINVAL;
	*ret = (unsigned)v;
	return 0;
}

static int read_fd(int fd, char *buf, size_t size)
{
	ssize_t n;

	do
		n = pread(fd, buf, size - 1, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n == size - 1)
		return -EFBIG;
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == '\0')) /* some captures end in NUL */
		n--;
	buf[n] = '\0';
	return 0;
}

int attr_read(struct kept_file *f, const struct sysroot *root, char *buf, size_t size)
{
	int r = -ENODEV;

	if (f->fd >= 0)
		r = read_fd(f->fd, buf, size);
	if (r == -ENODEV || r == -ENOENT || r == -ESTALE) {
		kept_file_close(f);
		f->fd = sysroot_openat(root, f->rel, O_RDONLY, 0);
		if (f->fd < 0) {
			r = f->fd;
			f->fd = -1;
			return r;
		}
		r = read_fd(f->fd, buf, size);
	}
	return r;
}

int attr_read_u64(struct kept_file *f, const struct sysroot *root, uint64_t *ret)
{
	char buf[32];
	int r = attr_read(f, root, buf, sizeof(buf));

	if (r == 0 && parse_u64(buf, ret) < 0)
		r = -EBADMSG;
	return r;
}

int attr_read_once(const struct sysroot *root, const char *rel, char *buf, size_t size)
{
	_cleanup_(closep) int fd = sysroot_openat(root, rel, O_RDONLY, 0);

	return fd < 0 ? fd : read_fd(fd, buf, size);
}
