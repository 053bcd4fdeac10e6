/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory of small files below the working directory, to be a root that tests make up. */
#pragma once

#include "base/sysroot.h"

struct tree {
	char path[64];
	struct sysroot root;
};

/* Fails the test where something goes wrong. */
void tree_make(struct tree *t);
void tree_remove(struct tree *t); /* also as _cleanup_(tree_remove) */

/* Writes a file and the directories above it. */
void tree_put(const struct tree *t, const char *rel, const char *fmt, ...) _printf_(3, 4);
void tree_delete(const struct tree *t, const char *rel);

/* Copies everything below `from` into the tree, or into a directory of it that exists. */
void tree_copy(const struct tree *t, const char *from);
void tree_copy_to(const struct tree *t, const char *from, const char *rel);
