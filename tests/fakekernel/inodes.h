/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers for paths, for as long as the process lives: 1 is the root of the mount. */
#pragma once

#include "base/util.h"

struct inodes {
	char **paths; /* number n is paths[n - 1] */
	size_t nr, room;
	uint32_t *slots; /* open addressing; 0 is free */
	size_t nr_slots;
};

/* The number of a path, given out now where it has none yet; 0 where memory is short. */
uint64_t inode_of(struct inodes *t, const char *path);
const char *inode_path(const struct inodes *t, uint64_t number);
void inodes_free(struct inodes *t);
