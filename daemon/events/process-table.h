/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of some wanted names are carried by a running process. Pure: events and scans go in, and
 * nothing here reads a file or knows the time.
 *
 * Only processes of wanted names are kept, and those that have just started a program and whose
 * name nobody has read yet. Forks are not followed: a child of a wanted process that goes on
 * without exec is found by the scan that the end of the last known one asks for. Until that scan a
 * name counts as running, so that neither such a child nor a reused pid makes it flicker.
 */
#pragma once

#include "sense/snapshot.h"

struct process_table;

int process_table_new(struct process_table **ret) _must_check_;
struct process_table *process_table_free(struct process_table *t);

/*
 * Makes these the wanted names (cut to what a process can carry; copied) and forgets all processes:
 * a scan must follow. 0 or -ENOMEM (then nothing changed).
 */
int process_table_want(struct process_table *t, const char *const *names, size_t n) _must_check_;
size_t process_table_wanted(const struct process_table *t); /* how many names */
bool process_table_wants(const struct process_table *t, const char *comm);

/* What happened. -ENOMEM: forget it and scan. */
int process_table_exec(struct process_table *t, pid_t pid) _must_check_; /* name not known yet */
int process_table_named(struct process_table *t, pid_t pid, const char *comm) _must_check_;
void process_table_exit(struct process_table *t, pid_t pid);

/*
 * Processes that started a program before the last call and are still there: their names are to be
 * read now and given to process_table_named() (or process_table_exit(), if they are gone). Fills up
 * to `room`; what started since waits for the next call, so that the shortest are never read.
 */
size_t process_table_unnamed(struct process_table *t, pid_t *pids, size_t room);
bool process_table_has_unnamed(const struct process_table *t);

/* A scan: begin, process_table_named() for each process there is, end (false: it failed half-way,
 * and what was known before holds). */
void process_table_scan_begin(struct process_table *t);
void process_table_scan_end(struct process_table *t, bool complete);
/* Has the last known process of a name ended, so that only a scan can tell whether it runs? */
bool process_table_wants_scan(const struct process_table *t);

/* The wanted names that run; the table's, valid until the next call of anything here. */
const char (*process_table_running(struct process_table *t, uint32_t *ret_n))[PROCESS_NAME_MAX];
