/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/vmstat: any text at all. */
#include "sense/snapshot.h"

#include "tests/fuzz.h"

static void check_lookup(const struct vmstat *v, const struct named_value *value)
{
	struct vmstat plain = *v;
	char name[64];
	uint64_t indexed = 0, scanned = 0;

	if (value->name_len >= sizeof(name) || memchr(value->name, '\0', value->name_len))
		return;
	memcpy(name, value->name, value->name_len);
	name[value->name_len] = '\0';
	plain.index = NULL;
	if (!vmstat_get(v, name, NULL, &indexed) || !vmstat_get(&plain, name, NULL, &scanned) ||
	    indexed != scanned)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char other[] = "pgfree 1\npgalloc_dma 2\nallocstall_normal 3\n";
	_cleanup_(vmstat_free) struct vmstat v = {0};
	uint64_t sum;
	int r;

	if (vmstat_parse(&v, other, sizeof(other) - 1, NULL) < 0)
		abort();
	r = vmstat_parse(&v, (const char *)data, size, NULL);
	if ((r < 0) != (v.nr_values == 0))
		abort();
	for (uint32_t i = 0; i < v.nr_values; i++)
		check_lookup(&v, &v.values[i]);
	(void)vmstat_get(&v, "pgalloc", NULL, &sum);
	return 0;
}
