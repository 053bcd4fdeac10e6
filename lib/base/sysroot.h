/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one way to the outside world: files of /proc, /sys, /etc and /run below a root directory.
 *
 * Paths are relative ("proc/zoneinfo") and never start with a slash. Below a root other than "/"
 * no symbolic link leads out of it (openat2(2), RESOLVE_IN_ROOT), so that a directory captured on
 * another machine is safe to read.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <sys/types.h>

struct sysroot {
	int dirfd;
	bool host;  /* the root is "/" */
	char *path; /* as given, without a final slash; "" for "/", so that "%s/%s" is a path */
};

/* Opens `path` ("/" for this machine). On error *ret is untouched. */
int sysroot_open(struct sysroot *ret, const char *path, struct error *e) _must_check_;
void sysroot_close(struct sysroot *root);

/* open(2) with O_CLOEXEC below the root; a descriptor or a negative errno. */
int sysroot_openat(const struct sysroot *root, const char *rel, int flags, mode_t mode);

/*
 * Reads a whole file to its end into `into` (cleared first; ends in NUL). Tables of /proc come in
 * several pieces, so it reads on until read(2) gives 0. -EFBIG above SYSROOT_FILE_MAX.
 */
int sysroot_read(const struct sysroot *root, const char *rel, struct text *into);
#define SYSROOT_FILE_MAX (256U << 20)

/* A file that holds one decimal number. -EBADMSG where it holds anything else. */
int sysroot_read_u64(const struct sysroot *root, const char *rel, uint64_t *ret);

/*
 * Writes `text` in one write(2) to a file that exists (no O_CREAT). -EIO on a short write.
 * May block for as long as the kernel pleases.
 */
int sysroot_write(const struct sysroot *root, const char *rel, const char *text);

/*
 * Replaces the file `rel` (or makes it) as a whole: "rel.new" is written and renamed over it, so
 * that a reader finds the old text or the new one. The directory must exist; the mode is set
 * whatever the umask says. Not flushed to disk. 0 or a negative errno.
 */
int sysroot_replace(const struct sysroot *root, const char *rel, const char *text, size_t len,
		    mode_t mode);

bool sysroot_exists(const struct sysroot *root, const char *rel);

/*
 * May this root be written to? True where proc and sys below it are mounts of a kernel's own
 * (proc, sysfs) or of FUSE; a directory of plain files is a capture and is only read.
 */
bool sysroot_is_live(const struct sysroot *root);

/*
 * A file that stays open and is read again from its start. With a kept descriptor the kernel
 * formats a table once per read; a fresh one makes it format as often as its buffer must double.
 */
struct kept_file {
	const char *rel; /* not owned: must outlive the kept_file */
	int fd;          /* -1: not open */
};
#define KEPT_FILE(path) ((struct kept_file){.rel = (path), .fd = -1})

/* As sysroot_read(). What vanished (ENODEV, ENOENT, ESTALE) is opened anew once. */
int kept_file_read(struct kept_file *f, const struct sysroot *root, struct text *into);
void kept_file_close(struct kept_file *f);
