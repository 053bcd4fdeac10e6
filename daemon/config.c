/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config.h"

#include "base/nearest.h"
#include "base/parse.h"
#include "policy/search.h"

#include <errno.h>
#include <stddef.h>

#define CONFIG_NAME "pcptuned.conf"

enum key_type {
	KEY_CHOICE, /* one of `words`; the field is an enum or a bool */
	KEY_TIME,
	KEY_COUNT,
	KEY_RATIO,
	KEY_TEXT,
	KEY_PATH,
	KEY_BOOL,
	KEY_FOREIGN, /* "yield", or "yield-for TIME" */
};

struct config_key {
	const char *section, *key;
	enum key_type type;
	size_t offset;
	uint64_t min, max;        /* of times (us) and counts */
	const char *const *words; /* KEY_CHOICE, NULL-terminated, in the order of the enum */
};

static const char *const mode_words[] = {"observe", "enforce", NULL};
static const char *const on_stop_words[] = {"restore", "keep", NULL};
static const char *const series_words[] = {"basic", "full", NULL};
static const char *const per_cpu_words[] = {"auto", "yes", "no", NULL};

/*
 * One row a key: what reads it, where it goes, what it may be. The manual page is checked against
 * this table.
 */
#define AT(field) offsetof(struct config, field)
static const struct config_key keys[] = {
	{"Daemon", "Mode", KEY_CHOICE, AT(mode), 0, 0, mode_words},
	{"Daemon", "Interval", KEY_TIME, AT(interval_usec), USEC_PER_SEC, USEC_PER_HOUR, NULL},
	{"Daemon", "IdleInterval", KEY_TIME, AT(idle_interval_usec), USEC_PER_SEC, USEC_PER_HOUR,
	 NULL},
	{"Daemon", "OnStop", KEY_CHOICE, AT(on_stop), 0, 0, on_stop_words},
	{"Daemon", "StopTimeout", KEY_TIME, AT(stop_timeout_usec), USEC_PER_SEC, USEC_PER_HOUR,
	 NULL},
	{"Daemon", "Foreign", KEY_FOREIGN, AT(foreign_yield_usec), 0, 0, NULL},
	{"Daemon", "MinHold", KEY_TIME, AT(min_hold_usec), 0, USEC_PER_DAY, NULL},
	{"Limits", "HighFractionMin", KEY_COUNT, AT(high_fraction_min), 8, 2147483647, NULL},
	{"Limits", "MaxParkedShare", KEY_RATIO, AT(max_parked_share), 0, 0, NULL},
	{"Limits", "OrderMax", KEY_COUNT, AT(order_max), 0, 15, NULL},
	{"Limits", "WritesPerMinute", KEY_COUNT, AT(writes_per_minute), 1, 1000, NULL},
	{"Limits", "WritesPerDay", KEY_COUNT, AT(writes_per_day), 1, 1000, NULL},
	{"Metrics", "Listen", KEY_TEXT, AT(listen), 0, 0, NULL},
	{"Metrics", "TLSCertificate", KEY_PATH, AT(tls_certificate), 0, 0, NULL},
	{"Metrics", "TLSKey", KEY_PATH, AT(tls_key), 0, 0, NULL},
	{"Metrics", "TLSClientCA", KEY_PATH, AT(tls_client_ca), 0, 0, NULL},
	{"Metrics", "TokenFile", KEY_PATH, AT(token_file), 0, 0, NULL},
	{"Metrics", "Series", KEY_CHOICE, AT(series), 0, 0, series_words},
	{"Metrics", "PerCPU", KEY_CHOICE, AT(per_cpu), 0, 0, per_cpu_words},
	{"Events", "Hotplug", KEY_BOOL, AT(hotplug), 0, 0, NULL},
	{"Events", "Links", KEY_BOOL, AT(links), 0, 0, NULL},
	{"Events", "Processes", KEY_BOOL, AT(processes), 0, 0, NULL},
	{"Events", "Pressure", KEY_BOOL, AT(pressure), 0, 0, NULL},
};

void config_defaults(struct config *c)
{
	*c = (struct config){
		.mode = CONFIG_OBSERVE,
		.interval_usec = USEC_PER_SEC,
		.idle_interval_usec = 10 * USEC_PER_SEC,
		.on_stop = ON_STOP_RESTORE,
		.stop_timeout_usec = 10 * USEC_PER_SEC,
		.min_hold_usec = USEC_PER_MINUTE,
		.high_fraction_min = 8,
		.max_parked_share = 0.125,
		.order_max = UINT64_MAX,
		.writes_per_minute = 10,
		.writes_per_day = 500,
		.listen = "127.0.0.1:9978",
		.series = CONFIG_SERIES_BASIC,
		.per_cpu = PER_CPU_AUTO,
		.hotplug = true,
		.links = true,
		.processes = true,
		.pressure = true,
	};
}

