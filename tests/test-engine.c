/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "engine-kit.h"
#include "policy/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S       USEC_PER_SEC
#define M       USEC_PER_MINUTE

#define AT_ONCE "For=0\nUntilFor=0\n"

static const char big[] = "[Policy]\n"
			  "Priority=50\n"
			  "Mode=enforce\n"
			  "[HighFraction big]\n"
			  "When=rate(vmstat.pgfault) > 50000/s\n"
			  "For=10s\n"
			  "Value=32\n"
			  "Until=rate(vmstat.pgfault) < 5000/s\n"
			  "UntilFor=20s\n"
			  "MinHold=2min\n";

static const char urgent[] = "[Policy]\n"
			     "Priority=80\n"
			     "Mode=enforce\n"
			     "[HighFraction small]\n" AT_ONCE "When=zone.free_ratio < 5%\n"
			     "Value=1000\n"
			     "Until=zone.free_ratio > 20%\n";

static const char guarded[] = "[Policy]\n"
			      "Priority=50\n"
			      "Mode=enforce\n"
			      "[HighFraction big]\n"
			      "When=rate(vmstat.pgfault) > 50000/s\n"
			      "For=5s\n"
			      "Value=32\n"
			      "Until=rate(vmstat.pgfault) < 5000/s\n"
			      "UntilFor=20s\n"
			      "[Guard]\n"
			      "Trip=rate(vmstat.compact_stall) > 4 * "
			      "before(rate(vmstat.compact_stall)) + 10/s\n"
			      "Within=120s\n"
			      "Lockout=10min\n";

static const char orders[] = "[Policy]\n"
			     "Priority=50\n"
			     "Mode=enforce\n"
			     "[Order *]\n"
			     "Enable=zone.free_ratio > 30%\n"
			     "EnableFor=10s\n"
			     "Disable=zone.free_ratio < 10%\n"
			     "DisableFor=10s\n";

static void setup_kit(struct kit **k, const char *name, const char *text)
{
	*k = kit_new();
	kit_policy(*k, name, text);
}

static size_t changes(const struct kit *k, enum decision_cause cause)
{
	size_t n = 0;

	for (size_t i = 0; i < k->nr_log; i++)
		n += k->log[i].d.cause == cause;
	return n;
}

#define EXPECT_VALUE(k, id, want)                                                             \
	do {                                                                                  \
		uint64_t got_ = kit_value(k, id);                                             \
		if (got_ != (want)) {                                                         \
			kit_dump(k);                                                          \
			fail_msg("line %d: the value is %" PRIu64 ", should be %d", __LINE__, \
				 got_, (int)(want));                                          \
		}                                                                             \
	} while (0)

static void a_rule_turns_on_when_it_has_held_and_says_why(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	const struct decision *d;

	(void)state;
	setup_kit(&k, "faults", big);
	kit_run(k, 3 * M);
	assert_int_equal(k->nr_log, 0);
	kit_expect_state(k, KIT_FRACTION, RULE_OFF);
	k->m.pgfault = 60000;
	kit_run(k, 9 * S);
	kit_expect_state(k, KIT_FRACTION, RULE_ARMING);
	assert_int_equal(k->nr_log, 0);
	d = kit_run(k, 3 * S);
	assert_non_null(d);
	kit_expect_state(k, KIT_FRACTION, RULE_ON);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	assert_true(d->write);
	assert_int_equal(d->cause, CAUSE_RULE);
	assert_int_equal(d->was, RULE_ARMING);
	assert_int_equal(d->state, RULE_ON);
	assert_false(d->to_baseline);
	assert_string_equal(d->policy, "faults");
	assert_string_equal(d->rule, "big");
	assert_non_null(strstr(d->reason, "faults/big: rate(vmstat.pgfault) "));
	assert_non_null(strstr(d->reason, " > 50000/s, held for 10s"));
}

static void a_break_makes_the_time_start_again(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	for (int i = 0; i < 20; i++) {
		k->m.pgfault = 60000;
		kit_run(k, 9 * S);
		k->m.pgfault = 40000;
		kit_run(k, 1 * S);
	}
	assert_int_equal(k->nr_log, 0);
}

static void unknown_never_fires_and_breaks_what_held(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	k->m.pgfault = 60000;
	kit_run(k, 8 * S);
	kit_expect_state(k, KIT_FRACTION, RULE_ARMING);
	k->m.has_vmstat = false;
	kit_run(k, 1 * S);
	kit_expect_state(k, KIT_FRACTION, RULE_OFF);
	kit_run(k, 10 * M);
	assert_int_equal(k->nr_log, 0);
	k->m.has_vmstat = true;
	kit_run(k, 10 * S);
	assert_int_equal(k->nr_log, 0);
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
}

