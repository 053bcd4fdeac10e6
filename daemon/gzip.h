/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compresses texts one after the other with one compressor, which keeps its room (about 100 KiB).
 */
#pragma once

#include "base/text.h"

struct gzip;

/* -ENOMEM */
int gzip_new(struct gzip **ret) _must_check_;
struct gzip *gzip_free(struct gzip *g);

static inline void gzip_freep(struct gzip **g)
{
	*g = gzip_free(*g);
}

/*
 * `into` becomes one gzip member (RFC 1952) of `len` bytes at `from`, without a name or a time: the
 * same text gives the same bytes. -ENOMEM; -EFBIG above UINT_MAX bytes.
 */
int gzip_text(struct gzip *g, const char *from, size_t len, struct text *into) _must_check_;
