/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense/knobs.h"

#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>

static const char fraction_name[] = "high_fraction";
static const char enabled_prefix[] = "pcp_enabled/";

/* The one order that the single-file interface knows, and what its file then says. */
#define SINGLE_ON_VALUE 4U

static uint64_t folio_kib(unsigned order, uint64_t page_bytes)
{
	return (page_bytes << order) / 1024;
}

const char *knob_name(struct knob_id id, uint64_t page_bytes, char *buf)
{
	if (id.kind == KNOB_HIGH_FRACTION)
		(void)snprintf(buf, KNOB_NAME_MAX, "%s", fraction_name);
	else
		(void)snprintf(buf, KNOB_NAME_MAX, "%s%" PRIu64 "kB", enabled_prefix,
			       folio_kib(id.order, page_bytes));
	return buf;
}

int knob_parse(const char *name, uint64_t page_bytes, struct knob_id *ret)
{
	uint64_t bytes;

	if (streq(name, fraction_name)) {
		*ret = (struct knob_id){.kind = KNOB_HIGH_FRACTION};
		return 0;
	}
	if (strncmp(name, enabled_prefix, strlen(enabled_prefix)) != 0)
		return -EINVAL;
	if (parse_bytes(name + strlen(enabled_prefix), &bytes) < 0)
		return -EINVAL;
	for (unsigned order = 0; order < 32 && page_bytes << order <= bytes; order++)
		if (page_bytes << order == bytes) {
			*ret = (struct knob_id){.kind = KNOB_PCP_ENABLED, .order = order};
			return 0;
		}
	return -ENOENT;
}

const char *knob_rel(struct knob_id id, enum order_interface orders, uint64_t page_bytes, char *buf,
		     size_t size)
{
	if (id.kind == KNOB_HIGH_FRACTION)
		(void)snprintf(buf, size, "%s", HIGH_FRACTION_REL);
	else if (orders == ORDERS_SINGLE)
		(void)snprintf(buf, size, "%s", PCP_ALLOW_HIGH_ORDER_REL);
	else
		(void)snprintf(buf, size, THP_REL "/hugepages-%" PRIu64 "kB/pcp_enabled",
			       folio_kib(id.order, page_bytes));
	return buf;
}

bool knob_value_valid(struct knob_id id, uint64_t value)
{
	if (id.kind == KNOB_HIGH_FRACTION)
		return value == 0 || (value >= HIGH_FRACTION_MIN && value <= HIGH_FRACTION_MAX);
	return value <= 1;
}

uint64_t knob_to_file(struct knob_id id, enum order_interface orders, uint64_t value)
{
	return id.kind == KNOB_PCP_ENABLED && orders == ORDERS_SINGLE && value ? SINGLE_ON_VALUE
									       : value;
}

int knob_from_file(struct knob_id id, enum order_interface orders, uint64_t text, uint64_t *ret)
{
	if (id.kind == KNOB_PCP_ENABLED && orders == ORDERS_SINGLE) {
		if (text != 0 && text != SINGLE_ON_VALUE)
			return -EBADMSG;
		text = text != 0;
	}
	if (!knob_value_valid(id, text))
		return -EBADMSG;
	*ret = text;
	return 0;
}
