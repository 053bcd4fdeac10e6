/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drains on lists that behave as decay_pcp_high() makes them. */
#include "act-tree.h"

#include "act/record.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/eventfd.h>

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

static struct drain *begin(struct tree *t, struct actor *a, struct drain_options o)
{
	struct drain *d = NULL;
	struct error e = {0};

	if (drain_start(&d, &t->env, a, &o, act_time_now(), &e) < 0)
		fail_msg("%s", e.text);
	return d;
}

/* Turns the wheel until the drain is in `state`, or over. */
static void until(struct drain *d, struct actor *a, enum drain_state state)
{
	while (drain_report(d)->state != state && drain_report(d)->state != DRAIN_DONE) {
		struct pollfd p[2] = {{.fd = drain_fd(d), .events = POLLIN},
				      {.fd = actor_fd(a), .events = POLLIN}};

		(void)poll(p, 2, 5);
		actor_dispatch(a, act_time_now());
		drain_dispatch(d, act_time_now());
	}
	assert_int_equal(drain_report(d)->state, state);
}

static void expect_clean(struct tree *t, struct actor *a, uint64_t fraction)
{
	struct record *r = calloc(1, sizeof(*r));

	assert_int_equal(tree_fraction(t), fraction);
	assert_int_equal(record_load(r, &t->env, NULL, NULL), 0);
	for (uint32_t i = 0; i < r->nr_knobs; i++)
		assert_false(r->knob[i].transient);
	assert_int_equal(actor_moment(a, TREE_FRACTION, NULL), MOMENT_NONE);
	free(r);
}

static void a_trim_brings_every_list_to_its_high_min(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d = begin(t, a, (struct drain_options){.mode = DRAIN_TRIM});
	const struct drain_report *r = drain_report(d);
	_cleanup_(text_free) struct text text = {0};

	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	assert_int_equal(r->end, DRAIN_END_FLOOR);
	assert_int_equal(r->pages_before, 16000);
	assert_int_equal(r->pages_after, 2 * TREE_HIGH_MIN);
	assert_int_equal(r->pages_after, tree_parked(t));
	assert_int_equal(r->lists_above, 0);
	assert_int_equal(r->nr_zones, 1);
	assert_int_equal(r->zone[0].before - r->zone[0].after, 16000 - 2 * TREE_HIGH_MIN);
	assert_true(r->passes > 5);
	assert_int_equal(ledger_end(actor_ledger(a)), 1);
	drain_report_print(r, 4096, &text);
	assert_non_null(strstr(text_str(&text), "returned 13376 pages"));
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
}

static void a_trim_with_nothing_above_high_min_does_not_wake_anybody(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	t->cpu[0].count = t->cpu[1].count = TREE_HIGH_MIN;
	tree_write_zoneinfo(t);
	d = begin(t, a, (struct drain_options){.mode = DRAIN_TRIM});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	assert_int_equal(drain_report(d)->passes, 0);
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
}

static void a_squeeze_brings_every_list_to_the_floor_and_puts_the_fraction_back(void **state)
{
	static const uint64_t fractions[] = {0, 8, 100, HIGH_FRACTION_MAX};
	struct tree *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(fractions); i++) {
		struct actor *a;
		struct drain *d;
		char text[32];

		(void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)fractions[i]);
		tree_write(t, HIGH_FRACTION_REL, text);
		t->cpu[0] = t->cpu[1] = (struct tree_cpu){.count = 9000, .high = 9000};
		tree_write_zoneinfo(t);
		a = tree_actor(t, (struct actor_options){0});
		d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE, .fast = i == 1});
		assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
		assert_int_equal(drain_report(d)->end, DRAIN_END_FLOOR);
		assert_int_equal(drain_report(d)->pages_after, 2 * TREE_FLOOR);
		(void)drain_free(d, act_time_now());
		expect_clean(t, a, fractions[i]);
		(void)actor_close(a);
	}
}