static void a_release_brings_the_baseline_back(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	const struct decision *d;

	(void)state;
	setup_kit(&k, "faults", big);
	kit_start(k);
	kit_knob(k, KIT_FRACTION)->current = kit_knob(k, KIT_FRACTION)->baseline = 200;
	k->m.pgfault = 60000;
	kit_run(k, 5 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	k->m.pgfault = 1000;
	kit_run(k, 10 * S);
	kit_expect_state(k, KIT_FRACTION, RULE_RELEASING);
	k->m.pgfault = 6000; /* between the two: neither holds */
	kit_run(k, 5 * S);
	kit_expect_state(k, KIT_FRACTION, RULE_ON);
	k->m.pgfault = 1000;
	d = kit_run(k, 25 * S);
	assert_non_null(d);
	EXPECT_VALUE(k, KIT_FRACTION, 200);
	assert_true(d->to_baseline);
	assert_int_equal(d->cause, CAUSE_RELEASE);
	kit_expect_state(k, KIT_FRACTION, RULE_OFF);
}

static void a_rule_without_a_release_goes_when_its_condition_does(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "p",
		  "[Policy]\nMode=enforce\n[HighFraction a]\n" AT_ONCE
		  "When=zone.free_ratio < 5%\nValue=100\n");
	k->m.free_ratio = 0.04;
	kit_run(k, 2 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 100);
	k->m.free_ratio = 0.06;
	kit_run(k, 2 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
}

static void flapping_does_not_reach_the_kernel(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	uint64_t last = 0;

	(void)state;
	setup_kit(&k, "p",
		  "[Policy]\nMode=enforce\n[HighFraction a]\n" AT_ONCE
		  "When=zone.free_ratio < 5%\nValue=100\n");
	for (int i = 0; i < 600; i++) {
		k->m.free_ratio = i & 1 ? 0.04 : 0.2;
		kit_run(k, 1 * S);
	}
	assert_true(k->nr_log >= 2);
	for (size_t i = 0; i < k->nr_log; i++) {
		if (i > 0 && k->log[i].at_usec - last < k->limits.min_hold_usec) {
			kit_dump(k);
			fail_msg("two changes within MinHold");
		}
		last = k->log[i].at_usec;
	}
}

static void a_rules_min_hold_keeps_its_value(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	k->m.pgfault = 60000;
	kit_run(k, 15 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	k->m.pgfault = 0;
	kit_run(k, 90 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	kit_expect_state(k, KIT_FRACTION, RULE_HELD);
	assert_string_equal(kit_view(k, KIT_FRACTION).why, "MinHold= of the rule");
	kit_run(k, 30 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
}

static void a_higher_rule_takes_over_at_once_and_gives_back(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	const struct decision *d;

	(void)state;
	setup_kit(&k, "faults", big);
	kit_policy(k, "urgent", urgent);
	k->m.pgfault = 60000;
	kit_run(k, 75 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	k->m.free_ratio = 0.04;
	d = kit_run(k, 1 * S);
	assert_non_null(d);
	EXPECT_VALUE(k, KIT_FRACTION, 1000); /* well within MinHold= of the lower rule */
	assert_int_equal(d->drain, ENGINE_DRAIN_TRIM);
	assert_string_equal(d->policy, "urgent");
	k->m.free_ratio = 0.4;
	d = kit_run(k, 65 * S);
	assert_non_null(d);
	EXPECT_VALUE(k, KIT_FRACTION, 32); /* the lower one has been asking all the time */
	assert_int_equal(d->drain, ENGINE_DRAIN_NONE);
	assert_false(d->to_baseline);
}

static void on_a_tie_the_name_that_sorts_first_wins(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "b",
		  "[Policy]\n[HighFraction a]\n" AT_ONCE "When=zone.free_ratio > 1%\nValue=100\n");
	kit_policy(k, "a",
		   "[Policy]\n[HighFraction a]\n" AT_ONCE "When=zone.free_ratio > 1%\nValue=200\n");
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 200);
	assert_int_equal(kit_rule(k, "b", "a").state, RULE_ON);
}

static void the_first_section_that_holds_wins_in_a_file(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "a",
		  "[Policy]\n"
		  "[HighFraction one]\n" AT_ONCE "When=zone.free_ratio < 10%\nValue=100\n"
		  "[HighFraction two]\n" AT_ONCE "When=zone.free_ratio < 50%\nValue=200\n");
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 200);
	k->m.free_ratio = 0.05;
	kit_run(k, 61 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 100);
}

static void an_exact_size_stands_in_place_of_the_star(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "a",
		  "[Policy]\n"
		  "[Order *]\nEnableFor=0\nEnable=zone.free_ratio > 30%\n"
		  "[Order 64kB]\nEnableFor=0\nEnable=zone.free_ratio > 90%\n");
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_64K, 0);
	EXPECT_VALUE(k, KIT_128K, 1);
}

static void an_order_that_does_not_fit_is_never_enabled(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "a", orders);
	k->m.high_min = 40; /* pages: two blocks of 64 KiB, one of 128, none of 256 */
	k->limits.order_max = 4;
	kit_run(k, 1 * M);
	EXPECT_VALUE(k, KIT_64K, 1);
	EXPECT_VALUE(k, KIT_128K, 0); /* above OrderMax= */
	k->limits.order_max = 8;
	kit_run(k, 1 * M);
	EXPECT_VALUE(k, KIT_128K, 1);
	EXPECT_VALUE(k, ((struct knob_id){KNOB_PCP_ENABLED, 6}), 0);
	k->limits.order_max = 3; /* tightened: at once */
	kit_run(k, 1 * S);
	EXPECT_VALUE(k, KIT_64K, 0);
	EXPECT_VALUE(k, KIT_128K, 0);
	assert_int_equal(changes(k, CAUSE_LIMIT), 2);
}

