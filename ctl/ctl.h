/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every verb of pcptunectl works with. */
#pragma once

#include "options.h"
#include "screen.h"

#include "act/env.h"
#include "act/lock.h"
#include "sense/snapshot.h"
#include "tell/json.h"
#include "tell/state.h"

/* Grows when a key of the JSON changes its meaning or goes away; see doc/json.md. */
#define JSON_SCHEMA 1

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NO_DAEMON = 3,
	EXIT_REFUSED = 4,  /* by the kernel */
	EXIT_NOT_HERE = 5, /* not on this kernel, not on this root */
};

struct verb;

struct ctl {
	struct options options;
	const struct verb *verb;
	const char *const *operands; /* behind the verb */
	unsigned nr_operands;
	struct sysroot root;
	uint64_t page_bytes;             /* of --page-size; 0: the host's */
	struct sensor *sensor;           /* made by ctl_take() */
	const struct snapshot *snapshot; /* what it took */
	struct screen screen;
	struct text json_text; /* with --json: what `json` writes */
	struct json_out json;
	bool wants_json;
};

struct verb {
	const char *name; /* "status", "policy check" */
	const char *args; /* "FILE..." */
	const char *help; /* half a sentence for the list */
	uint32_t options; /* OPTION_BIT()s beyond the global ones */
	unsigned min_operands, max_operands;
	int (*run)(struct ctl *c);
	const char *more; /* for "help VERB": a paragraph, lines below 80 columns */
};

const struct verb *verb_at(size_t i); /* NULL behind the last */

/* One in a file each; return an exit code. */
int verb_status(struct ctl *c);
int verb_zones(struct ctl *c);
int verb_pcp(struct ctl *c);
int verb_orders(struct ctl *c);
int verb_drain(struct ctl *c);
int verb_pin(struct ctl *c);
int verb_unpin(struct ctl *c);
int verb_adopt(struct ctl *c);
int verb_pause(struct ctl *c);
int verb_resume(struct ctl *c);
int verb_reload(struct ctl *c);
int verb_explain(struct ctl *c);
int verb_history(struct ctl *c);
int verb_rollback(struct ctl *c);
int verb_doctor(struct ctl *c);
int verb_metrics(struct ctl *c);
int verb_policy_check(struct ctl *c);
int verb_policy_list(struct ctl *c);
int verb_policy_cat(struct ctl *c);
int verb_help(struct ctl *c);

/* Prints "pcptunectl: " and the sentence to stderr; returns `code`. */
int ctl_fail(const struct ctl *c, int code, const struct error *e);
int ctl_failf(const struct ctl *c, int code, const char *fmt, ...) _printf_(3, 4);

/*
 * Makes the sensor and takes `wanted`; without the sources in `needed` it fails with a message.
 * EXIT_DONE or the exit code.
 */
int ctl_take(struct ctl *c, uint32_t wanted, uint32_t needed);
/* Takes once more into c->snapshot. */
void ctl_take_again(struct ctl *c, uint32_t wanted);

/* What an errno of a write, a lock or a record means for the exit code. */
int ctl_exit_code(int error);

/* Opens the document of a verb (with "schema" and "verb"); ctl_json_end() closes and shows it. */
struct json_out *ctl_json_begin(struct ctl *c);
int ctl_json_end(struct ctl *c);

/* Is a daemon (or another pcptunectl that writes) at work here? */
struct holder {
	enum {
		HOLDER_NONE,
		HOLDER_RUNS,
		HOLDER_UNKNOWN, /* the lock may not be looked at, and nobody says that it runs */
	} is;
	struct lock_holder lock; /* pid 0 where it is not known */
	bool has_state;          /* `state` is what the running daemon tells */
	struct daemon_state state;
	bool stale_state; /* state.json of a daemon that is gone */
	struct error why; /* the state could not be read; "" otherwise */
};
void holder_find(struct ctl *c, struct holder *ret);
void holder_free(struct holder *h);

/* "3min ago", "in 5s" of a time of CLOCK_REALTIME. */
const char *format_when(char *buf, size_t size, uint64_t when_usec, uint64_t now_usec);
