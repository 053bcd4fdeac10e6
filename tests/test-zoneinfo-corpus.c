/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every zoneinfo text of the captures against values that an independent program took from it.
 * Without the captures there is nothing to do; tests/test-zoneinfo.c has texts of its own.
 */
#include "corpus.h"
#include "sense/zoneinfo.h"

#include <errno.h>
#include <json.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void json_putp(struct json_object **o)
{
	(void)json_object_put(*o);
}

static struct json_object *load_json(const char *path)
{
	_cleanup_(text_free) struct text text = {0};
	struct json_object *o;

	read_test_file(path, &text);
	o = json_tokener_parse(text_str(&text));
	if (!o)
		fail_msg("%s is no JSON", path);
	return o;
}

static uint64_t u64_of(struct json_object *o)
{
	return json_object_get_uint64(o);
}

struct oracle {
	const char *slug;
	uint64_t values;         /* numbers compared */
	uint32_t expect_unknown; /* lines that the other program knows and this one does not */
};

static void must_equal(struct oracle *o, const char *what, const char *key, uint64_t have,
		       struct json_object *want)
{
	o->values++;
	if (have != u64_of(want))
		fail_msg("%s: %s.%s is %llu, must be %llu", o->slug, what, key,
			 (unsigned long long)have, (unsigned long long)u64_of(want));
}

static int pageset_field(const char *key)
{
	for (int f = 0; f < _PAGESET_FIELD_MAX; f++)
		if (streq(pageset_field_name((enum pageset_field)f), key))
			return f;
	return -1;
}

static int zone_field(const char *key)
{
	for (int f = 0; f < _ZONE_FIELD_MAX; f++)
		if (streq(zone_field_name((enum zone_field)f), key))
			return f;
	return -1;
}

static void compare_values(struct oracle *o, const char *what, const struct zoneinfo *zi,
			   uint32_t first, uint32_t n, struct json_object *want)
{
	uint32_t found = 0;

	for (uint32_t i = first; i < first + n; i++) {
		const struct named_value *v = &zi->values[i];
		char name[64];
		struct json_object *value;

		(void)snprintf(name, sizeof(name), "%.*s", (int)v->name_len, v->name);
		if (!json_object_object_get_ex(want, name, &value))
			fail_msg("%s: %s has a counter %s that nobody expects", o->slug, what,
				 name);
		must_equal(o, what, name, v->value, value);
		found++;
	}
	if (found != (uint32_t)json_object_object_length(want))
		fail_msg("%s: %s has %u counters, must have %d", o->slug, what, found,
			 json_object_object_length(want));
}

static void compare_pageset(struct oracle *o, const struct zoneinfo *zi, const struct pageset *p,
			    struct json_object *want)
{
	unsigned order;
	uint32_t nr_fields = 0, nr_orders = 0;

	json_object_object_foreach(want, key, value)
	{
		int f = pageset_field(key);

		if (streq(key, "cpu")) {
			must_equal(o, "pageset", key, p->cpu, value);
		} else if (streq(key, "pcp")) {
			must_equal(o, "pageset", key, (uint64_t)p->pcp, value);
		} else if (streq(key, "numa")) {
			compare_values(o, "pageset.numa", zi, p->first_numa, p->nr_numa, value);
		} else if (sscanf(key, "order%u", &order) == 1) {
			assert_true(order < p->nr_orders);
			must_equal(o, "pageset", key, p->order[order], value);
			nr_orders++;
		} else {
			if (f < 0 || !(p->has >> f & 1))
				fail_msg("%s: cpu %u has no %s", o->slug, p->cpu, key);
			must_equal(o, "pageset", key, p->value[f], value);
			nr_fields++;
		}
	}
	if ((uint32_t)__builtin_popcount(p->has) != nr_fields || p->nr_orders != nr_orders)
		fail_msg("%s: cpu %u has more fields than anybody expects", o->slug, p->cpu);
	assert_int_equal(p->pcp >= 0, json_object_object_get_ex(want, "pcp", NULL));
	assert_int_equal(p->computed, 0);
}

static void compare_protection(struct oracle *o, const struct zoneinfo *zi, const struct zone *z,
			       struct json_object *want)
{
	if (z->nr_protection != json_object_array_length(want))
		fail_msg("%s: %s has %u protection values", o->slug, z->name, z->nr_protection);
	for (uint32_t i = 0; i < z->nr_protection; i++)
		must_equal(o, z->name, "protection", zi->protection[z->first_protection + i],
			   json_object_array_get_idx(want, i));
}

static void compare_zone(struct oracle *o, const struct zoneinfo *zi, const struct zone *z,
			 struct json_object *want)
{
	uint32_t nr_fields = 0;

