/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/pressure/memory: any text at all. */
#include "sense/snapshot.h"

#include "tests/fuzz.h"

static void check_line(const struct psi_line *l)
{
	const double averages[] = {l->avg10, l->avg60, l->avg300};

	for (size_t i = 0; i < ARRAY_SIZE(averages); i++)
		if (!(averages[i] >= 0 && averages[i] < 1.01))
			abort();
	if (!l->present && l->total_usec)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct psi psi;
	int r = psi_parse(&psi, (const char *)data, size, NULL);

	if ((r == 0) != psi.some.present)
		abort();
	check_line(&psi.some);
	check_line(&psi.full);
	return 0;
}
