/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ownership by cleanup attribute, and the few macros that every part uses. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f)        __attribute__((cleanup(f)))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))
#define _must_check_        __attribute__((warn_unused_result))

#define ARRAY_SIZE(a)       (sizeof(a) / sizeof((a)[0]))
#define TAKE_FD(fd)             \
	__extension__({         \
		int fd_ = (fd); \
		(fd) = -1;      \
		fd_;            \
	})
#define TAKE_PTR(p)                     \
	__extension__({                 \
		__typeof__(p) p_ = (p); \
		(p) = NULL;             \
		p_;                     \
	})
#define MIN_OF(a, b)                    \
	__extension__({                 \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ < b_ ? a_ : b_;      \
	})
#define MAX_OF(a, b)                    \
	__extension__({                 \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ > b_ ? a_ : b_;      \
	})

#define USEC_PER_MSEC   UINT64_C(1000)
#define USEC_PER_SEC    UINT64_C(1000000)
#define USEC_PER_MINUTE (60 * USEC_PER_SEC)
#define USEC_PER_HOUR   (60 * USEC_PER_MINUTE)
#define USEC_PER_DAY    (24 * USEC_PER_HOUR)
#define USEC_INFINITY   UINT64_MAX

static inline void closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* nobody could do anything about a failure here */
}

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

static inline int streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}
