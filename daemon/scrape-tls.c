/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "scrape-tls.h"

#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <gnutls/crypto.h>
#include <gnutls/x509.h>

#define PEM_MAX   (256U << 10)
#define TOKEN_MAX 4096U

/* What of a secret file is read into, wiped before it is freed. */
static void wipe_free(char **s)
{
	if (*s)
		explicit_bzero(*s, strlen(*s));
	free(*s);
	*s = NULL;
}

static int read_file(char **ret, const char *key, const char *path, size_t max, struct error *e)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(wipe_free) char *text = NULL;
	size_t len = 0;
	ssize_t n = -1;

	if (fd >= 0)
		text = calloc(1, max + 1);
	if (fd >= 0 && !text)
		return error_set(e, -ENOMEM, "out of memory");
	while (fd >= 0 && len < max && (n = read(fd, text + len, max - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return error_set(e, -errno, "cannot read %s, which %s= in [Metrics] names: %s",
				 path, key, error_name(errno));
	if (len == max || strlen(text) != len)
		return error_set(e, -EINVAL, "%s, which %s= in [Metrics] names, %s", path, key,
				 len == max ? "is too large to be what is wanted"
					    : "holds a NUL byte: it is no text");
	*ret = TAKE_PTR(text);
	return 0;
}

static int digest(const char *token, size_t len, unsigned char into[static 32])
{
	return gnutls_hash_fast(GNUTLS_DIG_SHA256, token, len, into) < 0 ? -EIO : 0;
}

static int load_token(struct credentials *c, const char *path, struct error *e)
{
	_cleanup_(wipe_free) char *text = NULL;
	size_t len;
	int r;

	r = read_file(&text, "TokenFile", path, TOKEN_MAX, e);
	if (r < 0)
		return r;
	len = strlen(text);
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	if (len == 0)
		return error_set(e, -EINVAL,
				 "%s, which TokenFile= in [Metrics] names, is empty: write the "
				 "token into it, on one line (openssl rand -hex 32)",
				 path);
	if (strcspn(text, " \t\r\n") < len)
		return error_set(e, -EINVAL,
				 "%s, which TokenFile= in [Metrics] names, holds more than one "
				 "word: a bearer token has no blanks and is alone in its file",
				 path);
	r = digest(text, len, c->token_digest);
	if (r < 0)
		return error_set(e, r, "cannot hash the token of %s", path);
	c->has_token = true;
	return 0;
}

static int tls_error(int code, const char *what, struct error *e)
{
	return error_set(e, -EINVAL, "%s: %s", what, gnutls_strerror(code));
}

static gnutls_datum_t datum(char *pem)
{
	return (gnutls_datum_t){(unsigned char *)pem, (unsigned)strlen(pem)};
}

static void credentials_freep(gnutls_certificate_credentials_t *c)
{
	if (*c)
		gnutls_certificate_free_credentials(*c);
}

/* As the server would use them: a key that is of another certificate is found here. */
static int try_pair(struct credentials *c, const struct scrape_files *files, struct error *e)
{
	_cleanup_(credentials_freep) gnutls_certificate_credentials_t x509 = NULL;
	gnutls_datum_t certificate = datum(c->certificate), key = datum(c->key);
	char what[512];
	int r;

	if (gnutls_certificate_allocate_credentials(&x509) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	(void)snprintf(what, sizeof(what),
		       "cannot serve metrics with the certificate %s and the key %s (PEM, of one "
		       "pair)",
		       files->certificate, files->key);
	r = gnutls_certificate_set_x509_key_mem(x509, &certificate, &key, GNUTLS_X509_FMT_PEM);
	if (r < 0)
		return tls_error(r, what, e);
	if (c->client_ca) {
		gnutls_datum_t ca = datum(c->client_ca);

		(void)snprintf(what, sizeof(what),
			       "cannot take %s for the authority of clients' certificates (PEM)",
			       files->client_ca);
		r = gnutls_certificate_set_x509_trust_mem(x509, &ca, GNUTLS_X509_FMT_PEM);
		if (r < 0)
			return tls_error(r, what, e);
		if (r == 0)
			return error_set(e, -EINVAL, "%s: there is no certificate in it", what);
	}
	return 0;
}

static int load_tls(struct credentials *c, const struct scrape_files *files, struct error *e)
{
	int r;

	if (!*files->certificate && !*files->key && !*files->client_ca)
		return 0;
	if (!*files->certificate || !*files->key)
		return error_set(e, -EINVAL,
				 "%s in [Metrics] is set and %s is not: TLS needs a certificate "
				 "and its key, set both or neither",
				 *files->certificate ? "TLSCertificate="
				 : *files->key       ? "TLSKey="
						     : "TLSClientCA=",
				 *files->certificate ? "TLSKey=" : "TLSCertificate=");
	r = read_file(&c->certificate, "TLSCertificate", files->certificate, PEM_MAX, e);
	if (r == 0)
		r = read_file(&c->key, "TLSKey", files->key, PEM_MAX, e);
	if (r == 0 && *files->client_ca)
		r = read_file(&c->client_ca, "TLSClientCA", files->client_ca, PEM_MAX, e);
	return r < 0 ? r : try_pair(c, files, e);
}

int credentials_load(struct credentials *ret, const struct scrape_files *files, struct error *e)
{
	_cleanup_(credentials_clear) struct credentials c = {0};
	int r;

	r = load_tls(&c, files, e);
	if (r == 0 && *files->token)
		r = load_token(&c, files->token, e);
	if (r < 0)
		return r;
	*ret = c;
	c = (struct credentials){0};
	return 0;
}

void credentials_clear(struct credentials *c)
{
	free(c->certificate);
	wipe_free(&c->key);
	free(c->client_ca);
	explicit_bzero(c, sizeof(*c));
}

static bool same(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

bool credentials_equal(const struct credentials *a, const struct credentials *b)
{
	return same(a->certificate, b->certificate) && same(a->key, b->key) &&
	       same(a->client_ca, b->client_ca) && a->has_token == b->has_token &&
	       memcmp(a->token_digest, b->token_digest, sizeof(a->token_digest)) == 0;
}

bool credentials_allow(const struct credentials *c, const char *authorization)
{
	static const char scheme[] = "Bearer ";
	unsigned char shown[32];

	if (!c->has_token)
		return true;
	if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
		return false;
	authorization += strlen(scheme);
	/* of digests neither the length nor a common beginning tells anything about the token */
	return digest(authorization, strlen(authorization), shown) == 0 &&
	       gnutls_memcmp(shown, c->token_digest, sizeof(shown)) == 0;
}

const char *credentials_refuse_peer(gnutls_session_t session)
{
	gnutls_typed_vdata_st purpose = {
		.type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT,
	};
	unsigned peers = 0, status = 0;

	if (!gnutls_certificate_get_peers(session, &peers) || peers == 0)
		return "this server wants a client certificate, and none was shown";
	if (gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0)
		return "the client certificate cannot be verified";
	if (status & GNUTLS_CERT_EXPIRED)
		return "the client certificate has expired";
	if (status & GNUTLS_CERT_PURPOSE_MISMATCH)
		return "the certificate is not one for clients";
	return status ? "the client certificate is not of this server's authority" : NULL;
}
