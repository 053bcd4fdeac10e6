/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl metrics: the exposition text, of the machine as it is now. */
#include "ctl.h"

#include "tell/metrics.h"

static int read_options(const struct ctl *c, struct metrics_options *o)
{
	const char *series = c->options.value[OPTION_SERIES];

	*o = (struct metrics_options){
		.format = option_given(&c->options, OPTION_OPENMETRICS) ? EXPOSITION_OPENMETRICS
									: EXPOSITION_TEXT,
		.full = series && streq(series, "full"),
		.percpu = option_given(&c->options, OPTION_PER_CPU),
	};
	if (series && !streq(series, "full") && !streq(series, "basic"))
		return ctl_failf(c, EXIT_USAGE, "--series takes basic or full, not \"%s\"", series);
	return EXIT_DONE;
}

/* A label's value at *s, behind its first quote; moves *s behind the last one. */
static void unescape(const char **s, struct text *into)
{
	text_clear(into);
	for (; **s && **s != '"'; (*s)++) {
		if (**s == '\\' && (*s)[1])
			(*s)++;
		else {
			text_add_n(into, *s, 1);
			continue;
		}
		text_add_n(into, **s == 'n' ? "\n" : *s, 1);
	}
	*s += **s == '"';
}

/* What metrics_render() wrote: name{label="value",…} number */
static void put_sample(struct json_out *j, const char *line, const char *kind, struct text *scratch)
{
	const char *s = line + strcspn(line, "{ ");
	char name[96];

	(void)snprintf(name, sizeof(name), "%.*s", (int)(s - line), line);
	json_begin_object(j, NULL);
	json_put_str(j, "name", name);
	json_put_str(j, "kind", kind);
	json_begin_object(j, "labels");
	while (*s == '{' || *s == ',') {
		size_t n = strcspn(++s, "=");

		(void)snprintf(name, sizeof(name), "%.*s", (int)n, s);
		s += n + 2;
		unescape(&s, scratch);
		json_put_str(j, name, text_str(scratch));
	}
	json_end_object(j);
	s += strcspn(s, " ");
	json_put_double(j, "value", strtod(s, NULL));
	json_end_object(j);
}

static int print_json(struct ctl *c, const char *text)
{
	_cleanup_(text_free) struct text line = {0}, scratch = {0};
	struct json_out *j = ctl_json_begin(c);
	const char *kind = "gauge";

	json_begin_array(j, "metrics");
	for (const char *s = text; *s;) {
		size_t n = strcspn(s, "\n");

		text_clear(&line);
		text_add_n(&line, s, n);
		if (strncmp(line.data, "# TYPE ", 7) == 0)
			kind = strstr(line.data, " counter") ? "counter" : "gauge";
		else if (line.data[0] != '#')
			put_sample(j, line.data, kind, &scratch);
		s += n + (s[n] == '\n');
	}
	json_end_array(j);
	return ctl_json_end(c);
}

int verb_metrics(struct ctl *c)
{
	_cleanup_(text_free) struct text text = {0};
	_cleanup_(holder_free) struct holder h = {0};
	struct metrics_input in = {0};
	struct metrics_options o;
	int r = read_options(c, &o);

	if (r != EXIT_DONE)
		return r;
	r = ctl_take(c, metrics_sources(&o), SOURCE_BIT(SOURCE_ZONEINFO));
	if (r != EXIT_DONE)
		return r;
	holder_find(c, &h);
	in.snapshot = c->snapshot;
	in.state = h.has_state ? &h.state : NULL;
	metrics_input_sources(&in, c->sensor);
	if (metrics_render(&in, &o, &text, NULL) < 0)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	if (c->wants_json)
		return print_json(c, text_str(&text));
	(void)fwrite(text.data, 1, text.len, c->screen.out);
	return EXIT_DONE;
}
