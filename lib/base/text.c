/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text.h"

#include <errno.h>

void text_clear(struct text *t)
{
	t->len = 0;
	t->failed = false;
	if (t->data)
		t->data[0] = '\0';
}

void text_free(struct text *t)
{
	free(t->data);
	*t = (struct text){0};
}

int text_reserve(struct text *t, size_t more)
{
	size_t need, room;
	char *data;

	if (__builtin_add_overflow(t->len, more, &need) || __builtin_add_overflow(need, 1, &need)) {
		t->failed = true;
		return -ENOMEM;
	}
	if (need <= t->room)
		return 0;
	room = t->room < 256 ? 256 : t->room;
	while (room < need)
		if (__builtin_mul_overflow(room, 2, &room)) {
			t->failed = true;
			return -ENOMEM;
		}
	data = realloc(t->data, room);
	if (!data) {
		t->failed = true;
		return -ENOMEM;
	}
	data[t->len] = '\0';
	t->data = data;
	t->room = room;
	return 0;
}

void text_add_n(struct text *t, const char *s, size_t n)
{
	if (text_reserve(t, n) < 0)
		return;
	memcpy(t->data + t->len, s, n);
	t->len += n;
	t->data[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
	text_add_n(t, s, strlen(s));
}

void text_vaddf(struct text *t, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	if (text_reserve(t, 64) == 0) {
		n = vsnprintf(t->data + t->len, t->room - t->len, fmt, ap);
		if (n >= 0 && (size_t)n >= t->room - t->len && text_reserve(t, (size_t)n) == 0)
			n = vsnprintf(t->data + t->len, t->room - t->len, fmt, again);
		if (n >= 0 && !t->failed)
			t->len += (size_t)n;
		else
			t->failed = true;
		t->data[t->len] = '\0';
	}
	va_end(again);
}

void text_addf(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	text_vaddf(t, fmt, ap);
	va_end(ap);
}

void text_add_u64(struct text *t, uint64_t v)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	text_add_n(t, digits + i, sizeof(digits) - i);
}
