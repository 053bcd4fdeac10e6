/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/nearest.h"

#include <ctype.h>

#define WORD_MAX 63U

/* Optimal string alignment distance over three rows. */
static size_t edit_distance(const char *a, size_t la, const char *b, size_t lb)
{
	size_t rows[3][WORD_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2], *spare;

	for (size_t j = 0; j <= lb; j++)
		last[j] = j;
	for (size_t i = 1; i <= la; i++) {
		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			int ca = tolower((unsigned char)a[i - 1]),
			    cb = tolower((unsigned char)b[j - 1]);
			size_t d = last[j - 1] + (ca != cb);

			d = MIN_OF(d, last[j] + 1);
			d = MIN_OF(d, row[j - 1] + 1);
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    cb == tolower((unsigned char)a[i - 2]))
				d = MIN_OF(d, before[j - 2] + 1);
			row[j] = d;
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[lb];
}

void nearest_try(struct nearest *n, const char *candidate)
{
	size_t la = strlen(n->typed), lb = strlen(candidate), most, d;

	if (la == 0 || la > WORD_MAX || lb > WORD_MAX)
		return;
	/* a third of the word may be wrong; more than that is another word */
	most = MAX_OF(la, lb) / 3 + (la < 3);
	if (MAX_OF(la, lb) - MIN_OF(la, lb) > most)
		return;
	d = edit_distance(n->typed, la, candidate, lb);
	if (d < n->distance && d <= most) {
		n->distance = d;
		n->best = candidate;
	}
}
