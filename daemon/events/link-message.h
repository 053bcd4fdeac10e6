/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of rtnetlink about links, read from bytes. */
#pragma once

#include "base/util.h"

#include <stdbool.h>

enum link_message_kind {
	LINK_OTHER,
	LINK_IS,     /* this is how link `index` is now */
	LINK_GONE,   /* link `index` is gone */
	LINK_DONE,   /* the end of a dump */
	LINK_FAILED, /* the answer to a request: `error` */
};

struct link_message {
	enum link_message_kind kind;
	int index;
	bool counts; /* up, with carrier, not a loopback */
	uint32_t mtu;
	bool inconsistent; /* the dump was made while links changed: ask again */
	int error;         /* LINK_FAILED: negative errno */
};

/* As procconn_next(). `buf` must be aligned as struct nlmsghdr is. */
int link_message_next(const unsigned char **buf, size_t *len,
		      struct link_message *ret) _must_check_;
