/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sockets that the scrape server listens on. */
#pragma once

#include "base/error.h"

/*
 * Binds and listens on "127.0.0.1:9978", "[::1]:9978", "*:9978" (every address), or the path of a
 * Unix socket, where a socket that a dead daemon left is replaced. A descriptor that does not
 * block, or: -EINVAL for an address that cannot be read; -EADDRINUSE and the like from bind(2).
 */
int scrape_listen(const char *address, struct error *e) _must_check_;

/* The port that was bound, which is the kernel's choice where the address said port 0. */
unsigned scrape_bound_port(int fd);
