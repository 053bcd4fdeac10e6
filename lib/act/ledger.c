/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/ledger.h"

void ledger_add(struct ledger *l, const struct ledger_entry *entry)
{
	uint64_t seq = ledger_end(l);

	l->entry[seq % LEDGER_MAX] = *entry;
	l->entry[seq % LEDGER_MAX].seq = seq;
	l->next_seq = seq + 1;
}

uint64_t ledger_end(const struct ledger *l)
{
	return MAX_OF(l->next_seq, UINT64_C(1));
}

uint64_t ledger_first(const struct ledger *l)
{
	uint64_t end = ledger_end(l);

	return end > LEDGER_MAX ? end - LEDGER_MAX : 1;
}

const struct ledger_entry *ledger_get(const struct ledger *l, uint64_t seq)
{
	if (seq < ledger_first(l) || seq >= ledger_end(l))
		return NULL;
	return &l->entry[seq % LEDGER_MAX];
}
