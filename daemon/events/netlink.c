/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

/* libnl reports in numbers of its own; errno still holds what the system call said. */
static int errno_of(int nl_error)
{
	int saved = errno;

	switch (-nl_error) {
	case NLE_PERM:
	case NLE_NOACCESS:
		return -EPERM;
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_PROTO_MISMATCH:
	case NLE_AF_NOSUPPORT:
		return -EPROTONOSUPPORT;
	case NLE_OBJ_NOTFOUND:
		return -ENOENT;
	default:
		return saved > 0 ? -saved : -EIO;
	}
}

int netlink_open(struct nl_sock **ret, int protocol, int group)
{
	struct nl_sock *s = nl_socket_alloc();
	int r;

	if (!s)
		return -ENOMEM;
	errno = 0;
	r = nl_connect(s, protocol);
	if (r == 0 && group)
		r = nl_socket_add_membership(s, group);
	if (r == 0)
		r = nl_socket_set_nonblocking(s);
	if (r < 0) {
		r = errno_of(r);
		nl_socket_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct nl_sock *netlink_close(struct nl_sock *s)
{
	if (s)
		nl_socket_free(s);
	return NULL;
}

int netlink_fd(const struct nl_sock *s)
{
	return nl_socket_get_fd(s);
}

ssize_t netlink_receive(int fd, void *buf, size_t size)
{
	struct sockaddr_nl from = {0};
	struct iovec iov = {buf, size};
	struct msghdr m = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n;

	do
		n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (m.msg_namelen != sizeof(from) || from.nl_pid != 0 || (m.msg_flags & MSG_TRUNC))
		return 0;
	return n;
}
