/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policies that the daemon runs: loaded, told about at the start, handed to the engine. */
#pragma once

#include "base/log.h"
#include "policy/engine.h"
#include "sense/snapshot.h"

struct policies;

/*
 * Loads every policy (`dirs` as in policy_set_load()). Errors in policies are printed to `out` and
 * only put those policies aside; `previous` (may be NULL) is what ran before. `s` tells the page
 * size and, with files below `root`, what [Match] compares. 0 or -ENOMEM.
 */
int policies_load(struct policies **ret, const struct sysroot *root, const char *const *dirs,
		  const struct snapshot *s, const struct policies *previous, FILE *out,
		  struct error *e) _must_check_;
struct policies *policies_free(struct policies *p);

static inline void policies_freep(struct policies **p)
{
	*p = policies_free(*p);
}

/* What engine_new() wants; valid as long as `p`. */
const struct policy_set *policies_set(const struct policies *p);
const struct machine_facts *policies_facts(const struct policies *p);
/* Reads the facts again, after hotplug. */
void policies_refresh_facts(struct policies *p, const struct sysroot *root,
			    const struct snapshot *s);
/* The names that process.running() and [Match] Process= ask for: fills up to `room`, returns how
 * many there are. */
size_t policies_process_names(const struct policies *p, const char **names, size_t room);
size_t policies_count(const struct policies *p); /* of those that are used */

/* How one stands, for status, metrics and the start. */
struct policies_view {
	const char *name;
	int priority;
	bool enforce;
	enum { POLICY_AWAKE, POLICY_ASLEEP, POLICY_INVALID, POLICY_MASKED } state;
	char why[192]; /* why it sleeps or is not used; "" otherwise */
};

/* The i-th, those that are not used last; false behind the end. */
bool policies_view(const struct policies *p, size_t i, const struct engine *engine,
		   struct policies_view *ret);

/* One line each. */
void policies_report(const struct policies *p, const struct log *log, const struct engine *engine);
