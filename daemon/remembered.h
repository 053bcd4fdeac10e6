/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run/pcptune/remembered.json: what the engine must still know after a restart of the daemon, which
 * is its lockouts and pins, and a pause. It holds for one boot, as everything in run/ does.
 */
#pragma once

#include "act/env.h"
#include "policy/engine.h"

#define REMEMBERED_REL "run/pcptune/remembered.json"

struct remembered {
	struct text text, saved; /* of the last call and of the file */
};

/* Values stay as they are meanwhile. */
struct pause {
	bool on;
	uint64_t until_usec; /* CLOCK_MONOTONIC; USEC_INFINITY: until it is taken back */
};

/* Gives the engine what was saved, and *pause. No file: 0. -EBADMSG: not this file, and nothing was
 * taken. */
int remembered_load(struct engine *engine, struct pause *pause, const struct sysroot *root,
		    uint64_t page_bytes, struct act_time now, struct error *e) _must_check_;

/*
 * Replaces the file where lockouts, pins or the pause came, went or changed; their remaining times
 * alone are no change, since they are saved with the time. 0 or a negative errno.
 */
int remembered_save(struct remembered *r, const struct engine *engine, const struct pause *pause,
		    const struct sysroot *root, uint64_t page_bytes,
		    struct act_time now) _must_check_;
void remembered_free(struct remembered *r);
