/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/parse.h"
#include "sense/snapshot.h"

#include <errno.h>

/* The longest name of today has 32 letters; a sum's name gets a zone's suffix on top. */
#define NAME_MAX_LEN 64U

static uint64_t hash_name(const char *name, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

static bool name_is(const struct named_value *v, const char *name, size_t len)
{
	return v->name_len == len && memcmp(v->name, name, len) == 0;
}

/* Tells one set of names from another, well enough to see that a kernel's lines have changed. */
static uint64_t layout_of(const struct vmstat *v)
{
	uint64_t h = v->nr_values;

	for (uint32_t i = 0; i < v->nr_values; i++)
		h = (h + v->values[i].name_len) * UINT64_C(0x9e3779b97f4a7c15) +
		    hash_name(v->values[i].name, MIN_OF(v->values[i].name_len, 4U));
	return h | 1;
}

/* Only when names came or went. Without memory for it, looking up is slower and right. */
static void make_index(struct vmstat *v, uint64_t layout)
{
	uint32_t size = 64;

	while (size < v->nr_values * 2)
		size *= 2;
	if (size != v->index_size) {
		free(v->index);
		v->index = calloc(size, sizeof(*v->index));
		v->index_size = v->index ? size : 0;
	}
	v->layout = v->index ? layout : 0;
	if (!v->index)
		return;
	memset(v->index, 0, size * sizeof(*v->index));
	for (uint32_t i = 0; i < v->nr_values; i++) {
		uint64_t at = hash_name(v->values[i].name, v->values[i].name_len);

		while (v->index[at & (size - 1)])
			at++;
		v->index[at & (size - 1)] = i + 1;
	}
}

static int add_value(struct vmstat *v, const char *name, size_t len, uint64_t value)
{
	if (v->nr_values == v->values_room) {
		uint32_t room = v->values_room ? v->values_room * 2 : 256;
		struct named_value *values = realloc(v->values, room * sizeof(*values));

		if (!values)
			return -ENOMEM;
		v->values = values;
		v->values_room = room;
	}
	v->values[v->nr_values++] =
		(struct named_value){.name = name, .name_len = (uint32_t)len, .value = value};
	return 0;
}

/* "pgfree 123"; -EINVAL where the line is something else */
static int parse_line(struct vmstat *v, const char *line, const char *nl)
{
	const char *blank = memchr(line, ' ', (size_t)(nl - line));
	const char *p;
	uint64_t value;
	int r;

	if (!blank || blank == line)
		return -EINVAL;
	p = blank + 1;
	r = parse_u64_at(&p, nl, &value);
	if (r < 0)
		return r;
	return p == nl ? add_value(v, line, (size_t)(blank - line), value) : -EINVAL;
}

int vmstat_parse(struct vmstat *v, const char *text, size_t len, struct error *e)
{
	const char *end = text + len, *nl;
	uint64_t layout;
	size_t line = 1;

	v->nr_values = 0;
	for (const char *p = text; p < end; p = nl + 1, line++) {
		int r;

		nl = memchr(p, '\n', (size_t)(end - p));
		r = nl ? parse_line(v, p, nl) : -EBADMSG;
		if (r == -EINVAL)
			continue;
		if (r < 0) {
			v->nr_values = 0;
			return error_set(e, r == -ENOMEM ? r : -EBADMSG, "line %zu, byte %zu: %s",
					 line, nl ? (size_t)(p - text) : len,
					 r == -ENOMEM   ? "out of memory"
					 : r == -ERANGE ? "the number does not fit in 64 bits"
							: "the text ends inside a line");
		}
	}
	if (v->nr_values == 0)
		return error_set(e, -EBADMSG, "line 1, byte 0: there is no value in the text");
	layout = layout_of(v);
	if (layout != v->layout)
		make_index(v, layout);
	return 0;
}

void vmstat_free(struct vmstat *v)
{
	free(v->values);
	free(v->index);
	*v = (struct vmstat){0};
}

static bool find(const struct vmstat *v, const char *name, size_t len, uint32_t *ret)
{
	if (!v->index) {
		for (uint32_t i = 0; i < v->nr_values; i++)
			if (name_is(&v->values[i], name, len)) {
				*ret = i;
				return true;
			}
		return false;
	}
	for (uint64_t at = hash_name(name, len);; at++) {
		uint32_t i = v->index[at & (v->index_size - 1)];

		if (!i)
			return false;
		if (i <= v->nr_values && name_is(&v->values[i - 1], name, len)) {
			*ret = i - 1;
			return true;
		}
	}
}

/* mm/vmstat.c, TEXTS_FOR_ZONES() */
static bool sum_over_zones(const struct vmstat *v, const char *name, size_t len, uint64_t *ret)
{
	static const char *const suffixes[] = {"_dma",  "_dma32",   "_normal",
					       "_high", "_movable", "_device"};
	char full[NAME_MAX_LEN + 16];
	uint64_t sum = 0;
	bool any = false;

	if (len > NAME_MAX_LEN)
		return false;
	memcpy(full, name, len);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t more = strlen(suffixes[i]);
		uint32_t at;

		memcpy(full + len, suffixes[i], more);
		if (find(v, full, len + more, &at)) {
			sum += v->values[at].value;
			any = true;
		}
	}
	*ret = sum;
	return any;
}

bool vmstat_get(const struct vmstat *v, const char *name, uint32_t *hint, uint64_t *ret)
{
	size_t len = strlen(name);
	uint32_t i = hint ? *hint : v->nr_values;

	if (i >= v->nr_values || !name_is(&v->values[i], name, len)) {
		if (!find(v, name, len, &i))
			return sum_over_zones(v, name, len, ret);
		if (hint)
			*hint = i;
	}
	*ret = v->values[i].value;
	return true;
}