static void a_squeeze_on_top_of_a_tuned_value_ends_at_the_tuned_value(void **state)
{
	const struct actor_request req = {TREE_FRACTION, 100, "rule"};
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct actor_knob k;
	struct drain *d;

	assert_int_equal(actor_set(a, &req, act_time_now(), NULL), 0);
	tree_settle(a);
	d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 100);
	assert_true(actor_knob_get(a, TREE_FRACTION, &k));
	assert_int_equal(k.baseline, 0);
	assert_int_equal(k.state, KNOB_OURS);
	(void)actor_close(a);
}

static void the_pages_of_a_pass_that_hangs_do_not_cost_the_fraction(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	tree_block(t, ACT_PASS);
	d = begin(t, a,
		  (struct drain_options){.mode = DRAIN_SQUEEZE,
					 .pass_limit_usec = 100 * USEC_PER_MSEC});
	assert_int_equal(drain_run(d, -1, NULL, NULL), -ETIMEDOUT);
	assert_true(drain_report(d)->blocked);
	assert_int_equal(drain_report(d)->state, DRAIN_HUNG);
	assert_int_equal(drain_report(d)->end, DRAIN_END_BLOCKED);
	expect_clean(t, a, 0);
	tree_unblock(t);
	until(d, a, DRAIN_DONE);
	assert_false(drain_report(d)->blocked);
	assert_int_equal(drain_report(d)->end, DRAIN_END_BLOCKED);
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
}

static void a_pass_that_hangs_for_ever_outlives_its_drain(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	tree_block(t, ACT_PASS);
	d = begin(t, a,
		  (struct drain_options){.mode = DRAIN_TRIM, .pass_limit_usec = USEC_PER_MSEC});
	assert_int_equal(drain_run(d, -1, NULL, NULL), -ETIMEDOUT);
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
	tree_unblock(t); /* it must do no harm now; a sanitizer would say so */
	while (atomic_load(&t->passes) == 0)
		(void)usleep(1000);
}

static void a_stop_puts_the_fraction_back_at_any_point(void **state)
{
	static const enum drain_state at[] = {DRAIN_PREPARING, DRAIN_PASSING, DRAIN_PAUSING};
	struct tree *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		struct actor *a = tree_actor(t, (struct actor_options){0});
		struct drain *d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});

		until(d, a, at[i]);
		drain_stop(d, act_time_now());
		until(d, a, DRAIN_DONE);
		assert_int_equal(drain_report(d)->end, DRAIN_END_STOPPED);
		assert_int_equal(drain_report(d)->error, -EINTR);
		(void)drain_free(d, act_time_now());
		expect_clean(t, a, 0);
		(void)actor_close(a);
	}
}

static void a_readable_descriptor_stops_a_run(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});
	int stop = eventfd(1, EFD_CLOEXEC);

	assert_int_equal(drain_run(d, stop, NULL, NULL), -EINTR);
	(void)close(stop);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 0);
	(void)actor_close(a);
}

static void a_drain_that_is_freed_half_way_is_undone(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});

	until(d, a, DRAIN_PAUSING);
	(void)drain_free(d, act_time_now());
	tree_settle(a);
	expect_clean(t, a, 0);
	(void)actor_close(a);
}

static void an_error_of_any_call_at_any_pass_puts_the_fraction_back(void **state)
{
	static const int errors[] = {-EIO, -EACCES, -ENOENT, -EROFS};
	struct tree *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct actor *a = tree_actor(t, (struct actor_options){0});
		struct drain *d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});

		until(d, a, DRAIN_PAUSING);
		tree_fail(t, i % 2 ? ACT_PASS : ACT_PASS_DONE, errors[i], 1);
		assert_int_equal(drain_run(d, -1, NULL, NULL), errors[i]);
		assert_int_equal(drain_report(d)->end, DRAIN_END_FAILED);
		assert_non_null(strstr(drain_report(d)->text, STAT_REFRESH_REL));
		(void)drain_free(d, act_time_now());
		expect_clean(t, a, 0);
		(void)actor_close(a);
	}
}

