/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands in front of the C library's allocator and counts. Under a sanitizer, which has to be the
 * allocator itself, its hook counts instead.
 */
#include "malloc-count.h"

#include <stdatomic.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(WITH_SANITIZER)
#undef WITH_SANITIZER
#define WITH_SANITIZER 1
#else
#define WITH_SANITIZER 0
#endif

static _Atomic uint64_t count;

uint64_t malloc_count(void)
{
	return atomic_load(&count);
}

#if WITH_SANITIZER

int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
					      void (*free_hook)(const volatile void *));

static void on_malloc(const volatile void *p, size_t size)
{
	(void)p;
	(void)size;
	atomic_fetch_add(&count, 1);
}

static void on_free(const volatile void *p)
{
	(void)p;
}

__attribute__((constructor)) static void install(void)
{
	(void)__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);

void *malloc(size_t size)
{
	atomic_fetch_add(&count, 1);
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	atomic_fetch_add(&count, 1);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	atomic_fetch_add(&count, 1);
	return __libc_realloc(p, size);
}

#endif
