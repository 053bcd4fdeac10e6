/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes by the actor: what is recorded, refused, blocked, foreign, limited, and put back. */
#include "act-tree.h"

#include "act/lock.h"
#include "act/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

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

static int ask(struct actor *a, struct knob_id id, uint64_t value, struct act_time now)
{
	const struct actor_request req = {.id = id, .value = value, .reason = "test/rule: why"};

	return actor_set(a, &req, now, NULL);
}

static struct actor_knob knob(const struct actor *a, struct knob_id id)
{
	struct actor_knob k;

	assert_true(actor_knob_get(a, id, &k));
	return k;
}

/* What a sensor would show of this tree at `now`. */
static void observe(struct tree *t, struct actor *a, struct act_time now)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	s->taken_usec = now.mono_usec;
	s->valid = SOURCE_BIT(SOURCE_KNOBS);
	s->has_high_fraction = true;
	s->high_fraction = tree_fraction(t);
	s->mthp.orders = t->env.orders;
	s->mthp.nr_sizes = 1;
	s->mthp.size[0].order = 4;
	s->mthp.size[0].has_pcp_enabled = true;
	s->mthp.size[0].pcp_enabled = (int)tree_read(t, THP_REL "/hugepages-64kB/pcp_enabled");
	actor_observe(a, s, now);
	free(s);
}

static void load(struct tree *t, struct record *r)
{
	struct error e = {0};

	if (record_load(r, &t->env, NULL, &e) < 0)
		fail_msg("%s", e.text);
}

static void a_change_is_recorded_with_its_baseline_and_put_back(void **state)
{
	struct tree *t = *state;
	struct record *r = calloc(1, sizeof(*r));
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct actor_event ev;

	tree_write(t, HIGH_FRACTION_REL, "50\n");
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	assert_int_equal(tree_fraction(t), 100);
	ev = tree_event(a, ACTOR_CHANGED);
	assert_int_equal(ev.old_value, 50);
	assert_int_equal(ev.new_value, 100);
	assert_string_equal(ev.reason, "test/rule: why");
	assert_string_equal(ev.text, "high_fraction: 50 -> 100");
	load(t, r);
	assert_int_equal(r->nr_knobs, 1);
	assert_int_equal(r->knob[0].baseline, 50);
	assert_int_equal(r->knob[0].now, 100);
	assert_int_equal(r->knob[0].intended, 100);
	assert_false(r->knob[0].transient);
	assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_OURS);

	actor_restore_all(a, tree_time(1));
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(1)), -ECANCELED);
	tree_settle_at(a, tree_time(1));
	assert_int_equal(actor_unrestored(a, NULL), 0);
	assert_int_equal(tree_fraction(t), 50);
	ev = tree_event(a, ACTOR_RESTORED);
	assert_int_equal(ev.new_value, 50);
	load(t, r);
	assert_int_equal(r->nr_knobs, 0);
	assert_int_equal(ledger_end(actor_ledger(a)), 3);
	assert_true(ledger_get(actor_ledger(a), 2)->restore);
	assert_string_equal(ledger_get(actor_ledger(a), 1)->reason, "test/rule: why");
	(void)actor_close(a);
	free(r);
}

static void the_intent_is_on_record_before_the_kernel_is_written(void **state)
{
	struct tree *t = *state;
	struct record *r = calloc(1, sizeof(*r));
	struct actor *a = tree_actor(t, (struct actor_options){0});

	tree_block(t, ACT_KNOB_WRITE);
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_wait_blocked(t);
	load(t, r);
	assert_int_equal(r->nr_knobs, 1);
	assert_int_equal(r->knob[0].baseline, 0);
	assert_int_equal(r->knob[0].now, 0);
	assert_int_equal(r->knob[0].intended, 100);
	assert_int_equal(tree_fraction(t), 0);
	tree_unblock(t);
	tree_settle_at(a, tree_time(0));
	(void)actor_close(a);
	free(r);
}

static void a_value_that_is_there_is_not_written(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	tree_write(t, HIGH_FRACTION_REL, "100\n");
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(i)), 0);
	tree_settle_at(a, tree_time(5));
	assert_int_equal(ledger_end(actor_ledger(a)), 1);
	assert_int_equal(actor_unrestored(a, NULL), 0);
	assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_FREE);
	(void)actor_close(a);
}

