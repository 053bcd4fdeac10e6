/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A text buffer that grows and keeps its room, so that a steady state allocates nothing. */
#pragma once

#include "base/util.h"

#include <stdarg.h>
#include <stdbool.h>

struct text {
	char *data; /* always ends in NUL once anything was added; NULL before */
	size_t len, room;
	bool failed; /* an allocation failed: what was added since is lost */
};

/* Empties the buffer and keeps its room. */
void text_clear(struct text *t);

/* Frees the room. Usable again afterwards; also as _cleanup_(text_free). */
void text_free(struct text *t);

/* Makes room for `more` bytes and a NUL. 0, or -ENOMEM (then t->failed is set). */
int text_reserve(struct text *t, size_t more);

/* These set t->failed instead of returning an error: check it once, at the end. */
void text_add(struct text *t, const char *s);
void text_add_n(struct text *t, const char *s, size_t n);
void text_addf(struct text *t, const char *fmt, ...) _printf_(2, 3);
void text_vaddf(struct text *t, const char *fmt, va_list ap) _printf_(2, 0);
void text_add_u64(struct text *t, uint64_t v);

/* The text, "" where nothing was added. Valid until the next change. */
static inline const char *text_str(const struct text *t)
{
	return t->data ? t->data : "";
}
