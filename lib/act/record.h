/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run/pcptune/record: what is needed to put everything back, written before every change.
 *
 * Short lines of text that a person can read; a version in the first and a checksum of all others
 * in the last. Replaced as a whole (temporary file, fsync, rename, fsync of the directory), so that
 * a reader finds the old one or the new one. It holds for one boot: with another boot id nothing in
 * it means anything, since the kernel has started with its own values again.
 */
#pragma once

#include "act/lock.h"

#define RECORD_REL        RUN_DIR_REL "/record"
#define RECORD_VERSION    1U
#define RECORD_KNOBS_MAX  24U   /* the fraction and every folio order there can be */
#define RECORD_WRITES_MAX 1024U /* writes of the last day that are remembered */
#define BOOT_ID_MAX       40U
#define REASON_MAX        160U

/*
 * One knob. `now` is what the kernel was last seen to have by us, `intended` what we are about to
 * write or have written: they differ exactly while a write is under way or its outcome unknown.
 */
struct record_knob {
	struct knob_id id;
	uint64_t baseline; /* before pcptune first wrote it: where "restore" goes */
	uint64_t before;   /* transient: the value to put back, which may be a tuned one */
	uint64_t now, intended;
	bool transient;          /* for a moment only (a squeeze): undone by whoever finds it */
	bool foreign;            /* somebody else's since foreign_usec: hands off */
	uint64_t since_usec;     /* CLOCK_REALTIME of the last change of this line */
	char reason[REASON_MAX]; /* "policy/rule: …"; control characters become blanks */
};

struct record {
	char boot_id[BOOT_ID_MAX];
	struct record_knob knob[RECORD_KNOBS_MAX];
	uint32_t nr_knobs;
	/* CLOCK_MONOTONIC of the last writes, oldest first: the limits hold across restarts */
	uint64_t write_usec[RECORD_WRITES_MAX];
	uint32_t nr_writes;
};

/*
 * Reads the record. Without a file, or with one of an earlier boot, *ret is empty with this boot's
 * id, and the result 0 (*ret_stale, may be NULL: an earlier boot's was found and dropped).
 * The kernel must be left alone after any of these; `e` says what was found and what to do:
 * -EBADMSG: damaged, cut off or empty; -EPERM: owner or mode would let others forge it;
 * -EPROTONOSUPPORT: written by a newer pcptune; other negative errnos: could not be read.
 */
int record_load(struct record *ret, const struct act_env *env, bool *ret_stale,
		struct error *e) _must_check_;

/* Replaces the file. On error the old one is still there. */
int record_store(const struct record *r, const struct act_env *env, struct error *e) _must_check_;

/* The same without files: tests, fuzzing. `text` need not end in NUL. */
int record_parse(struct record *ret, const char *text, size_t len, uint64_t page_bytes,
		 struct error *e) _must_check_;
void record_format(const struct record *r, uint64_t page_bytes, struct text *into);

struct record_knob *record_find(struct record *r, struct knob_id id);
/* The entry for `id`, made (zeroed) where there is none; NULL when full. */
struct record_knob *record_add(struct record *r, struct knob_id id);
void record_drop(struct record *r, struct knob_id id);

/* Remembers a write, and how many there were at or after `since_usec`. */
void record_note_write(struct record *r, uint64_t mono_usec);
uint32_t record_writes_since(const struct record *r, uint64_t since_usec);
