/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every write of this process, the newest LEDGER_MAX of them, in memory of fixed size. */
#pragma once

#include "act/knob.h"
#include "act/record.h"

#define LEDGER_MAX 512U

struct ledger_entry {
	uint64_t seq; /* from 1, without gaps */
	struct act_time time;
	uint64_t took_usec;
	struct knob_id id;
	uint64_t old_value, new_value; /* new_value: what was wanted; report.after: what came */
	bool transient, restore;
	struct knob_report report;
	char reason[REASON_MAX];
};

struct ledger {
	struct ledger_entry entry[LEDGER_MAX];
	uint64_t next_seq; /* of the next entry; 0 counts as 1 */
};

/* Adds an entry and gives it the next number. */
void ledger_add(struct ledger *l, const struct ledger_entry *entry);

/*
 * The entry with that number, or NULL where it is not there (any more). Those kept are
 * ledger_first(l) <= seq < ledger_end(l).
 */
const struct ledger_entry *ledger_get(const struct ledger *l, uint64_t seq);
uint64_t ledger_first(const struct ledger *l);
uint64_t ledger_end(const struct ledger *l);