static void the_same_decision_every_tick_is_one_write(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(i)), 0);
		tree_settle_at(a, tree_time(i));
		observe(t, a, tree_time(i));
	}
	assert_int_equal(ledger_end(actor_ledger(a)), 2);
	assert_int_equal(ask(a, TREE_FRACTION, 0, tree_time(30)), 0); /* given up */
	tree_settle_at(a, tree_time(30));
	assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_FREE);
	(void)actor_close(a);
}

static void a_refusal_is_told_once_tried_again_ever_later_and_told_when_it_ends(void **state)
{
	static const int errors[] = {-EINVAL, -EIO, -EROFS, -EACCES, -ENOENT};
	struct tree *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct actor *a = tree_actor(t, (struct actor_options){0});
		struct act_time now = tree_time(0);
		struct actor_event ev;
		unsigned accepted;
		uint64_t pause = 0;

		t->fail_rel = HIGH_FRACTION_REL;
		tree_fail(t, ACT_KNOB_WRITE, errors[i], 16);
		assert_int_equal(ask(a, TREE_FRACTION, 100, now), 0);
		tree_settle_at(a, now);
		assert_int_equal(tree_event(a, ACTOR_REFUSED).error, errors[i]);
		assert_int_equal(ask(a, TREE_FRACTION, 100, now), -EAGAIN);
		assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_FAILED);

		assert_int_equal(ask(a, TREE_ORDER4, 1, now), 0); /* others go on */
		tree_settle_at(a, now);
		assert_int_equal(knob(a, TREE_ORDER4).state, KNOB_OURS);
		for (int n = 0; n < 15; n++) {
			uint64_t next = actor_next_usec(a);

			assert_true(next - now.mono_usec >= pause);
			pause = next - now.mono_usec;
			assert_true(pause >= USEC_PER_SEC && pause <= USEC_PER_HOUR);
			now.mono_usec = next;
			tree_settle_at(a, now);
		}
		assert_int_equal(pause, USEC_PER_HOUR);
		now.mono_usec += 3 * USEC_PER_HOUR;
		tree_settle_at(a, now);
		assert_int_equal(tree_fraction(t), 100);
		assert_int_equal(knob(a, TREE_FRACTION).refusals, 16);
		for (accepted = 0; actor_event_take(a, &ev);) {
			assert_int_not_equal(ev.kind, ACTOR_REFUSED);
			accepted += ev.kind == ACTOR_ACCEPTED;
		}
		assert_int_equal(accepted, 1);
		actor_restore_all(a, now);
		tree_settle_at(a, now);
		assert_int_equal(actor_unrestored(a, NULL), 0);
		(void)actor_close(a);
	}
}

static void a_refused_value_leaves_nothing_to_put_back(void **state)
{
	struct tree *t = *state;
	struct record *r = calloc(1, sizeof(*r));
	struct actor *a = tree_actor(t, (struct actor_options){0});

	tree_fail(t, ACT_KNOB_WRITE, -EACCES, 1);
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	load(t, r);
	assert_int_equal(r->nr_knobs, 0);
	assert_int_equal(actor_unrestored(a, NULL), 0);
	assert_int_equal(ask(a, TREE_FRACTION, 0, tree_time(0)), 0); /* not wanted any more */
	assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_FREE);
	assert_int_equal(tree_count_events(a, ACTOR_ACCEPTED), 1);
	(void)actor_close(a);
	free(r);
}

static void a_number_written_in_part_is_never_left_behind(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	tree_fail(t, ACT_KNOB_WRITE, 2, 1); /* "10" of "100\n" */
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	assert_int_equal(tree_fraction(t), 10);
	(void)actor_close(a);
	a = tree_actor(t, (struct actor_options){0});
	assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_OURS);
	actor_restore_all(a, tree_time(1));
	tree_settle_at(a, tree_time(1));
	assert_int_equal(tree_fraction(t), 0);
	(void)actor_close(a);
}

