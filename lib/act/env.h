/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What acting needs to know of its surroundings, and where a test may step in.
 *
 * act is the only part that writes to the kernel. Everything below takes this struct; nothing is
 * kept in globals. It is filled once and must outlive what was made with it.
 */
#pragma once

#include "base/error.h"
#include "base/sysroot.h"
#include "sense/snapshot.h"

/* Each place where acting touches the world, in the order in which one change passes them. */
enum act_point {
	ACT_LOCK_OPEN,
	ACT_LOCK_WRITE,
	ACT_RECORD_READ,
	ACT_RECORD_OPEN,
	ACT_RECORD_WRITE,
	ACT_RECORD_SYNC,
	ACT_RECORD_RENAME,
	ACT_RECORD_DIRSYNC,
	ACT_RECORD_DONE,
	ACT_KNOB_READ,
	ACT_KNOB_WRITE,
	ACT_KNOB_WRITTEN,
	ACT_KNOB_VERIFY,
	ACT_PASS,
	ACT_PASS_DONE,
	ACT_KICK,
	_ACT_POINT_MAX,
};

/*
 * For tests. Called before the operation (ACT_…_WRITTEN and _DONE: after it), on the thread that
 * does it. 0: go on. A negative errno: the operation is not done and fails with it. Positive, at
 * the two writes: only so many bytes are written. May block; may not return.
 */
struct act_hook {
	int (*call)(void *user, enum act_point point, const char *rel);
	void *user; /* must outlive threads that hang: tests end them first */
};

struct act_env {
	const struct sysroot *root;
	uint64_t page_bytes;
	enum order_interface orders;
	/*
	 * For tests: a plain directory counts as a kernel, its files are cut to length when
	 * written, and run/ below it may belong to anybody who runs the test.
	 */
	bool plain;
	struct act_hook hook;
};

/* The surroundings as a snapshot with SOURCE_KNOBS and SOURCE_MTHP shows them. */
struct act_env act_env_from(const struct sysroot *root, const struct snapshot *s);

/*
 * May the kernel below this root be written to at all? 0, or -EOPNOTSUPP with a sentence: the
 * root is a capture (no proc and sys mounts below it). Callers exit with code 5.
 */
int act_env_check_live(const struct act_env *env, struct error *e);

/* Passes a point: what the test's hook says, 0 without one. */
int act_pass_point(const struct act_env *env, enum act_point point, const char *rel);

/* Both clocks at one instant: differences are taken of the first, people read the second. */
struct act_time {
	uint64_t mono_usec; /* CLOCK_MONOTONIC */
	uint64_t real_usec; /* CLOCK_REALTIME */
};
struct act_time act_time_now(void);
