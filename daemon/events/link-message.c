/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "link-message.h"

#include <errno.h>
#include <net/if.h>

#include <linux/if_link.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <linux/rtnetlink.h>

static void take_link(struct nlmsghdr *h, struct link_message *ret)
{
	struct nlattr *attr[IFLA_MTU + 1] = {0};
	struct nla_policy policy[IFLA_MTU + 1] = {[IFLA_MTU] = {.type = NLA_U32}};
	struct ifinfomsg info;

	if (!nlmsg_valid_hdr(h, sizeof(info)))
		return;
	memcpy(&info, nlmsg_data(h), sizeof(info));
	/* what bridges tell of their ports looks the same, and a port that leaves is not gone */
	if (info.ifi_family != AF_UNSPEC || info.ifi_index <= 0)
		return;
	ret->index = info.ifi_index;
	if (h->nlmsg_type == RTM_DELLINK) {
		ret->kind = LINK_GONE;
		return;
	}
	if (nlmsg_parse(h, sizeof(info), attr, IFLA_MTU, policy) < 0 || !attr[IFLA_MTU])
		return;
	ret->kind = LINK_IS;
	ret->mtu = nla_get_u32(attr[IFLA_MTU]);
	ret->counts = (info.ifi_flags & IFF_UP) && (info.ifi_flags & IFF_RUNNING) &&
		      !(info.ifi_flags & IFF_LOOPBACK);
}

static void take_error(struct nlmsghdr *h, struct link_message *ret)
{
	int32_t error;

	if (!nlmsg_valid_hdr(h, sizeof(error)))
		return;
	memcpy(&error, nlmsg_data(h), sizeof(error));
	if (error >= 0 || error < -4095)
		return;
	ret->kind = LINK_FAILED;
	ret->error = error;
}

int link_message_next(const unsigned char **buf, size_t *len, struct link_message *ret)
{
	/* libnl takes no const; nothing is written */
	struct nlmsghdr *h = (struct nlmsghdr *)(uintptr_t)*buf;
	size_t size;

	if (*len == 0)
		return 0;
	if (*len > INT32_MAX || !nlmsg_ok(h, (int)*len))
		return -EBADMSG;
	*ret = (struct link_message){
		.kind = LINK_OTHER,
		.inconsistent = (h->nlmsg_flags & NLM_F_DUMP_INTR) != 0,
	};
	switch (h->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		take_link(h, ret);
		break;
	case NLMSG_ERROR:
		take_error(h, ret);
		break;
	case NLMSG_DONE:
		ret->kind = LINK_DONE;
		break;
	default:
		break;
	}
	size = MIN_OF((size_t)NLMSG_ALIGN(h->nlmsg_len), *len);
	*buf += size;
	*len -= size;
	return 1;
}