static void put_old_value_back(struct tree *t, enum act_point point)
{
	if (point == ACT_KNOB_WRITTEN)
		tree_write(t, HIGH_FRACTION_REL, "0\n");
}

static void a_value_that_does_not_stick_is_a_refusal(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	t->at_point = put_old_value_back;
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	assert_non_null(strstr(tree_event(a, ACTOR_REFUSED).text, "reads 0"));
	assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_FAILED);
	t->at_point = NULL;
	tree_settle_at(a, tree_time(60));
	assert_int_equal(tree_fraction(t), 100);
	(void)actor_close(a);
}

static void without_a_record_nothing_is_written(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	tree_fail(t, ACT_RECORD_OPEN, -EROFS, 3);
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), -EAGAIN);
	assert_int_equal(tree_event(a, ACTOR_REFUSED).error, -EROFS);
	assert_int_equal(tree_fraction(t), 0);
	assert_int_equal(ledger_end(actor_ledger(a)), 1);
	for (uint64_t s = 1; s < 20; s++)
		tree_settle_at(a, tree_time(s));
	assert_int_equal(tree_fraction(t), 100);
	(void)actor_close(a);
}

static void a_restore_goes_on_even_if_the_record_cannot_be_replaced(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	tree_fail(t, ACT_RECORD_OPEN, -ENOSPC, 100);
	actor_restore_all(a, tree_time(1));
	tree_settle_at(a, tree_time(1));
	assert_int_equal(tree_fraction(t), 0);
	assert_int_equal(tree_event(a, ACTOR_RECORD_LOST).error, -ENOSPC);
	(void)actor_close(a);
}

static void a_blocked_write_holds_up_its_own_knob_only(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	tree_block(t, ACT_KNOB_WRITE);
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_wait_blocked(t);
	actor_dispatch(a, tree_time(1));
	assert_int_equal(tree_count_events(a, ACTOR_BLOCKED), 0);
	assert_int_equal(actor_next_usec(a), tree_time(2).mono_usec);
	actor_dispatch(a, tree_time(3));
	assert_int_equal(tree_count_events(a, ACTOR_BLOCKED), 1);
	assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_BLOCKED);

	assert_int_equal(ask(a, TREE_ORDER4, 1, tree_time(4)), 0);
	while (knob(a, TREE_ORDER4).state != KNOB_OURS)
		actor_dispatch(a, tree_time(4));
	assert_int_equal(ask(a, TREE_FRACTION, 200, tree_time(5)), 0); /* waits its turn */
	assert_int_equal(tree_fraction(t), 0);
	tree_unblock(t);
	tree_settle_at(a, tree_time(6));
	assert_int_equal(tree_fraction(t), 200);
	assert_int_equal(tree_count_events(a, ACTOR_UNBLOCKED), 1);
	assert_int_equal(knob(a, TREE_FRACTION).baseline, 0);
	(void)actor_close(a);
}

static void a_stop_during_a_blocked_write_leaves_it_to_the_next_start(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct error why = {0};

	tree_block(t, ACT_KNOB_WRITE);
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_wait_blocked(t);
	actor_restore_all(a, tree_time(1));
	assert_int_equal(actor_unrestored(a, &why), 1);
	(void)actor_close(a);

	a = tree_actor(t, (struct actor_options){0});
	assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_WAITING);
	assert_int_equal(actor_wait(a, false, -1, 300 * USEC_PER_MSEC, NULL, NULL), -ETIMEDOUT);
	actor_restore_all(a, act_time_now());
	assert_int_equal(actor_unrestored(a, &why), 1);
	assert_non_null(strstr(why.text, "still hangs"));
	tree_unblock(t); /* only now does the old write reach the kernel */
	assert_int_equal(actor_wait(a, true, -1, 10 * USEC_PER_SEC, NULL, NULL), 0);
	assert_int_equal(tree_fraction(t), 0);
	(void)actor_close(a);
}

