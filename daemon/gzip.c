/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <zlib.h>

/* Expositions repeat themselves within lines: more effort or a larger window gains a few per cent,
 * and zlib's usual window and tables are three times the size. */
#define LEVEL       4
#define WINDOW_BITS 13
#define AS_GZIP     16
#define MEM_LEVEL   6

struct gzip {
	z_stream z;
};

int gzip_new(struct gzip **ret)
{
	struct gzip *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	if (deflateInit2(&g->z, LEVEL, Z_DEFLATED, WINDOW_BITS + AS_GZIP, MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(g);
		return -ENOMEM;
	}
	*ret = g;
	return 0;
}

struct gzip *gzip_free(struct gzip *g)
{
	if (g)
		(void)deflateEnd(&g->z);
	free(g);
	return NULL;
}

int gzip_text(struct gzip *g, const char *from, size_t len, struct text *into)
{
	size_t bound;

	if (len > UINT_MAX / 2)
		return -EFBIG;
	(void)deflateReset(&g->z);
	bound = deflateBound(&g->z, (uLong)len);
	text_clear(into);
	if (text_reserve(into, bound) < 0)
		return -ENOMEM;
	g->z.next_in = (Bytef *)(uintptr_t)from; /* zlib does not write to its input */
	g->z.avail_in = (uInt)len;
	g->z.next_out = (Bytef *)into->data;
	g->z.avail_out = (uInt)bound;
	/* deflateBound() promises that all fits */
	if (deflate(&g->z, Z_FINISH) != Z_STREAM_END)
		return -ENOMEM;
	into->len = g->z.total_out;
	into->data[into->len] = '\0';
	return 0;
}
