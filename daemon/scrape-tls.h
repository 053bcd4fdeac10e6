/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who may scrape: the server's certificate, the authority that signs clients' certificates, and the
 * bearer token, each from a file that the configuration names. Read and tried as a whole before
 * anything of it is used, so that a file with a mistake leaves what was there before.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

#include <gnutls/gnutls.h>

struct scrape_files {
	/* paths on this machine; "" where it is not asked for */
	const char *certificate, *key, *client_ca, *token;
};

struct credentials {
	/* PEM, NUL-terminated; NULL where it is not asked for */
	char *certificate, *key, *client_ca;
	bool has_token;
	unsigned char token_digest[32]; /* SHA-256: the token itself is not kept */
};

/* -EINVAL: what a file holds cannot be used, or one of a pair is missing. *ret is then untouched.
 */
int credentials_load(struct credentials *ret, const struct scrape_files *files,
		     struct error *e) _must_check_;
/* Wipes and frees; usable again. */
void credentials_clear(struct credentials *c);

/* Do both ask for the same? */
bool credentials_equal(const struct credentials *a, const struct credentials *b);

/*
 * Does this Authorization header carry the token? NULL is a header that was not sent. How long it
 * takes does not tell how much of the token was right. True where no token is asked for.
 */
bool credentials_allow(const struct credentials *c, const char *authorization);

/*
 * Has the peer of this TLS session shown a certificate for clients that the authority signed and
 * that is valid now? NULL where it has; otherwise why not, in a few words that live for ever.
 */
const char *credentials_refuse_peer(gnutls_session_t session);
