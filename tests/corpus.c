/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "corpus.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

const char *corpus_dir(void)
{
	const char *dir = getenv("PCPTUNE_SHARED");

	if (!dir)
		dir = TEST_SHARED;
	return access(dir, R_OK) == 0 ? dir : NULL;
}

void read_test_file(const char *path, struct text *into)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	text_clear(into);
	if (fd < 0)
		fail_msg("cannot open %s: %s", path, strerror(errno));
	do {
		assert_int_equal(text_reserve(into, 65536), 0);
		n = read(fd, into->data + into->len, into->room - into->len - 1);
		if (n < 0)
			fail_msg("cannot read %s: %s", path, strerror(errno));
		into->len += (size_t)n;
		into->data[into->len] = '\0';
	} while (n > 0);
}

int each_name(const char *dir, void (*each)(const char *name, void *userdata), void *userdata)
{
	struct dirent **names;
	int n = scandir(dir, &names, NULL, alphasort), called = 0;

	if (n < 0)
		return -1;
	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			each(names[i]->d_name, userdata);
			called++;
		}
		free(names[i]);
	}
	free(names);
	return called;
}
