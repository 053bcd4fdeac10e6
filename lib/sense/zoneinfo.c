/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense/zoneinfo.h"

#include <errno.h>

/* Where in a zone's block the parser is; lines mean different things in each. */
enum section {
	SECTION_NONE, /* before the first zone, or behind a heading that no kernel prints */
	SECTION_HEAD, /* behind "Node 0, zone Normal" */
	SECTION_PER_NODE,
	SECTION_PAGES, /* behind "pages free": watermarks, sizes, protection, counters */
	SECTION_PAGESETS,
	SECTION_TAIL, /* behind the last pageset */
};

struct parser {
	struct zoneinfo *zi;
	const char *text, *end;
	struct zone *zone;
	struct pageset *pageset;
	enum section section;
	uint8_t field;                     /* the last field that was read */
	uint8_t follower[_ZONE_FIELD_MAX]; /* which field came behind another one: the first try */
	uint64_t tail;   /* what stood behind the pagesets of the last complete zone */
	const char *bad; /* the number that does not fit, or the name that is too long */
	const char *bad_why;
	bool lenient, no_memory;
};

#define TAIL_FIELDS                                                                       \
	(UINT64_C(1) << ZONE_NODE_UNRECLAIMABLE | UINT64_C(1) << ZONE_ALL_UNRECLAIMABLE | \
	 UINT64_C(1) << ZONE_NODE_INACTIVE_RATIO | UINT64_C(1) << ZONE_INACTIVE_RATIO |   \
	 UINT64_C(1) << ZONE_PREV_PRIORITY | UINT64_C(1) << ZONE_TEMP_PRIORITY |          \
	 UINT64_C(1) << ZONE_START_PFN | UINT64_C(1) << ZONE_RESERVED_HIGHATOMIC |        \
	 UINT64_C(1) << ZONE_FREE_HIGHATOMIC)

#define FIELD(name_)                                      \
	{                                                 \
		.len = sizeof(name_) - 1, .name = (name_) \
	}
static const struct {
	uint8_t len;
	char name[23]; /* with zeros to its end */
} zone_fields[] = {
	[ZONE_FREE] = FIELD("free"),
	[ZONE_BOOST] = FIELD("boost"),
	[ZONE_MIN] = FIELD("min"),
	[ZONE_LOW] = FIELD("low"),
	[ZONE_HIGH] = FIELD("high"),
	[ZONE_PROMO] = FIELD("promo"),
	[ZONE_SCANNED] = FIELD("scanned"),
	[ZONE_SCAN_A] = FIELD("scan_a"),
	[ZONE_SCAN_I] = FIELD("scan_i"),
	[ZONE_ACTIVE] = FIELD("active"),
	[ZONE_INACTIVE] = FIELD("inactive"),
	[ZONE_SPANNED] = FIELD("spanned"),
	[ZONE_PRESENT] = FIELD("present"),
	[ZONE_MANAGED] = FIELD("managed"),
	[ZONE_CMA] = FIELD("cma"),
	[ZONE_NODE_SCANNED] = FIELD("node_scanned"),
	[ZONE_NODE_UNRECLAIMABLE] = FIELD("node_unreclaimable"),
	[ZONE_ALL_UNRECLAIMABLE] = FIELD("all_unreclaimable"),
	[ZONE_NODE_INACTIVE_RATIO] = FIELD("node_inactive_ratio"),
	[ZONE_INACTIVE_RATIO] = FIELD("inactive_ratio"),
	[ZONE_PREV_PRIORITY] = FIELD("prev_priority"),
	[ZONE_TEMP_PRIORITY] = FIELD("temp_priority"),
	[ZONE_START_PFN] = FIELD("start_pfn"),
	[ZONE_RESERVED_HIGHATOMIC] = FIELD("reserved_highatomic"),
	[ZONE_FREE_HIGHATOMIC] = FIELD("free_highatomic"),
};
_Static_assert(ARRAY_SIZE(zone_fields) == _ZONE_FIELD_MAX, "name every zone field");

