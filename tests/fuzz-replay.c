/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a fuzz target over its seeds: every file of the directories given, by default SEEDS. */
#include "base/util.h"

#include "tests/fuzz.h"

#include <dirent.h>
#include <errno.h>

static int replay(const char *dir, const char *name)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(freep) uint8_t *data = NULL;
	_cleanup_(fclosep) FILE *f = NULL;
	size_t len;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	f = fopen(path, "re");
	data = malloc(1U << 20);
	if (!f || !data)
		return -errno;
	len = fread(data, 1, 1U << 20, f);
	(void)LLVMFuzzerTestOneInput(data, len);
	return 0;
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : SEEDS;
	unsigned n = 0;
	struct dirent *e;
	DIR *d = opendir(dir);

	if (!d) {
		fprintf(stderr, "cannot read %s\n", dir);
		return 1;
	}
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			if (replay(dir, e->d_name) < 0) {
				fprintf(stderr, "cannot read %s/%s\n", dir, e->d_name);
				return 1;
			}
			n++;
		}
	(void)closedir(d);
	printf("%u inputs of %s\n", n, dir);
	return n == 0;
}