static void limits_stand_above_policies_and_pins(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	k->limits.high_fraction_min = 64;
	k->m.pgfault = 60000;
	kit_run(k, 15 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 64);
	assert_int_equal(engine_pin(k->engine, KIT_FRACTION, 8, USEC_INFINITY), 0);
	kit_run(k, 1 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 64);
	k->limits.max_parked_share = 0.01;
	kit_run(k, 1 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 100);
	assert_int_equal(engine_pin(k->engine, KIT_FRACTION, 5, USEC_INFINITY), -ERANGE);
	assert_int_equal(engine_pin(k->engine, KIT_FRACTION, 0, USEC_INFINITY), 0);
	kit_run(k, 1 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 0); /* the kernel's own sizing is always allowed */
}

static void a_guard_takes_the_change_back_at_once(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	const struct decision *d;

	(void)state;
	setup_kit(&k, "faults", guarded);
	kit_run(k, 2 * M);
	k->m.pgfault = 60000;
	kit_run(k, 10 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	k->m.compact_stall = 100;
	d = kit_run(k, 2 * S);
	assert_non_null(d);
	EXPECT_VALUE(k, KIT_FRACTION, 0); /* within MinHold, and yet */
	assert_int_equal(d->cause, CAUSE_GUARD);
	assert_true(d->to_baseline);
	assert_string_equal(d->policy, "faults");
	kit_expect_state(k, KIT_FRACTION, RULE_LOCKED_OUT);
	k->m.compact_stall = 0;
	kit_run(k, 9 * M);
	kit_expect_state(k, KIT_FRACTION, RULE_LOCKED_OUT);
	assert_int_equal(kit_rule(k, "faults", "big").lockout_level, 1);
	kit_run(k, 2 * M); /* the condition still holds: on again after the lockout */
	EXPECT_VALUE(k, KIT_FRACTION, 32);
}

static void trip_once(struct kit *k, bool ours)
{
	kit_run(k, 30 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	k->m.compact_stall = 100;
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
	if (!ours)
		kit_run(k, 3 * M);
	k->m.compact_stall = 0;
	kit_run(k, 5 * S);
}

static void lockouts_double_up_to_a_day_and_halve_each_clean_day(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	uint64_t want = 10 * M;

	(void)state;
	setup_kit(&k, "faults", guarded);
	kit_run(k, 2 * M);
	k->m.pgfault = 60000;
	for (int i = 0; i < 10; i++) {
		struct engine_rule_view r;
		uint64_t left;

		trip_once(k, true);
		r = kit_rule(k, "faults", "big");
		left = r.lockout_until_usec - k->now_usec;
		if (left > want || left + 15 * S < want)
			fail_msg("trip %d: locked out for %" PRIu64 " s, should be %" PRIu64, i,
				 left / S, want / S);
		k->step_usec = 10 * S;
		kit_run(k, left - 30 * S);
		kit_expect_state(k, KIT_FRACTION, RULE_LOCKED_OUT);
		kit_run(k, 40 * S);
		k->step_usec = S;
		want = MIN_OF(2 * want, USEC_PER_DAY);
	}
	assert_int_equal(want, USEC_PER_DAY);
	assert_int_equal(kit_rule(k, "faults", "big").lockout_level, 10);
	k->step_usec = 30 * S;
	kit_run(k, USEC_PER_DAY + 5 * M);
	assert_int_equal(kit_rule(k, "faults", "big").lockout_level, 9);
	kit_run(k, 20 * USEC_PER_DAY);
	assert_int_equal(kit_rule(k, "faults", "big").lockout_level, 0);
}

static void a_trip_that_was_not_ours_does_not_double(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", guarded);
	kit_run(k, 2 * M);
	k->m.pgfault = 60000;
	trip_once(k, false);
	assert_int_equal(kit_rule(k, "faults", "big").lockout_level, 0);
	kit_run(k, 7 * M);
	trip_once(k, true);
	assert_int_equal(kit_rule(k, "faults", "big").lockout_level, 1);
	assert_int_equal(kit_rule(k, "faults", "big").trips, 2);
}

static void a_rule_whose_guard_is_unknown_does_not_fire(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "a",
		  "[Policy]\n[HighFraction a]\n" AT_ONCE "When=zone.free_ratio < 50%\nValue=100\n"
		  "[Guard]\nTrip=rate(vmstat.compact_stall) > 10/s\n");
	k->m.has_vmstat = false;
	kit_run(k, 10 * M);
	assert_int_equal(k->nr_log, 0);
	kit_expect_state(k, KIT_FRACTION, RULE_ARMING);
	k->m.has_vmstat = true;
	k->m.compact_stall = 50; /* and one that would trip at once does not either */
	kit_run(k, 10 * M);
	assert_int_equal(k->nr_log, 0);
	k->m.compact_stall = 0;
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 100);
}

