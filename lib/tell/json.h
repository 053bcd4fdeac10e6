/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON written straight into a text: keys in the order they are written, 64-bit numbers as they
 * are, two blanks of indentation. Strings are escaped, and bytes that are no UTF-8 are replaced.
 */
#pragma once

#include "base/text.h"

struct json_out {
	struct text *out;
	unsigned depth;
	bool first;   /* nothing in the present object or array yet */
	bool compact; /* no line breaks: one document a line */
};
#define JSON_OUT(text) ((struct json_out){.out = (text), .first = true})

/* The key may be NULL: an element of an array, or the document itself. */
void json_begin_object(struct json_out *j, const char *key);
void json_end_object(struct json_out *j);
void json_begin_array(struct json_out *j, const char *key);
void json_end_array(struct json_out *j);
void json_put_str(struct json_out *j, const char *key, const char *value); /* NULL is null */
void json_put_u64(struct json_out *j, const char *key, uint64_t value);
void json_put_i64(struct json_out *j, const char *key, int64_t value);
void json_put_double(struct json_out *j, const char *key, double value); /* no number is null */
void json_put_bool(struct json_out *j, const char *key, bool value);
void json_put_null(struct json_out *j, const char *key);
/* Microseconds as seconds with six digits. */
void json_put_usec(struct json_out *j, const char *key, uint64_t usec);
