/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The network links of this namespace, by rtnetlink: how many are up, and the largest MTU of those.
 * The loopback, links that are down, and links without carrier are left out.
 */
#pragma once

#include "link-message.h"
#include "sense/snapshot.h"
#include "watch.h"

#include <systemd/sd-event.h>

struct links;

/* Only trouble with the loop or memory is an error: the rest is a state. */
int links_new(struct links **ret, sd_event *event, const struct watch_sink *sink) _must_check_;
struct links *links_free(struct links *l);

/* False: not known (yet). Otherwise fills the part of *ret that is about links. */
bool links_events(const struct links *l, struct events *ret);

const struct watch *links_watch(const struct links *l);
