/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/format.h"

#include <errno.h>
#include <stdarg.h>

const char *format_bytes(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes;
	size_t u = 0;

	/* 999.5 would print as four digits */
	while (v >= 999.5 && u + 1 < ARRAY_SIZE(units)) {
		v /= 1024;
		u++;
	}
	if (u == 0 || v >= 99.95)
		(void)snprintf(buf, size, "%.0f %s", v, units[u]);
	else if (v >= 9.995)
		(void)snprintf(buf, size, "%.1f %s", v, units[u]);
	else
		(void)snprintf(buf, size, "%.2f %s", v, units[u]);
	return buf;
}

const char *format_folio(char *buf, size_t size, uint64_t bytes)
{
	(void)snprintf(buf, size, "%llukB", (unsigned long long)(bytes / 1024));
	return buf;
}

const char *format_usec(char *buf, size_t size, uint64_t usec)
{
	unsigned long long min = usec / USEC_PER_MINUTE, hours = min / 60;

	if (usec < USEC_PER_MSEC)
		(void)snprintf(buf, size, "%lluus", (unsigned long long)usec);
	else if (usec < USEC_PER_SEC)
		(void)snprintf(buf, size, "%.3gms", (double)usec / 1e3);
	else if (usec < USEC_PER_MINUTE)
		(void)snprintf(buf, size, "%.3gs", (double)usec / 1e6);
	else if (hours == 0)
		(void)snprintf(buf, size, "%llumin", min);
	else if (hours < 48 && min % 60)
		(void)snprintf(buf, size, "%lluh %llumin", hours, min % 60);
	else if (hours < 48)
		(void)snprintf(buf, size, "%lluh", hours);
	else if (hours % 24)
		(void)snprintf(buf, size, "%llud %lluh", hours / 24, hours % 24);
	else
		(void)snprintf(buf, size, "%llud", hours / 24);
	return buf;
}

const char *format_ratio(char *buf, size_t size, double ratio)
{
	int decimals = ratio == 0 || ratio >= 0.0995 ? 0 : ratio >= 0.00995 ? 1 : 2;

	(void)snprintf(buf, size, "%.*f%%", decimals, ratio * 100);
	return buf;
}

struct table {
	size_t columns, cells, room;
	char **cell;
	bool *left;
	bool failed;
};

struct table *table_new(size_t columns)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->columns = columns;
	t->left = calloc(columns, sizeof(*t->left));
	return t->left ? t : table_free(t);
}

struct table *table_free(struct table *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->cells; i++)
		free(t->cell[i]);
	free(t->cell);
	free(t->left);
	free(t);
	return NULL;
}

void table_align_left(struct table *t, size_t column)
{
	t->left[column] = true;
}

void table_cell(struct table *t, const char *fmt, ...)
{
	va_list ap;

	if (t->cells == t->room) {
		size_t room = t->room ? t->room * 2 : 64;
		char **cell = realloc(t->cell, room * sizeof(*cell));

		if (!cell) {
			t->failed = true;
			return;
		}
		t->cell = cell;
		t->room = room;
	}
	va_start(ap, fmt);
	if (vasprintf(&t->cell[t->cells], fmt, ap) < 0)
		t->failed = true;
	else
		t->cells++;
	va_end(ap);
}

/* Width on a terminal, near enough for what is printed here: UTF-8 continuation bytes have none. */
static int display_width(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

static void print_row(const struct table *t, size_t row, const int *width, FILE *out)
{
	char *const *cell = t->cell + row * t->columns;
	size_t used = t->columns;

	/* empty cells at the end would only leave blanks there */
	while (used > 0 && cell[used - 1][0] == '\0')
		used--;
	for (size_t c = 0; c < used; c++) {
		int pad = width[c] - display_width(cell[c]);
		bool last = c + 1 == used;

		if (!t->left[c])
			(void)fprintf(out, "%*s", pad, "");
		(void)fputs(cell[c], out);
		if (t->left[c] && !last)
			(void)fprintf(out, "%*s", pad, "");
		if (!last)
			(void)fputs("  ", out);
	}
	(void)fputc('\n', out);
}

int table_print(const struct table *t, FILE *out)
{
	_cleanup_(freep) int *width = calloc(t->columns, sizeof(*width));
	size_t rows = t->cells / t->columns;

	if (t->failed || !width)
		return -ENOMEM;
	for (size_t i = 0; i < rows * t->columns; i++)
		width[i % t->columns] = MAX_OF(width[i % t->columns], display_width(t->cell[i]));
	for (size_t row = 0; row < rows; row++)
		print_row(t, row, width, out);
	return 0;
}
