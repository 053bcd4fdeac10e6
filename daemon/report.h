/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon says at its start: what it found, in lines for a person. */
#pragma once

#include "base/log.h"
#include "policy/engine.h"
#include "sense/snapshot.h"

/*
 * Kernel, CPUs, nodes, memory; which knobs and drains this kernel offers and what is lost without
 * them; how much memory is parked.
 */
void report_machine(const struct log *log, const struct sysroot *root, const struct snapshot *s);

/* "1.2 GiB (0.9% of memory)" into `buf`; returns it. */
const char *report_parked(const struct snapshot *s, char *buf, size_t size);
