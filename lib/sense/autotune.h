/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels whose lists tune themselves (6.7 and later) but do not print within which bounds. */
#pragma once

#include "sense/snapshot.h"

/* Do the lists tune themselves? Found by looking, as snapshot.pcp_autotune. */
int autotune_find(const struct snapshot *s);

/*
 * Gives every pageset that lacks them a high_min and a high_max, marked computed: right only where
 * the lists do tune themselves.
 */
void autotune_compute_high(struct snapshot *s);