static void a_watch_does_not_end_while_the_guard_is_unknown(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "a",
		  "[Policy]\n[HighFraction a]\n" AT_ONCE "When=zone.free_ratio < 50%\nValue=100\n"
		  "[Guard]\nTrip=rate(vmstat.compact_stall) > 10/s\nWithin=90s\n");
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 100);
	k->m.has_vmstat = false;
	kit_run(k, 4 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 100);
	kit_run(k, 2 * M); /* UnknownFor= */
	EXPECT_VALUE(k, KIT_FRACTION, 0);
	kit_expect_state(k, KIT_FRACTION, RULE_BLIND);
	k->m.has_vmstat = true;
	kit_run(k, 70 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 100);
	k->m.has_vmstat = false;
	kit_run(k, 90 * S);
	k->m.has_vmstat = true;
	k->m.compact_stall = 100; /* late, but within what was watched */
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
	kit_expect_state(k, KIT_FRACTION, RULE_LOCKED_OUT);
}

static void while_a_guard_watches_the_policy_changes_no_other_knob(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	char text[1024];

	(void)state;
	(void)snprintf(text, sizeof(text), "%s[Guard]\nTrip=rate(vmstat.compact_stall) > 10/s\n",
		       orders);
	setup_kit(&k, "a", text);
	kit_run(k, 13 * M);
	for (size_t i = 1; i < k->nr_log; i++)
		if (k->log[i].at_usec < k->log[i - 1].at_usec + 2 * M) {
			kit_dump(k);
			fail_msg("a second knob was changed while the guard watched the first");
		}
	assert_int_equal(k->nr_log, 5); /* orders 4 to 8, one after the other */
	k->m.free_ratio = 0.05;
	kit_run(k, 15 * S);
	for (size_t i = 0; i < k->nr_knobs; i++)
		assert_int_equal(k->knobs[i].current, 0);
}

static void a_release_that_stays_unknown_goes_back_to_the_baseline(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	const struct decision *d;

	(void)state;
	setup_kit(&k, "faults", big);
	k->m.pgfault = 60000;
	kit_run(k, 5 * M);
	k->m.has_vmstat = false;
	kit_run(k, 4 * M + 50 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	d = kit_run(k, 30 * S);
	assert_non_null(d);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
	assert_int_equal(d->cause, CAUSE_BLIND);
	kit_expect_state(k, KIT_FRACTION, RULE_BLIND);
	kit_run(k, 10 * M);
	kit_expect_state(k, KIT_FRACTION, RULE_BLIND);
	k->m.has_vmstat = true;
	kit_run(k, 30 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
}

static void a_release_that_flickers_between_true_and_unknown_is_blind_too(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "a",
		  "[Policy]\n[HighFraction a]\nFor=0\nWhen=zone.free_ratio < 10%\nValue=100\n"
		  "Until=zone.free_ratio > 20%\nUntilFor=30s\n");
	k->m.free_ratio = 0.05;
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 100);
	k->m.free_ratio = 0.5;
	for (int i = 0; i < 700; i++) {
		k->m.has_zoneinfo = i & 1;
		kit_run(k, S);
	}
	EXPECT_VALUE(k, KIT_FRACTION, 0);
}

