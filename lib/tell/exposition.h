/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two text forms in which Prometheus and its relatives take metrics: text 0.0.4 and
 * OpenMetrics 1.0. One family after the other into a `struct text`, which keeps its room: nothing
 * is allocated once it has grown. Out of memory shows in text->failed, at the end.
 */
#pragma once

#include "base/text.h"

enum exposition_format {
	EXPOSITION_TEXT,        /* text 0.0.4 */
	EXPOSITION_OPENMETRICS, /* OpenMetrics 1.0.0 */
	_EXPOSITION_FORMAT_MAX,
};

enum metric_kind {
	METRIC_GAUGE,
	METRIC_COUNTER,
};

/* The value of the Content-Type header. */
const char *exposition_content_type(enum exposition_format f);

/*
 * What an Accept header asks for; NULL or "" is text 0.0.4. The higher quality wins, on a tie
 * OpenMetrics (a scraper that names both can read both). Never fails: what is unknown gets text.
 */
enum exposition_format exposition_negotiate(const char *accept);

/*
 * Does an Accept-Encoding header take gzip? NULL and "" do not; "gzip;q=0" refuses it. Where it is
 * taken it is given, also on a tie with identity: expositions shrink to a tenth.
 */
bool exposition_wants_gzip(const char *accept_encoding);

struct exposition {
	struct text *out;
	enum exposition_format format;
	const char *name; /* of the family that is open */
	enum metric_kind kind;
	uint32_t series; /* samples written since exposition_start() */
};

/* Clears `out` and starts. */
void exposition_start(struct exposition *x, struct text *out, enum exposition_format format);

/*
 * Opens a family. `name` is whole and, for a counter, without "_total", which this adds where each
 * format wants it; it must live until the next family. `unit` may be "" and is told only where the
 * name ends in it, as OpenMetrics demands.
 */
void exposition_family(struct exposition *x, const char *name, enum metric_kind kind,
		       const char *unit, const char *help);

struct label {
	const char *name, *value; /* the value is escaped here; any bytes up to a NUL */
};

/* One sample of the open family. */
void exposition_u64(struct exposition *x, const struct label *labels, size_t nr, uint64_t value);
/* Not a number and the infinities are written as the formats spell them. */
void exposition_double(struct exposition *x, const struct label *labels, size_t nr, double value);

/* The end: "# EOF" for OpenMetrics. 0, or -ENOMEM when something was lost. */
int exposition_end(struct exposition *x) _must_check_;
