/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Netlink sockets by libnl, and reading them without its callbacks. */
#pragma once

#include "base/util.h"

#include <sys/types.h>

struct nl_sock;

/*
 * A non-blocking socket of `protocol` that is in `group` (0: in none). 0 or a negative errno:
 * -EPROTONOSUPPORT: this kernel has none of that; -EPERM: not for us.
 */
int netlink_open(struct nl_sock **ret, int protocol, int group) _must_check_;
struct nl_sock *netlink_close(struct nl_sock *s); /* takes NULL, returns NULL */
int netlink_fd(const struct nl_sock *s);

/*
 * The next message from the kernel; its length, or -EAGAIN, -ENOBUFS (the kernel dropped some), or
 * another errno. What anybody but the kernel sent, and what does not fit, is 0.
 */
ssize_t netlink_receive(int fd, void *buf, size_t size);
