/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each fuzz target offers, to libFuzzer or to the replay of its seeds (fuzz-replay.c). */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
