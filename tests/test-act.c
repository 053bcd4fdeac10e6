/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lock, the record and single knobs. */
#include "act-tree.h"

#include "act/lock.h"
#include "act/record.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static int make(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	tree_make(t, false);
	*state = t;
	return 0;
}

static int clean(void **state)
{
	tree_remove(*state);
	free(*state);
	return 0;
}

/* ---- the lock ---- */

static void a_second_taker_is_told_who_the_first_is(void **state)
{
	struct tree *t = *state;
	struct instance_lock first = INSTANCE_LOCK_NONE, second = INSTANCE_LOCK_NONE;
	struct lock_holder h = {0};
	struct error e = {0};
	char pid[32];

	assert_int_equal(lock_query(&t->env, &h), 0);
	assert_int_equal(lock_take(&first, &t->env, "pcptuned", act_time_now(), NULL, &e), 0);
	assert_int_equal(lock_query(&t->env, &h), 1);
	assert_int_equal(h.pid, getpid());
	assert_int_equal(lock_take(&second, &t->env, "pcptunectl", act_time_now(), &h, &e), -EBUSY);
	assert_string_equal(h.program, "pcptuned");
	(void)snprintf(pid, sizeof(pid), "pid %ld", (long)getpid());
	if (!strstr(e.text, "pcptuned") || !strstr(e.text, pid) || !strstr(e.text, "since"))
		fail_msg("the message does not name the first: %s", e.text);
	lock_release(&first);
	assert_int_equal(lock_take(&second, &t->env, "pcptunectl", act_time_now(), NULL, &e), 0);
	lock_release(&second);
}

static void a_lock_dies_with_its_holder(void **state)
{
	struct tree *t = *state;
	struct instance_lock lock = INSTANCE_LOCK_NONE;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(lock_take(&lock, &t->env, "pcptuned", act_time_now(), NULL, NULL) != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(lock_take(&lock, &t->env, "pcptuned", act_time_now(), NULL, NULL), 0);
	lock_release(&lock);
}

static void what_keeps_the_lock_from_being_taken_is_said_with_the_remedy(void **state)
{
	static const struct {
		int error, want;
		const char *says;
	} rows[] = {
		{-EACCES, -EACCES, "run as root"},
		{-EPERM, -EACCES, "run as root"},
		{-EROFS, -EROFS, "writable"},
		{-ENOSPC, -ENOSPC, "make room"},
	};
	struct tree *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct instance_lock lock = INSTANCE_LOCK_NONE;
		struct error e = {0};
		int r;

		tree_fail(t, ACT_LOCK_OPEN, rows[i].error, 1);
		r = lock_take(&lock, &t->env, "pcptuned", act_time_now(), NULL, &e);
		if (r != rows[i].want || !strstr(e.text, rows[i].says) || !strstr(e.text, t->dir))
			fail_msg("errno %d: got %d, \"%s\"", -rows[i].error, r, e.text);
	}
}

static void a_run_directory_that_others_can_write_to_is_refused(void **state)
{
	struct tree *t = *state;
	struct instance_lock lock = INSTANCE_LOCK_NONE;
	struct error e = {0};
	char path[128];

	assert_int_equal(lock_take(&lock, &t->env, "pcptuned", act_time_now(), NULL, NULL), 0);
	lock_release(&lock);
	(void)snprintf(path, sizeof(path), "%s/run/pcptune", t->dir);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(lock_take(&lock, &t->env, "pcptuned", act_time_now(), NULL, &e), -EPERM);
	assert_non_null(strstr(e.text, "0777"));
}

static void a_capture_is_never_written_to(void **state)
{
	struct tree *t = *state;
	const struct actor_options o = {.env = &t->env};
	struct actor *a = NULL;
	struct error e = {0};

	t->env.plain = false;
	assert_int_equal(actor_open(&a, &o, act_time_now(), &e), -EOPNOTSUPP);
	assert_null(a);
	assert_non_null(strstr(e.text, t->dir));
}

/* ---- the record ---- */

static struct record *sample_record(void)
{
	struct record *r = calloc(1, sizeof(*r));
	struct record_knob *k;

	(void)snprintf(r->boot_id, sizeof(r->boot_id), "6f9a0e1c-0000-4000-8000-000000000001");
	k = record_add(r, TREE_FRACTION);
	*k = (struct record_knob){
		.id = TREE_FRACTION,
		.before = 100,
		.now = 100,
		.intended = HIGH_FRACTION_MAX,
		.transient = true,
		.since_usec = 1700000000000000,
		.reason = "by hand: squeeze",
	};
	k = record_add(r, TREE_ORDER4);
	*k = (struct record_knob){.id = TREE_ORDER4, .now = 1, .intended = 1, .foreign = true};
	for (uint64_t i = 0; i < 40; i++)
		record_note_write(r, 1000000 + i);
	return r;
}

