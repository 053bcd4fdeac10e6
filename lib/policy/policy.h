/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Policies: what a *.policy file says, checked and compiled. Data only; what a tick makes of it is
 * the engine's.
 */
#pragma once

#include "policy/expr.h"
#include "policy/search.h"

enum policy_mode {
	POLICY_ENFORCE,
	POLICY_OBSERVE, /* decide and tell, write nothing */
};

enum rule_kind {
	RULE_ORDER,
	RULE_HIGH_FRACTION,
	RULE_TRIM,
	_RULE_KIND_MAX,
};

/* What follows a change that makes lists smaller. */
enum drain_choice {
	POLICY_DRAIN_TRIM,
	POLICY_DRAIN_SQUEEZE,
	POLICY_DRAIN_NO,
};

/* A size that no folio of this machine has: the rule sleeps. */
#define POLICY_ORDER_NONE 255U
/* Bytes in a policy's name. */
#define POLICY_NAME_LIMIT 63U

/*
 * One [Order …], [HighFraction …] or [Trim …] section. It turns on when `on` has held for on_usec
 * without a break, and off when `off` has held for off_usec; where off is NULL, when `on` has been
 * false for off_usec.
 */
struct policy_rule {
	enum rule_kind kind;
	char *section; /* "Order 64kB" */
	char *name;    /* "64kB", "*", "small" */
	const char *file;
	unsigned line;
	/*
	 * A hash of the effective keys of the section: equal in two loads means that nothing about
	 * the rule changed.
	 */
	uint64_t fingerprint;

	bool any_order; /* [Order *] */
	unsigned order; /* RULE_ORDER, unless any_order; POLICY_ORDER_NONE: no order here */

	struct expr *on;  /* Enable=, When= */
	uint64_t on_usec; /* EnableFor=, For= */
	struct expr *off; /* Disable=, Until=; NULL, always so for RULE_TRIM */
	uint64_t off_usec;

	uint64_t min_hold_usec; /* MinHold=; 0: the daemon's own MinHold= alone counts */
	struct expr *value;     /* RULE_HIGH_FRACTION: gives a number; see policy_fraction() */
	enum drain_choice drain;
	uint64_t cooldown_usec; /* RULE_TRIM */
	bool squeeze;           /* RULE_TRIM */
};

struct policy_guard {
	struct expr *trip; /* NULL: no guard */
	uint64_t within_usec, lockout_usec;
};

/* CPUs=, Memory=, Kernel=: up to four comparisons, all of which must hold. */
struct comparison {
	enum {
		COMPARE_LT,
		COMPARE_LE,
		COMPARE_EQ,
		COMPARE_NE,
		COMPARE_GE,
		COMPARE_GT,
	} op;
	uint64_t value;      /* CPUs, bytes */
	unsigned version[3]; /* Kernel */
	unsigned nr_version; /* how many of them were written: only those are compared */
};
#define COMPARISONS_MAX 4U

struct comparisons {
	struct comparison list[COMPARISONS_MAX];
	unsigned nr;
};

struct policy_match {
	struct comparisons kernel, cpus, memory;
	char *host;            /* patterns separated by blanks, any of which; NULL */
	double rollout;        /* 0 to 1; 1 where not given */
	struct expr *when;     /* compiled with EXPR_FACTS; NULL */
	struct expr *process;  /* process.running() of each name, joined by or; NULL */
	struct expr *link_mtu; /* a condition on link.mtu_max; NULL */
};

struct policy {
	char *name; /* the file's name without ".policy" */
	char *file; /* as the user knows it */
	char *description;
	int priority; /* 0 to 100 */
	enum policy_mode mode;
	uint64_t unknown_for_usec;
	struct policy_match match;
	struct policy_rule *rules; /* in file order */
	size_t nr_rules;
	struct policy_guard guard;
	uint64_t fingerprint; /* of everything effective in it */
	struct ini_doc doc;   /* the effective text */
	/* a reload found errors in the file, so this is what ran before */
	bool kept;
};

struct policy *policy_free(struct policy *p);

/*
 * Compiles a document. `name` without ".policy". On an error *ret is NULL, the document freed.
 * Takes the document over in any case. 0; -EBADMSG with `d`; -ENOMEM.
 */
int policy_compile(struct expr_table *t, const char *name, struct ini_doc *doc, struct policy **ret,
		   struct diagnostics *d) _must_check_;

