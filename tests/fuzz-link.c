/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "events/link-message.h"

#include "tests/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct link_message m;

	while (link_message_next(&data, &size, &m) > 0)
		;
	return 0;
}
