/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures that tests may find beside the source tree: used where they are, never needed. */
#pragma once

#include "base/text.h"

/* The directory of the captures ($PCPTUNE_SHARED, or shared/ beside the source tree), or NULL. */
const char *corpus_dir(void);

/* The whole file; fails the test where it cannot be read. */
void read_test_file(const char *path, struct text *into);

/* Calls `each` with every name in a directory, sorted. Returns how many there were, -1: no dir. */
int each_name(const char *dir, void (*each)(const char *name, void *userdata), void *userdata);
