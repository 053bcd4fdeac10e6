/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fake kernel's files as two FUSE mounts, DIR/proc and DIR/sys. */
#pragma once

#include "fake.h"

struct mounts;

/*
 * Makes DIR/proc and DIR/sys, mounts them and serves them from threads of their own, so that an
 * operation that sleeps keeps none of the others waiting. 0 or a negative errno, said on stderr;
 * -EOPNOTSUPP: nothing can be mounted here.
 * A mount goes away with this process, however it ends.
 */
int mounts_start(struct mounts **ret, struct fake *f, const char *dir);
/* A few times a second: lets the model keep up and tells who polls of memory pressure. */
void mounts_tick(struct mounts *m);
/* Wakes who sleeps, unmounts, waits for the threads. */
struct mounts *mounts_stop(struct mounts *m);