	json_object_object_foreach(want, key, value)
	{
		int f = zone_field(key);

		if (streq(key, "node")) {
			must_equal(o, z->name, key, (uint64_t)z->node, value);
		} else if (streq(key, "zone")) {
			assert_string_equal(z->name, json_object_get_string(value));
		} else if (streq(key, "counters")) {
			compare_values(o, z->name, zi, z->first_counter, z->nr_counters, value);
		} else if (streq(key, "per_node")) {
			compare_values(o, z->name, zi, z->first_per_node, z->nr_per_node, value);
		} else if (streq(key, "protection")) {
			compare_protection(o, zi, z, value);
		} else if (streq(key, "pagesets")) {
			if (z->nr_pagesets != json_object_array_length(value))
				fail_msg("%s: node %d %s has %u pagesets, must have %zu", o->slug,
					 z->node, z->name, z->nr_pagesets,
					 json_object_array_length(value));
			for (uint32_t i = 0; i < z->nr_pagesets; i++)
				compare_pageset(o, zi, &zi->pagesets[z->first_pageset + i],
						json_object_array_get_idx(value, i));
		} else if (f < 0) {
			o->expect_unknown++;
		} else {
			if (!zone_has(z, (enum zone_field)f))
				fail_msg("%s: node %d %s has no %s", o->slug, z->node, z->name,
					 key);
			must_equal(o, z->name, key, z->value[f], value);
			nr_fields++;
		}
	}
	if ((uint32_t)__builtin_popcountll(z->has) != nr_fields)
		fail_msg("%s: node %d %s has more fields than anybody expects", o->slug, z->node,
			 z->name);
	if (!json_object_object_get_ex(want, "per_node", NULL))
		assert_int_equal(z->nr_per_node, 0);
	assert_int_equal(z->populated, z->value[ZONE_PRESENT] > 0);
}

static uint64_t number_at(struct json_object *o, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value))
		return 0;
	return json_object_is_type(value, json_type_array) ? json_object_array_length(value)
							   : u64_of(value);
}

static bool is_true(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) && json_object_get_boolean(value);
}

static void compare_text(const char *slug, const char *text_path, const char *expect_path,
			 bool excerpt)
{
	_cleanup_(json_putp) struct json_object *want = load_json(expect_path);
	_cleanup_(zoneinfo_free) struct zoneinfo zi = {0};
	_cleanup_(text_free) struct text text = {0};
	struct oracle o = {.slug = slug};
	bool cut = is_true(want, "no_final_newline");
	struct json_object *zones;
	struct error e = {0};
	int r;

	read_test_file(text_path, &text);
	r = zoneinfo_parse(&zi, text_str(&text), text.len, 0, &e);
	if (cut && r != -EBADMSG)
		fail_msg("%s has no final newline and was taken as complete", slug);
	if (!cut && !excerpt && r < 0)
		fail_msg("%s is complete and was refused: %s", slug, e.text);
	if (r < 0) {
		print_message("    %s, read leniently (strictly: %s)\n", slug, e.text);
		r = zoneinfo_parse(&zi, text_str(&text), text.len, ZONEINFO_LENIENT, &e);
		if (r < 0)
			fail_msg("%s was refused even leniently: %s", slug, e.text);
	}
	assert_true(json_object_object_get_ex(want, "zones", &zones));
	if (zi.nr_zones != json_object_array_length(zones))
		fail_msg("%s has %u zones, must have %zu", slug, zi.nr_zones,
			 json_object_array_length(zones));
	for (uint32_t i = 0; i < zi.nr_zones; i++)
		compare_zone(&o, &zi, &zi.zones[i], json_object_array_get_idx(zones, i));
	o.expect_unknown += (uint32_t)number_at(want, "unparsed");
	o.expect_unknown += (uint32_t)number_at(want, "orphan_lines_before_first_zone");
	if (zi.unknown_lines != o.expect_unknown)
		fail_msg("%s has %u unknown lines, must have %u", slug, zi.unknown_lines,
			 o.expect_unknown);
	print_message("    %-44s %3u zones %5u pagesets %6llu values equal\n", slug, zi.nr_zones,
		      zi.nr_pagesets, (unsigned long long)o.values);
}

static bool is_excerpt(const char *dir)
{
	_cleanup_(text_free) struct text meta = {0};
	const char *line;
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/META", dir);
	if (access(path, R_OK) < 0)
		return false;
	read_test_file(path, &meta);
	line = strstr(text_str(&meta), "completeness:");
	return line && strncmp(line + strlen("completeness:"), " complete", 9) != 0;
}

static void compare_capture(const char *slug, void *userdata)
{
	static const char *const pairs[][2] = {
		{"zoneinfo", "expect.json"},
		{"zoneinfo.second", "expect.second.json"},
	};
	char dir[256], text[320], expect[320];
	unsigned *compared = userdata;

	(void)snprintf(dir, sizeof(dir), "%s/corpus/kernel/%s", corpus_dir(), slug);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		(void)snprintf(text, sizeof(text), "%s/%s", dir, pairs[i][0]);
		(void)snprintf(expect, sizeof(expect), "%s/%s", dir, pairs[i][1]);
		if (access(text, R_OK) < 0 || access(expect, R_OK) < 0)
			continue;
		compare_text(slug, text, expect, is_excerpt(dir));
		(*compared)++;
	}
}

static void every_captured_zoneinfo_has_the_values_an_independent_reader_found(void **state)
{
	unsigned compared = 0;
	char dir[256];

	(void)state;
	if (!corpus_dir()) {
		print_message("    no captures beside the source tree\n");
		skip();
	}
	(void)snprintf(dir, sizeof(dir), "%s/corpus/kernel", corpus_dir());
	if (each_name(dir, compare_capture, &compared) < 0 || compared == 0)
		skip();
	print_message("    %u texts compared\n", compared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_captured_zoneinfo_has_the_values_an_independent_reader_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
