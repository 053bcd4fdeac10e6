/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where configuration is looked for, in systemd's manner, below a sysroot:
 *
 *   usr/lib/pcptune, run/pcptune, etc/pcptune    lowest to highest
 *
 * A file hides one of the same name in a lower directory; an empty file or a link to /dev/null
 * masks it. NAME.d/?*.conf of all directories, sorted by name over all of them (and hiding each
 * other the same way), amend it. Other files (editor backups, .dpkg-new) are not looked at.
 */
#pragma once

#include "base/sysroot.h"
#include "policy/ini.h"

/* One file that counts. */
struct search_file {
	char *name; /* "trim-under-pressure.policy" */
	char *rel;  /* relative to the root, "" outside of it */
	char *path; /* as the user knows it: with the root in front */
	bool masked;
};

struct search_files {
	struct search_file *list; /* sorted by name */
	size_t nr, room;
};

/* The directories, lowest first. `rel` are relative to the root; NULL-terminated. */
extern const char *const search_policy_dirs[]; /* …/pcptune/policies.d */
extern const char *const search_config_dirs[]; /* …/pcptune */

/*
 * The files named `*suffix` in `dirs` (lowest first), masked ones included and marked. A directory
 * that is not there is no error; one that cannot be read is told in `d`. `root` NULL: `dirs` are
 * paths of this process. 0 or -ENOMEM.
 */
int search_files(const struct sysroot *root, const char *const *dirs, const char *suffix,
		 struct search_files *ret, struct diagnostics *d);
void search_files_free(struct search_files *files);

/*
 * The effective document of the file `name` ("pcptuned.conf"): the highest of `dirs` that has it,
 * then its drop-ins. `explicit_path` (may be NULL) is read instead of all that, relative to the
 * caller's working directory, not to the root (--config=FILE); it must exist then.
 * 0 (also where nothing is there: an empty doc); -EBADMSG with `d`; -ENOMEM.
 * *ret_masked (may be NULL): masked, nothing was read.
 */
int search_load(const struct sysroot *root, const char *const *dirs, const char *name,
		const char *explicit_path, struct ini_doc *doc, bool *ret_masked,
		struct diagnostics *d);
