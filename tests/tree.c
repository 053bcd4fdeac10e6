/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tree.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

void tree_make(struct tree *t)
{
	struct error e = {0};

	(void)snprintf(t->path, sizeof(t->path), "test-tree-XXXXXX");
	if (!mkdtemp(t->path))
		fail_msg("cannot make a directory: %s", strerror(errno));
	if (sysroot_open(&t->root, t->path, &e) < 0)
		fail_msg("%s", e.text);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void tree_remove(struct tree *t)
{
	if (!t->path[0])
		return;
	sysroot_close(&t->root);
	(void)nftw(t->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	t->path[0] = '\0';
}

static void make_parents(char *path)
{
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			fail_msg("cannot make %s: %s", path, strerror(errno));
		*p = '/';
	}
}

void tree_put(const struct tree *t, const char *rel, const char *fmt, ...)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[512];
	va_list ap;

	(void)snprintf(path, sizeof(path), "%s/%s", t->path, rel);
	make_parents(path);
	f = fopen(path, "we");
	if (!f)
		fail_msg("cannot write %s: %s", path, strerror(errno));
	va_start(ap, fmt);
	assert_true(vfprintf(f, fmt, ap) >= 0);
	va_end(ap);
}

void tree_delete(const struct tree *t, const char *rel)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", t->path, rel);
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0)
		fail_msg("cannot remove %s: %s", path, strerror(errno));
}

void tree_copy_to(const struct tree *t, const char *from, const char *rel)
{
	char command[1024];

	(void)snprintf(command, sizeof(command), "cp -R '%s/.' '%s/%s' && chmod -R u+w '%s'", from,
		       t->path, rel, t->path);
	if (system(command) != 0)
		fail_msg("cannot copy %s", from);
}

void tree_copy(const struct tree *t, const char *from)
{
	tree_copy_to(t, from, ".");
}