/* The value as it is meant, or false with what would have been right in `want`. */
static bool read_choice(const struct config_key *k, const char *text, void *field,
			struct text *want)
{
	text_add(want, "one of");
	for (unsigned i = 0; k->words[i]; i++) {
		text_addf(want, "%s %s", i ? "," : "", k->words[i]);
		if (streq(text, k->words[i])) {
			*(unsigned *)field = i;
			return true;
		}
	}
	return false;
}

static bool read_time(const struct config_key *k, const char *text, void *field, struct text *want)
{
	uint64_t v;

	text_addf(want, "a time from %llus to %llus (20s, 5min, 1h 30min)",
		  (unsigned long long)(k->min / USEC_PER_SEC),
		  (unsigned long long)(k->max / USEC_PER_SEC));
	if (parse_timespan(text, &v) < 0 || v < k->min || v > k->max)
		return false;
	*(uint64_t *)field = v;
	return true;
}

static bool read_count(const struct config_key *k, const char *text, void *field, struct text *want)
{
	uint64_t v;

	text_addf(want, "a number from %llu to %llu", (unsigned long long)k->min,
		  (unsigned long long)k->max);
	if (parse_u64(text, &v) < 0 || v < k->min || v > k->max)
		return false;
	*(uint64_t *)field = v;
	return true;
}

static bool read_foreign(const char *text, void *field, struct text *want)
{
	static const char for_word[] = "yield-for ";
	uint64_t v = 0;

	text_add(want, "yield, or yield-for TIME (yield-for 24h)");
	if (!streq(text, "yield")) {
		if (strncmp(text, for_word, strlen(for_word)) != 0 ||
		    parse_timespan(text + strlen(for_word), &v) < 0 || v == 0)
			return false;
	}
	*(uint64_t *)field = v;
	return true;
}

static bool read_value(const struct config_key *k, const char *text, struct config *c,
		       struct text *want)
{
	void *field = (char *)c + k->offset;

	switch (k->type) {
	case KEY_CHOICE:
		return read_choice(k, text, field, want);
	case KEY_TIME:
		return read_time(k, text, field, want);
	case KEY_COUNT:
		return read_count(k, text, field, want);
	case KEY_RATIO:
		text_add(want, "a share above 0% and up to 100%");
		return parse_ratio(text, field) == 0 && *(double *)field > 0;
	case KEY_TEXT:
		text_addf(want, "at most %u bytes", CONFIG_TEXT_MAX - 1);
		if (strlen(text) >= CONFIG_TEXT_MAX || !*text)
			return false;
		memcpy(field, text, strlen(text) + 1);
		return true;
	case KEY_PATH:
		text_addf(want, "an absolute path of at most %u bytes", CONFIG_TEXT_MAX - 1);
		if (strlen(text) >= CONFIG_TEXT_MAX || text[0] != '/')
			return false;
		memcpy(field, text, strlen(text) + 1);
		return true;
	case KEY_BOOL:
		text_add(want, "yes or no");
		return parse_bool(text, field) == 0;
	case KEY_FOREIGN:
		return read_foreign(text, field, want);
	}
	return false;
}

static void take_entry(struct config *c, const struct ini_section *section,
		       const struct ini_entry *entry, struct diagnostics *d)
{
	_cleanup_(text_free) struct text want = {0};
	struct ini_pos pos = ini_key_pos(&entry->value);
	struct nearest n = NEAREST(entry->key);
	const char *raw = entry->value.raw;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!streq(keys[i].section, section->name))
			continue;
		nearest_try(&n, keys[i].key);
		if (!streq(keys[i].key, entry->key))
			continue;
		if (read_value(&keys[i], entry->value.text, c, &want))
			return;
		pos = ini_value_pos(&entry->value, 0, &raw);
		diagnostics_add(d, &pos, raw, NULL, "%s= in [%s] takes %s, not \"%s\"", entry->key,
				section->name, text_str(&want), entry->value.text);
		return;
	}
	diagnostics_add(d, &pos, raw, n.best, "there is no key %s= in [%s]", entry->key,
			section->name);
}

