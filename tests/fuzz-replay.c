/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fuzz target without a fuzzer: feeds it every file of the directories in SEEDS (separated
 * by colons), or of those on the command line, and every file cut short at each of 64 places.
 */
#include "base/text.h"

#include "tests/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static unsigned inputs;

/* In memory of exactly its size, so that a sanitizer sees every byte read behind the end. */
static void feed(const char *data, size_t size)
{
	_cleanup_(freep) uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	inputs++;
}

static int replay_file(int dirfd, const char *name)
{
	_cleanup_(closep) int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	_cleanup_(text_free) struct text text = {0};
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		if (text_reserve(&text, 65536) < 0)
			return -ENOMEM;
		n = read(fd, text.data + text.len, text.room - text.len - 1);
		if (n < 0)
			return errno == EISDIR ? 0 : -errno;
		text.len += (size_t)n;
	} while (n > 0);
	for (size_t i = 0; i < 64; i++)
		feed(text.data, text.len * i / 64);
	feed(text.data, text.len);
	return 0;
}

static void closedirp(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

static int replay_dir(const char *path)
{
	_cleanup_(closedirp) DIR *dir = opendir(path);
	const struct dirent *d;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			r = replay_file(dirfd(dir), d->d_name);
	return r;
}

static int replay(const char *path)
{
	int r = replay_dir(path);

	if (r == -ENOTDIR)
		r = replay_file(AT_FDCWD, path);
	if (r < 0)
		fprintf(stderr, "cannot replay %s: %s\n", path, strerror(-r));
	return r;
}

int main(int argc, char *argv[])
{
	char seeds[] = SEEDS, *next = seeds, *path;

	for (int i = 1; i < argc; i++)
		if (replay(argv[i]) < 0)
			return 1;
	while (argc == 1 && (path = strsep(&next, ":")))
		if (replay(path) < 0)
			return 1;
	printf("%u inputs\n", inputs);
	return inputs ? 0 : 1;
}
