/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON written straight into a text: keys in the order they are written, 64-bit numbers as they
 * are, two blanks of indentation. Strings are escaped, and bytes that are no UTF-8 are replaced.
 */
#pragma once

#include "base/text.h"

struct json {
	struct text *out;
	unsigned depth;
	bool first;    /* nothing in the present object or array yet */
	bool have_key; /* a key waits for its value */
	bool compact;  /* no line breaks: one document a line */
};
#define JSON(text) ((struct json){.out = (text), .first = true})

/* The key may be NULL: an element of an array, or the document itself. */
void json_object(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_array(struct json *j, const char *key);
void json_end_array(struct json *j);
void json_str(struct json *j, const char *key, const char *value); /* NULL is null */
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value); /* no number is null */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
/* Microseconds as seconds with six digits. */
void json_usec(struct json *j, const char *key, uint64_t usec);