static const char *const pageset_field_names[] = {
	[PAGESET_COUNT] = "count",
	[PAGESET_HIGH] = "high",
	[PAGESET_BATCH] = "batch",
	[PAGESET_LOW] = "low",
	[PAGESET_HIGH_MIN] = "high_min",
	[PAGESET_HIGH_MAX] = "high_max",
	[PAGESET_VM_STATS_THRESHOLD] = "vm_stats_threshold",
};
_Static_assert(ARRAY_SIZE(pageset_field_names) == _PAGESET_FIELD_MAX, "name every pageset field");

const char *zone_field_name(enum zone_field f)
{
	return f < _ZONE_FIELD_MAX ? zone_fields[f].name : NULL;
}

const char *pageset_field_name(enum pageset_field f)
{
	return f < _PAGESET_FIELD_MAX ? pageset_field_names[f] : NULL;
}

/*
 * Eight bytes at a time where the machine's byte order lets the first byte be the lowest: most of
 * the time of a parse is spent on runs of blanks, names and digits whose length no branch predictor
 * can guess.
 */
#define WORDWISE   (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define EACH(byte) ((uint64_t)(byte)*UINT64_C(0x0101010101010101))

static inline uint64_t load8(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

/* The high bit of the lowest byte below `limit` is set; bits above that one mean nothing. */
static inline uint64_t bytes_below(uint64_t w, uint8_t limit)
{
	return (w - EACH(limit)) & ~w & EACH(0x80);
}

static inline unsigned lowest_byte(uint64_t mask)
{
	return (unsigned)__builtin_ctzll(mask) / 8;
}

static inline const char *skip_blanks(const char *p, const char *end)
{
	while (WORDWISE && end - p >= 8) {
		uint64_t other = load8(p) ^ EACH(' ');

		if (other)
			return p + lowest_byte(other);
		p += 8;
	}
	while (p < end && *p == ' ')
		p++;
	return p;
}

/* To the first byte behind a word: a blank, a newline or another one up to ' '. */
static inline const char *skip_word(const char *p, const char *end)
{
	while (WORDWISE && end - p >= 8) {
		uint64_t w = load8(p), stop = bytes_below(w, ' ' + 1);

		if (stop)
			return p + lowest_byte(stop);
		p += 8;
	}
	while (p < end && (uint8_t)*p > ' ')
		p++;
	return p;
}

static const char *long_number(struct parser *ps, const char *p, uint64_t *ret)
{
	const char *start = p;
	uint64_t v = 0;

	for (; p < ps->end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10U, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v)) {
			ps->bad = start;
			ps->bad_why = "the number does not fit in 64 bits";
			return NULL;
		}
	if (p == start)
		return NULL;
	*ret = v;
	return p;
}