static void a_fraction_that_cannot_be_raised_fails_with_the_reason(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	tree_fail(t, ACT_KNOB_WRITE, -EROFS, 1);
	d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});
	assert_int_equal(drain_run(d, -1, NULL, NULL), -EROFS);
	assert_non_null(strstr(drain_report(d)->text, "read-only"));
	assert_int_equal(drain_report(d)->passes, 0);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 0);
	(void)actor_close(a);
}

static void putting_back_is_tried_until_the_kernel_takes_it(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});

	until(d, a, DRAIN_PAUSING);
	tree_fail(t, ACT_KNOB_WRITE, -EIO, 3);
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 0);
	(void)actor_close(a);
}

static void lists_that_give_nothing_back_end_it_after_three_passes(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	t->cpu[0].stuck = true;
	t->cpu[1] = (struct tree_cpu){.count = 10, .high = 252};
	tree_write_zoneinfo(t);
	d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	assert_int_equal(drain_report(d)->end, DRAIN_END_NO_PROGRESS);
	assert_int_equal(drain_report(d)->passes, 3);
	assert_int_equal(drain_report(d)->lists_above, 1);
	assert_int_equal(drain_report(d)->pages_after, 8010);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 0);
	(void)actor_close(a);
}

static void a_list_below_its_high_is_waited_for_until_high_has_come_down(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	for (unsigned i = 0; i < 2; i++)
		t->cpu[i] = (struct tree_cpu){.count = 1500, .high = 6000};
	tree_write_zoneinfo(t);
	d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	assert_int_equal(drain_report(d)->end, DRAIN_END_FLOOR);
	assert_int_equal(drain_report(d)->pages_after, 2 * TREE_FLOOR);
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
}

static void one_slow_list_is_waited_for_while_another_is_stuck(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	t->cpu[0].stuck = true;
	d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	assert_int_equal(drain_report(d)->end, DRAIN_END_NO_PROGRESS);
	assert_int_equal(t->cpu[1].count, TREE_FLOOR);
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
}

static void a_busy_cpu_may_keep_one_refill(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	t->cpu[1].refill = TREE_FLOOR + 512;
	d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	assert_int_equal(drain_report(d)->end, DRAIN_END_FLOOR);
	assert_int_equal(drain_report(d)->lists_above, 1);
	assert_non_null(strstr(drain_report(d)->text, "busy"));
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
}

static void no_drain_goes_on_for_longer_than_it_may(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	d = begin(t, a,
		  (struct drain_options){.mode = DRAIN_SQUEEZE, .max_time_usec = USEC_PER_MSEC});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	assert_int_equal(drain_report(d)->end, DRAIN_END_TIME);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 0);
	(void)actor_close(a);
}

static void slow_pass(struct tree *t, enum act_point point)
{
	(void)t;
	if (point == ACT_PASS)
		(void)usleep(20000);
}

static void a_pause_lasts_nine_times_what_its_pass_took(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;
	struct act_time now;

	t->at_point = slow_pass;
	d = begin(t, a, (struct drain_options){.mode = DRAIN_TRIM});
	for (;;) {
		struct pollfd p = {.fd = drain_fd(d), .events = POLLIN};

		(void)poll(&p, 1, 10000);
		now = act_time_now();
		drain_dispatch(d, now);
		if (drain_report(d)->state == DRAIN_PAUSING)
			break;
	}
	assert_true(drain_report(d)->pass_max_usec >= 20000);
	assert_true(drain_next_usec(d) - now.mono_usec >= 9 * drain_report(d)->pass_max_usec);
	(void)drain_free(d, now);
	(void)actor_close(a);
}

static void cpu_goes_and_another_comes(struct tree *t, enum act_point point)
{
	if (point != ACT_PASS)
		return;
	t->at_value++;
	t->cpu[1].offline = t->at_value == 3 || t->at_value == 4;
	if (t->at_value == 4)
		t->nr_cpus = 4;
	if (t->at_value == 5)
		t->cpu[3] = (struct tree_cpu){.count = 700, .high = 700};
}

static void cpus_may_come_and_go_meanwhile(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d;

	t->at_point = cpu_goes_and_another_comes;
	d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	assert_int_equal(drain_report(d)->end, DRAIN_END_FLOOR);
	assert_int_equal(drain_report(d)->lists_above, 0);
	assert_int_equal(drain_report(d)->pages_after, tree_parked(t));
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 0);
	(void)actor_close(a);
}

