/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

const char *const search_policy_dirs[] = {
	"usr/lib/pcptune/policies.d",
	"run/pcptune/policies.d",
	"etc/pcptune/policies.d",
	NULL,
};

const char *const search_config_dirs[] = {
	"usr/lib/pcptune",
	"run/pcptune",
	"etc/pcptune",
	NULL,
};

static void dirp(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

static void file_clear(struct search_file *f)
{
	free(f->name);
	free(f->rel);
	free(f->path);
}

void search_files_free(struct search_files *files)
{
	for (size_t i = 0; i < files->nr; i++)
		file_clear(&files->list[i]);
	free(files->list);
	*files = (struct search_files){0};
}

/* The name that the user knows a path below the root by. */
static char *user_path(const struct sysroot *root, const char *rel)
{
	char *path = NULL;

	if (!root)
		return strdup(rel);
	return asprintf(&path, "%s/%s", root->path ? root->path : "", rel) < 0 ? NULL : path;
}

/* Hides what a lower directory had of that name. */
static int put_file(struct search_files *files, struct search_file f)
{
	if (!f.name || !f.rel || !f.path) {
		file_clear(&f);
		return -ENOMEM;
	}
	for (size_t i = 0; i < files->nr; i++)
		if (streq(files->list[i].name, f.name)) {
			file_clear(&files->list[i]);
			files->list[i] = f;
			return 0;
		}
	if (files->nr == files->room) {
		size_t room = files->room ? files->room * 2 : 8;
		struct search_file *list = realloc(files->list, room * sizeof(*list));

		if (!list) {
			file_clear(&f);
			return -ENOMEM;
		}
		files->list = list;
		files->room = room;
	}
	files->list[files->nr++] = f;
	return 0;
}

/*
 * Empty, or a link to /dev/null. The link is not followed: below a root of its own there may be no
 * /dev/null.
 */
static bool is_mask(int dirfd, const char *name)
{
	char target[16];
	struct stat st;
	ssize_t n;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (S_ISREG(st.st_mode))
		return st.st_size == 0;
	if (!S_ISLNK(st.st_mode))
		return false;
	n = readlinkat(dirfd, name, target, sizeof(target));
	return n == 9 && memcmp(target, "/dev/null", 9) == 0;
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return n >= s && *name != '.' && streq(name + n - s, suffix);
}

static int scan_dir(const struct sysroot *root, const char *rel, const char *suffix,
		    struct search_files *files, struct diagnostics *d)
{
	_cleanup_(freep) char *shown = user_path(root, rel);
	_cleanup_(closep) int fd = -1;
	_cleanup_(dirp) DIR *dir = NULL;
	struct dirent *entry;
	int r;

	if (!shown)
		return -ENOMEM;
	fd = root ? sysroot_openat(root, rel, O_RDONLY | O_DIRECTORY, 0)
		  : open(rel, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd >= 0 ? 0 : root ? fd : -errno;
	if (r == 0) {
		dir = fdopendir(fd);
		r = dir ? 0 : -errno;
	}
	if (r < 0) {
		if (r != -ENOENT || !root)
			(void)diagnostics_add(d, &(struct ini_pos){shown, 0, 0}, NULL, NULL,
					      "cannot read this directory: %s", error_name(r));
		return r == -ENOMEM ? r : 0;
	}
	(void)TAKE_FD(fd);
	while ((entry = readdir(dir))) {
		struct search_file f = {0};

		if (!has_suffix(entry->d_name, suffix))
			continue;
		f.name = strdup(entry->d_name);
		if (asprintf(&f.rel, "%s/%s", rel, entry->d_name) < 0)
			f.rel = NULL;
		f.path = f.rel ? user_path(root, f.rel) : NULL;
		f.masked = is_mask(dirfd(dir), entry->d_name);
		r = put_file(files, f);
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct search_file *)a)->name, ((const struct search_file *)b)->name);
}

int search_files(const struct sysroot *root, const char *const *dirs, const char *suffix,
		 struct search_files *ret, struct diagnostics *d)
{
	_cleanup_(search_files_free) struct search_files files = {0};
	int r;

	for (; *dirs; dirs++) {
		r = scan_dir(root, *dirs, suffix, &files, d);
		if (r < 0)
			return r;
	}
	if (files.nr > 0)
		qsort(files.list, files.nr, sizeof(*files.list), by_name);
	*ret = files;
	files = (struct search_files){0};
	return 0;
}

/* A regular file that is a path of this process. */
static int read_path(const char *path, struct text *into)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	text_clear(into);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	do {
		if (into->len > INI_FILE_LIMIT)
			return -EFBIG;
		if (text_reserve(into, 65536) < 0)
			return -ENOMEM;
		n = read(fd, into->data + into->len, 65536);
		if (n < 0)
			return -errno;
		into->len += (size_t)n;
		into->data[into->len] = '\0';
	} while (n > 0);
	return 0;
}

static int add_file(const struct sysroot *root, const char *rel, const char *shown,
		    struct ini_doc *doc, struct diagnostics *d)
{
	_cleanup_(text_free) struct text text = {0};
	int r = root ? sysroot_read(root, rel, &text) : read_path(rel, &text);

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return diagnostics_add(d, &(struct ini_pos){shown, 0, 0}, NULL, NULL,
				       "cannot read this file: %s", error_name(r));
	return ini_doc_add(doc, shown, text_str(&text), text.len, d);
}

/* The drop-ins of `name` in all directories. */
static int add_drop_ins(const struct sysroot *root, const char *const *dirs, const char *name,
			struct ini_doc *doc, struct diagnostics *d)
{
	_cleanup_(search_files_free) struct search_files files = {0};
	int r, bad = 0;

	for (; *dirs; dirs++) {
		_cleanup_(freep) char *rel = NULL;
		struct stat st;

		if (asprintf(&rel, "%s/%s.d", *dirs, name) < 0) {
			rel = NULL;
			return -ENOMEM;
		}
		if (!root && stat(rel, &st) < 0 && errno == ENOENT)
			continue;
		r = scan_dir(root, rel, ".conf", &files, d);
		if (r < 0)
			return r;
	}
	if (files.nr > 0)
		qsort(files.list, files.nr, sizeof(*files.list), by_name);
	for (size_t i = 0; i < files.nr; i++) {
		if (files.list[i].masked)
			continue;
		r = add_file(root, files.list[i].rel, files.list[i].path, doc, d);
		if (r < 0 && r != -EBADMSG)
			return r;
		bad = bad < 0 ? bad : r;
	}
	return bad;
}

int search_load(const struct sysroot *root, const char *const *dirs, const char *name,
		const char *explicit_path, struct ini_doc *doc, bool *ret_masked,
		struct diagnostics *d)
{
	_cleanup_(search_files_free) struct search_files files = {0};
	int r, bad = 0;

	if (ret_masked)
		*ret_masked = false;
	if (explicit_path)
		return add_file(NULL, explicit_path, explicit_path, doc, d);
	r = search_files(root, dirs, name, &files, d);
	if (r < 0)
		return r;
	for (size_t i = 0; i < files.nr; i++) {
		const struct search_file *f = &files.list[i];

		if (!streq(f->name, name))
			continue;
		if (f->masked) {
			if (ret_masked)
				*ret_masked = true;
			return 0;
		}
		bad = add_file(root, f->rel, f->path, doc, d);
		if (bad < 0 && bad != -EBADMSG)
			return bad;
	}
	r = add_drop_ins(root, dirs, name, doc, d);
	return r < 0 ? r : bad;
}
