/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One pass: a read of stat_refresh in a thread of its own, with a kick before it where asked. */
#pragma once

#include "act/worker.h"

/* Pages freed on each CPU by a kick: fewer may all sit in the CPU's LRU batch, which keeps them. */
#define KICK_PAGES 64U

struct pass {
	struct worker w;
	bool kick;
	int error;          /* 0 or a negative errno, once worker_is_done() */
	uint64_t took_usec; /* of the read alone */
};

/* A pass that is under way, or NULL with *error. Give it back with worker_unref(). */
struct pass *pass_start(const struct act_env *env, bool kick, int notify_fd, int *error);