static void a_foreign_write_ends_a_squeeze_and_stays(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});

	until(d, a, DRAIN_PAUSING);
	tree_write(t, HIGH_FRACTION_REL, "33\n");
	(void)drain_run(d, -1, NULL, NULL);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 33);
	(void)actor_close(a);
}

static void a_squeeze_by_hand_of_a_foreign_fraction_leaves_it_foreign(void **state)
{
	const struct actor_request req = {TREE_FRACTION, 100, "rule"};
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct actor_knob k;
	struct drain *d;

	assert_int_equal(actor_set(a, &req, act_time_now(), NULL), 0);
	tree_settle(a);
	tree_write(t, HIGH_FRACTION_REL, "33\n");
	(void)actor_close(a);
	a = tree_actor(t, (struct actor_options){0});
	d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	assert_int_equal(drain_report(d)->end, DRAIN_END_FLOOR);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 33);
	assert_true(actor_knob_get(a, TREE_FRACTION, &k));
	assert_int_equal(k.state, KNOB_FOREIGN);
	assert_int_equal(actor_set(a, &req, act_time_now(), NULL), -EPERM);
	(void)actor_close(a);
}

static void a_restore_during_a_squeeze_ends_both(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE});

	until(d, a, DRAIN_PAUSING);
	actor_restore_all(a, act_time_now());
	assert_int_equal(drain_run(d, -1, NULL, NULL), -ECANCELED);
	assert_int_equal(actor_unrestored(a, NULL), 0);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 0);
	(void)actor_close(a);
}

static void a_second_squeeze_at_the_same_time_is_refused(void **state)
{
	const struct drain_options o = {.mode = DRAIN_SQUEEZE};
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d = begin(t, a, o), *second = NULL;

	assert_int_equal(drain_start(&second, &t->env, a, &o, act_time_now(), NULL), -EBUSY);
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	(void)drain_free(d, act_time_now());
	expect_clean(t, a, 0);
	(void)actor_close(a);
}

/* What cannot work here is refused before anything is written, with what would work. */
static void refused(struct tree *t, struct drain_options o, int want, const char *says)
{
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d = NULL;
	struct error e = {0};
	int r = drain_start(&d, &t->env, a, &o, act_time_now(), &e);

	if (r != want || !strstr(e.text, says))
		fail_msg("%s: got %d, \"%s\"", drain_mode_name(o.mode), r, e.text);
	assert_null(d);
	assert_int_equal(ledger_end(actor_ledger(a)), 1);
	(void)actor_close(a);
}

static void without_orders(struct tree *t)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/" THP_REL "/hugepages-64kB/pcp_enabled", t->dir);
	assert_int_equal(unlink(path), 0);
	t->env.orders = ORDERS_NONE;
}

static void before_6_7_it_says_that_passes_do_nothing_and_what_would(void **state)
{
	struct tree *t = *state;

	without_orders(t); /* they are younger than 6.7 */
	t->old_kernel = true;
	tree_write_zoneinfo(t);
	refused(t, (struct drain_options){.mode = DRAIN_TRIM}, -EOPNOTSUPP, "frees memory");
	refused(t, (struct drain_options){.mode = DRAIN_SQUEEZE}, -EOPNOTSUPP, "6.7");
}

static void isolated_cpus_are_left_alone_unless_asked_for(void **state)
{
	struct tree *t = *state;
	struct actor *a;
	struct drain *d;

	tree_write(t, "sys/devices/system/cpu/isolated", "1\n");
	refused(t, (struct drain_options){.mode = DRAIN_TRIM}, -EPERM, "--isolated-too");
	refused(t, (struct drain_options){.mode = DRAIN_SQUEEZE}, -EPERM, "CPU 1");
	a = tree_actor(t, (struct actor_options){0});
	d = begin(t, a, (struct drain_options){.mode = DRAIN_SQUEEZE, .isolated_too = true});
	assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
	tree_write(t, "sys/devices/system/cpu/isolated", "\n");
	tree_write(t, "sys/devices/system/cpu/nohz_full", "1\n");
	refused(t, (struct drain_options){.mode = DRAIN_TRIM}, -EPERM, "nohz_full");
}