static void a_record_is_read_as_it_was_written(void **state)
{
	struct record *r = sample_record(), *back = calloc(1, sizeof(*back));
	struct tree *t = *state;
	bool stale = true;

	assert_int_equal(record_store(r, &t->env, NULL), 0);
	assert_int_equal(record_load(back, &t->env, &stale, NULL), 0);
	assert_false(stale);
	assert_memory_equal(r, back, sizeof(*r));
	free(r);
	free(back);
}

static void a_reason_cannot_forge_a_line_of_the_record(void **state)
{
	struct record *r = sample_record(), *back = calloc(1, sizeof(*back));
	struct text text = {0};

	(void)state;
	(void)snprintf(r->knob[0].reason, sizeof(r->knob[0].reason), "x\nknob y\x01\t");
	record_format(r, 4096, &text);
	assert_int_equal(record_parse(back, text_str(&text), text.len, 4096, NULL), 0);
	assert_string_equal(back->knob[0].reason, "x knob y  ");
	text_free(&text);
	free(r);
	free(back);
}

static void a_record_cut_off_anywhere_is_refused(void **state)
{
	struct record *r = sample_record(), *back = calloc(1, sizeof(*back));
	struct text text = {0};

	(void)state;
	record_format(r, 4096, &text);
	for (size_t n = 0; n < text.len; n++) {
		struct error e = {0};
		char *copy = malloc(n + 1); /* so that a sanitizer sees a read behind its end */

		memcpy(copy, text.data, n);
		if (record_parse(back, copy, n, 4096, &e) != -EBADMSG)
			fail_msg("cut off after %zu bytes it was believed", n);
		assert_non_null(strstr(e.text, "nothing is written"));
		free(copy);
	}
	text_free(&text);
	free(r);
	free(back);
}

static void a_record_with_any_byte_changed_is_refused(void **state)
{
	struct record *r = sample_record(), *back = calloc(1, sizeof(*back));
	struct text text = {0};
	unsigned cases = 0;

	(void)state;
	record_format(r, 4096, &text);
	for (size_t i = 0; i < text.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			int got;

			text.data[i] = (char)(text.data[i] ^ (1 << bit));
			got = record_parse(back, text.data, text.len, 4096, NULL);
			if (got != -EBADMSG && got != -EPROTONOSUPPORT)
				fail_msg("byte %zu, bit %d: got %d", i, bit, got);
			text.data[i] = (char)(text.data[i] ^ (1 << bit));
			cases++;
		}
	print_message("%u damaged records refused\n", cases);
	text_free(&text);
	free(r);
	free(back);
}

static void expect_refused(struct tree *t, int want, const char *says)
{
	const struct actor_options o = {.env = &t->env};
	struct actor *a = NULL;
	struct error e = {0};
	int r = actor_open(&a, &o, act_time_now(), &e);

	if (r != want || !strstr(e.text, says))
		fail_msg("wanted %d and \"%s\": got %d and \"%s\"", want, says, r, e.text);
	assert_int_equal(tree_fraction(t), 0);
}

static void records_that_cannot_be_believed_leave_the_kernel_alone(void **state)
{
	struct tree *t = *state;
	struct record *r = sample_record();
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/" RECORD_REL, t->dir);
	assert_int_equal(record_store(r, &t->env, NULL), 0);
	tree_write(t, RECORD_REL, "");
	expect_refused(t, -EBADMSG, "empty");
	tree_write(t, RECORD_REL, "pcptune-record 2\nwhatever comes\n");
	expect_refused(t, -EPROTONOSUPPORT, "version 2");
	tree_write(t, RECORD_REL, "rm -rf\n");
	expect_refused(t, -EBADMSG, "remove the record");
	assert_int_equal(record_store(r, &t->env, NULL), 0);
	assert_int_equal(chmod(path, 0666), 0);
	expect_refused(t, -EPERM, "0666");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("lock", path), 0);
	expect_refused(t, -ELOOP, RECORD_REL);
	assert_int_equal(unlink(path), 0);
	if (geteuid() == 0) {
		assert_int_equal(record_store(r, &t->env, NULL), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
		expect_refused(t, -EPERM, "65534");
	}
	free(r);
}

static void a_record_of_an_earlier_boot_is_void(void **state)
{
	struct tree *t = *state;
	struct record *r = sample_record();
	struct actor *a;

	(void)snprintf(r->boot_id, sizeof(r->boot_id), "an-earlier-boot");
	assert_int_equal(record_store(r, &t->env, NULL), 0);
	tree_write(t, HIGH_FRACTION_REL, "2147483647\n");
	a = tree_actor(t, (struct actor_options){0});
	assert_int_equal(actor_unrestored(a, NULL), 0);
	assert_int_equal(tree_fraction(t), HIGH_FRACTION_MAX);
	(void)actor_close(a);
	free(r);
}

