/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bus/gate.h"

#include "tests/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* The first byte says in which pieces the others come. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gate *g = calloc(1, sizeof(*g));
	size_t piece = size ? data[0] % 64U + 1 : 1, at = 1;

	if (!g)
		abort();
	while (at < size) {
		char reply[GATE_REPLY_MAX];
		size_t room, len, n;
		uint8_t *to = gate_room(g, &room);
		ssize_t whole;

		n = piece < size - at ? piece : size - at;
		n = n < room ? n : room;
		if (n == 0)
			abort(); /* a gate that is full has something to pass on */
		memcpy(to, data + at, n);
		at += n;
		whole = gate_take(g, n, reply, &len);
		if (whole < 0)
			break;
		if (len > sizeof(reply) || (size_t)whole > g->len || (whole > 0 && !g->accepted))
			abort();
		gate_drop(g, (size_t)whole);
	}
	free(g);
	return 0;
}
