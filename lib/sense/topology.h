/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs, nodes and caches from /sys/devices/system (struct topology is in snapshot.h). */
#pragma once

#include "sense/snapshot.h"

/*
 * Reads everything anew into *t (which holds an earlier state or zeros). What a machine does not
 * tell stays empty or 0 and is no error: only -ENOMEM and numbers beyond CPU_LIMIT (-ERANGE) are;
 * then *t is empty. Caches are those of online CPUs, and so are the counts of who shares them.
 */
int topology_read(struct topology *t, const struct sysroot *root) _must_check_;
void topology_free(struct topology *t);