static void foreign_means_hands_off_until_adopted(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	struct engine_knob_input *knob;

	(void)state;
	setup_kit(&k, "faults", big);
	k->m.pgfault = 60000;
	kit_run(k, 15 * S);
	knob = kit_knob(k, KIT_FRACTION);
	knob->current = 500;
	knob->report = ENGINE_REPORT_FOREIGN;
	knob->why = "has 500 where 32 was written";
	kit_run(k, 10 * M);
	kit_expect_state(k, KIT_FRACTION, RULE_FOREIGN);
	assert_string_equal(kit_view(k, KIT_FRACTION).why, knob->why);
	k->m.pgfault = 0;
	kit_run(k, 10 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 500);
	assert_int_equal(k->nr_log, 1);
	knob->report = ENGINE_REPORT_NONE;
	knob->baseline = 500;
	kit_run(k, 10 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 500);
	kit_expect_state(k, KIT_FRACTION, RULE_OFF);
	k->m.pgfault = 60000;
	kit_run(k, 15 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	k->m.pgfault = 0;
	kit_run(k, 10 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 500);
}

static void a_refused_write_is_decided_once_and_shown(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	k->refuse_writes = true;
	k->m.pgfault = 60000;
	kit_run(k, 10 * M);
	kit_expect_state(k, KIT_FRACTION, RULE_FAILED);
	assert_int_equal(k->nr_log, 1);
	k->refuse_writes = false;
	kit_knob(k, KIT_FRACTION)->report = ENGINE_REPORT_NONE; /* the retry worked */
	kit_knob(k, KIT_FRACTION)->current = 32;
	kit_run(k, 1 * S);
	kit_expect_state(k, KIT_FRACTION, RULE_ON);
	assert_int_equal(k->nr_log, 1);
}

static void nothing_is_decided_while_a_write_is_pending_or_budgets_are_spent(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	struct engine_knob_input *knob;

	(void)state;
	setup_kit(&k, "faults", big);
	kit_run(k, 1 * S);
	knob = kit_knob(k, KIT_FRACTION);
	knob->report = ENGINE_REPORT_PENDING;
	k->m.pgfault = 60000;
	kit_run(k, 5 * M);
	assert_int_equal(k->nr_log, 0);
	knob->report = ENGINE_REPORT_NONE;
	knob->not_before_usec = k->now_usec + 5 * M;
	kit_run(k, 4 * M);
	assert_int_equal(k->nr_log, 0);
	kit_expect_state(k, KIT_FRACTION, RULE_HELD);
	assert_string_equal(kit_view(k, KIT_FRACTION).why, "the limit on writes");
	kit_run(k, 2 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
}

static void a_decision_that_was_lost_is_given_again(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	k->m.pgfault = 60000;
	kit_run(k, 15 * S);
	kit_knob(k, KIT_FRACTION)->current = 0; /* and nobody says foreign */
	kit_run(k, 2 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	assert_int_equal(changes(k, CAUSE_REPEAT), 1);
}

static void a_value_kept_from_before_gets_time_before_it_goes(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	kit_start(k);
	kit_knob(k, KIT_FRACTION)->current = 32;
	k->m.pgfault = 60000;
	kit_run(k, 10 * M);
	assert_int_equal(k->nr_log, 0); /* the rule has it, and had it */
	k->m.pgfault = 0;
	kit_run(k, 10 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
	kit_free(k);

	setup_kit(&k, "faults", big);
	kit_start(k);
	kit_knob(k, KIT_FRACTION)->current = 32;
	kit_run(k, 50 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	kit_run(k, 20 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
}

static void a_pin_beats_policies_expires_and_can_be_taken_along(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL, *after = NULL;
	struct engine_saved_pin saved[4];

	(void)state;
	setup_kit(&k, "faults", big);
	k->m.pgfault = 60000;
	kit_run(k, 15 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	assert_int_equal(engine_pin(k->engine, KIT_FRACTION, 64, k->now_usec + 10 * M), 0);
	kit_run(k, 1 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 64); /* an operator does not wait for MinHold */
	kit_expect_state(k, KIT_FRACTION, RULE_PINNED);
	kit_run(k, 4 * M);
	assert_int_equal(engine_export_pins(k->engine, k->now_usec, saved, 4), 1);
	kit_run(k, 6 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	kit_expect_state(k, KIT_FRACTION, RULE_ON);

	setup_kit(&after, "faults", big);
	kit_start(after);
	engine_import_pins(after->engine, after->now_usec, 2 * M, saved, 1);
	kit_run(after, 1 * S);
	EXPECT_VALUE(after, KIT_FRACTION, 64);
	kit_run(after, 5 * M);
	EXPECT_VALUE(after, KIT_FRACTION, 0);
	assert_int_equal(engine_unpin(after->engine, KIT_FRACTION), -ENOENT);
}

static void lockouts_can_be_taken_along(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL, *after = NULL;
	struct engine_saved_lockout saved[4];

	(void)state;
	setup_kit(&k, "faults", guarded);
	kit_run(k, 2 * M);
	k->m.pgfault = 60000;
	trip_once(k, true);
	assert_int_equal(engine_export_lockouts(k->engine, k->now_usec, saved, 4), 1);
	assert_int_equal(saved[0].level, 1);

	setup_kit(&after, "faults", guarded);
	kit_start(after);
	after->m.pgfault = 60000;
	engine_import_lockouts(after->engine, after->now_usec, 5 * M, saved, 1);
	kit_run(after, 4 * M);
	kit_expect_state(after, KIT_FRACTION, RULE_LOCKED_OUT);
	kit_run(after, 2 * M);
	EXPECT_VALUE(after, KIT_FRACTION, 32);
	assert_int_equal(kit_rule(after, "faults", "big").lockout_level, 1);
}

static void a_pause_leaves_everything_as_it_is(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	k->m.pgfault = 60000;
	kit_run(k, 5 * M);
	k->paused = true;
	k->m.pgfault = 0;
	kit_run(k, 10 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	kit_expect_state(k, KIT_FRACTION, RULE_PAUSED);
	k->paused = false;
	kit_run(k, 1 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
}

static void a_policy_that_observes_tells_and_writes_nothing(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	const struct decision *d;

	(void)state;
	setup_kit(&k, "watcher",
		  "[Policy]\nPriority=99\nMode=observe\n"
		  "[HighFraction a]\n" AT_ONCE "When=rate(vmstat.pgfault) > 50000/s\nValue=500\n");
	kit_policy(k, "faults", big);
	kit_run(k, 1 * M);
	k->m.pgfault = 60000;
	d = kit_run(k, 3 * S);
	assert_non_null(d);
	assert_false(d->write);
	assert_int_equal(d->value, 500);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
	kit_run(k, 20 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32); /* and it does not stand in the way of others */
	assert_true(kit_view(k, KIT_FRACTION).observed);
	assert_int_equal(kit_view(k, KIT_FRACTION).observed_value, 500);
	assert_string_equal(kit_view(k, KIT_FRACTION).policy, "faults");
}

static void a_daemon_that_observes_writes_nothing_at_all(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	k->mode = ENGINE_OBSERVE;
	k->m.pgfault = 60000;
	kit_run(k, 15 * S);
	assert_int_equal(k->nr_log, 1);
	assert_false(k->log[0].d.write);
	kit_expect_state(k, KIT_FRACTION, RULE_ON);
	k->mode = ENGINE_ENFORCE; /* evidence must be fresh */
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
	kit_run(k, 10 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	k->mode = ENGINE_OBSERVE;
	kit_run(k, 10 * M);
	for (size_t i = 2; i < k->nr_log; i++)
		assert_false(k->log[i].d.write);
}

static const char trim[] = "[Policy]\nPriority=90\nMode=enforce\n"
			   "[Trim idle]\nWhen=zone.free_ratio < 5%\nFor=5s\nCooldown=10min\n";

static void a_trim_is_one_shot_and_cools_down(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	const struct decision *d;

	(void)state;
	setup_kit(&k, "trim", trim);
	k->m.free_ratio = 0.03;
	d = kit_run(k, 7 * S);
	assert_non_null(d);
	assert_int_equal(d->kind, DECISION_DRAIN);
	assert_int_equal(d->drain, ENGINE_DRAIN_TRIM);
	assert_string_equal(d->reason, "trim/idle: zone.free_ratio 3.0% < 5%, held for 5s");
	assert_int_equal(kit_rule(k, "trim", "idle").state, RULE_HELD);
	kit_run(k, 9 * M);
	assert_int_equal(k->nr_log, 1);
	kit_run(k, 2 * M);
	assert_int_equal(k->nr_log, 2);
}

static void a_trim_waits_for_what_drains_allow(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "trim", trim);
	k->m.free_ratio = 0.03;
	k->drain.trim = false;
	kit_run(k, 1 * M);
	k->drain.trim = true;
	k->drain.running = true;
	kit_run(k, 1 * M);
	k->drain.running = false;
	k->drain.not_before_usec = k->now_usec + 1 * M;
	kit_run(k, 59 * S);
	assert_int_equal(k->nr_log, 0);
	kit_run(k, 2 * S);
	assert_int_equal(k->nr_log, 1);
}

static void what_nobody_watched_did_not_hold(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "trim", trim);
	kit_run(k, 10 * S);
	k->m.free_ratio = 0.03;
	kit_run(k, 2 * S);
	k->now_usec += USEC_PER_HOUR; /* suspended */
	kit_run(k, 4 * S);
	assert_int_equal(k->nr_log, 0);
	kit_run(k, 3 * S);
	assert_int_equal(k->nr_log, 1);
}

static void time_that_goes_back_changes_nothing(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	k->m.pgfault = 60000;
	kit_run(k, 15 * S);
	k->now_usec -= 500 * S;
	kit_tick(k);
	kit_run(k, 5 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	assert_int_equal(k->nr_log, 1);
}

static void a_policy_that_no_longer_matches_lets_go(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	char text[1024];

	(void)state;
	(void)snprintf(text, sizeof(text), "%s[Match]\nCPUs=>=8\n", big);
	setup_kit(&k, "faults", text);
	k->m.pgfault = 60000;
	kit_run(k, 5 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	k->m.cpus = 4;
	k->facts.cpus = 4;
	k->facts_changed = true;
	kit_run(k, 1 * S);
	EXPECT_VALUE(k, KIT_FRACTION, 0);
	assert_int_equal(k->log[k->nr_log - 1].d.cause, CAUSE_ASLEEP);
	assert_true(kit_rule(k, "faults", "big").asleep);
}

static void after_hotplug_a_value_is_computed_again(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	uint64_t before;

	(void)state;
	setup_kit(&k, "a",
		  "[Policy]\n[HighFraction a]\n" AT_ONCE
		  "When=zone.free_ratio > 1%\nValue=fraction_for(4M)\n");
	kit_run(k, 5 * S);
	before = kit_value(k, KIT_FRACTION);
	assert_int_equal(before, 16777216 / (1024 * 16));
	k->m.cpus = 8;
	kit_run(k, 5 * M);
	assert_int_equal(kit_value(k, KIT_FRACTION), before);
	k->facts_changed = true;
	kit_run(k, 1 * S);
	assert_int_equal(kit_value(k, KIT_FRACTION), 16777216 / (1024 * 8));
}

static void a_kernel_without_the_knob_has_nothing_to_decide(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	kit_policy(k, "orders", orders);
	k->m.has_high_fraction = k->m.has_orders = false;
	k->m.pgfault = 60000;
	kit_run(k, 5 * M);
	assert_int_equal(k->nr_log, 0);
	assert_int_equal(engine_nr_knobs(k->engine), 0);
}

/* Everything of `from` but its policies, whose engine is reloaded with what `to` has. */
static void reload(struct kit *from, struct kit *to)
{
	struct error e = {0};

	to->m = from->m;
	to->now_usec = from->now_usec;
	to->nr_knobs = from->nr_knobs;
	to->alloc_count = from->alloc_count;
	memcpy(to->knobs, from->knobs, sizeof(to->knobs));
	memcpy(to->counters, from->counters, sizeof(to->counters));
	kit_snapshot(to);
	if (engine_reload(&to->engine, from->engine, &to->set, &to->facts, &to->s, &e) < 0)
		fail_msg("no reload: %s", e.text);
	from->engine = engine_free(from->engine);
}

static void a_reload_keeps_what_is_the_same(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL, *n = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	kit_policy(k, "trim", trim);
	k->m.pgfault = 60000;
	kit_run(k, 8 * S);
	kit_expect_state(k, KIT_FRACTION, RULE_ARMING);
	setup_kit(&n, "faults", big);
	kit_policy(n, "trim", trim);
	kit_policy(n, "another", orders);
	reload(k, n);
	kit_run(n, 4 * S); /* eight seconds of arming and the counter's past came along */
	EXPECT_VALUE(n, KIT_FRACTION, 32);
	kit_free(k);

	k = n;
	setup_kit(&n, "faults", big);
	reload(k, n);
	kit_run(n, 2 * S);
	EXPECT_VALUE(n, KIT_FRACTION, 32);
	kit_expect_state(n, KIT_FRACTION, RULE_ON);
	assert_int_equal(n->nr_log, 0);
	assert_int_equal(kit_rule(n, "faults", "big").fired, 1);
}

static void a_rule_that_is_gone_after_a_reload_gives_back(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL, *n = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	k->m.pgfault = 60000;
	kit_run(k, 5 * M);
	EXPECT_VALUE(k, KIT_FRACTION, 32);
	setup_kit(&n, "trim", trim);
	reload(k, n);
	kit_run(n, 2 * S);
	EXPECT_VALUE(n, KIT_FRACTION, 0);
	assert_int_equal(n->nr_log, 1);
	assert_int_equal(n->log[0].d.cause, CAUSE_ASLEEP);
}

static void a_lockout_survives_a_reload_even_of_a_changed_rule(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL, *n = NULL;
	char text[1024];

	(void)state;
	setup_kit(&k, "faults", guarded);
	kit_run(k, 2 * M);
	k->m.pgfault = 60000;
	trip_once(k, true);
	(void)snprintf(text, sizeof(text), "%s", guarded);
	memcpy(strstr(text, "Value=32"), "Value=64", 8);
	setup_kit(&n, "faults", text);
	reload(k, n);
	kit_run(n, 9 * M);
	kit_expect_state(n, KIT_FRACTION, RULE_LOCKED_OUT);
	kit_run(n, 2 * M);
	EXPECT_VALUE(n, KIT_FRACTION, 64);
}

static void an_explanation_names_everything(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;
	_cleanup_(explanation_freep) struct explanation *x = NULL, *trims = NULL;
	_cleanup_(text_free) struct text t = {0};
	struct knob_id id = KIT_FRACTION, absent = {KNOB_PCP_ENABLED, 12};
	static const char *const must_say[] = {
		"high_fraction: arming for ",
		"faults/big, priority 50: arming",
		"When= is true for 4s, 1s to go",
		"rate(vmstat.pgfault) > 50000/s",
		"Until= is false (must hold for 20s)",
		"urgent/small, priority 80: off",
		"Trip= is false",
		"zone.free_ratio",
		"before(rate(vmstat.compact_stall))",
		"vmstat.pgfault",
	};

	(void)state;
	setup_kit(&k, "faults", guarded);
	kit_policy(k, "urgent", urgent);
	kit_policy(k, "trim", trim);
	kit_run(k, 2 * M);
	k->m.pgfault = 60000;
	kit_run(k, 5 * S);
	assert_int_equal(engine_explain(k->engine, &k->s, &id, &x), 0);
	explain_render(x, KIT_PAGE, &t);
	for (size_t i = 0; i < ARRAY_SIZE(must_say); i++)
		if (!strstr(text_str(&t), must_say[i]))
			fail_msg("the explanation does not say \"%s\":\n%s", must_say[i],
				 text_str(&t));
	assert_int_equal(x->nr_rules, 2);
	assert_string_equal(x->rules[0].policy, "urgent");
	assert_int_equal(x->rules[1].on.missing_usec, 1 * S);
	x = explanation_free(x);
	assert_int_equal(engine_explain(k->engine, &k->s, &absent, &x), -ENOENT);
	assert_int_equal(engine_explain(k->engine, &k->s, NULL, &trims), 0);
	assert_int_equal(trims->nr_rules, 1);
}

static void only_what_is_needed_is_read(void **state)
{
	_cleanup_(kit_freep) struct kit *k = NULL;

	(void)state;
	setup_kit(&k, "faults", big);
	kit_run(k, 1 * S);
	assert_true(engine_sources(k->engine) & SOURCE_BIT(SOURCE_VMSTAT));
	assert_false(engine_sources(k->engine) & SOURCE_BIT(SOURCE_MTHP));
	assert_false(engine_is_active(k->engine));
	k->m.pgfault = 60000;
	kit_run(k, 3 * S);
	assert_true(engine_is_active(k->engine));
}

static void the_documentation_has_the_table_of_the_code(void **state)
{
	_cleanup_(text_free) struct text want = {0};
	_cleanup_(fclosep) FILE *f = NULL;
	static const char begin[] = "<!-- states -->\n", end[] = "<!-- end of states -->";
	char doc[65536], *from, *to;
	size_t n;

	(void)state;
	rule_render_markdown(&want);
	f = fopen(TEST_DOC, "re");
	if (!f)
		fail_msg("%s cannot be opened", TEST_DOC);
	n = fread(doc, 1, sizeof(doc) - 1, f);
	doc[n] = '\0';
	from = strstr(doc, begin);
	to = from ? strstr(from, end) : NULL;
	if (!to)
		fail_msg("%s has no part between the marks", TEST_DOC);
	from += strlen(begin);
	*to = '\0';
	if (!streq(from, text_str(&want))) {
		(void)fprintf(stderr, "%s", text_str(&want));
		fail_msg("%s should have the text above between its marks", TEST_DOC);
	}
}

static void every_state_can_be_entered_and_left(void **state)
{
	size_t n;
	const struct rule_transition *t = rule_transitions(&n);
	bool in[_RULE_STATE_MAX] = {0}, out[_RULE_STATE_MAX] = {0}, used[_RULE_EVENT_MAX] = {0};

	(void)state;
	for (size_t i = 0; i < n; i++) {
		if (t[i].to < _RULE_STATE_MAX)
			in[t[i].to] = true;
		if (t[i].from < _RULE_STATE_MAX)
			out[t[i].from] = true;
		used[t[i].event] = true;
		for (size_t j = i + 1; j < n; j++)
			if (t[i].from == t[j].from && t[i].event == t[j].event)
				fail_msg("two ways from %s at \"%s\"", rule_state_name(t[i].from),
					 rule_event_name(t[i].event));
	}
	for (enum rule_state s = 0; s < _RULE_STATE_MAX; s++)
		if (!in[s] || !out[s])
			fail_msg("%s cannot be %s", rule_state_name(s), in[s] ? "left" : "entered");
	for (enum rule_event e = 0; e < _RULE_EVENT_MAX; e++)
		if (!used[e])
			fail_msg("nothing happens at \"%s\"", rule_event_name(e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_turns_on_when_it_has_held_and_says_why),
		cmocka_unit_test(a_break_makes_the_time_start_again),
		cmocka_unit_test(unknown_never_fires_and_breaks_what_held),
		cmocka_unit_test(a_release_brings_the_baseline_back),
		cmocka_unit_test(a_rule_without_a_release_goes_when_its_condition_does),
		cmocka_unit_test(flapping_does_not_reach_the_kernel),
		cmocka_unit_test(a_rules_min_hold_keeps_its_value),
		cmocka_unit_test(a_higher_rule_takes_over_at_once_and_gives_back),
		cmocka_unit_test(on_a_tie_the_name_that_sorts_first_wins),
		cmocka_unit_test(the_first_section_that_holds_wins_in_a_file),
		cmocka_unit_test(an_exact_size_stands_in_place_of_the_star),
		cmocka_unit_test(an_order_that_does_not_fit_is_never_enabled),
		cmocka_unit_test(limits_stand_above_policies_and_pins),
		cmocka_unit_test(a_guard_takes_the_change_back_at_once),
		cmocka_unit_test(lockouts_double_up_to_a_day_and_halve_each_clean_day),
		cmocka_unit_test(a_trip_that_was_not_ours_does_not_double),
		cmocka_unit_test(a_rule_whose_guard_is_unknown_does_not_fire),
		cmocka_unit_test(a_watch_does_not_end_while_the_guard_is_unknown),
		cmocka_unit_test(while_a_guard_watches_the_policy_changes_no_other_knob),
		cmocka_unit_test(a_release_that_stays_unknown_goes_back_to_the_baseline),
		cmocka_unit_test(a_release_that_flickers_between_true_and_unknown_is_blind_too),
		cmocka_unit_test(foreign_means_hands_off_until_adopted),
		cmocka_unit_test(a_refused_write_is_decided_once_and_shown),
		cmocka_unit_test(nothing_is_decided_while_a_write_is_pending_or_budgets_are_spent),
		cmocka_unit_test(a_decision_that_was_lost_is_given_again),
		cmocka_unit_test(a_value_kept_from_before_gets_time_before_it_goes),
		cmocka_unit_test(a_pin_beats_policies_expires_and_can_be_taken_along),
		cmocka_unit_test(lockouts_can_be_taken_along),
		cmocka_unit_test(a_pause_leaves_everything_as_it_is),
		cmocka_unit_test(a_policy_that_observes_tells_and_writes_nothing),
		cmocka_unit_test(a_daemon_that_observes_writes_nothing_at_all),
		cmocka_unit_test(a_trim_is_one_shot_and_cools_down),
		cmocka_unit_test(a_trim_waits_for_what_drains_allow),
		cmocka_unit_test(what_nobody_watched_did_not_hold),
		cmocka_unit_test(time_that_goes_back_changes_nothing),
		cmocka_unit_test(a_policy_that_no_longer_matches_lets_go),
		cmocka_unit_test(after_hotplug_a_value_is_computed_again),
		cmocka_unit_test(a_kernel_without_the_knob_has_nothing_to_decide),
		cmocka_unit_test(a_reload_keeps_what_is_the_same),
		cmocka_unit_test(a_rule_that_is_gone_after_a_reload_gives_back),
		cmocka_unit_test(a_lockout_survives_a_reload_even_of_a_changed_rule),
		cmocka_unit_test(an_explanation_names_everything),
		cmocka_unit_test(only_what_is_needed_is_read),
		cmocka_unit_test(the_documentation_has_the_table_of_the_code),
		cmocka_unit_test(every_state_can_be_entered_and_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
