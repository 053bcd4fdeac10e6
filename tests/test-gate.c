/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a peer on the private bus may send before sd-bus hears of it. */
#include "bus/gate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define UID 1000U

static struct gate *a_gate(void)
{
	struct gate *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	g->uid = UID;
	return g;
}

/* Sends it in pieces; what the gate answered is in `said`, and what passed is counted. */
static ssize_t send_in(struct gate *g, const void *bytes, size_t n, size_t piece, char *said,
		       size_t said_size)
{
	const uint8_t *p = bytes;
	size_t passed = 0;

	said[0] = '\0';
	while (n > 0) {
		char reply[GATE_REPLY_MAX];
		size_t room, len, step, have = strlen(said);
		uint8_t *to = gate_room(g, &room);
		ssize_t whole;

		step = MIN_OF(piece, n);
		step = MIN_OF(step, room);
		assert_true(step > 0);
		memcpy(to, p, step);
		whole = gate_take(g, step, reply, &len);
		if (whole < 0)
			return whole;
		assert_true(have + len < said_size);
		memcpy(said + have, reply, len);
		said[have + len] = '\0';
		gate_drop(g, (size_t)whole);
		passed += (size_t)whole;
		p += step;
		n -= step;
	}
	return (ssize_t)passed;
}

static ssize_t say(struct gate *g, const char *text, size_t n, char said[512])
{
	return send_in(g, text, n, n, said, 512);
}
#define SAY(g, text, said) say(g, text, sizeof(text) - 1, said)

static void put_number(uint8_t *to, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> 8 * i);
}

/* A little-endian message whose header announces `fields` and `body`. */
static size_t message(uint8_t *to, uint32_t fields, uint32_t body)
{
	size_t n = ((16 + (size_t)fields + 7) & ~(size_t)7) + body;

	memset(to, 0, n);
	memcpy(to, "l\1\0\1", 4);
	put_number(to + 4, body);
	put_number(to + 12, fields);
	return n;
}

static void each_way_to_greet_is_understood(void **state)
{
	static const struct {
		const char *sent, *said;
	} rows[] = {
		{"AUTH EXTERNAL\r\nDATA\r\n", "DATA\r\nOK "},
		{"AUTH EXTERNAL 31303030\r\n", "OK "}, /* "1000" */
		{"AUTH\r\nAUTH EXTERNAL 31303030\r\n", "REJECTED EXTERNAL\r\nOK "},
		{"AUTH ANONYMOUS 61\r\n", "REJECTED EXTERNAL\r\n"},
		{"AUTH EXTERNAL 30\r\n", "REJECTED EXTERNAL\r\n"}, /* root, says who is not */
		{"AUTH EXTERNAL 3130303\r\n", "REJECTED EXTERNAL\r\n"},
		{"AUTH EXTERNAL zz\r\n", "REJECTED EXTERNAL\r\n"},
		{"AUTH EXTERNALS\r\n", "REJECTED EXTERNAL\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t piece = 1; piece < 40; piece++) {
			struct gate *g = a_gate();
			char said[512];

			assert_int_equal(SAY(g, "\0", said), 0);
			assert_int_equal(send_in(g, rows[i].sent, strlen(rows[i].sent), piece, said,
						 sizeof(said)),
					 0);
			if (strncmp(said, rows[i].said, strlen(rows[i].said)) != 0)
				fail_msg("after %s it says %s", rows[i].sent, said);
			assert_true(gate_waits(g));
			free(g);
		}
}

static void nobody_begins_without_being_accepted(void **state)
{
	struct gate *g = a_gate();
	char said[512];

	(void)state;
	assert_int_equal(SAY(g, "\0AUTH EXTERNAL 30\r\nBEGIN\r\n", said), -EPROTO);
	free(g);
	g = a_gate();
	assert_int_equal(SAY(g, "AUTH EXTERNAL\r\n", said), -EPROTO);
	free(g);
}

static struct gate *begun(void)
{
	struct gate *g = a_gate();
	char said[512];

	assert_int_equal(SAY(g, "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n", said), 0);
	assert_true(g->begun && !gate_waits(g));
	return g;
}

static void messages_pass_whole_however_they_are_cut(void **state)
{
	uint8_t bytes[4096];
	char said[64];
	size_t n = message(bytes, 79, 4);

	(void)state;
	n += message(bytes + n, 100, 0);
	n += message(bytes + n, 8, 1000);
	for (size_t piece = 1; piece <= n; piece += piece < 64 ? 1 : 61) {
		struct gate *g = begun();

		assert_int_equal(send_in(g, bytes, n, piece, said, sizeof(said)), n);
		assert_false(gate_waits(g));
		free(g);
	}
}

static void half_a_message_waits_and_passes_nothing(void **state)
{
	uint8_t bytes[512];
	size_t n = message(bytes, 79, 100);

	(void)state;
	for (size_t cut = 1; cut < n; cut++) {
		struct gate *g = begun();
		char said[64];

		assert_int_equal(send_in(g, bytes, cut, cut, said, sizeof(said)), 0);
		assert_true(gate_waits(g));
		assert_int_equal(send_in(g, bytes + cut, n - cut, n, said, sizeof(said)), n);
		free(g);
	}
}

static void what_is_too_long_is_refused_by_its_header(void **state)
{
	static const uint32_t sizes[][2] = {
		{0, GATE_BYTES}, {GATE_BYTES, 0},          {UINT32_MAX, 0},
		{0, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}, {100U << 20, 8},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct gate *g = begun();
		uint8_t header[16];
		char said[64];

		(void)message(header, 0, 0);
		put_number(header + 4, sizes[i][1]);
		put_number(header + 12, sizes[i][0]);
		assert_int_equal(send_in(g, header, 16, 16, said, sizeof(said)), -EPROTO);
		free(g);
	}
}

static void what_is_no_message_is_refused(void **state)
{
	struct gate *g = begun();
	char said[512];

	(void)state;
	assert_int_equal(SAY(g, "GET / HTTP/1.1\r\n\r\n", said), -EPROTO);
	free(g);
	g = a_gate();
	for (size_t i = 0; i < 300; i++)
		if (say(g, i ? "x" : "\0", 1, said) < 0) {
			assert_true(i > 200);
			free(g);
			return;
		}
	fail_msg("a line without an end is read for ever");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_to_greet_is_understood),
		cmocka_unit_test(nobody_begins_without_being_accepted),
		cmocka_unit_test(messages_pass_whole_however_they_are_cut),
		cmocka_unit_test(half_a_message_waits_and_passes_nothing),
		cmocka_unit_test(what_is_too_long_is_refused_by_its_header),
		cmocka_unit_test(what_is_no_message_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
