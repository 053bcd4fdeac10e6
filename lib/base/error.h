/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What went wrong, in words for a person.
 *
 * Functions return 0 or a negative errno. Those that can fail in a way a user meets also take a
 * `struct error *` and fill it with one sentence: what was tried, on which file, why it failed and
 * what to do next. Who decides that the failure matters prints the sentence, once.
 */
#pragma once

#include "base/util.h"

struct error {
	int code;       /* the negative errno that was returned; 0 while nothing failed */
	char text[640]; /* no newline, no program name */
};

/*
 * Fills `e` (which may be NULL) and returns `code`, a negative errno, so that a failure is one
 * line: return error_set(e, -EINVAL, "…"). A text that does not fit is cut off.
 */
int error_set(struct error *e, int code, const char *fmt, ...) _printf_(3, 4);

/* Puts "context: " before the text that is there. Returns e->code (0 for NULL). */
int error_prefix(struct error *e, const char *fmt, ...) _printf_(2, 3);

/* The name-free description of an errno, positive or negative: "Permission denied". */
const char *error_name(int code);
