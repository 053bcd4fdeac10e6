/* SPDX-License-Identifier: GPL-2.0-or-later */
/* "Did you mean …": the known name that is nearest to what somebody typed. */
#pragma once

#include "base/util.h"

/*
 * The candidate that the fewest edits (insert, delete, replace, swap) turn into `typed`, ignoring
 * case; NULL where none is near enough to be a slip of the fingers. Keep one and call it per name.
 */
struct nearest {
	const char *typed, *best;
	size_t distance;
};
#define NEAREST(word) ((struct nearest){.typed = (word), .best = NULL, .distance = SIZE_MAX})

void nearest_try(struct nearest *n, const char *candidate);
