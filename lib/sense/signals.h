/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals: named numbers with a dimension, read from a snapshot. This is the only vocabulary that
 * policies have; windows and rates over them are kept by the policy engine.
 */
#pragma once

#include "sense/snapshot.h"

enum unit {
	UNIT_COUNT,
	UNIT_RATIO, /* 0 to 1 */
	UNIT_BYTES,
	UNIT_PAGES,
	UNIT_SECONDS,
	UNIT_BOOL,
	_UNIT_MAX,
};

struct dimension {
	enum unit unit;
	bool per_second;
};

const char *dimension_name(struct dimension d); /* "bytes a second" */

/* What a name in a policy was resolved to. Plain data: may be copied and compared bytewise. */
struct signal_ref {
	uint16_t family; /* index into the table of signals.c */
	int16_t order;   /* a folio order; SIGNAL_ORDER_AT_HAND, SIGNAL_NO_ORDER */
	char arg[48];    /* vmstat.X, mthp.X: the kernel's name; process.running: the command */
};
#define SIGNAL_ORDER_AT_HAND (-1)
#define SIGNAL_NO_ORDER      (-2)

struct signal_info {
	const char *name; /* as in the documentation: "vmstat.X", "pcp.share" */
	struct dimension dimension;
	bool counter;            /* only grows: rate() and delta() are meant for it */
	uint32_t sources;        /* SOURCE_BIT()s that it is read from */
	const char *since;       /* first kernel that has it, "" for any */
	const char *description; /* one sentence for doc and man page */
	/*
	 * Set for a ratio over the last minute (mthp.fallback_ratio): the names of two counters of
	 * the same order. Who keeps windows makes it of them: the growth of the first divided by
	 * the growth of the second, unknown while the second does not grow. signal_read() cannot.
	 */
	const char *numerator, *denominator;
};

/*
 * The table, for documentation and "did you mean"; NULL behind its end. "X" in a name stands for
 * the kernel's own name of a counter, "N" for a node's number. Signals that have an order
 * ("of the order at hand") may be followed by a size elsewhere: "frag.unusable.64kB".
 */
const struct signal_info *signal_info_at(size_t i);

/* Does this signal have an order? Then outside [Order] sections a name without a size is an error.
 */
bool signal_has_order(const struct signal_info *info);

/*
 * Resolves a name ("pcp.share", "vmstat.compact_stall", "mthp.64kB.anon_fault_alloc",
 * "frag.unusable", "process.running"). `page_bytes` turns sizes into orders. Names of the kernel's
 * counters are taken as they are: whether this kernel has them shows when they are read. The
 * command of process.running is for the caller to put into ret->arg.
 * -ENOENT: no such signal. -EINVAL: the size is no folio size here.
 */
int signal_resolve(const char *name, uint64_t page_bytes, struct signal_ref *ret);
const struct signal_info *signal_describe(const struct signal_ref *ref);
struct dimension signal_dimension(const struct signal_ref *ref);

/*
 * The value now, for `order` where the reference says "at hand". False: unknown, and *ret_why (may
 * be NULL) says why in a few words that live as long as the program.
 */
bool signal_read(const struct signal_ref *ref, const struct snapshot *s, unsigned order,
		 double *ret, const char **ret_why);

/* The name again, "pcp.fits" or "mthp.64kB.anon_fault_alloc", into `buf`; returns it. */
const char *signal_name(const struct signal_ref *ref, uint64_t page_bytes, char *buf, size_t size);
#define SIGNAL_NAME_MAX 96U
