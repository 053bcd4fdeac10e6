/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an operator uses to make pcptune take its hands off, whatever the configuration says. */
#pragma once

#include "base/sysroot.h"

#define KILL_SWITCH_REL "etc/pcptune/disabled"

/*
 * NULL, or what is thrown, for people: "/etc/pcptune/disabled exists" or "pcptune=off is on the
 * kernel command line".
 */
const char *kill_switch_thrown(const struct sysroot *root);
