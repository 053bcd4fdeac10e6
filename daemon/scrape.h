/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scrape server: libmicrohttpd in epoll mode on the daemon's own loop, without threads.
 * It serves /metrics, /healthz and a small index, and nothing that changes anything.
 *
 * A peer has 10 seconds to send a whole request and 30 to take its answer, however it spreads its
 * bytes; each address has a limit of connections, and each listener its own, so that nothing which
 * comes by TCP takes a place from the Unix socket. What slow peers can hold of answers is bounded.
 */
#pragma once

#include "base/error.h"
#include "scrape-tls.h"
#include "tell/exposition.h"

#include <systemd/sd-event.h>

struct scrape_ops {
	/*
	 * Sees to it that a scrape shows the present, and returns a number that is another one
	 * where there is something new to render.
	 */
	uint64_t (*refresh)(void *userdata);
	/* The exposition text of now. 0, or a negative errno (the scrape then gets a 500). */
	int (*render)(void *userdata, enum exposition_format format, struct text *into);
	/* NULL while all is well; otherwise why not, in one line that lives until the next call. */
	const char *(*unhealthy)(void *userdata);
	void *userdata;
};

struct scrape;

/*
 * Listens on each address of `listen`, blanks between them (see scrape_listen()). With a
 * certificate the TCP addresses speak TLS 1.2 and later only; who may connect to a Unix socket is
 * the file's permissions to say: there is neither TLS nor a token. `event` and the userdata must
 * outlive the server. -EINVAL: an address or a file of `files` cannot be used.
 */
int scrape_new(struct scrape **ret, sd_event *event, const char *listen,
	       const struct scrape_files *files, const struct scrape_ops *ops,
	       struct error *e) _must_check_;
struct scrape *scrape_free(struct scrape *s);

static inline void scrape_freep(struct scrape **s)
{
	*s = scrape_free(*s);
}

/*
 * Goes on, on the sockets that it has, with what credentials_load() read: certificate, authority
 * and token. Connections that are open end. Takes what is in `c`. On error nobody is served on the
 * address that the error names until the next call.
 */
int scrape_take_credentials(struct scrape *s, struct credentials *c, struct error *e) _must_check_;

/* Where the metrics are, for a person: "http://127.0.0.1:9978/metrics". Owned by the server. */
const char *scrape_url(const struct scrape *s);