/* The decimal number at p; returns what is behind it, NULL where there is none. */
static inline const char *number(struct parser *ps, const char *p, uint64_t *ret)
{
	uint64_t digits, others;
	unsigned n;

	if (!WORDWISE || ps->end - p < 8)
		return long_number(ps, p, ret);
	digits = load8(p) ^ EACH('0');
	others = (((digits & EACH(0x7f)) + EACH(0x76)) | digits) & EACH(0x80);
	if (!others)
		return long_number(ps, p, ret);
	n = lowest_byte(others);
	if (n == 0)
		return NULL;
	/* digits to the high end, zeros before them; then pairs, fours and eights at once */
	digits <<= 64 - 8 * n;
	digits = digits * 10 + (digits >> 8);
	*ret = ((digits & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
		(digits >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
	       32;
	return p + n;
}

/* Behind the line that must end at p; NULL where something else stands there. */
static inline const char *line_end(const struct parser *ps, const char *p)
{
	if (p < ps->end)
		return *p == '\n' ? p + 1 : NULL;
	return p;
}

static inline const char *expect(const struct parser *ps, const char *p, const char *word, size_t n)
{
	if ((size_t)(ps->end - p) < n || memcmp(p, word, n) != 0)
		return NULL;
	return p + n;
}
#define EXPECT(ps, p, literal) expect(ps, p, literal, sizeof(literal) - 1)

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The last things on a line: a number and the newline; with blanks before them. */
static inline const char *number_line(struct parser *ps, const char *p, uint64_t *ret)
{
	if (ps->end - p >= 2 && p[1] == '\n' && is_digit(*p)) { /* most counters are 0 */
		*ret = (uint64_t)(*p - '0');
		return p + 2;
	}
	p = number(ps, p, ret);
	return p ? line_end(ps, p) : NULL;
}

static inline const char *last_number(struct parser *ps, const char *p, uint64_t *ret)
{
	return number_line(ps, skip_blanks(p, ps->end), ret);
}

/* Nothing but blanks from p up to a digit at `digit`? */
static inline bool blanks_to_digit(const char *p, const char *digit)
{
	while (p < digit && *p == ' ')
		p++;
	return p == digit && is_digit(*p);
}

static bool grow(struct parser *ps, void *array, uint32_t *room, size_t item)
{
	uint32_t more = *room ? *room * 2 : 16;
	char *p;

	if (more <= *room)
		p = NULL;
	else
		p = realloc(*(void **)array, more * item);
	if (!p) {
		ps->no_memory = true;
		return false;
	}
	memset(p + *room * item, 0, (more - *room) * item);
	*(void **)array = p;
	*room = more;
	return true;
}

static inline bool add_value(struct parser *ps, const char *name, size_t len, uint64_t value)
{
	struct zoneinfo *zi = ps->zi;

	if (zi->nr_values == zi->values_room &&
	    !grow(ps, &zi->values, &zi->values_room, sizeof(*zi->values)))
		return false;
	zi->values[zi->nr_values++] =
		(struct named_value){.name = name, .name_len = (uint32_t)len, .value = value};
	return true;
}

static bool set_zone(struct parser *ps, enum zone_field f, uint64_t value)
{
	if (zone_has(ps->zone, f))
		return false;
	ps->zone->has |= UINT64_C(1) << f;
	ps->zone->value[f] = value;
	return true;
}

/* "      nr_mlock     2957", "                   83328" (the nameless one) */
static inline const char *counter_line(struct parser *ps, const char *name, bool named)
{
	const char *name_end = named ? skip_word(name, ps->end) : name;
	uint64_t value;
	const char *p;

	if (named && (name_end == name || name_end[-1] == ':'))
		return NULL;
	p = last_number(ps, name_end, &value);
	return p && add_value(ps, name, (size_t)(name_end - name), value) ? p : NULL;
}

/* Are the `len` bytes at p, more than none, one word? Eight bytes may be read in any case. */
static inline bool is_word(const char *p, size_t len)
{
	uint64_t stop = 0;

	if (len < 8)
		return !bytes_below(load8(p) | UINT64_MAX << 8 * len, ' ' + 1);
	for (size_t i = 0; i + 8 < len; i += 8)
		stop |= bytes_below(load8(p + i), ' ' + 1);
	return !(stop | bytes_below(load8(p + len - 8), ' ' + 1));
}

/* The column where the kernel starts a counter's value: the name is padded to 12 letters. */
#define COUNTER_COLUMN 12U

/*
 * The counters that follow a first one at the same depth: nearly half of all lines. The array still
 * has the lines of the last parse. Where the word is as long as it was then, what stands where
 * needs no search, and reading a line need not wait for the end of the one before.
 */
static const char *counter_lines(struct parser *ps, const char *p, size_t indent)
{
	struct zoneinfo *zi = ps->zi;
	const uint64_t blanks = EACH(' ') >> (64 - 8 * indent);
	const uint64_t mask = UINT64_MAX >> (64 - 8 * indent);

	while (WORDWISE && ps->end - p >= 128 && (load8(p) & mask) == blanks && p[indent] > ' ' &&
	       zi->nr_values < zi->values_room) {
		struct named_value *v = &zi->values[zi->nr_values];
		const char *name = p + indent, *next, *digits;
		size_t len = v->name_len, column = MAX_OF(len, (size_t)COUNTER_COLUMN);

		digits = name + column + 1;
		if (len == 0 || len > 64 || !is_word(name, len) || name[len - 1] == ':' ||
		    !blanks_to_digit(name + len, digits))
			next = counter_line(ps, name, true);
		else if ((next = number_line(ps, digits, &v->value))) {
			v->name = name;
			zi->nr_values++;
		}
		if (!next)
			break;
		p = next;
	}
	return p;
}

static const char *first_counter_line(struct parser *ps, const char *p, size_t indent)
{
	uint32_t first = ps->zi->nr_values;

	p = counter_line(ps, p, indent < 8);
	if (p && indent < 8)
		p = counter_lines(ps, p, indent);
	if (ps->section == SECTION_PER_NODE)
		ps->zone->nr_per_node += ps->zi->nr_values - first;
	else
		ps->zone->nr_counters += ps->zi->nr_values - first;
	return p;
}

static inline bool field_is(const struct parser *ps, unsigned f, const char *word, size_t len)
{
	const char *name = zone_fields[f].name;

	if (zone_fields[f].len != len)
		return false;
	if (!WORDWISE || len >= 8 || ps->end - word < 8)
		return memcmp(name, word, len) == 0;
	return (load8(word) & ~(UINT64_MAX << 8 * len)) == load8(name);
}

/* The field of that name. Zones print theirs in one order, so that the first try is mostly it. */
static inline int find_field(struct parser *ps, const char *word, size_t len)
{
	unsigned f = ps->follower[ps->field];

	if (!field_is(ps, f, word, len)) {
		for (f = 0; f < _ZONE_FIELD_MAX && !field_is(ps, f, word, len);)
			f++;
		if (f == _ZONE_FIELD_MAX)
			return -1;
		ps->follower[ps->field] = (uint8_t)f;
	}
	ps->field = (uint8_t)f;
	return (int)f;
}

/* "scanned  0 (a: 24 i: 4)", up to 2.6.27 */
static const char *scanned_line(struct parser *ps, const char *p, uint64_t scanned)
{
	uint64_t a, i;

	p = EXPECT(ps, p, " (a: ");
	p = p ? number(ps, p, &a) : NULL;
	p = p ? EXPECT(ps, p, " i: ") : NULL;
	p = p ? number(ps, p, &i) : NULL;
	p = p ? EXPECT(ps, p, ")") : NULL;
	p = p ? line_end(ps, p) : NULL;
	if (!p || !set_zone(ps, ZONE_SCANNED, scanned))
		return NULL;
	(void)set_zone(ps, ZONE_SCAN_A, a);
	(void)set_zone(ps, ZONE_SCAN_I, i);
	return p;
}

/* "(0, 3018, 6858)" */
static const char *protection_line(struct parser *ps, const char *p)
{
	struct zoneinfo *zi = ps->zi;
	uint32_t n = zi->nr_protection;
	uint64_t value;

	if (ps->zone->nr_protection)
		return NULL;
	p = EXPECT(ps, p, "(");
	while (p && (p = number(ps, p, &value))) {
		const char *more;

		if (n == zi->protection_room &&
		    !grow(ps, &zi->protection, &zi->protection_room, sizeof(*zi->protection)))
			return NULL;
		zi->protection[n++] = value;
		more = EXPECT(ps, p, ", ");
		if (!more)
			break;
		p = more;
	}
	p = p ? EXPECT(ps, p, ")") : NULL;
	p = p ? line_end(ps, skip_blanks(p, ps->end)) : NULL;
	if (!p)
		return NULL;
	ps->zone->first_protection = zi->nr_protection;
	ps->zone->nr_protection = n - zi->nr_protection;
	zi->nr_protection = n;
	return p;
}

/* "        min      36", "  start_pfn:           1", "   node_scanned  0" */
static const char *field_line(struct parser *ps, const char *word)
{
	const char *word_end = skip_word(word, ps->end), *p;
	size_t len = (size_t)(word_end - word);
	uint64_t value;
	int field;

	if (len > 0 && word[len - 1] == ':')
		len--;
	if (len == strlen("protection") && EXPECT(ps, word, "protection: "))
		return protection_line(ps, word_end + 1);
	field = find_field(ps, word, len);
	if (field < 0)
		return NULL;
	p = number(ps, skip_blanks(word_end, ps->end), &value);
	if (!p)
		return NULL;
	if (field == ZONE_SCANNED && p < ps->end && *p == ' ')
		return scanned_line(ps, p, value);
	p = line_end(ps, p);
	return p && set_zone(ps, (enum zone_field)field, value) ? p : NULL;
}

/* The column where the kernel starts the value of a size or watermark. */
#define FIELD_COLUMN 9U

/* The sizes and watermarks that follow a first one, where they come in the order of the last zone.
 */
static const char *field_lines(struct parser *ps, const char *p)
{
	p = field_line(ps, p);
	while (WORDWISE && p && ps->end - p >= 64 && load8(p) == EACH(' ')) {
		const char *word = p + 8, *next;
		unsigned f = ps->follower[ps->field];
		size_t len = zone_fields[f].len;
		uint64_t value;

		if (len >= FIELD_COLUMN || !field_is(ps, f, word, len) ||
		    !blanks_to_digit(word + len, word + FIELD_COLUMN))
			break;
		next = number_line(ps, word + FIELD_COLUMN, &value);
		if (!next || !set_zone(ps, (enum zone_field)f, value))
			break;
		ps->field = (uint8_t)f;
		p = next;
	}
	return p;
}

/* "    cpu: 0", "    cpu: 0 pcp: 1" */
static inline const char *cpu_line(struct parser *ps, const char *p)
{
	struct zoneinfo *zi = ps->zi;
	uint64_t cpu, pcp = 0;
	struct pageset *s;
	int32_t which = -1;
	const char *q;

	p = EXPECT(ps, p, "cpu: ");
	p = p ? number(ps, skip_blanks(p, ps->end), &cpu) : NULL;
	if (!p)
		return NULL;
	q = EXPECT(ps, p, " pcp: ");
	if (q) {
		p = number(ps, q, &pcp);
		which = (int32_t)pcp;
	}
	p = p ? line_end(ps, p) : NULL;
	if (!p || cpu > INT32_MAX || pcp > 1)
		return NULL;
	if (zi->nr_pagesets == zi->pagesets_room &&
	    !grow(ps, &zi->pagesets, &zi->pagesets_room, sizeof(*zi->pagesets)))
		return NULL;
	s = &zi->pagesets[zi->nr_pagesets++];
	if (s->nr_orders)
		memset(s->order, 0, sizeof(s->order));
	memset(s->value, 0, sizeof(s->value));
	s->cpu = (uint32_t)cpu;
	s->pcp = which;
	s->has = s->computed = s->nr_orders = s->nr_numa = 0;
	s->first_numa = zi->nr_values;
	ps->zone->nr_pagesets++;
	ps->pageset = s;
	return p;
}

/* "order4: 12": blocks, where the kernel counts them */
static const char *order_line(struct parser *ps, const char *p)
{
	uint64_t order, blocks;

	p = number(ps, p, &order);
	p = p ? EXPECT(ps, p, ": ") : NULL;
	p = p ? last_number(ps, p, &blocks) : NULL;
	if (!p || order < ps->pageset->nr_orders || order >= PCP_ORDERS_MAX)
		return NULL;
	ps->pageset->order[order] = blocks;
	ps->pageset->nr_orders = (uint32_t)order + 1;
	ps->zi->prints_orders = true;
	return p;
}

/* "numa_hit:       2155", up to 2.6.17 */
static const char *pageset_numa_line(struct parser *ps, const char *name)
{
	const char *name_end = skip_word(name, ps->end), *p;
	uint64_t value;

	if (name_end - name < 2 || name_end[-1] != ':')
		return NULL;
	p = last_number(ps, name_end, &value);
	if (!p || !add_value(ps, name, (size_t)(name_end - name) - 1, value))
		return NULL;
	ps->pageset->nr_numa++;
	return p;
}

/* The columns where kernels start the values of a list, up to 6.12 and since. */
#define PAGESET_COLUMN_OLD 7U
#define PAGESET_COLUMN     10U

static inline const char *pageset_number(struct parser *ps, const char *word, const char *p,
					 uint64_t *ret)
{
	if (ps->end - word > PAGESET_COLUMN) {
		if (blanks_to_digit(p, word + PAGESET_COLUMN))
			return number_line(ps, word + PAGESET_COLUMN, ret);
		if (blanks_to_digit(p, word + PAGESET_COLUMN_OLD))
			return number_line(ps, word + PAGESET_COLUMN_OLD, ret);
	}
	return last_number(ps, p, ret);
}

/* "count:    25297" and its like */
static inline const char *pageset_line(struct parser *ps, const char *word)
{
	enum pageset_field f;
	const char *p;
	uint64_t value;

	if ((p = EXPECT(ps, word, "count:")))
		f = PAGESET_COUNT;
	else if ((p = EXPECT(ps, word, "high:")))
		f = PAGESET_HIGH;
	else if ((p = EXPECT(ps, word, "batch:")))
		f = PAGESET_BATCH;
	else if ((p = EXPECT(ps, word, "high_min:")))
		f = PAGESET_HIGH_MIN;
	else if ((p = EXPECT(ps, word, "high_max:")))
		f = PAGESET_HIGH_MAX;
	else if ((p = EXPECT(ps, word, "order")))
		return order_line(ps, p);
	else if ((p = EXPECT(ps, word, "low:")))
		f = PAGESET_LOW;
	else
		return NULL;
	p = pageset_number(ps, word, p, &value);
	if (!p || ps->pageset->has & 1U << f)
		return NULL;
	ps->pageset->has |= 1U << f;
	ps->pageset->value[f] = value;
	return p;
}

/* Once a CPU: with hot and cold lists it stands behind the second and belongs to both. */
static inline const char *threshold_line(struct parser *ps, const char *p)
{
	struct pageset *s = ps->pageset;
	uint64_t value;

	p = EXPECT(ps, p, "vm stats threshold:");
	p = p ? last_number(ps, p, &value) : NULL;
	if (!p || s->has & 1U << PAGESET_VM_STATS_THRESHOLD)
		return NULL;
	for (uint32_t i = 0; i < ps->zone->nr_pagesets && s->cpu == ps->pageset->cpu; i++, s--) {
		s->has |= 1U << PAGESET_VM_STATS_THRESHOLD;
		s->value[PAGESET_VM_STATS_THRESHOLD] = value;
	}
	return p;
}

/* A CPU and its list: most lines of a large machine. */
static const char *cpu_lines(struct parser *ps, const char *p)
{
	p = cpu_line(ps, p);
	while (p && ps->end - p >= 16 && load8(p) == EACH(' ') && load8(p + 6) == EACH(' ')) {
		const char *next = pageset_line(ps, p + 14);

		if (!next)
			break;
		p = next;
	}
	return p;
}

static void byte_to_line(const struct parser *ps, const char *at, size_t *line, size_t *byte)
{
	*line = 1;
	for (const char *p = ps->text; p < at; p++)
		*line += *p == '\n';
	*byte = (size_t)(at - ps->text);
}

static int bad_text(const struct parser *ps, const char *at, const char *why, struct error *e)
{
	size_t line, byte;

	byte_to_line(ps, at, &line, &byte);
	return error_set(e, -EBADMSG, "line %zu, byte %zu: %s", line, byte, why);
}

/*
 * Is the zone's block whole? One that has pages ends in start_pfn (every kernel since 2.6.13) and
 * in whatever else the zones before it ended in; one without ends in its protection.
 */
static int close_zone(struct parser *ps, const char *at, struct error *e)
{
	const uint64_t must = UINT64_C(1) << ZONE_FREE | UINT64_C(1) << ZONE_PRESENT;
	struct zone *z = ps->zone;
	uint64_t tail;
	bool whole;

	if (!z)
		return 0;
	tail = z->has & TAIL_FIELDS;
	z->populated = z->value[ZONE_PRESENT] > 0;
	whole = (z->has & must) == must && z->nr_protection > 0;
	if (z->populated || ps->section >= SECTION_PAGESETS) {
		whole = whole && zone_has(z, ZONE_START_PFN) && (ps->tail & ~tail) == 0;
		ps->tail |= tail;
	}
	ps->zone = NULL;
	ps->pageset = NULL;
	if (whole || ps->lenient)
		return 0;
	return bad_text(ps, at,
			at == ps->end ? "the text ends inside a zone's block"
				      : "a zone's block is not complete",
			e);
}

/* "Node 0, zone   Normal" */
static const char *heading(struct parser *ps, const char *p, struct zone *z)
{
	const char *name, *nl;
	uint64_t node;
	size_t len;

	p = EXPECT(ps, p, "Node ");
	p = p ? number(ps, skip_blanks(p, ps->end), &node) : NULL;
	p = p ? EXPECT(ps, p, ", zone ") : NULL;
	if (!p || node > INT32_MAX)
		return NULL;
	name = skip_blanks(p, ps->end);
	p = skip_word(name, ps->end);
	len = (size_t)(p - name);
	nl = line_end(ps, skip_blanks(p, ps->end));
	if (!nl || len == 0)
		return NULL;
	if (len >= sizeof(z->name)) {
		ps->bad = name;
		ps->bad_why = "no zone has a name as long as this";
		return NULL;
	}
	memset(z, 0, sizeof(*z));
	z->node = (int32_t)node;
	memcpy(z->name, name, len);
	return nl;
}

static const char *begin_zone(struct parser *ps, const char *p)
{
	struct zoneinfo *zi = ps->zi;
	struct zone *z;

	ps->section = SECTION_NONE; /* what follows a strange heading belongs to no zone */
	if (zi->nr_zones == zi->zones_room &&
	    !grow(ps, &zi->zones, &zi->zones_room, sizeof(*zi->zones)))
		return NULL;
	z = &zi->zones[zi->nr_zones];
	p = heading(ps, p, z);
	if (!p)
		return NULL;
	zi->nr_zones++;
	z->first_per_node = z->first_counter = zi->nr_values;
	z->first_protection = zi->nr_protection;
	z->first_pageset = zi->nr_pagesets;
	ps->zone = z;
	ps->section = SECTION_HEAD;
	return p;
}

/* The lines that open a part of the block, and those behind the pagesets: indented by 1 to 3. */
static const char *outline_line(struct parser *ps, const char *p)
{
	const char *q;
	uint64_t value;

	if (ps->pageset && (q = threshold_line(ps, p)))
		return q;
	if ((q = EXPECT(ps, p, "per-node stats"))) {
		if (ps->section != SECTION_HEAD || !(q = line_end(ps, q)))
			return NULL;
		ps->section = SECTION_PER_NODE;
		return q;
	}
	if ((q = EXPECT(ps, p, "pages free "))) {
		q = last_number(ps, q, &value);
		if (ps->section > SECTION_PER_NODE || !q || !set_zone(ps, ZONE_FREE, value))
			return NULL;
		ps->section = SECTION_PAGES;
		ps->zone->first_counter = ps->zi->nr_values;
		ps->field = ZONE_FREE;
		return q;
	}
	if ((q = EXPECT(ps, p, "pagesets"))) {
		if (ps->section != SECTION_PAGES || !(q = line_end(ps, q)))
			return NULL;
		ps->section = SECTION_PAGESETS;
		return q;
	}
	q = field_line(ps, p);
	if (q && ps->section == SECTION_PAGESETS) {
		ps->section = SECTION_TAIL;
		ps->pageset = NULL;
	}
	return q;
}

/* One line of the zone at hand; NULL where it has no known form. */
static inline const char *zone_line(struct parser *ps, const char *p, size_t indent)
{
	if (indent < 4)
		return outline_line(ps, p);
	if (ps->section == SECTION_PAGESETS) {
		if (indent < 8)
			return cpu_lines(ps, p);
		if (!ps->pageset)
			return NULL;
		p = indent >= 14 ? pageset_line(ps, p) : pageset_numa_line(ps, p);
		return p;
	}
	if (ps->section != SECTION_PER_NODE && ps->section != SECTION_PAGES)
		return NULL;
	return indent >= 8 && indent < 12 ? field_lines(ps, p) : first_counter_line(ps, p, indent);
}

static int parse_lines(struct parser *ps, struct error *e)
{
	const char *p = ps->text, *start, *next;

	while (p < ps->end) {
		int r = 0;

		start = p;
		p = skip_blanks(p, ps->end);
		if (p - start <= 1 && p < ps->end && *p == 'N') {
			r = close_zone(ps, start, e);
			if (r < 0)
				return r;
			next = begin_zone(ps, p);
		} else if (ps->zone) {
			next = zone_line(ps, p, (size_t)(p - start));
		} else {
			if (ps->zi->nr_zones == 0 && p > start && !ps->lenient)
				return bad_text(ps, start, "the text begins inside a block", e);
			next = NULL;
		}
		if (!next) {
			if (ps->no_memory)
				return error_set(e, -ENOMEM, "out of memory");
			if (ps->bad)
				return bad_text(ps, ps->bad, ps->bad_why, e);
			ps->zi->unknown_lines++;
			next = memchr(p, '\n', (size_t)(ps->end - p));
			next = next ? next + 1 : ps->end;
		}
		p = next;
	}
	return close_zone(ps, ps->end, e);
}

static void empty(struct zoneinfo *zi)
{
	zi->nr_zones = zi->nr_pagesets = zi->nr_values = zi->nr_protection = 0;
	zi->unknown_lines = 0;
	zi->prints_high_min = zi->prints_orders = false;
}

int zoneinfo_parse(struct zoneinfo *zi, const char *text, size_t len, unsigned flags,
		   struct error *e)
{
	struct parser ps = {
		.zi = zi,
		.text = text,
		.end = text + len,
		.lenient = flags & ZONEINFO_LENIENT,
	};
	int r;

	empty(zi);
	if (!ps.lenient && len == 0)
		return bad_text(&ps, ps.end, "there is no text", e);
	if (!ps.lenient && text[len - 1] != '\n')
		return bad_text(&ps, ps.end, "the text ends inside a line", e);
	r = parse_lines(&ps, e);
	if (r == 0 && zi->nr_zones == 0 && !ps.lenient)
		r = bad_text(&ps, ps.end, "there is no zone in the text", e);
	if (r < 0) {
		empty(zi);
		return r;
	}
	for (uint32_t i = 0; i < zi->nr_pagesets && !zi->prints_high_min; i++)
		zi->prints_high_min = zi->pagesets[i].has >> PAGESET_HIGH_MIN & 1;
	return 0;
}

void zoneinfo_free(struct zoneinfo *zi)
{
	free(zi->zones);
	free(zi->pagesets);
	free(zi->values);
	free(zi->protection);
	*zi = (struct zoneinfo){0};
}

uint64_t zone_parked(const struct zoneinfo *zi, const struct zone *z)
{
	uint64_t pages = 0;

	for (uint32_t i = 0; i < z->nr_pagesets; i++)
		pages += zi->pagesets[z->first_pageset + i].value[PAGESET_COUNT];
	return pages;
}

static bool find_value(const struct zoneinfo *zi, uint32_t first, uint32_t n, const char *name,
		       uint64_t *ret)
{
	size_t len = strlen(name);

	for (uint32_t i = first; i < first + n; i++)
		if (zi->values[i].name_len == len && memcmp(zi->values[i].name, name, len) == 0) {
			*ret = zi->values[i].value;
			return true;
		}
	return false;
}

bool zone_counter(const struct zoneinfo *zi, const struct zone *z, const char *name, uint64_t *ret)
{
	return find_value(zi, z->first_counter, z->nr_counters, name, ret) ||
	       find_value(zi, z->first_per_node, z->nr_per_node, name, ret);
}
