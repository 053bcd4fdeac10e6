/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scrape server: libmicrohttpd in epoll mode on the daemon's own loop, without threads.
 * It serves /metrics, /healthz and a small index, and nothing that changes anything.
 */
#pragma once

#include "base/error.h"
#include "tell/exposition.h"

#include <systemd/sd-event.h>

struct scrape_ops {
	/* The exposition text of now. 0, or a negative errno (the scrape then gets a 500). */
	int (*render)(void *userdata, enum exposition_format format, struct text *into);
	/* NULL while all is well; otherwise why not, in one line that lives until the next call. */
	const char *(*unhealthy)(void *userdata);
	void *userdata;
};

struct scrape;

/*
 * Listens on each address of `listen`, blanks between them: "127.0.0.1:9978", "[::1]:9978",
 * "*:9978" (every address), or the path of a Unix socket. `event` and the userdata must outlive
 * the server. -EINVAL: an address cannot be read; -EADDRINUSE and the like from bind(2).
 */
int scrape_new(struct scrape **ret, sd_event *event, const char *listen,
	       const struct scrape_ops *ops, struct error *e) _must_check_;
struct scrape *scrape_free(struct scrape *s);

static inline void scrape_freep(struct scrape **s)
{
	*s = scrape_free(*s);
}

/* Where the metrics are, for a person: "http://127.0.0.1:9978/metrics". Owned by the server. */
const char *scrape_url(const struct scrape *s);
