/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The per-size directories of transparent huge pages (struct mthp is in snapshot.h). */
#pragma once

#include "sense/snapshot.h"

struct mthp_reader; /* the files, kept open */

/*
 * Looks which sizes and files there are: *m gets the sizes, the names of the statistics and how
 * orders are controlled; values come with the reads below. Made anew after hotplug or when files
 * may have changed; the old reader (NULL: none) goes. -ENOMEM.
 */
int mthp_scan(struct mthp_reader **reader, struct mthp *m, const struct sysroot *root,
	      uint64_t page_bytes) _must_check_;
struct mthp_reader *mthp_reader_free(struct mthp_reader *r);

/*
 * Reads enabled, shmem_enabled and stats of every size, or pcp_enabled. No allocation. What cannot
 * be read is marked so in *m; the first failure is returned, -ENOENT where there is no size.
 */
int mthp_read_stats(struct mthp_reader *r, struct mthp *m);
int mthp_read_knobs(struct mthp_reader *r, struct mthp *m);
