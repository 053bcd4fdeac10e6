/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of pcptunectl: one table for parsing, --help, completions and the test of the page.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum option_id {
	OPTION_ROOT,
	OPTION_PAGE_SIZE,
	OPTION_JSON,
	OPTION_NO_PAGER,
	OPTION_HELP,
	OPTION_VERSION,
	_OPTION_GLOBAL_MAX,
	OPTION_ALL = _OPTION_GLOBAL_MAX,
	OPTION_NODE,
	OPTION_ZONE,
	OPTION_CPU,
	OPTION_MODE,
	OPTION_FAST,
	OPTION_MAX_TIME,
	OPTION_ISOLATED_TOO,
	OPTION_DRY_RUN,
	OPTION_FOR,
	OPTION_LINES,
	OPTION_FOLLOW,
	OPTION_SINCE,
	OPTION_OPENMETRICS,
	OPTION_SERIES,
	OPTION_PER_CPU,
	OPTION_POLICY_DIR,
	_OPTION_MAX,
};
#define OPTION_BIT(o) (1U << (o))

struct option_info {
	const char *name; /* without dashes */
	char letter;      /* 0: none */
	const char *arg;  /* "DIR"; NULL: takes none */
	const char *help; /* half a sentence */
};
const struct option_info *option_info(enum option_id o);

#define OPERANDS_MAX    1024U
#define POLICY_DIRS_MAX 16U

/* What was given. Everything points into argv. */
struct options {
	uint32_t given;                 /* OPTION_BIT()s */
	const char *value[_OPTION_MAX]; /* the last one given */
	const char *policy_dirs[POLICY_DIRS_MAX + 1];
	unsigned nr_policy_dirs;
	const char *operands[OPERANDS_MAX]; /* what is no option, in order */
	unsigned nr_operands;
};

static inline bool option_given(const struct options *o, enum option_id id)
{
	return o->given >> id & 1;
}

/*
 * Reads all arguments; options may stand before and behind the verb, "--" ends them. -EINVAL, with
 * what is wrong and the nearest name.
 */
int options_parse(struct options *o, int argc, char *const argv[], struct error *e);

/* Those given may only be global ones or in `allowed`; otherwise -EINVAL, naming the verb. */
int options_check(const struct options *o, uint32_t allowed, const char *verb, struct error *e);