static void a_foreign_write_is_told_once_with_both_values_and_left_alone(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct actor_event ev;

	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	tree_write(t, HIGH_FRACTION_REL, "33\n");
	observe(t, a, tree_time(1));
	ev = tree_event(a, ACTOR_FOREIGN);
	assert_int_equal(ev.old_value, 100);
	assert_int_equal(ev.new_value, 33);
	assert_non_null(strstr(ev.text, "adopt high_fraction"));
	observe(t, a, tree_time(2));
	tree_write(t, HIGH_FRACTION_REL, "44\n");
	observe(t, a, tree_time(3));
	assert_int_equal(tree_count_events(a, ACTOR_FOREIGN), 0);
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(4)), -EPERM);
	(void)actor_close(a);

	a = tree_actor(t, (struct actor_options){0}); /* a restart does not forget */
	assert_int_equal(knob(a, TREE_FRACTION).state, KNOB_FOREIGN);
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(5)), -EPERM);
	actor_restore_all(a, tree_time(6));
	tree_settle_at(a, tree_time(6));
	assert_int_equal(actor_unrestored(a, NULL), 0);
	assert_int_equal(tree_fraction(t), 44);
	actor_resume(a);

	assert_int_equal(actor_adopt(a, TREE_FRACTION, tree_time(7), NULL), 0);
	assert_int_equal(tree_count_events(a, ACTOR_OURS_AGAIN), 1);
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(8)), 0);
	tree_settle_at(a, tree_time(8));
	assert_int_equal(knob(a, TREE_FRACTION).baseline, 44);
	actor_restore_all(a, tree_time(9));
	tree_settle_at(a, tree_time(9));
	assert_int_equal(tree_fraction(t), 44);
	(void)actor_close(a);
}

static void after_the_time_to_yield_a_foreign_value_is_the_new_baseline(void **state)
{
	struct tree *t = *state;
	const struct actor_options o = {.foreign_yield_usec = USEC_PER_HOUR};
	struct actor *a = tree_actor(t, o);

	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	tree_write(t, HIGH_FRACTION_REL, "33\n");
	observe(t, a, tree_time(1));
	tree_settle_at(a, tree_time(3000));
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(3000)), -EPERM);
	assert_int_equal(actor_next_usec(a), tree_time(3601).mono_usec);
	tree_settle_at(a, tree_time(3601));
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(3602)), 0);
	tree_settle_at(a, tree_time(3602));
	assert_int_equal(knob(a, TREE_FRACTION).baseline, 33);
	(void)actor_close(a);
}

static void write_in_between(struct tree *t, enum act_point point)
{
	if (point != ACT_KNOB_READ || t->at_value == 0)
		return;
	if (--t->at_value == 0) /* the second look, in the thread that is about to write */
		tree_write(t, HIGH_FRACTION_REL, "33\n");
}

static void somebody_quicker_than_our_write_is_not_written_over(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	t->at_value = 2;
	t->at_point = write_in_between;
	assert_int_equal(ask(a, TREE_FRACTION, 200, tree_time(1)), 0);
	tree_settle_at(a, tree_time(1));
	assert_int_equal(tree_fraction(t), 33);
	assert_int_equal(tree_event(a, ACTOR_FOREIGN).new_value, 33);
	(void)actor_close(a);
}

static void two_tuners_that_fight_get_one_write_from_us(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	for (uint64_t i = 0; i < 50; i++) {
		(void)ask(a, TREE_FRACTION, 100, tree_time(i));
		tree_settle_at(a, tree_time(i));
		tree_write(t, HIGH_FRACTION_REL, "33\n");
		observe(t, a, tree_time(i + 1));
	}
	assert_int_equal(ledger_end(actor_ledger(a)) - 1, 1);
	assert_int_equal(tree_count_events(a, ACTOR_FOREIGN), 1);
	(void)actor_close(a);
}

