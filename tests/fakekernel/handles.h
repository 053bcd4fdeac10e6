/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open files. Everything wants the fake's lock held, but what may sleep gives it up meanwhile.
 */
#pragma once

#include "files.h"

#define PAGE_ROOM 4096U

/*
 * An open file. Tables come as the kernel's seq_file gives them (fs/seq_file.c): whole records in
 * a buffer that starts with a page and doubles until one fits; what was formatted stays as it was
 * until it is read, and any offset but the one reached formats everything again.
 */
struct handle {
	struct tree_entry entry; /* a copy: the tree may be made anew meanwhile */
	struct text buffer;
	size_t from, room;
	unsigned record;
	off_t pos;
	pthread_mutex_t lock; /* the kernel's seq_file has one, too */
	struct psi_trigger trigger;
	bool event; /* the trigger fired and nobody has polled since */
	void *poll; /* who is to be told: the mount's */
	struct handle *next, **link;
};

/*
 * Opens `path` with open(2)'s flags: meets the faults that wait for that. 0, or a negative errno
 * (then there is nothing to close).
 */
int handle_open(struct fake *f, const char *path, int flags, struct handle *h);
void handle_free(struct handle *h); /* without the lock, and unlinked */

void handle_link(struct handle **list, struct handle *h);
void handle_unlink(struct handle *h);

/* What pread(2) and pwrite(2) return, or a negative errno. */
int handle_read(struct fake *f, struct handle *h, char *buf, size_t size, off_t off);
int handle_write(struct fake *f, struct handle *h, const char *buf, size_t size, off_t off,
		 int pid);

/* Does a trigger on memory pressure fire now? At most once a window (kernel/sched/psi.c). */
bool handle_fires(const struct fake *f, struct handle *h);
