/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/parse.h"
#include "sense/snapshot.h"

#include <errno.h>

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && *p == ' ')
		p++;
	return p;
}

/* "Node 0, zone   Normal ": moves *p behind it. */
static int parse_heading(const char **p, const char *nl, struct buddy_zone *z)
{
	static const char node_word[] = "Node ", zone_word[] = ", zone ";
	const char *at = *p, *name;
	uint64_t node;

	if ((size_t)(nl - at) < strlen(node_word) || memcmp(at, node_word, strlen(node_word)) != 0)
		return -EINVAL;
	at = skip_blanks(at + strlen(node_word), nl);
	if (parse_u64_at(&at, nl, &node) < 0 || node > INT32_MAX)
		return -EINVAL;
	if ((size_t)(nl - at) < strlen(zone_word) || memcmp(at, zone_word, strlen(zone_word)) != 0)
		return -EINVAL;
	name = at = skip_blanks(at + strlen(zone_word), nl);
	while (at < nl && (uint8_t)*at > ' ')
		at++;
	if (at == name || (size_t)(at - name) >= sizeof(z->name))
		return -EINVAL;
	*z = (struct buddy_zone){.node = (int32_t)node};
	memcpy(z->name, name, (size_t)(at - name));
	*p = at;
	return 0;
}

static int parse_line(const char *p, const char *nl, struct buddy_zone *z)
{
	int r = parse_heading(&p, nl, z);

	for (p = skip_blanks(p, nl); r == 0 && p < nl; p = skip_blanks(p, nl)) {
		if (z->nr_orders == BUDDY_ORDERS_MAX)
			return -EINVAL;
		r = parse_u64_at(&p, nl, &z->free[z->nr_orders++]);
	}
	return r < 0 ? r : z->nr_orders ? 0 : -EINVAL;
}

static int reserve(struct buddyinfo *b)
{
	struct buddy_zone *zones;
	uint32_t room;

	if (b->nr_zones < b->zones_room)
		return 0;
	room = b->zones_room ? b->zones_room * 2 : 16;
	zones = realloc(b->zones, room * sizeof(*zones));
	if (!zones)
		return -ENOMEM;
	b->zones = zones;
	b->zones_room = room;
	return 0;
}

int buddyinfo_parse(struct buddyinfo *b, const char *text, size_t len, struct error *e)
{
	const char *end = text + len, *nl;
	size_t line = 1;

	b->nr_zones = 0;
	for (const char *p = text; p < end; p = nl + 1, line++) {
		int r = reserve(b);

		nl = memchr(p, '\n', (size_t)(end - p));
		if (r == 0)
			r = nl ? parse_line(p, nl, &b->zones[b->nr_zones]) : -EBADMSG;
		if (r == 0)
			b->nr_zones++;
		if (r == 0 || r == -EINVAL)
			continue;
		b->nr_zones = 0;
		return error_set(e, r == -ENOMEM ? r : -EBADMSG, "line %zu, byte %zu: %s", line,
				 nl ? (size_t)(p - text) : len,
				 r == -ENOMEM   ? "out of memory"
				 : r == -ERANGE ? "the number does not fit in 64 bits"
						: "the text ends inside a line");
	}
	if (b->nr_zones == 0)
		return error_set(e, -EBADMSG, "line 1, byte 0: there is no zone in the text");
	return 0;
}

void buddyinfo_free(struct buddyinfo *b)
{
	free(b->zones);
	*b = (struct buddyinfo){0};
}

const struct buddy_zone *buddy_by_zone(const struct buddyinfo *b, const struct zone *z)
{
	for (uint32_t i = 0; i < b->nr_zones; i++)
		if (b->zones[i].node == z->node && streq(b->zones[i].name, z->name))
			return &b->zones[i];
	return NULL;
}

double buddy_unusable(const struct buddy_zone *z, unsigned order)
{
	double pages = 0, usable = 0;

	for (uint32_t o = 0; o < z->nr_orders; o++) {
		double more = (double)z->free[o] * (double)(UINT64_C(1) << o);

		pages += more;
		if (o >= order)
			usable += more;
	}
	return pages > 0 ? (pages - usable) / pages : 1;
}
