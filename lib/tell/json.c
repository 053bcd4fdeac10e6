/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tell/json.h"

#include <inttypes.h>
#include <math.h>

/* The bytes of the UTF-8 sequence at `s`; 0 where there is none. Overlong forms and surrogates
 * count as none. */
static size_t utf8_length(const unsigned char *s)
{
	unsigned lead = s[0], second_min = 0x80, second_max = 0xbf;
	size_t n;

	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		n = 2;
	else if (lead >= 0xe0 && lead <= 0xef)
		n = 3;
	else if (lead >= 0xf0 && lead <= 0xf4)
		n = 4;
	else
		return 0;
	if (lead == 0xe0)
		second_min = 0xa0;
	if (lead == 0xed)
		second_max = 0x9f;
	if (lead == 0xf0)
		second_min = 0x90;
	if (lead == 0xf4)
		second_max = 0x8f;
	if (s[1] < second_min || s[1] > second_max)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

static void add_string(struct text *out, const char *value)
{
	text_add(out, "\"");
	for (const unsigned char *s = (const unsigned char *)value; *s;) {
		size_t n = utf8_length(s);

		if (*s == '"' || *s == '\\') {
			text_addf(out, "\\%c", *s);
		} else if (*s == '\n') {
			text_add(out, "\\n");
		} else if (*s == '\t') {
			text_add(out, "\\t");
		} else if (*s < 0x20 || *s == 0x7f) {
			text_addf(out, "\\u%04x", *s);
		} else if (n == 0) {
			text_add(out, "\\ufffd");
		} else {
			text_add_n(out, (const char *)s, n);
			s += n;
			continue;
		}
		s++;
	}
	text_add(out, "\"");
}

static void new_line(struct json_out *j)
{
	if (j->compact)
		return;
	text_add(j->out, "\n");
	for (unsigned i = 0; i < j->depth; i++)
		text_add(j->out, "  ");
}

static void add_key(struct json_out *j, const char *key)
{
	if (j->depth > 0) {
		if (!j->first)
			text_add(j->out, ",");
		new_line(j);
	}
	j->first = false;
	if (!key)
		return;
	add_string(j->out, key);
	text_add(j->out, j->compact ? ":" : ": ");
}

static void begin(struct json_out *j, const char *key, const char *bracket)
{
	add_key(j, key);
	text_add(j->out, bracket);
	j->depth++;
	j->first = true;
}

static void end(struct json_out *j, const char *bracket)
{
	bool empty = j->first;

	j->depth--;
	j->first = false;
	if (!empty)
		new_line(j);
	text_add(j->out, bracket);
	if (j->depth == 0)
		text_add(j->out, "\n");
}

void json_begin_object(struct json_out *j, const char *key)
{
	begin(j, key, "{");
}

void json_end_object(struct json_out *j)
{
	end(j, "}");
}

void json_begin_array(struct json_out *j, const char *key)
{
	begin(j, key, "[");
}

void json_end_array(struct json_out *j)
{
	end(j, "]");
}

void json_put_str(struct json_out *j, const char *key, const char *value)
{
	add_key(j, key);
	if (value)
		add_string(j->out, value);
	else
		text_add(j->out, "null");
}

void json_put_u64(struct json_out *j, const char *key, uint64_t value)
{
	add_key(j, key);
	text_add_u64(j->out, value);
}

void json_put_i64(struct json_out *j, const char *key, int64_t value)
{
	add_key(j, key);
	text_addf(j->out, "%" PRId64, value);
}

void json_put_double(struct json_out *j, const char *key, double value)
{
	add_key(j, key);
	if (isfinite(value))
		text_addf(j->out, "%.9g", value);
	else
		text_add(j->out, "null");
}

void json_put_bool(struct json_out *j, const char *key, bool value)
{
	add_key(j, key);
	text_add(j->out, value ? "true" : "false");
}

void json_put_null(struct json_out *j, const char *key)
{
	add_key(j, key);
	text_add(j->out, "null");
}

void json_put_usec(struct json_out *j, const char *key, uint64_t usec)
{
	add_key(j, key);
	text_addf(j->out, "%" PRIu64 ".%06" PRIu64, usec / USEC_PER_SEC, usec % USEC_PER_SEC);
}
