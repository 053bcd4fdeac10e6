/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as a person reads them. The results are for tables and sentences, never for machines. */
#pragma once

#include "base/text.h"

#define FORMAT_MAX 32

/*
 * Each fills `buf` (FORMAT_MAX bytes are enough) and returns it.
 * Bytes in powers of 1,024 with three digits: "812 KiB", "1.52 MiB", "24.6 GiB".
 */
const char *format_bytes(char *buf, size_t size, uint64_t bytes);

/* A folio size as the kernel names it: "64kB", "2048kB". */
const char *format_folio(char *buf, size_t size, uint64_t bytes);

/* "850us", "12.5ms", "3.2s", "10min", "2h 5min". */
const char *format_usec(char *buf, size_t size, uint64_t usec);

/* A share of one as "3.1%". */
const char *format_ratio(char *buf, size_t size, double ratio);

/*
 * A table whose columns line up: cells are added row by row; the first row is the heading.
 * Columns are aligned right unless asked otherwise; a cell's text is copied.
 */
struct table;

struct table *table_new(size_t columns);   /* NULL when out of memory */
struct table *table_free(struct table *t); /* takes NULL; returns NULL */
void table_align_left(struct table *t, size_t column);
void table_cell(struct table *t, const char *fmt, ...) _printf_(2, 3);
/* Prints every whole row to `out`, two blanks between columns, no trailing blanks. 0 or -ENOMEM. */
int table_print(const struct table *t, FILE *out);

static inline void table_freep(struct table **t)
{
	*t = table_free(*t);
}