static void without_per_order_control_there_is_no_kernel_drain(void **state)
{
	struct tree *t = *state;

	without_orders(t);
	refused(t, (struct drain_options){.mode = DRAIN_KERNEL}, -EOPNOTSUPP, "--mode=squeeze");
}

static void empty_on_zero(struct tree *t, enum act_point point)
{
	const char *rel = t->env.orders == ORDERS_SINGLE ? THP_REL "/pcp_allow_high_order"
							 : THP_REL "/hugepages-64kB/pcp_enabled";

	if (point != ACT_KNOB_WRITTEN || tree_read(t, rel) != 0)
		return;
	t->cpu[0].count = t->cpu[1].count = 0;
	tree_write_zoneinfo(t);
}

static void the_kernel_drain_switches_an_order_and_leaves_it_as_it_was(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		const char *rel = i & 1 ? THP_REL "/pcp_allow_high_order"
					: THP_REL "/hugepages-64kB/pcp_enabled";
		uint64_t was = i & 2 ? (i & 1 ? 4 : 1) : 0;
		struct actor *a;
		struct drain *d;
		struct tree t;

		tree_make(&t, i & 1);
		tree_write(&t, rel, was == 4 ? "4\n" : was ? "1\n" : "0\n");
		t.at_point = empty_on_zero;
		a = tree_actor(&t, (struct actor_options){0});
		d = begin(&t, a, (struct drain_options){.mode = DRAIN_KERNEL});
		assert_int_equal(drain_run(d, -1, NULL, NULL), 0);
		assert_int_equal(drain_report(d)->pages_after, 0);
		assert_int_equal(tree_read(&t, rel), was);
		(void)drain_free(d, act_time_now());
		expect_clean(&t, a, 0);
		assert_int_equal(actor_unrestored(a, NULL), 0);
		(void)actor_close(a);
		tree_remove(&t);
	}
}

#define test(name) cmocka_unit_test_setup_teardown(name, make, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_trim_brings_every_list_to_its_high_min),
		test(a_trim_with_nothing_above_high_min_does_not_wake_anybody),
		test(a_squeeze_brings_every_list_to_the_floor_and_puts_the_fraction_back),
		test(a_squeeze_on_top_of_a_tuned_value_ends_at_the_tuned_value),
		test(the_pages_of_a_pass_that_hangs_do_not_cost_the_fraction),
		test(a_pass_that_hangs_for_ever_outlives_its_drain),
		test(a_stop_puts_the_fraction_back_at_any_point),
		test(a_readable_descriptor_stops_a_run),
		test(a_drain_that_is_freed_half_way_is_undone),
		test(an_error_of_any_call_at_any_pass_puts_the_fraction_back),
		test(a_fraction_that_cannot_be_raised_fails_with_the_reason),
		test(putting_back_is_tried_until_the_kernel_takes_it),
		test(lists_that_give_nothing_back_end_it_after_three_passes),
		test(a_list_below_its_high_is_waited_for_until_high_has_come_down),
		test(one_slow_list_is_waited_for_while_another_is_stuck),
		test(a_busy_cpu_may_keep_one_refill),
		test(no_drain_goes_on_for_longer_than_it_may),
		test(a_pause_lasts_nine_times_what_its_pass_took),
		test(cpus_may_come_and_go_meanwhile),
		test(a_foreign_write_ends_a_squeeze_and_stays),
		test(a_squeeze_by_hand_of_a_foreign_fraction_leaves_it_foreign),
		test(a_restore_during_a_squeeze_ends_both),
		test(a_second_squeeze_at_the_same_time_is_refused),
		test(before_6_7_it_says_that_passes_do_nothing_and_what_would),
		test(isolated_cpus_are_left_alone_unless_asked_for),
		test(without_per_order_control_there_is_no_kernel_drain),
		test(the_kernel_drain_switches_an_order_and_leaves_it_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