static void a_record_that_cannot_be_replaced_stays_as_it_was(void **state)
{
	static const enum act_point points[] = {ACT_RECORD_OPEN, ACT_RECORD_WRITE, ACT_RECORD_SYNC,
						ACT_RECORD_RENAME};
	struct record *r = sample_record(), *back = calloc(1, sizeof(*back));
	struct tree *t = *state;

	assert_int_equal(record_store(r, &t->env, NULL), 0);
	r->knob[0].intended = 8;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		struct error e = {0};

		tree_fail(t, points[i], -ENOSPC, 1);
		assert_int_equal(record_store(r, &t->env, &e), -ENOSPC);
		assert_non_null(strstr(e.text, "room"));
		assert_int_equal(record_load(back, &t->env, NULL, NULL), 0);
		assert_int_equal(back->knob[0].intended, HIGH_FRACTION_MAX);
	}
	tree_fail(t, ACT_RECORD_WRITE, 7, 20); /* seven bytes at a time */
	assert_int_equal(record_store(r, &t->env, NULL), 0);
	assert_int_equal(record_load(back, &t->env, NULL, NULL), 0);
	assert_int_equal(back->knob[0].intended, 8);
	free(r);
	free(back);
}

static void writes_are_remembered_for_a_day_and_never_without_bound(void **state)
{
	struct record *r = calloc(1, sizeof(*r));
	uint64_t t = 10 * USEC_PER_DAY;

	(void)state;
	for (uint64_t i = 0; i < 3 * RECORD_WRITES_MAX; i++)
		record_note_write(r, t + i);
	assert_int_equal(r->nr_writes, RECORD_WRITES_MAX);
	assert_int_equal(record_writes_since(r, t + 3 * RECORD_WRITES_MAX - 10), 10);
	record_note_write(r, t + 2 * USEC_PER_DAY);
	assert_int_equal(r->nr_writes, 1);
	free(r);
}

/* ---- one knob ---- */

static void the_kernels_answers_to_a_write_are_told_apart(void **state)
{
	static const struct {
		enum act_point point;
		int fault, want;
		enum knob_outcome outcome;
		enum knob_stage stage;
		const char *says;
	} rows[] = {
		{_ACT_POINT_MAX, 0, 0, KNOB_APPLIED, KNOB_STAGE_VERIFY, "0 -> 100"},
		{ACT_KNOB_WRITE, -EINVAL, -EINVAL, KNOB_REFUSED, KNOB_STAGE_WRITE, "does not take"},
		{ACT_KNOB_WRITE, -EIO, -EIO, KNOB_REFUSED, KNOB_STAGE_WRITE, "Input/output"},
		{ACT_KNOB_WRITE, -EROFS, -EROFS, KNOB_REFUSED, KNOB_STAGE_WRITE, "read-only"},
		{ACT_KNOB_WRITE, -EACCES, -EACCES, KNOB_REFUSED, KNOB_STAGE_WRITE, "root"},
		{ACT_KNOB_WRITE, -ENOENT, -ENOENT, KNOB_REFUSED, KNOB_STAGE_WRITE, "5.14"},
		{ACT_KNOB_WRITE, 2, -EIO, KNOB_REFUSED, KNOB_STAGE_WRITE, "Input/output"},
		{ACT_KNOB_WRITE, -EINTR, 0, KNOB_APPLIED, KNOB_STAGE_VERIFY, "0 -> 100"},
		{ACT_KNOB_READ, -EIO, -EIO, KNOB_REFUSED, KNOB_STAGE_READ, "cannot read"},
		{ACT_KNOB_VERIFY, -EIO, -EIO, KNOB_REFUSED, KNOB_STAGE_VERIFY, "read it back"},
	};
	struct tree *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(text_free) struct text text = {0};
		struct knob_report rep;
		int r;

		tree_write(t, HIGH_FRACTION_REL, "0\n");
		tree_fail(t, rows[i].point, rows[i].fault, 1);
		r = knob_apply(&t->env, TREE_FRACTION, 100, NULL, 0, &rep);
		knob_report_sentence(&t->env, &rep, &text);
		if (r != rows[i].want || rep.outcome != rows[i].outcome ||
		    rep.stage != rows[i].stage || !strstr(text_str(&text), rows[i].says))
			fail_msg("row %zu: %d, outcome %d, stage %d, \"%s\"", i, r,
				 (int)rep.outcome, (int)rep.stage, text_str(&text));
	}
}

