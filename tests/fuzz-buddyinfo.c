/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/buddyinfo: any text at all. */
#include "sense/snapshot.h"

#include "tests/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buddyinfo_free) struct buddyinfo b = {0};
	int r = buddyinfo_parse(&b, (const char *)data, size, NULL);

	if ((r < 0) != (b.nr_zones == 0))
		abort();
	for (uint32_t i = 0; i < b.nr_zones; i++) {
		const struct buddy_zone *z = &b.zones[i];

		if (z->nr_orders < 1 || z->nr_orders > BUDDY_ORDERS_MAX || !z->name[0])
			abort();
		for (unsigned order = 0; order <= BUDDY_ORDERS_MAX; order++) {
			double unusable = buddy_unusable(z, order);

			if (!(unusable >= 0 && unusable <= 1))
				abort();
		}
	}
	return 0;
}
