/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files that load policies: keys, rules, sets, matching. */
#pragma once

#include "policy/policy.h"

/* How a value is read and what it becomes. */
enum key_type {
	KEY_TEXT,      /* char * */
	KEY_PRIORITY,  /* int */
	KEY_MODE,      /* enum policy_mode */
	KEY_TIME,      /* uint64_t, microseconds */
	KEY_CONDITION, /* struct expr * */
	KEY_FACT,      /* struct expr *, with EXPR_FACTS */
	KEY_NUMBER,    /* struct expr * */
	KEY_KERNEL,    /* struct comparisons */
	KEY_COUNTS,    /* struct comparisons */
	KEY_BYTES,     /* struct comparisons */
	KEY_PATTERNS,  /* char * */
	KEY_RATIO,     /* double */
	KEY_PROCESSES, /* struct expr * */
	KEY_MTU,       /* struct expr * */
	KEY_DRAIN,     /* enum drain_choice */
	KEY_SWITCH,    /* bool */
};

struct key {
	struct policy_key doc;
	enum key_type type;
	size_t offset;        /* into struct policy, policy_match, policy_rule or policy_guard */
	uint64_t least, most; /* KEY_TIME */
};

const struct key *key_find(const char *section, const char *name);
const struct key *key_at(size_t i); /* NULL behind the end */
/* Is there a section of that kind; does it take a name behind it? */
bool section_kind_known(const char *kind, bool *ret_named);

/* What reading a value needs. */
struct key_context {
	struct expr_table *table;
	unsigned expr_flags;
	struct diagnostics *d;
};

/* Reads `v` into `target`. 0; -EBADMSG, told in c->d; -ENOMEM. */
int key_read(const struct key *k, const struct key_context *c, const struct ini_value *v,
	     void *target);
/* Puts the defaults of a kind of section into `target`. */
int key_defaults(const char *section, struct diagnostics *d, void *target);

/* ">=6.8 <6.16" */
int comparisons_parse(struct comparisons *into, enum key_type type, const struct ini_value *v,
		      struct diagnostics *d);
bool comparison_holds(const struct comparison *c, uint64_t value);
/* The numbers of a kernel release; how many there were. */
unsigned kernel_version_parse(const char *release, unsigned version[3]);
bool comparison_kernel_holds(const struct comparison *c, const unsigned version[3]);

uint64_t hash_bytes(uint64_t h, const void *data, size_t len); /* FNV-1a; start with HASH_START */
uint64_t hash_text(uint64_t h, const char *s);                 /* with its NUL */
#define HASH_START UINT64_C(0xcbf29ce484222325)
