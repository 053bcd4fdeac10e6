/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procconn.h"

#include <errno.h>
#include <linux/connector.h>
#include <linux/netlink.h>

/* linux/cn_proc.h by number: the types there grew with time, the wire did not change. */
#define EVENT_NONE   UINT32_C(0)
#define EVENT_EXEC   UINT32_C(0x00000002)
#define EVENT_COMM   UINT32_C(0x00000200)
#define EVENT_EXIT   UINT32_C(0x80000000)
#define MCAST_LISTEN 1U
#define MCAST_IGNORE 2U
/* what, cpu, time stamp */
#define EVENT_HEADER 16U

static uint32_t u32_at(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Thread and process: events of threads that do not lead their process are nobody's business. */
static bool take_pids(const unsigned char *data, size_t len, struct proc_event *ret)
{
	if (len < 8)
		return false;
	ret->pid = (pid_t)u32_at(data + 4);
	return u32_at(data) == u32_at(data + 4) && ret->pid > 0;
}

static void take_event(const unsigned char *event, size_t len, struct proc_event *ret)
{
	const unsigned char *data = event + EVENT_HEADER;

	*ret = (struct proc_event){.change = PROC_OTHER};
	if (len < EVENT_HEADER)
		return;
	len -= EVENT_HEADER;
	switch (u32_at(event)) {
	case EVENT_NONE:
		if (len < 4)
			return;
		ret->change = PROC_ACK;
		ret->error = -(int)(u32_at(data) & INT32_MAX);
		return;
	case EVENT_EXEC:
		if (take_pids(data, len, ret))
			ret->change = PROC_EXEC;
		return;
	case EVENT_COMM:
		if (len < 8 + sizeof(ret->comm) || !take_pids(data, len, ret))
			return;
		ret->change = PROC_COMM;
		memcpy(ret->comm, data + 8, sizeof(ret->comm));
		ret->comm[sizeof(ret->comm) - 1] = '\0';
		return;
	case EVENT_EXIT:
		if (take_pids(data, len, ret))
			ret->change = PROC_EXIT;
		return;
	default:
		return;
	}
}

int procconn_next(const unsigned char **buf, size_t *len, struct proc_event *ret)
{
	struct nlmsghdr h;
	struct cn_msg cn;
	const unsigned char *body;
	size_t size;

	if (*len == 0)
		return 0;
	if (*len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, *buf, sizeof(h));
	if (h.nlmsg_len < NLMSG_HDRLEN + sizeof(cn) || h.nlmsg_len > *len)
		return -EBADMSG;
	body = *buf + NLMSG_HDRLEN;
	memcpy(&cn, body, sizeof(cn));
	size = h.nlmsg_len - NLMSG_HDRLEN - sizeof(cn);
	if (cn.len > size)
		return -EBADMSG;
	if (cn.id.idx == CN_IDX_PROC && cn.id.val == CN_VAL_PROC)
		take_event(body + sizeof(cn), cn.len, ret);
	else
		*ret = (struct proc_event){.change = PROC_OTHER};
	size = MIN_OF((size_t)NLMSG_ALIGN(h.nlmsg_len), *len);
	*buf += size;
	*len -= size;
	return 1;
}

size_t procconn_request(enum procconn_request what, unsigned char buf[PROCCONN_REQUEST_MAX])
{
	const uint32_t payload[] = {
		what == PROCCONN_IGNORE ? MCAST_IGNORE : MCAST_LISTEN,
		EVENT_EXEC | EVENT_COMM | EVENT_EXIT,
	};
	size_t len = what == PROCCONN_LISTEN_FILTERED ? sizeof(payload) : sizeof(payload[0]);
	const struct cn_msg cn = {
		.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC},
		.len = (uint16_t)len,
	};
	const struct nlmsghdr h = {
		.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + sizeof(cn) + len),
		.nlmsg_type = NLMSG_DONE,
	};

	memset(buf, 0, PROCCONN_REQUEST_MAX);
	memcpy(buf, &h, sizeof(h));
	memcpy(buf + NLMSG_HDRLEN, &cn, sizeof(cn));
	memcpy(buf + NLMSG_HDRLEN + sizeof(cn), payload, len);
	return h.nlmsg_len;
}