static void limits_hold_over_all_knobs_and_across_restarts(void **state)
{
	const struct actor_options o = {.limits = {.writes_per_minute = 4, .writes_per_day = 6}};
	struct tree *t = *state;
	struct actor *a = tree_actor(t, o);
	unsigned done = 0;

	for (uint64_t i = 0; i < 40; i++) {
		(void)ask(a, TREE_FRACTION, 100 + i, tree_time(i / 8));
		tree_settle_at(a, tree_time(i / 8));
	}
	done = (unsigned)ledger_end(actor_ledger(a)) - 1;
	assert_int_equal(done, 4);
	assert_int_equal(tree_count_events(a, ACTOR_LIMITED), 1);
	(void)actor_close(a);

	a = tree_actor(t, o);
	assert_int_equal(ask(a, TREE_ORDER4, 1, tree_time(10)), -EDQUOT);
	for (uint64_t i = 0; i < 500; i++) {
		(void)ask(a, TREE_FRACTION, 500 + i, tree_time(100 + i));
		tree_settle_at(a, tree_time(100 + i));
	}
	done += (unsigned)ledger_end(actor_ledger(a)) - 1;
	assert_int_equal(done, 6);
	assert_int_equal(ask(a, TREE_FRACTION, 8, tree_time(90000)), 0);
	tree_settle_at(a, tree_time(90000));
	assert_int_equal(tree_fraction(t), 8);
	actor_restore_all(a, tree_time(90000)); /* is never held back */
	tree_settle_at(a, tree_time(90000));
	assert_int_equal(tree_fraction(t), 0);
	(void)actor_close(a);
}

static void keep_then_start_then_restore_ends_at_the_true_baseline(void **state)
{
	struct tree *t = *state;
	struct actor *a;

	tree_write(t, HIGH_FRACTION_REL, "64\n");
	for (uint64_t i = 0; i < 4; i++) {
		a = tree_actor(t, (struct actor_options){0});
		assert_int_equal(ask(a, TREE_FRACTION, 100 + i, tree_time(i)), 0);
		tree_settle_at(a, tree_time(i));
		assert_int_equal(knob(a, TREE_FRACTION).baseline, 64);
		(void)actor_close(a);
		assert_int_equal(tree_fraction(t), 100 + i);
	}
	a = tree_actor(t, (struct actor_options){0});
	assert_int_equal(tree_event(a, ACTOR_RECOVERED).new_value, 103);
	actor_restore_all(a, tree_time(9));
	tree_settle_at(a, tree_time(9));
	assert_int_equal(tree_fraction(t), 64);
	(void)actor_close(a);
}

static void a_restore_that_is_refused_is_tried_again_and_told(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct error why = {0};

	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	tree_fail(t, ACT_KNOB_WRITE, -EIO, 3);
	actor_restore_all(a, act_time_now());
	assert_int_equal(actor_wait(a, true, -1, 50 * USEC_PER_MSEC, NULL, NULL), -ETIMEDOUT);
	assert_int_equal(actor_unrestored(a, &why), 1);
	assert_non_null(strstr(why.text, "Input/output error"));
	assert_int_equal(actor_wait(a, true, -1, 30 * USEC_PER_SEC, NULL, NULL), 0);
	assert_int_equal(tree_fraction(t), 0);
	(void)actor_close(a);
}

static void a_value_changed_while_we_were_away_is_foreign(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	(void)actor_close(a);
	tree_write(t, HIGH_FRACTION_REL, "33\n");
	a = tree_actor(t, (struct actor_options){0});
	assert_int_equal(tree_event(a, ACTOR_FOREIGN).new_value, 33);
	actor_restore_all(a, tree_time(1));
	tree_settle_at(a, tree_time(1));
	assert_int_equal(tree_fraction(t), 33);
	(void)actor_close(a);
}

