/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many times this program, the C library included, asked for memory. */
#pragma once

#include <stdint.h>

uint64_t malloc_count(void);
