/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fake kernel for tests in C: the program tests/fakekernel/fakekernel as a child process. */
#pragma once

#include "base/util.h"

#include <stdbool.h>
#include <sys/types.h>

struct fake_kernel {
	pid_t pid;
	char dir[64]; /* the root: below it are proc, sys, control, and etc, run, usr/lib as
			 directories */
};

/* False, after a line that says why, where no FUSE can be mounted: skip the tests then. */
bool fake_kernel_available(void);

/* `options` end with NULL. Fails the test where it does not start. */
void fake_kernel_start(struct fake_kernel *k, const char *const options[]);

/* One command of the control file: 0, or the negative errno with which it is refused. */
int fake_kernel_try(const struct fake_kernel *k, const char *fmt, ...) _printf_(2, 3);

/* ... that must be accepted. */
void fake_kernel_do(const struct fake_kernel *k, const char *fmt, ...) _printf_(2, 3);

/* The number behind the line of the state that starts with `key`; 0 where there is none. */
long long fake_kernel_number(const struct fake_kernel *k, const char *key);

/* Ends it and removes the directory. Fails the test where it did not end well. */
void fake_kernel_stop(struct fake_kernel *k);

/* "DIR/rel" in a buffer of the caller; returns it. */
const char *fake_path(const struct fake_kernel *k, const char *rel, char *buf, size_t size);
