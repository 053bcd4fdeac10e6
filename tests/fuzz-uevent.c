/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events/uevent.h"

#include "tests/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uevent u;

	if (uevent_parse((const char *)data, size, &u) == 0)
		(void)uevent_is_topology(&u);
	return 0;
}
