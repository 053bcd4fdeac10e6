/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts pages on per-CPU lists: touch and free memory while pinned to a CPU. */
#pragma once

#include <stddef.h>

/*
 * Touches `mib` MiB of small pages on `cpu` and frees them there. The kernel keeps as many on that
 * CPU's list as it allows. The caller stays pinned. 0 or a negative errno.
 */
int park_on_cpu(unsigned cpu, size_t mib);
