/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/error.h"

#include <stdarg.h>

int error_set(struct error *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

int error_prefix(struct error *e, const char *fmt, ...)
{
	char context[sizeof(e->text)];
	size_t n, keep;
	va_list ap;

	if (!e)
		return 0;
	va_start(ap, fmt);
	(void)vsnprintf(context, sizeof(context) - 2, fmt, ap);
	va_end(ap);
	strcat(context, ": ");
	n = strlen(context);
	keep = MIN_OF(strlen(e->text), sizeof(e->text) - n - 1);
	memmove(e->text + n, e->text, keep);
	memcpy(e->text, context, n);
	e->text[n + keep] = '\0';
	return e->code;
}

const char *error_name(int code)
{
	const char *text = strerrordesc_np(code < 0 ? -code : code);

	return text ? text : "unknown error";
}
