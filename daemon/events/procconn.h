/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of the proc connector (NETLINK_CONNECTOR, CN_IDX_PROC), read from bytes: a netlink
 * header, a connector header, and what happened (drivers/connector/cn_proc.c).
 */
#pragma once

#include "base/util.h"

#include <stdbool.h>
#include <sys/types.h>

enum proc_change {
	PROC_OTHER,
	PROC_EXEC, /* the process runs another program now: its name is to be read */
	PROC_COMM, /* it has another name: `comm` */
	PROC_EXIT, /* it has ended */
	PROC_ACK,  /* the answer to a subscription: `error` */
};

struct proc_event {
	enum proc_change change;
	pid_t pid;     /* of the process; threads are PROC_OTHER */
	char comm[16]; /* PROC_COMM, always with its NUL */
	int error;     /* PROC_ACK: 0 or a negative errno */
};

/*
 * Takes the next message from *buf and moves it on. 1: *ret is filled; 0: the end; -EBADMSG: what
 * follows is no message (nothing more can be read from this buffer).
 */
int procconn_next(const unsigned char **buf, size_t *len, struct proc_event *ret) _must_check_;

/*
 * A subscription in `buf`; its length. `filtered`: only programs started, names changed and ends,
 * sorted out by the kernel (6.6 and later, older ones ignore such a message); otherwise everything.
 */
#define PROCCONN_REQUEST_MAX 64U
enum procconn_request {
	PROCCONN_LISTEN,
	PROCCONN_LISTEN_FILTERED,
	PROCCONN_IGNORE,
};
size_t procconn_request(enum procconn_request what, unsigned char buf[PROCCONN_REQUEST_MAX]);
