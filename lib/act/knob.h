/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One write to one knob: looked at first, done in one write(2), verified by reading back.
 *
 * Blocks for as long as the kernel does (memory hotplug holds pcp_batch_high_lock for seconds):
 * actor.h runs it in a thread. Keeps no record and asks for no permission: only actor.c calls
 * knob_apply().
 */
#pragma once

#include "act/env.h"

enum knob_outcome {
	KNOB_UNCHANGED, /* it had that value: nothing was written */
	KNOB_APPLIED,   /* written, and reads back as wanted */
	KNOB_ADJUSTED,  /* the write was taken, but another value reads back */
	KNOB_REFUSED,   /* an error, see `error` and `stage` */
};

enum knob_stage {
	KNOB_STAGE_CHECK,  /* the value is none that this knob takes */
	KNOB_STAGE_RECORD, /* the intent could not be recorded, so nothing was written */
	KNOB_STAGE_READ,
	KNOB_STAGE_WRITE,
	KNOB_STAGE_VERIFY,
};

/* Always filled; on error, `stage` says how far it got. */
struct knob_report {
	struct knob_id id;
	enum knob_outcome outcome;
	enum knob_stage stage;
	int error;        /* 0 or a negative errno */
	bool written;     /* a write(2) was issued, whatever came of it */
	bool after_known; /* `after` was read; otherwise it is the value before */
	uint64_t before, wanted, after;
	/*
	 * An order that was switched off (or off once more): pages on the lists just before the
	 * write and after it. Of that order where the kernel counts orders, otherwise of all.
	 */
	bool parked_known;
	uint64_t parked_before, parked_after;
};

/* Pages that left the lists with the write, as the counts showed; 0 where they did not. */
static inline uint64_t knob_report_returned(const struct knob_report *rep)
{
	return rep->parked_known && rep->parked_before > rep->parked_after
		       ? rep->parked_before - rep->parked_after
		       : 0;
}

/*
 * Reads a knob. -ENOENT: this kernel does not have it; -EBADMSG: what it says is no value of this
 * knob; otherwise the kernel's errno.
 */
int knob_read(const struct act_env *env, struct knob_id id, uint64_t *ret);

enum knob_flags {
	KNOB_FORCE =
		1 << 0, /* write even where the value is there: 0 drains pcp_allow_high_order */
};

/*
 * Sets a knob. `expected` (may be NULL): what it must have now; with anything else nothing is
 * written and -ESTALE returned (somebody else was quicker). Returns report->error.
 */
int knob_apply(const struct act_env *env, struct knob_id id, uint64_t wanted,
	       const uint64_t *expected, unsigned flags, struct knob_report *report);

/*
 * What came of it as a sentence: "high_fraction: 0 -> 100"; for errors what was tried, on which
 * file, why it failed and what to do.
 */
void knob_report_sentence(const struct act_env *env, const struct knob_report *report,
			  struct text *into);

enum knob_check {
	KNOB_CHECK_AGREES,
	KNOB_CHECK_UNKNOWN, /* this kernel does not print high_min and high_max */
	KNOB_CHECK_DIFFERS,
};

/*
 * Do the lists in zoneinfo follow the fraction? high_min equals high_max from 8 up; with 0 high_min
 * is smaller, or both are at the floor of 4 * batch. Looks at printed values only, never at
 * `high`, which follows on use. KNOB_CHECK_DIFFERS: `e` (may be NULL) names the first list.
 */
enum knob_check knob_check_zoneinfo(const struct zoneinfo *zi, uint64_t fraction, struct error *e);

/*
 * How many blocks of `order` are on all lists: by the orderN lines of zoneinfo, else by
 * pcp_order_stat; else 0 where all lists together hold less than one block. -ENODATA: unknown.
 */
int knob_blocks_parked(const struct snapshot *s, unsigned order, uint64_t *ret);