static void values_that_a_knob_does_not_take_are_not_tried(void **state)
{
	struct tree *t = *state;
	struct knob_report rep;

	for (uint64_t v = 1; v < 8; v++)
		assert_int_equal(knob_apply(&t->env, TREE_FRACTION, v, NULL, 0, &rep), -ERANGE);
	assert_int_equal(knob_apply(&t->env, TREE_FRACTION, HIGH_FRACTION_MAX + 1, NULL, 0, &rep),
			 -ERANGE);
	assert_int_equal(knob_apply(&t->env, TREE_ORDER4, 2, NULL, 0, &rep), -ERANGE);
	assert_false(rep.written);
}

static void a_knob_that_vanished_or_talks_rubbish_is_an_error(void **state)
{
	struct tree *t = *state;
	uint64_t v;

	tree_write(t, HIGH_FRACTION_REL, "3\n");
	assert_int_equal(knob_read(&t->env, TREE_FRACTION, &v), -EBADMSG);
	tree_write(t, HIGH_FRACTION_REL, "many\n");
	assert_int_equal(knob_read(&t->env, TREE_FRACTION, &v), -EBADMSG);
	assert_int_equal(knob_read(&t->env, (struct knob_id){KNOB_PCP_ENABLED, 5}, &v), -ENOENT);
}

static void the_lists_in_zoneinfo_are_compared_with_the_fraction(void **state)
{
	static const struct {
		uint64_t fraction, min, max;
		enum knob_check want;
	} rows[] = {
		{0, 1312, 131072, KNOB_CHECK_AGREES},   {0, 252, 252, KNOB_CHECK_AGREES},
		{0, 10485, 10485, KNOB_CHECK_DIFFERS},  {0, 2000, 1000, KNOB_CHECK_DIFFERS},
		{100, 10485, 10485, KNOB_CHECK_AGREES}, {100, 1312, 131072, KNOB_CHECK_DIFFERS},
	};
	struct pageset p = {.has = 1U << PAGESET_HIGH_MIN | 1U << PAGESET_HIGH_MAX};
	struct zone z = {.nr_pagesets = 1};
	struct zoneinfo zi = {.zones = &z, .pagesets = &p, .nr_zones = 1, .nr_pagesets = 1};

	(void)state;
	p.value[PAGESET_BATCH] = 63;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		p.value[PAGESET_HIGH_MIN] = rows[i].min;
		p.value[PAGESET_HIGH_MAX] = rows[i].max;
		if (knob_check_zoneinfo(&zi, rows[i].fraction, NULL) != rows[i].want)
			fail_msg("row %zu", i);
	}
	p.computed = p.has;
	p.has = 0;
	assert_int_equal(knob_check_zoneinfo(&zi, 0, NULL), KNOB_CHECK_UNKNOWN);
}

static void the_ledger_keeps_the_newest_writes_in_fixed_room(void **state)
{
	struct ledger *l = calloc(1, sizeof(*l));

	(void)state;
	assert_int_equal(ledger_end(l), 1);
	assert_null(ledger_get(l, 1));
	for (uint64_t i = 0; i < LEDGER_MAX + 10; i++)
		ledger_add(l, &(struct ledger_entry){.new_value = i});
	assert_int_equal(ledger_first(l), 11);
	assert_null(ledger_get(l, 10));
	assert_int_equal(ledger_get(l, 11)->new_value, 10);
	assert_int_equal(ledger_get(l, ledger_end(l) - 1)->new_value, LEDGER_MAX + 9);
	assert_null(ledger_get(l, ledger_end(l)));
	free(l);
}

#define test(name) cmocka_unit_test_setup_teardown(name, make, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_second_taker_is_told_who_the_first_is),
		test(a_lock_dies_with_its_holder),
		test(what_keeps_the_lock_from_being_taken_is_said_with_the_remedy),
		test(a_run_directory_that_others_can_write_to_is_refused),
		test(a_capture_is_never_written_to),
		test(a_record_is_read_as_it_was_written),
		test(a_reason_cannot_forge_a_line_of_the_record),
		test(a_record_cut_off_anywhere_is_refused),
		test(a_record_with_any_byte_changed_is_refused),
		test(records_that_cannot_be_believed_leave_the_kernel_alone),
		test(a_record_of_an_earlier_boot_is_void),
		test(a_record_that_cannot_be_replaced_stays_as_it_was),
		test(writes_are_remembered_for_a_day_and_never_without_bound),
		test(the_kernels_answers_to_a_write_are_told_apart),
		test(values_that_a_knob_does_not_take_are_not_tried),
		test(a_knob_that_vanished_or_talks_rubbish_is_an_error),
		test(the_lists_in_zoneinfo_are_compared_with_the_fraction),
		test(the_ledger_keeps_the_newest_writes_in_fixed_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
