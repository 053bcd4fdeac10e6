/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small files and directories of sysfs, for the readers of this part. */
#pragma once

#include "base/sysroot.h"

/*
 * Calls `each` with every name in a directory, "." and ".." left out, until it returns non-zero.
 * That value, 0 at the end, or a negative errno.
 */
int dir_each(const struct sysroot *root, const char *rel,
	     int (*each)(const char *name, void *userdata), void *userdata);

/* The number in "cpu12" behind `prefix`; -EINVAL for any other name. */
int name_number(const char *name, const char *prefix, unsigned *ret);

/*
 * Reads an attribute, whole in one read(2) as sysfs gives it, into `buf` with a NUL and without the
 * final newline. The file stays open; what vanished is opened anew once. -EFBIG if it does not fit.
 */
int attr_read(struct kept_file *f, const struct sysroot *root, char *buf, size_t size);
int attr_read_u64(struct kept_file *f, const struct sysroot *root, uint64_t *ret);

/* The same for a file that is read once and not kept. */
int attr_read_once(const struct sysroot *root, const char *rel, char *buf, size_t size);