/* From text, for `policy check FILE`, tests and the fuzzer. */
int policy_parse(struct expr_table *t, const char *name, const char *file, const char *text,
		 size_t len, struct policy **ret, struct diagnostics *d) _must_check_;

/* A file that is not used, for `policy list`. */
struct policy_unused {
	char *name, *file;
	bool masked; /* otherwise it has errors */
};

/* All policies, highest first: larger Priority, then the name that sorts first (bytewise). */
struct policy_set {
	struct expr_table table; /* of all of them */
	struct policy **policies;
	size_t nr;
	struct policy_unused *unused;
	size_t nr_unused;
};

/*
 * Loads every policy below `root`. `dirs`: NULL for search_policy_dirs. `extra` (NULL or
 * NULL-terminated) are directories of --policy-dir, paths of this process, which replace `dirs`,
 * lowest first. A policy with an error is not used and told in `d`; where `previous` has one of its
 * name, that one is compiled again and kept (`kept`). `page_bytes` of the machine the policies are
 * for. 0, also with errors in some policies; -ENOMEM.
 */
int policy_set_load(struct policy_set **ret, const struct sysroot *root, const char *const *extra,
		    uint64_t page_bytes, const struct policy_set *previous,
		    struct diagnostics *d) _must_check_;
struct policy_set *policy_set_free(struct policy_set *set);

static inline void policy_set_freep(struct policy_set **set)
{
	*set = policy_set_free(*set);
}

/* Sorts, e.g. after adding policies by hand. */
void policy_set_sort(struct policy_set *set);
/* Adds a compiled policy (of set->table) and takes it over; call policy_set_sort() afterwards. */
int policy_set_add(struct policy_set *set, struct policy *p);
const struct policy *policy_set_find(const struct policy_set *set, const char *name);

/*
 * Does rule `a` of policy `pa` win over `b` of `pb` where both want the same knob? In this order:
 * larger Priority; an exact size over `*`; the policy name that sorts first; file order.
 */
bool policy_rule_beats(const struct policy *pa, const struct policy_rule *a,
		       const struct policy *pb, const struct policy_rule *b);

/* Facts of a machine that [Match] compares. Empty strings and 0: unknown. */
struct machine_facts {
	char kernel[65];     /* uname -r */
	char host[65];       /* host name */
	char machine_id[33]; /* 32 hexadecimal digits */
	uint64_t cpus;       /* online */
	uint64_t memory_bytes;
};

/* Reads them below `root`; what is missing stays unknown. */
void machine_facts_read(struct machine_facts *ret, const struct sysroot *root,
			const struct snapshot *s);

struct match_result {
	enum kleene holds; /* of all conditions together */
	char why[192];     /* the first condition that does not hold; "" when it holds */
};

/*
 * Pure. `env` needs the slots of the table that the policy was compiled with (those that vary are
 * not used); NULL: conditions on signals are unknown.
 */
void policy_match_eval(const struct policy *p, const struct machine_facts *facts,
		       const struct expr_env *env, struct match_result *ret);

/* Where a machine stands in a rollout of the policy: 0 <= x < 1; runs while x < Rollout. */
double policy_rollout_hash(const char *machine_id, const char *policy_name);

/*
 * The value of a [HighFraction] rule: rounded down, brought into HIGH_FRACTION_MIN to
 * HIGH_FRACTION_MAX. 0, or -ENODATA while unknown or below 1 (which is no fraction at all).
 */
int policy_fraction(const struct policy_rule *r, const struct expr_env *env, uint64_t *ret);

const char *policy_mode_name(enum policy_mode m);   /* "enforce" */
const char *rule_kind_name(enum rule_kind k);       /* "Order" */
const char *drain_choice_name(enum drain_choice d); /* "trim" */

/* The keys, one table for parser, documentation and tests. */
struct policy_key {
	const char *section; /* "Policy", "Match", "Order", "HighFraction", "Trim", "Guard" */
	const char *key;
	const char *default_text; /* "" where there is none; "required" */
	const char *description;  /* one or two sentences */
};
const struct policy_key *policy_key_at(size_t i); /* NULL behind the end */
/* What the key takes, for a reader: "condition", "time". Only of what policy_key_at() gave. */
const char *policy_key_type(const struct policy_key *k);
