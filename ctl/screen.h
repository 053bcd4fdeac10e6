/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where output goes: collected first, then shown at once, through a pager where it is longer than
 * the terminal. Whether there is colour is decided here and nowhere else.
 */
#pragma once

#include "base/util.h"

#include <stdbool.h>

struct screen {
	FILE *out; /* what verbs print to */
	char *text;
	size_t len;
	bool terminal; /* stdout is one */
	bool colour;   /* … and NO_COLOR is not set, and TERM is not dumb */
	bool pager;
};

int screen_open(struct screen *s, bool no_pager);
/* Prints what was collected and closes. 0 or a negative errno of writing. */
int screen_show(struct screen *s);

enum shade {
	SHADE_PLAIN,
	SHADE_HEADING,
	SHADE_GOOD,
	SHADE_WARNING,
	SHADE_BAD,
	SHADE_FAINT,
};
/* The escape sequence that begins a shade; "" without colour. SHADE_PLAIN ends all of them. */
const char *shade(const struct screen *s, enum shade sh);

/* Columns of the terminal; 80 where it cannot be told. */
unsigned screen_columns(void);