static void take_section(struct config *c, const struct ini_section *section, struct diagnostics *d)
{
	struct nearest n = NEAREST(section->name);
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		nearest_try(&n, keys[i].section);
		known = known || streq(keys[i].section, section->name);
	}
	if (!known) {
		const struct ini_pos pos = {section->file, section->line, 1};

		diagnostics_add(d, &pos, section->raw, n.best, "there is no section [%s]",
				section->name);
		return;
	}
	for (size_t i = 0; i < section->nr; i++)
		take_entry(c, section, &section->entries[i], d);
}

static int load_doc(struct ini_doc *doc, const struct sysroot *root, const char *file,
		    struct diagnostics *d, struct error *e)
{
	int r;

	if (file && access(file, R_OK) < 0)
		return error_set(e, -errno, "cannot read the configuration %s: %s", file,
				 error_name(errno));
	r = search_load(root, search_config_dirs, CONFIG_NAME, file, doc, NULL, d);
	if (r == -ENOMEM)
		return error_set(e, r, "out of memory while reading the configuration");
	return 0;
}

/* The first error with its place: who asked for a reload does not see what is printed. */
static int refuse(struct diagnostics *d, FILE *out, struct error *e)
{
	const struct diagnostic *first = d->list;
	char others[48] = "";

	diagnostics_sort(d);
	diagnostics_print(d, out, false);
	if (d->errors == 0)
		return 0;
	while (first->warning)
		first++;
	if (d->errors > 1)
		(void)snprintf(others, sizeof(others), ", and %zu more", d->errors - 1);
	return error_set(e, -EINVAL, "the configuration has an error, mend it: %s:%u:%u: %s%s",
			 first->file, first->line, first->column, first->message, others);
}

int config_load(struct config *ret, const struct sysroot *root, const char *file, FILE *out,
		struct error *e)
{
	struct diagnostics d = {0};
	struct ini_doc doc = {0};
	struct config c;
	int r;

	config_defaults(&c);
	r = load_doc(&doc, root, file, &d, e);
	if (r == 0) {
		for (size_t i = 0; i < doc.nr; i++)
			take_section(&c, &doc.sections[i], &d);
		r = refuse(&d, out, e);
	}
	ini_doc_free(&doc);
	diagnostics_free(&d);
	if (r == 0)
		*ret = c;
	return r;
}

static void add_default(struct text *t, const struct config_key *k, const struct config *c)
{
	const void *field = (const char *)c + k->offset;
	uint64_t v;

	switch (k->type) {
	case KEY_CHOICE:
		text_addf(t, "%s", k->words[*(const unsigned *)field]);
		break;
	case KEY_TIME:
		text_addf(t, "%llus",
			  (unsigned long long)(*(const uint64_t *)field / USEC_PER_SEC));
		break;
	case KEY_COUNT:
		v = *(const uint64_t *)field;
		if (v == UINT64_MAX)
			text_add(t, "(the PMD order - 1)");
		else
			text_add_u64(t, v);
		break;
	case KEY_RATIO:
		text_addf(t, "%g%%", *(const double *)field * 100);
		break;
	case KEY_TEXT:
	case KEY_PATH:
		text_add(t, field);
		break;
	case KEY_BOOL:
		text_add(t, *(const bool *)field ? "yes" : "no");
		break;
	case KEY_FOREIGN:
		text_add(t, "yield");
		break;
	}
}

int config_print(const struct sysroot *root, const char *file, FILE *out, struct error *e)
{
	_cleanup_(text_free) struct text text = {0};
	struct diagnostics d = {0};
	struct ini_doc doc = {0};
	struct config c;
	int r;

	config_defaults(&c);
	r = load_doc(&doc, root, file, &d, e);
	if (r == 0) {
		ini_doc_print(&doc, &text);
		text_add(&text, "\n# not set anywhere, so the defaults hold:\n");
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
			const struct ini_section *s = ini_doc_section(&doc, keys[i].section);

			if (s && ini_section_get(s, keys[i].key))
				continue;
			text_addf(&text, "# [%s] %s=", keys[i].section, keys[i].key);
			add_default(&text, &keys[i], &c);
			text_add(&text, "\n");
		}
		for (size_t i = 0; i < doc.nr; i++)
			take_section(&c, &doc.sections[i], &d);
		(void)fputs(text_str(&text), out);
		r = refuse(&d, stderr, e);
	}
	ini_doc_free(&doc);
	diagnostics_free(&d);
	return r;
}
