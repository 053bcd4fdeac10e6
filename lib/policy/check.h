/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is no error in a policy, yet surely not meant: the warnings of `policy check`. */
#pragma once

#include "policy/policy.h"

/*
 * Adds warnings about `p` to `d`:
 * - a Value= that makes lists larger on this machine than the kernel's own minimum, in a rule that
 *   means to shrink them (needs `s` for the sizes; NULL: not checked);
 * - a condition that can never hold, or always holds;
 * - a release that overlaps its trigger, so that the rule would turn on and off at once;
 * - an [Order] that no knob of this machine can control;
 * - a counter of /proc/vmstat that this kernel does not have (needs `s`).
 */
void policy_check(const struct policy *p, const struct expr_table *t, const struct snapshot *s,
		  struct diagnostics *d);
