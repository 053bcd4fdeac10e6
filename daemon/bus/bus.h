/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control bus: org.pcptune1(5). The same objects on the system bus, where there is one, and on
 * run/pcptune/bus, which needs no broker.
 */
#pragma once

#include "base/error.h"

struct bus;
struct manager;

/*
 * Listens on run/pcptune/bus below the manager's root (a live one's system bus is connected to
 * whenever it is there). `m` must outlive it, with its event loop. 0 or a negative errno.
 */
int bus_new(struct bus **ret, struct manager *m, struct error *e) _must_check_;
struct bus *bus_free(struct bus *b); /* takes NULL; returns NULL */

/* Tells those who listen what has changed since the last call. Takes NULL. */
void bus_refresh(struct bus *b);
