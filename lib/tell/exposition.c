/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tell/exposition.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <strings.h>

const char *exposition_content_type(enum exposition_format f)
{
	return f == EXPOSITION_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* One element of an Accept or Accept-Encoding header, between commas. */
struct media_range {
	const char *type; /* not NUL-terminated */
	size_t len;
	double quality;
	const char *version; /* NULL: any */
	size_t version_len;
};

static const char *skip_blanks(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	return s;
}

static size_t trimmed(const char *s, const char *end)
{
	while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (size_t)(end - s);
}

/* "0" to "1" with at most three decimals; anything else counts as 0. */
static double read_quality(const char *s, size_t len)
{
	double v = 0, scale = 0.1;

	if (len == 0 || len > 5 || (s[0] != '0' && s[0] != '1') || (len > 1 && s[1] != '.'))
		return 0;
	v = s[0] - '0';
	for (size_t i = 2; i < len; i++, scale /= 10) {
		if (!isdigit((unsigned char)s[i]))
			return 0;
		v += (s[i] - '0') * scale;
	}
	return v > 1 ? 1 : v;
}

static struct media_range read_range(const char *s, const char *end)
{
	struct media_range m = {.quality = 1};
	const char *semicolon = memchr(s, ';', (size_t)(end - s));

	s = skip_blanks(s, end);
	m.type = s;
	m.len = trimmed(s, semicolon ? semicolon : end);
	while (semicolon) {
		const char *p = skip_blanks(semicolon + 1, end), *equals;
		const char *stop;

		semicolon = memchr(p, ';', (size_t)(end - p));
		stop = semicolon ? semicolon : end;
		equals = memchr(p, '=', (size_t)(stop - p));
		if (!equals)
			continue;
		if (trimmed(p, equals) == 1 && (*p == 'q' || *p == 'Q')) {
			m.quality = read_quality(equals + 1, trimmed(equals + 1, stop));
		} else if (trimmed(p, equals) == 7 && strncasecmp(p, "version", 7) == 0) {
			m.version = equals + 1;
			m.version_len = trimmed(equals + 1, stop);
		}
	}
	return m;
}

static bool range_is(const struct media_range *m, const char *type)
{
	return m->len == strlen(type) && strncasecmp(m->type, type, m->len) == 0;
}

static bool version_is(const struct media_range *m, const char *version)
{
	return m->version_len == strlen(version) &&
	       strncmp(m->version, version, m->version_len) == 0;
}

enum exposition_format exposition_negotiate(const char *accept)
{
	double openmetrics = 0, text = 0;

	for (const char *s = accept ? accept : ""; *s;) {
		const char *comma = strchrnul(s, ',');
		struct media_range m = read_range(s, comma);

		if (range_is(&m, "application/openmetrics-text")) {
			/* 0.0.1 was a draft; what we write is only promised to be 1.0.0 */
			if (!m.version || version_is(&m, "1.0.0"))
				openmetrics = MAX_OF(openmetrics, m.quality);
		} else if (range_is(&m, "text/plain") || range_is(&m, "text/*") ||
			   range_is(&m, "*/*")) {
			text = MAX_OF(text, m.quality);
		}
		s = *comma ? comma + 1 : comma;
	}
	return openmetrics > 0 && openmetrics >= text ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT;
}

bool exposition_wants_gzip(const char *accept_encoding)
{
	double gzip = -1, identity = 0, any = -1;

	for (const char *s = accept_encoding ? accept_encoding : ""; *s;) {
		const char *comma = strchrnul(s, ',');
		struct media_range m = read_range(s, comma);

		if (range_is(&m, "gzip") || range_is(&m, "x-gzip"))
			gzip = MAX_OF(gzip, m.quality);
		else if (range_is(&m, "identity"))
			identity = MAX_OF(identity, m.quality);
		else if (range_is(&m, "*"))
			any = MAX_OF(any, m.quality);
		s = *comma ? comma + 1 : comma;
	}
	if (gzip < 0)
		gzip = any;
	return gzip > 0 && gzip >= identity;
}

void exposition_start(struct exposition *x, struct text *out, enum exposition_format format)
{
	text_clear(out);
	out->failed = false;
	*x = (struct exposition){.out = out, .format = format};
}

static void add_escaped(struct text *out, const char *s, bool quotes)
{
	while (*s) {
		size_t plain = strcspn(s, quotes ? "\\\n\"" : "\\\n");

		text_add_n(out, s, plain);
		s += plain;
		if (*s == '\n')
			text_add(out, "\\n");
		else if (*s)
			text_addf(out, "\\%c", *s);
		s += *s != '\0';
	}
}

static bool ends_in_unit(const char *name, const char *unit)
{
	size_t n = strlen(name), u = strlen(unit);

	return u > 0 && n > u && name[n - u - 1] == '_' && streq(name + n - u, unit);
}

void exposition_family(struct exposition *x, const char *name, enum metric_kind kind,
		       const char *unit, const char *help)
{
	bool openmetrics = x->format == EXPOSITION_OPENMETRICS;
	const char *suffix = kind == METRIC_COUNTER && !openmetrics ? "_total" : "";

	x->name = name;
	x->kind = kind;
	text_add(x->out, "# HELP ");
	text_add(x->out, name);
	text_add(x->out, suffix);
	text_add(x->out, " ");
	/* OpenMetrics wants quotes escaped in the help, too; text 0.0.4 would show the backslash */
	add_escaped(x->out, help, openmetrics);
	text_add(x->out, "\n# TYPE ");
	text_add(x->out, name);
	text_add(x->out, suffix);
	text_add(x->out, kind == METRIC_COUNTER ? " counter\n" : " gauge\n");
	if (openmetrics && ends_in_unit(name, unit)) {
		text_add(x->out, "# UNIT ");
		text_add(x->out, name);
		text_add(x->out, " ");
		text_add(x->out, unit);
		text_add(x->out, "\n");
	}
}

static void add_series(struct exposition *x, const struct label *labels, size_t nr)
{
	text_add(x->out, x->name);
	if (x->kind == METRIC_COUNTER)
		text_add(x->out, "_total");
	for (size_t i = 0; i < nr; i++) {
		text_add(x->out, i == 0 ? "{" : ",");
		text_add(x->out, labels[i].name);
		text_add(x->out, "=\"");
		add_escaped(x->out, labels[i].value, true);
		text_add(x->out, "\"");
	}
	text_add(x->out, nr > 0 ? "} " : " ");
	x->series++;
}

void exposition_u64(struct exposition *x, const struct label *labels, size_t nr, uint64_t value)
{
	add_series(x, labels, nr);
	text_add_u64(x->out, value);
	text_add(x->out, "\n");
}

void exposition_double(struct exposition *x, const struct label *labels, size_t nr, double value)
{
	add_series(x, labels, nr);
	if (isnan(value))
		text_add(x->out, "NaN\n");
	else if (isinf(value))
		text_add(x->out, value > 0 ? "+Inf\n" : "-Inf\n");
	else
		text_addf(x->out, "%.15g\n", value);
}

int exposition_end(struct exposition *x)
{
	if (x->format == EXPOSITION_OPENMETRICS)
		text_add(x->out, "# EOF\n");
	return x->out->failed ? -ENOMEM : 0;
}
