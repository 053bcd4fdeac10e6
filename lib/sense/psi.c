/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/parse.h"
#include "sense/snapshot.h"

#include <errno.h>

/* "avg10=12.34 " as 0.1234 (kernel/sched/psi.c: two digits behind the point) */
static int parse_average(const char **s, const char *end, const char *name, double *ret)
{
	const char *p = *s;
	size_t n = strlen(name);
	uint64_t whole, hundredths;

	if ((size_t)(end - p) < n || memcmp(p, name, n) != 0)
		return -EINVAL;
	p += n;
	if (parse_u64_at(&p, end, &whole) < 0 || end - p < 4 || *p++ != '.')
		return -EINVAL;
	if (end - p < 3 || p[2] != ' ' || parse_u64_at(&p, p + 2, &hundredths) < 0 || *p++ != ' ')
		return -EINVAL;
	if (whole > 100)
		return -ERANGE;
	*ret = ((double)whole + (double)hundredths / 100) / 100;
	*s = p;
	return 0;
}

static int parse_line(const char *p, const char *nl, struct psi_line *ret)
{
	static const char total[] = "total=";
	struct psi_line l = {.present = true};
	int r;

	r = parse_average(&p, nl, "avg10=", &l.avg10);
	if (r == 0)
		r = parse_average(&p, nl, "avg60=", &l.avg60);
	if (r == 0)
		r = parse_average(&p, nl, "avg300=", &l.avg300);
	if (r < 0)
		return r;
	if ((size_t)(nl - p) < strlen(total) || memcmp(p, total, strlen(total)) != 0)
		return -EINVAL;
	p += strlen(total);
	r = parse_u64_at(&p, nl, &l.total_usec);
	if (r < 0 || p != nl)
		return r < 0 ? r : -EINVAL;
	*ret = l;
	return 0;
}

int psi_parse(struct psi *psi, const char *text, size_t len, struct error *e)
{
	const char *end = text + len, *nl;
	struct psi found = {0};
	size_t line = 1;

	*psi = found;
	for (const char *p = text; p < end; p = nl + 1, line++) {
		int r = 0;

		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			return error_set(e, -EBADMSG,
					 "line %zu, byte %zu: the text ends inside a line", line,
					 len);
		if (nl - p > 5 && memcmp(p, "some ", 5) == 0)
			r = parse_line(p + 5, nl, &found.some);
		else if (nl - p > 5 && memcmp(p, "full ", 5) == 0)
			r = parse_line(p + 5, nl, &found.full);
		if (r < 0)
			return error_set(e, -EBADMSG,
					 "line %zu, byte %zu: not a line of pressure averages",
					 line, (size_t)(p - text));
	}
	if (!found.some.present)
		return error_set(e, -EBADMSG, "line 1, byte 0: there is no \"some\" line");
	*psi = found;
	return 0;
}
