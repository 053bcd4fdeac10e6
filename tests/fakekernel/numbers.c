/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text to numbers as the kernel does it in sysctl (kernel/sysctl.c) and sysfs (lib/kstrtox.c). */
#include "files.h"

#include <ctype.h>
#include <errno.h>

static size_t skip_blanks(const char *buf, size_t at, size_t len)
{
	while (at < len && isspace((unsigned char)buf[at]))
		at++;
	return at;
}

/* Base by prefix, no sign. *at moves behind the last digit. False: no digit there, or too large. */
static bool digits(const char *buf, size_t *at, size_t len, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t v = 0;
	size_t i = *at, first;

	if (i < len && buf[i] == '0') {
		base = 8;
		if (i + 2 < len && tolower((unsigned char)buf[i + 1]) == 'x' &&
		    isxdigit((unsigned char)buf[i + 2])) {
			base = 16;
			i += 2;
		}
	}
	for (first = i; i < len; i++) {
		int c = tolower((unsigned char)buf[i]);
		unsigned d = isdigit(c)   ? (unsigned)(c - '0')
			     : isalpha(c) ? (unsigned)(c - 'a') + 10
					  : 99;

		if (d >= base)
			break;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
			return false;
	}
	*at = i;
	*ret = v;
	return i > first;
}

int sysctl_parse_int(const char *buf, size_t len, int64_t min, int64_t max, int *ret_value)
{
	size_t at = skip_blanks(buf, 0, len), start;
	bool negative;
	uint64_t v;

	if (at == len)
		return -EINVAL;
	start = at;
	negative = buf[at] == '-' && at + 1 < len;
	if (negative)
		at++;
	if (!isdigit((unsigned char)buf[at < len ? at : start]) || !digits(buf, &at, len, &v))
		return -EINVAL;
	if (at < len && buf[at] != ' ' && buf[at] != '\t' && buf[at] != '\n')
		return -EINVAL;
	if (v > (uint64_t)INT32_MAX + negative)
		return -EINVAL;
	if ((negative ? -(int64_t)v : (int64_t)v) < min ||
	    (negative ? -(int64_t)v : (int64_t)v) > max)
		return -EINVAL;
	*ret_value = (int)(negative ? -(int64_t)v : (int64_t)v);
	return (int)skip_blanks(buf, at, len);
}

int sysfs_parse_ulong(const char *buf, size_t len, unsigned long *ret)
{
	unsigned long v = 0;
	size_t i = 0;

	if (i < len && buf[i] == '+')
		i++;
	if (i == len || !isdigit((unsigned char)buf[i]))
		return -EINVAL;
	for (; i < len && isdigit((unsigned char)buf[i]); i++)
		if (__builtin_mul_overflow(v, 10UL, &v) ||
		    __builtin_add_overflow(v, (unsigned long)(buf[i] - '0'), &v))
			return -ERANGE;
	if (i < len && buf[i] == '\n')
		i++;
	if (i < len && buf[i] != '\0')
		return -EINVAL;
	*ret = v;
	return 0;
}

void add_cpulist(struct text *t, unsigned limit, bool (*has)(const void *of, unsigned i),
		 const void *of)
{
	const char *comma = "";

	for (unsigned i = 0; i < limit; i++) {
		unsigned last = i;

		if (!has(of, i))
			continue;
		while (last + 1 < limit && has(of, last + 1))
			last++;
		if (last == i)
			text_addf(t, "%s%u", comma, i);
		else
			text_addf(t, "%s%u-%u", comma, i, last);
		comma = ",";
		i = last;
	}
	text_add(t, "\n");
}
