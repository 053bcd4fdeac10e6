/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/ini.h"

#include <errno.h>

static char *copy(struct diagnostics *d, const char *s)
{
	char *c = s ? strdup(s) : NULL;

	if (s && !c)
		d->failed = true;
	return c;
}

static void add(struct diagnostics *d, bool warning, const struct ini_pos *pos, const char *source,
		const char *nearest, const char *fmt, va_list ap) _printf_(6, 0);
static void add(struct diagnostics *d, bool warning, const struct ini_pos *pos, const char *source,
		const char *nearest, const char *fmt, va_list ap)
{
	struct diagnostic *x;
	char message[512];

	if (!d)
		return;
	if (warning)
		d->warnings++;
	else
		d->errors++;
	if (d->nr >= DIAGNOSTICS_MAX) {
		d->failed = true;
		return;
	}
	if (d->nr == d->room) {
		size_t room = d->room ? d->room * 2 : 8;

		x = realloc(d->list, room * sizeof(*x));
		if (!x) {
			d->failed = true;
			return;
		}
		d->list = x;
		d->room = room;
	}
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	x = &d->list[d->nr++];
	*x = (struct diagnostic){.file = copy(d, pos->file),
				 .line = pos->line,
				 .column = pos->column,
				 .warning = warning,
				 .message = copy(d, message),
				 .source = copy(d, source),
				 .nearest = copy(d, nearest)};
}

int diagnostics_add(struct diagnostics *d, const struct ini_pos *pos, const char *source,
		    const char *nearest, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, false, pos, source, nearest, fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

void diagnostics_warn(struct diagnostics *d, const struct ini_pos *pos, const char *source,
		      const char *nearest, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, true, pos, source, nearest, fmt, ap);
	va_end(ap);
}

static int before(const struct diagnostic *a, const struct diagnostic *b)
{
	int r = strcmp(a->file ? a->file : "", b->file ? b->file : "");

	if (r == 0)
		r = (a->line > b->line) - (a->line < b->line);
	if (r == 0)
		r = (a->column > b->column) - (a->column < b->column);
	return r;
}

/* qsort() does not keep the order of equals; the lists are short. */
void diagnostics_sort(struct diagnostics *d)
{
	for (size_t i = 1; i < d->nr; i++) {
		struct diagnostic x = d->list[i];
		size_t k = i;

		for (; k > 0 && before(&x, &d->list[k - 1]) < 0; k--)
			d->list[k] = d->list[k - 1];
		d->list[k] = x;
	}
}

/* The line, its tabs kept and anything that a terminal would obey replaced. */
/* The part of an overlong line that is shown lies around the column. */
#define SHOWN_BEFORE 120U
#define SHOWN_BYTES  200U

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static void print_source(const struct diagnostic *x, FILE *out)
{
	size_t len = strlen(x->source), start = 0, end, at = x->column ? x->column - 1 : 0;

	if (len > SHOWN_BYTES && at > SHOWN_BEFORE)
		start = MIN_OF(at, len) - SHOWN_BEFORE;
	while (start > 0 && is_continuation(x->source[start]))
		start--;
	end = MIN_OF(len, start + SHOWN_BYTES);
	while (end < len && is_continuation(x->source[end]))
		end++;
	(void)fputs(start ? "   …" : "    ", out);
	for (size_t i = start; i < end; i++) {
		char c = x->source[i];

		(void)fputc((unsigned char)c < ' ' && c != '\t' ? '?' : c, out);
	}
	(void)fputs(end < len ? "…\n    " : "\n    ", out);
	for (size_t i = start; i < at && i < end; i++)
		if (x->source[i] == '\t')
			(void)fputc('\t', out);
		else if (!is_continuation(x->source[i]))
			(void)fputc(' ', out);
	(void)fputs("^\n", out);
}

void diagnostics_print(const struct diagnostics *d, FILE *out, bool colour)
{
	for (size_t i = 0; i < d->nr; i++) {
		const struct diagnostic *x = &d->list[i];
		const char *kind = x->warning ? "warning: " : "";

		if (x->file)
			(void)fprintf(out, "%s:", x->file);
		if (x->line)
			(void)fprintf(out, "%u:%u:", x->line, x->column);
		(void)fprintf(out, " %s%s%s%s",
			      colour ? (x->warning ? "\033[33m" : "\033[31m") : "", kind,
			      x->message ? x->message : "(out of memory)", colour ? "\033[0m" : "");
		if (x->nearest)
			(void)fprintf(out, " (did you mean \"%s\"?)", x->nearest);
		(void)fputc('\n', out);
		if (x->source && x->line)
			print_source(x, out);
	}
	if (d->failed)
		(void)fprintf(out, "… and more that is not shown\n");
}

void diagnostics_free(struct diagnostics *d)
{
	for (size_t i = 0; i < d->nr; i++) {
		free(d->list[i].file);
		free(d->list[i].message);
		free(d->list[i].source);
		free(d->list[i].nearest);
	}
	free(d->list);
	*d = (struct diagnostics){0};
}
