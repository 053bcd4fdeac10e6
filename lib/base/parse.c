/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/parse.h"

#include <errno.h>
#include <math.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

int parse_u64_at(const char **s, const char *end, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;

	if (p >= end || !is_digit(*p))
		return -EINVAL;
	for (; p < end && is_digit(*p); p++)
		if (__builtin_mul_overflow(v, 10U, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	*s = p;
	*ret = v;
	return 0;
}

int parse_u64(const char *s, uint64_t *ret)
{
	const char *end = s + strlen(s);
	uint64_t v;
	int r;

	r = parse_u64_at(&s, end, &v);
	if (r < 0)
		return r;
	if (*s == '\n')
		s++;
	if (*s)
		return -EINVAL;
	*ret = v;
	return 0;
}

/*
 * A decimal number with an optional fraction. Read by hand because strtod() takes the locale's
 * decimal point, "inf", "nan", hexadecimal and a sign.
 */
static int parse_decimal_at(const char **s, double *ret)
{
	const char *p = *s;
	double v = 0, scale = 1;
	bool any = false;

	for (; is_digit(*p); p++, any = true)
		v = v * 10 + (*p - '0');
	if (*p == '.')
		for (p++; is_digit(*p); p++, any = true) {
			scale /= 10;
			v += scale * (*p - '0');
		}
	if (!any)
		return -EINVAL;
	if (!isfinite(v))
		return -ERANGE;
	*s = p;
	*ret = v;
	return 0;
}

struct unit {
	const char *name;
	double factor;
};

/* The longest run of letters at *s as a unit; "" is the unit of that name. */
static int parse_unit_at(const char **s, const struct unit *units, size_t n, double *ret)
{
	const char *p = *s;
	size_t len;

	while ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z'))
		p++;
	len = (size_t)(p - *s);
	for (size_t i = 0; i < n; i++)
		if (strlen(units[i].name) == len && memcmp(units[i].name, *s, len) == 0) {
			*s = p;
			*ret = units[i].factor;
			return 0;
		}
	return -EINVAL;
}

static int double_to_u64(double v, uint64_t *ret)
{
	/* 2^63: exact in a double, and no time or size of this world */
	if (!(v >= 0) || v >= 9223372036854775808.0)
		return -ERANGE;
	*ret = (uint64_t)llround(v);
	return 0;
}

int parse_timespan(const char *s, uint64_t *ret_usec)
{
	static const struct unit units[] = {
		{"", 1e6},        {"us", 1},         {"usec", 1},     {"ms", 1e3},
		{"msec", 1e3},    {"s", 1e6},        {"sec", 1e6},    {"m", 60e6},
		{"min", 60e6},    {"h", 3600e6},     {"hr", 3600e6},  {"d", 86400e6},
		{"day", 86400e6}, {"days", 86400e6}, {"w", 604800e6},
	};
	double total = 0, v, factor;
	bool any = false;
	int r;

	for (;;) {
		while (is_blank(*s))
			s++;
		if (!*s)
			break;
		r = parse_decimal_at(&s, &v);
		if (r < 0)
			return r;
		while (is_blank(*s))
			s++;
		r = parse_unit_at(&s, units, ARRAY_SIZE(units), &factor);
		if (r < 0)
			return r;
		total += v * factor;
		any = true;
	}
	return any ? double_to_u64(total, ret_usec) : -EINVAL;
}

int parse_bytes(const char *s, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{"", 1},         {"B", 1},        {"k", 0x1p10},   {"K", 0x1p10},   {"kB", 0x1p10},
		{"KB", 0x1p10},  {"kiB", 0x1p10}, {"KiB", 0x1p10}, {"M", 0x1p20},   {"MB", 0x1p20},
		{"MiB", 0x1p20}, {"G", 0x1p30},   {"GB", 0x1p30},  {"GiB", 0x1p30}, {"T", 0x1p40},
		{"TB", 0x1p40},  {"TiB", 0x1p40},
	};
	double v, factor;
	int r;

	r = parse_decimal_at(&s, &v);
	if (r < 0)
		return r;
	while (is_blank(*s))
		s++;
	r = parse_unit_at(&s, units, ARRAY_SIZE(units), &factor);
	if (r < 0)
		return r;
	return *s ? -EINVAL : double_to_u64(v * factor, ret_bytes);
}

int parse_ratio(const char *s, double *ret)
{
	double v;
	int r;

	r = parse_decimal_at(&s, &v);
	if (r < 0)
		return r;
	while (is_blank(*s))
		s++;
	if (*s == '%') {
		v /= 100;
		s++;
	}
	if (*s)
		return -EINVAL;
	if (v > 1)
		return -ERANGE;
	*ret = v;
	return 0;
}

int parse_bool(const char *s, bool *ret)
{
	static const char *const yes[] = {"yes", "true", "on", "1"};
	static const char *const no[] = {"no", "false", "off", "0"};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (strcasecmp(s, yes[i]) == 0) {
			*ret = true;
			return 0;
		}
		if (strcasecmp(s, no[i]) == 0) {
			*ret = false;
			return 0;
		}
	}
	return -EINVAL;
}

void cpuset_free(struct cpuset *set)
{
	free(set->bits);
	*set = (struct cpuset){0};
}

void cpuset_clear(struct cpuset *set)
{
	if (set->bits)
		memset(set->bits, 0, set->words * sizeof(*set->bits));
}

int cpuset_add(struct cpuset *set, unsigned cpu)
{
	size_t word = cpu / 64;

	if (cpu >= CPU_LIMIT)
		return -ERANGE;
	if (word >= set->words) {
		size_t words = MAX_OF(word + 1, set->words * 2);
		uint64_t *bits = realloc(set->bits, words * sizeof(*bits));

		if (!bits)
			return -ENOMEM;
		memset(bits + set->words, 0, (words - set->words) * sizeof(*bits));
		set->bits = bits;
		set->words = words;
	}
	set->bits[word] |= UINT64_C(1) << cpu % 64;
	return 0;
}

bool cpuset_has(const struct cpuset *set, unsigned cpu)
{
	return cpu / 64 < set->words && (set->bits[cpu / 64] >> cpu % 64 & 1);
}

size_t cpuset_count(const struct cpuset *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->words; i++)
		n += (size_t)__builtin_popcountll(set->bits[i]);
	return n;
}

int cpuset_next(const struct cpuset *set, int from)
{
	if (from < 0)
		from = 0;
	for (size_t cpu = (size_t)from; cpu < set->words * 64; cpu++)
		if (set->bits[cpu / 64] >> cpu % 64 & 1)
			return (int)cpu;
	return -1;
}

int parse_cpulist(const char *s, struct cpuset *into)
{
	const char *end = s + strlen(s);
	uint64_t first, last;
	int r;

	cpuset_clear(into);
	if (end > s && end[-1] == '\n')
		end--;
	while (s < end) {
		r = parse_u64_at(&s, end, &first);
		if (r < 0)
			return r;
		last = first;
		if (s < end && *s == '-') {
			s++;
			r = parse_u64_at(&s, end, &last);
			if (r < 0)
				return r;
		}
		if (last < first)
			return -EINVAL;
		if (last >= CPU_LIMIT)
			return -ERANGE;
		for (uint64_t cpu = first; cpu <= last; cpu++) {
			r = cpuset_add(into, (unsigned)cpu);
			if (r < 0)
				return r;
		}
		if (s == end)
			break;
		if (*s++ != ',' || s == end)
			return -EINVAL;
	}
	return 0;
}
