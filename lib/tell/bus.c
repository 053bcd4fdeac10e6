/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tell/bus.h"

#include "base/util.h"

static const char *const names[] = {
	[BUS_ERROR_NONE] = "",
	[BUS_ERROR_FAILED] = "Failed",
	[BUS_ERROR_UNKNOWN_KNOB] = "UnknownKnob",
	[BUS_ERROR_INVALID_VALUE] = "InvalidValue",
	[BUS_ERROR_NOT_AUTHORIZED] = "NotAuthorized",
	[BUS_ERROR_NOT_AVAILABLE] = "NotAvailable",
	[BUS_ERROR_REFUSED] = "Refused",
	[BUS_ERROR_FOREIGN] = "Foreign",
	[BUS_ERROR_NOT_FOREIGN] = "NotForeign",
	[BUS_ERROR_NOT_PINNED] = "NotPinned",
	[BUS_ERROR_BUSY] = "Busy",
	[BUS_ERROR_PENDING] = "Pending",
};
_Static_assert(ARRAY_SIZE(names) == _BUS_ERROR_MAX, "name every error");

const char *bus_error_name(enum bus_error e)
{
	return e < _BUS_ERROR_MAX ? names[e] : "";
}

enum bus_error bus_error_parse(const char *name)
{
	size_t prefix = strlen(BUS_ERROR_PREFIX);

	if (!name || strncmp(name, BUS_ERROR_PREFIX, prefix) != 0)
		return BUS_ERROR_NONE;
	for (size_t i = 1; i < ARRAY_SIZE(names); i++)
		if (streq(name + prefix, names[i]))
			return (enum bus_error)i;
	return BUS_ERROR_NONE;
}
