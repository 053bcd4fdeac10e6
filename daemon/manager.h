/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon itself: owns every part, ticks, and ends with everything put back. */
#pragma once

#include "base/log.h"

enum mode_option {
	MODE_AS_CONFIGURED,
	MODE_OBSERVE,
	MODE_ENFORCE,
};

struct manager_options {
	const char *root;               /* "/" */
	const char *config_file;        /* NULL: searched for */
	const char *const *policy_dirs; /* NULL-terminated, lowest first; NULL: the standard ones */
	enum mode_option mode;
	bool once;           /* one decision, told, nothing written */
	uint64_t for_usec;   /* end by itself after this long; USEC_INFINITY: no */
	uint64_t page_bytes; /* of a captured root; 0: this machine's */
};

/* Runs until it is told to stop. Returns the exit code: 0 done, 1 failed, 4 the kernel refused to
 * take a setting back, 5 not available here. */
int manager_run(const struct manager_options *options, const struct log *log);
