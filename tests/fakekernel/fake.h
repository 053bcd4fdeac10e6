/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fake kernel as one object: the simulated memory, the files it shows, the faults it was told
 * to have, and what it counted. Everything but fake_lock() and fake_unlock() wants the lock held.
 */
#pragma once

#include "model.h"
#include "tree.h"

#include <pthread.h>

#define FAULTS_MAX    64U
#define HOOKS_MAX     64U
#define TIMERS_MAX    64U
#define PROCESSES_MAX 64U
#define HIDDEN_MAX    16U
#define LOG_MAX       4096U
#define FAKE_PATH_MAX 160U
#define FAKE_TEXT_MAX 256U

#define CONTROL_PATH  "proc/.fake/control"

enum op {
	OP_OPEN,       /* any open */
	OP_OPEN_WRITE, /* an open that may write */
	OP_READ,
	OP_WRITE,
	_OP_MAX,
};
const char *op_name(enum op op);
int op_from_name(const char *name); /* negative: no such operation */

enum fault_action {
	_FAULT_NONE,
	FAULT_ERRNO,
	FAULT_BLOCK,  /* number: seconds; negative: until cleared */
	FAULT_CUT,    /* the text ends at byte `number` */
	FAULT_CHANGE, /* behind byte `number` follows a newer text */
	FAULT_DROP,   /* a write succeeds and changes nothing */
	FAULT_VALUE,  /* a write stores `text` instead */
	FAULT_SHORT,  /* only the first `number` bytes of a write are taken */
};

struct fault {
	char pattern[FAKE_PATH_MAX]; /* fnmatch(3) against "proc/zoneinfo" */
	enum op op;
	enum fault_action action;
	int code; /* errno */
	double number;
	char text[FAKE_TEXT_MAX]; /* FAULT_VALUE, and the command of FAULT_CHANGE */
	unsigned times;           /* 0: until cleared */
	unsigned skip;            /* so many go well first */
};

struct hook {
	char pattern[FAKE_PATH_MAX];
	enum op op;
	unsigned left; /* runs before the operation that makes this 0 */
	char command[FAKE_TEXT_MAX];
};

struct timer {
	uint64_t due_usec, every_usec; /* every: 0 for once */
	char command[FAKE_TEXT_MAX];
};

struct process {
	int pid;
	char comm[32];
};

struct written {
	uint64_t usec;
	int pid;
	int result; /* bytes or a negative errno */
	char path[FAKE_PATH_MAX];
	char text[48];
};

#define PATHS_MAX 256U
struct path_count {
	char path[FAKE_PATH_MAX];
	uint64_t n[_OP_MAX];
};

/* Somebody who sleeps in an operation. */
struct waiter {
	const char *path;
	bool released;
	struct waiter *next;
};

struct choices {
	const char *const *words; /* NULL behind the last */
	unsigned now;
};

struct fake {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct model model;
	struct tree tree;
	bool stopping, manual_clock, in_command;
	uint64_t real_usec; /* CLOCK_MONOTONIC that the model has come to */
	char boot_id[40];
	unsigned boots;
	int sysctl[_SYSCTL_MAX];
	struct choices thp_enabled, thp_defrag, thp_shmem;
	struct choices size_enabled[MODEL_ORDERS], size_shmem[MODEL_ORDERS];
	bool pcp_allow_high_order;
	uint64_t race_blocks; /* parked between the drain and the store of pcp_allow_high_order */
	struct fault faults[FAULTS_MAX];
	size_t nr_faults;
	struct hook hooks[HOOKS_MAX];
	size_t nr_hooks;
	struct timer timers[TIMERS_MAX];
	size_t nr_timers;
	struct process processes[PROCESSES_MAX];
	size_t nr_processes;
	char hidden[HIDDEN_MAX][FAKE_PATH_MAX];
	size_t nr_hidden;
	struct waiter *waiters;
	struct path_count paths[PATHS_MAX];
	size_t nr_paths;
	uint64_t blocked;
	struct written *log; /* LOG_MAX, the oldest is overwritten */
	uint64_t nr_written;
	char last_error[FAKE_TEXT_MAX];
};

/* Takes the configuration over. 0 or a negative errno. */
int fake_init(struct fake *f, struct config *config, const char *boot_id);
void fake_free(struct fake *f);
void fake_lock(struct fake *f); /* and lets the model come up to the present */
void fake_unlock(struct fake *f);
/* Wakes everybody who sleeps and lets nobody sleep again. */
void fake_stop(struct fake *f);
/* Lets model time pass and runs what falls due. */
void fake_advance(struct fake *f, uint64_t usec);
/* After hotplug: the files again. */
int fake_rebuild(struct fake *f);
/* As after a power cycle: every setting at its default, nothing parked, another boot id. */
void fake_reboot(struct fake *f);
void fake_count(struct fake *f, const char *path, enum op op);
void fake_note_write(struct fake *f, const char *path, const char *text, size_t len, int pid,
		     int result);

/* faults.c */
void hooks_run(struct fake *f, const char *path, enum op op);
/* The first fault for this operation, copied and used up; false: none. */
bool fault_take(struct fake *f, const char *path, enum op op, struct fault *ret);
/* Sleeps in `path` as long as FAULT_BLOCK says. The lock is given up meanwhile. */
void fault_sleep(struct fake *f, const char *path, double seconds);
/* Sleeps until `ready(f)` holds. */
void fake_sleep_until(struct fake *f, const char *path, bool (*ready)(struct fake *f));
void faults_clear(struct fake *f, const char *pattern);

/* control.c: one or more lines; 0 or a negative errno, with f->last_error saying why. */
int control_run(struct fake *f, const char *text);
void control_show(struct fake *f, struct text *t);
void control_help(FILE *out);
