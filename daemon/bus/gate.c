/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gate.h"

#include "base/parse.h"

#include <errno.h>
#include <stdarg.h>

#define HEADER_BYTES 16U
/* sd-bus and others send no longer line, and a handful of them. */
#define LINE_MAX_BYTES 256U
/* Any: nobody looks at it on a connection without a broker. */
#define GUID "00000000000000000000000000000001"

uint8_t *gate_room(struct gate *g, size_t *room)
{
	*room = sizeof(g->bytes) - g->len;
	return g->bytes + g->len;
}

void gate_drop(struct gate *g, size_t n)
{
	memmove(g->bytes, g->bytes + n, g->len - n);
	g->len -= n;
}

bool gate_waits(const struct gate *g)
{
	return !g->begun || g->len > 0;
}

static int tell(char reply[GATE_REPLY_MAX], size_t *len, const char *line)
{
	size_t n = strlen(line);

	if (*len + n > GATE_REPLY_MAX)
		return -EPROTO; /* nobody has that much to negotiate */
	memcpy(reply + *len, line, n);
	*len += n;
	return 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* EXTERNAL names the user in decimal, each character in hex; nothing means: who I am. */
static bool names(uid_t uid, const char *hex)
{
	char text[24];
	size_t n = 0;
	uint64_t v;

	if (!*hex)
		return true;
	for (; hex[0] && hex[1] && n + 1 < sizeof(text); hex += 2) {
		int high = digit(hex[0]), low = digit(hex[1]);

		if (high < 0 || low < 0)
			return false;
		text[n++] = (char)(high << 4 | low);
	}
	text[n] = '\0';
	return !*hex && parse_u64(text, &v) == 0 && v == uid;
}

static const char *after(const char *line, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(line, word, n) != 0 || (line[n] && line[n] != ' '))
		return NULL;
	return line + n + (line[n] == ' ');
}

static int greet(struct gate *g, const char *line, char reply[GATE_REPLY_MAX], size_t *len)
{
	const char *token = after(line, "AUTH EXTERNAL"), *data = after(line, "DATA");

	if (streq(line, "BEGIN")) {
		g->begun = g->accepted;
		return g->begun ? 0 : -EPROTO;
	}
	if (token && !*token)
		return tell(reply, len, "DATA\r\n");
	if (token || data) {
		g->accepted = names(g->uid, token ? token : data);
		return tell(reply, len, g->accepted ? "OK " GUID "\r\n" : "REJECTED EXTERNAL\r\n");
	}
	if (after(line, "NEGOTIATE_UNIX_FD"))
		return tell(reply, len, "ERROR\r\n"); /* no request has descriptors */
	g->accepted = false;
	return tell(reply, len, "REJECTED EXTERNAL\r\n");
}

/* The lines of the greeting that are there. */
static int take_lines(struct gate *g, char reply[GATE_REPLY_MAX], size_t *reply_len)
{
	while (!g->begun) {
		char line[LINE_MAX_BYTES];
		const uint8_t *end = memmem(g->bytes, g->len, "\r\n", 2);
		size_t n = end ? (size_t)(end - g->bytes) : g->len;
		int r;

		if (n >= sizeof(line))
			return -EPROTO;
		if (!end)
			return 0;
		memcpy(line, g->bytes, n);
		line[n] = '\0';
		gate_drop(g, n + 2);
		r = greet(g, line, reply, reply_len);
		if (r < 0)
			return r;
	}
	return 0;
}

static uint32_t number_at(const uint8_t *p, bool big)
{
	return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
		   : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Of the message that begins there: its length as its header announces it. */
static ssize_t announced(const uint8_t *p)
{
	const bool big = p[0] == 'B';
	uint64_t body = number_at(p + 4, big), fields = number_at(p + 12, big);
	uint64_t length = ((HEADER_BYTES + fields + 7) & ~UINT64_C(7)) + body;

	if ((!big && p[0] != 'l') || p[3] != 1 || length > GATE_BYTES)
		return -EPROTO;
	return (ssize_t)length;
}

ssize_t gate_take(struct gate *g, size_t n, char reply[GATE_REPLY_MAX], size_t *reply_len)
{
	size_t whole = 0;
	int r;

	*reply_len = 0;
	g->len += n;
	if (!g->nul && g->len > 0) {
		if (g->bytes[0] != 0)
			return -EPROTO;
		g->nul = true;
		gate_drop(g, 1);
	}
	r = take_lines(g, reply, reply_len);
	if (r < 0)
		return r;
	while (g->begun && g->len - whole >= HEADER_BYTES) {
		ssize_t length = announced(g->bytes + whole);

		if (length < 0)
			return length;
		if ((size_t)length > g->len - whole)
			break;
		whole += (size_t)length;
	}
	return (ssize_t)whole;
}