static void the_printed_commands_undo_everything(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	_cleanup_(text_free) struct text text = {0};
	unsigned n = 0;

	tree_write(t, HIGH_FRACTION_REL, "64\n");
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	assert_int_equal(ask(a, TREE_ORDER4, 1, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	(void)actor_close(a);
	assert_int_equal(rollback_commands(&t->env, &text, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(tree_fraction(t), 100);
	assert_int_equal(system(text_str(&text)), 0);
	assert_int_equal(tree_fraction(t), 64);
	assert_int_equal(tree_read(t, THP_REL "/hugepages-64kB/pcp_enabled"), 0);
	text_clear(&text);
	assert_int_equal(rollback_commands(&t->env, &text, &n, NULL), 0);
	assert_int_equal(n, 0);
}

static void a_moment_is_undone_and_decisions_wait_for_its_end(void **state)
{
	const struct actor_request req = {TREE_FRACTION, HIGH_FRACTION_MAX, "squeeze"};
	struct tree *t = *state;
	struct record *r = calloc(1, sizeof(*r));
	struct actor *a = tree_actor(t, (struct actor_options){0});

	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	assert_int_equal(actor_moment_begin(a, &req, false, tree_time(1), NULL), 0);
	tree_settle_at(a, tree_time(1));
	assert_int_equal(actor_moment(a, TREE_FRACTION, NULL), MOMENT_IN_PLACE);
	assert_int_equal(tree_fraction(t), HIGH_FRACTION_MAX);
	load(t, r);
	assert_true(r->knob[0].transient);
	assert_int_equal(r->knob[0].before, 100);
	assert_int_equal(ask(a, TREE_FRACTION, 200, tree_time(2)), 0);
	tree_settle_at(a, tree_time(2));
	assert_int_equal(tree_fraction(t), HIGH_FRACTION_MAX);
	observe(t, a, tree_time(3));
	assert_int_equal(tree_count_events(a, ACTOR_FOREIGN), 0);
	actor_moment_end(a, TREE_FRACTION, tree_time(4));
	tree_settle_at(a, tree_time(4));
	assert_int_equal(tree_fraction(t), 200);
	load(t, r);
	assert_false(r->knob[0].transient);
	assert_int_equal(r->knob[0].baseline, 0);
	(void)actor_close(a);
	free(r);
}

static void a_foreign_write_ends_a_moment(void **state)
{
	const struct actor_request req = {TREE_FRACTION, HIGH_FRACTION_MAX, "squeeze"};
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	assert_int_equal(actor_moment_begin(a, &req, false, tree_time(1), NULL), 0);
	tree_settle_at(a, tree_time(1));
	tree_write(t, HIGH_FRACTION_REL, "33\n");
	actor_moment_end(a, TREE_FRACTION, tree_time(2));
	tree_settle_at(a, tree_time(2));
	assert_int_equal(tree_fraction(t), 33);
	assert_int_equal(actor_moment(a, TREE_FRACTION, NULL), MOMENT_NONE);
	assert_int_equal(tree_count_events(a, ACTOR_FOREIGN), 1);
	(void)actor_close(a);
}

static void lists_that_do_not_follow_the_fraction_are_noted_once(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct sensor *sensor = NULL;
	unsigned notes = 0;

	assert_int_equal(sensor_new(&sensor, &t->root, 4096, NULL), 0);
	assert_int_equal(ask(a, TREE_FRACTION, 100, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0)); /* zoneinfo still shows the sizes of fraction 0 */
	for (uint64_t i = 1; i < 6; i++) {
		const struct snapshot *s =
			sensor_take(sensor, SOURCE_BIT(SOURCE_ZONEINFO) | SOURCE_BIT(SOURCE_KNOBS),
				    tree_time(i).mono_usec);

		actor_observe(a, s, tree_time(i));
		notes += tree_count_events(a, ACTOR_NOTE);
		assert_int_equal(notes, i >= 3);
	}
	(void)sensor_free(sensor);
	(void)actor_close(a);
}

static void the_single_file_is_spoken_to_in_its_own_numbers(void **state)
{
	struct tree t;
	struct actor *a;

	(void)state;
	tree_make(&t, true);
	a = tree_actor(&t, (struct actor_options){0});
	assert_int_equal(ask(a, TREE_ORDER4, 1, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	assert_int_equal(tree_read(&t, THP_REL "/pcp_allow_high_order"), 4);
	actor_restore_all(a, tree_time(1));
	tree_settle_at(a, tree_time(1));
	assert_int_equal(tree_read(&t, THP_REL "/pcp_allow_high_order"), 0);
	(void)actor_close(a);
	tree_remove(&t);
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* What a tick sees: order 4 is off, and the lists hold so many blocks of it, or pages. */
static void observe_lists(struct tree *t, struct actor *a, uint64_t blocks, uint64_t pages,
			  bool prints_orders, struct act_time now)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct pageset lists = {.nr_orders = 5, .order = {[4] = blocks}};

	lists.value[PAGESET_COUNT] = pages;
	s->taken_usec = now.mono_usec;
	s->valid = SOURCE_BIT(SOURCE_ZONEINFO);
	s->mthp.orders = t->env.orders;
	s->zoneinfo.pagesets = &lists;
	s->zoneinfo.nr_pagesets = 1;
	s->zoneinfo.prints_orders = prints_orders;
	actor_observe(a, s, now);
	tree_settle_at(a, now);
	free(s);
}

static void switch_off(struct tree *t, struct actor *a)
{
	(void)t;
	assert_int_equal(ask(a, TREE_ORDER4, 1, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	assert_int_equal(ask(a, TREE_ORDER4, 0, tree_time(1)), 0);
	tree_settle_at(a, tree_time(1));
	(void)tree_count_events(a, _ACTOR_EVENT_MAX);
}

#define ORDER4_STAT THP_REL "/hugepages-64kB/stats/pcp_order_stat"

/* As the kernel does: what was on the lists is off them once the write has returned. */
static void drain_lists_once_written(struct tree *t, enum act_point point)
{
	if (point != ACT_KNOB_WRITTEN)
		return;
	for (unsigned i = 0; i < t->nr_cpus; i++)
		t->cpu[i].count = 20;
	t->blocks4 = 1;
	tree_write_zoneinfo(t);
	if (tree_read(t, ORDER4_STAT) != UINT64_MAX)
		tree_write(t, ORDER4_STAT, "1\n");
}

static void an_order_that_goes_off_tells_how_many_pages_came_back(void **state)
{
	const struct {
		bool prints_orders, has_stat;
		uint64_t before, after;
	} cases[] = {
		{true, true, 100 * 16, 16},
		{true, false, 100 * 16, 16},
		{false, true, 90 * 16, 16}, /* the two disagree on purpose: which one was read? */
		{false, false, 16000, 40},  /* of all orders: no order is counted by itself */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ledger_entry *entry;
		struct actor_event ev;
		struct tree t = {0};
		char said[128];
		struct actor *a;

		tree_make(&t, false);
		t.prints_orders = cases[i].prints_orders;
		t.blocks4 = 100;
		tree_write_zoneinfo(&t);
		if (cases[i].has_stat)
			tree_write(&t, ORDER4_STAT, "90\n");
		a = tree_actor(&t, (struct actor_options){0});
		assert_int_equal(ask(a, TREE_ORDER4, 1, tree_time(0)), 0);
		tree_settle_at(a, tree_time(0));
		assert_false(tree_event(a, ACTOR_CHANGED).parked_known);
		t.at_point = drain_lists_once_written;
		assert_int_equal(ask(a, TREE_ORDER4, 0, tree_time(1)), 0);
		tree_settle_at(a, tree_time(1));
		ev = tree_event(a, ACTOR_RESTORED);
		entry = ledger_get(actor_ledger(a), ev.ledger_seq);
		assert_non_null(entry);
		assert_true(ev.parked_known);
		assert_int_equal(ev.parked_before, cases[i].before);
		assert_int_equal(ev.parked_after, cases[i].after);
		assert_int_equal(knob_report_returned(&entry->report),
				 cases[i].before - cases[i].after);
		(void)snprintf(said, sizeof(said),
			       "pcp_enabled/64kB: 1 -> 0, %" PRIu64
			       " pages came back from the lists",
			       cases[i].before - cases[i].after);
		assert_string_equal(ev.text, said);
		(void)actor_close(a);
		tree_remove(&t);
	}
}

static void without_counts_an_order_goes_off_all_the_same(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct actor_event ev;

	tree_write(t, "proc/zoneinfo", "Node 0, zone");
	assert_int_equal(ask(a, TREE_ORDER4, 1, tree_time(0)), 0);
	tree_settle_at(a, tree_time(0));
	assert_int_equal(ask(a, TREE_ORDER4, 0, tree_time(1)), 0);
	tree_settle_at(a, tree_time(1));
	ev = tree_event(a, ACTOR_RESTORED);
	assert_false(ev.parked_known);
	assert_string_equal(ev.text, "pcp_enabled/64kB: 1 -> 0");
	(void)actor_close(a);
}

static void blocks_that_stay_after_an_order_went_off_are_noted_once(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});

	switch_off(t, a);
	for (uint64_t i = 2; i < 10; i++)
		observe_lists(t, a, 3, 48, true, tree_time(i));
	assert_int_equal(tree_count_events(a, ACTOR_NOTE), 1);
	assert_int_equal(knob(a, TREE_ORDER4).writes, 2);
	(void)actor_close(a);
}

static void the_single_file_drains_again_what_came_between_its_drain_and_its_store(void **state)
{
	const struct {
		uint64_t blocks, pages;
		bool prints_orders;
		uint64_t writes; /* besides the two that switched it */
	} cases[] = {
		{0, 500, true, 0},
		{5, 80, true, 2},
		{0, 15, false, 0},
		{0, 500, false, 1}, /* cannot be told apart: once is enough, since it is off now */
	};
	(void)state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct tree t = {0};
		struct actor *a;

		tree_make(&t, true);
		a = tree_actor(&t, (struct actor_options){0});
		switch_off(&t, a);
		for (uint64_t at = 2; at < 10; at++)
			observe_lists(&t, a, cases[i].blocks, cases[i].pages,
				      cases[i].prints_orders, tree_time(at));
		assert_int_equal(knob(a, TREE_ORDER4).writes, 2 + cases[i].writes);
		assert_int_equal(knob(a, TREE_ORDER4).state, KNOB_FREE);
		assert_int_equal(actor_unrestored(a, NULL), 0);
		(void)actor_close(a);
		tree_remove(&t);
	}
}

static void a_thousand_changes_leave_no_descriptor_behind(void **state)
{
	struct tree *t = *state;
	struct actor *a = tree_actor(t, (struct actor_options){0});
	unsigned before = open_descriptors();

	for (uint64_t i = 0; i < 1000; i++) {
		assert_int_equal(ask(a, TREE_FRACTION, 100 + i, tree_time(i)), 0);
		tree_settle_at(a, tree_time(i));
	}
	assert_int_equal(ledger_end(actor_ledger(a)) - 1, 1000);
	assert_int_equal(open_descriptors(), before);
	(void)actor_close(a);
}

#define test(name) cmocka_unit_test_setup_teardown(name, make, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_change_is_recorded_with_its_baseline_and_put_back),
		test(the_intent_is_on_record_before_the_kernel_is_written),
		test(a_value_that_is_there_is_not_written),
		test(the_same_decision_every_tick_is_one_write),
		test(a_refusal_is_told_once_tried_again_ever_later_and_told_when_it_ends),
		test(a_refused_value_leaves_nothing_to_put_back),
		test(a_number_written_in_part_is_never_left_behind),
		test(a_value_that_does_not_stick_is_a_refusal),
		test(without_a_record_nothing_is_written),
		test(a_restore_goes_on_even_if_the_record_cannot_be_replaced),
		test(a_blocked_write_holds_up_its_own_knob_only),
		test(a_stop_during_a_blocked_write_leaves_it_to_the_next_start),
		test(a_foreign_write_is_told_once_with_both_values_and_left_alone),
		test(after_the_time_to_yield_a_foreign_value_is_the_new_baseline),
		test(somebody_quicker_than_our_write_is_not_written_over),
		test(two_tuners_that_fight_get_one_write_from_us),
		test(limits_hold_over_all_knobs_and_across_restarts),
		test(keep_then_start_then_restore_ends_at_the_true_baseline),
		test(a_restore_that_is_refused_is_tried_again_and_told),
		test(a_value_changed_while_we_were_away_is_foreign),
		test(the_printed_commands_undo_everything),
		test(a_moment_is_undone_and_decisions_wait_for_its_end),
		test(a_foreign_write_ends_a_moment),
		test(lists_that_do_not_follow_the_fraction_are_noted_once),
		test(the_single_file_is_spoken_to_in_its_own_numbers),
		test(an_order_that_goes_off_tells_how_many_pages_came_back),
		test(without_counts_an_order_goes_off_all_the_same),
		test(blocks_that_stay_after_an_order_went_off_are_noted_once),
		test(the_single_file_drains_again_what_came_between_its_drain_and_its_store),
		test(a_thousand_changes_leave_no_descriptor_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
