/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What stands between a peer on run/pcptune/bus and sd-bus, which would gather a message of up to
 * 128 MiB from anybody: it answers the greeting (D-Bus specification, "Authentication Protocol")
 * and lets through whole messages of bounded length only. No I/O: bytes in, bytes out.
 */
#pragma once

#include "base/util.h"

#include <stdbool.h>
#include <sys/types.h>

/* No request of org.pcptune1(5) has more than some hundred bytes. */
#define GATE_BYTES 16384U
/* Room for the answers to what one call of gate_take() can hold. */
#define GATE_REPLY_MAX 1024U

struct gate {
	uid_t uid; /* of the peer, as the kernel says */
	bool nul, accepted, begun;
	size_t len;
	uint8_t bytes[GATE_BYTES];
};

/* Where to put what comes next; *room may be 0 only while messages wait to be passed on. */
uint8_t *gate_room(struct gate *g, size_t *room);

/*
 * `n` bytes were put there. Fills `reply` with what the peer is to be told (*reply_len bytes) and
 * returns how many bytes at the front of g->bytes are whole messages, to be passed on and dropped.
 * -EPROTO: no D-Bus, or too long: close.
 */
ssize_t gate_take(struct gate *g, size_t n, char reply[GATE_REPLY_MAX], size_t *reply_len);
void gate_drop(struct gate *g, size_t n);

/* Does the peer owe something: the rest of its greeting or of a message? */
bool gate_waits(const struct gate *g);
