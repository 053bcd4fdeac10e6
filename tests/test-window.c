/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define S USEC_PER_SEC

static struct window_bucket room[WINDOW_BUCKETS_MAX];

static struct window window_of(uint64_t span_usec, bool counter)
{
	struct window w;

	assert_true(window_room(span_usec) <= WINDOW_BUCKETS_MAX);
	window_init(&w, span_usec, counter, room);
	return w;
}

static double must(bool known, double value, const char *what)
{
	if (!known)
		fail_msg("%s should be known", what);
	return value;
}

#define MUST(call, w)                       \
	__extension__({                     \
		double v_ = 0;              \
		bool known_ = call(w, &v_); \
		must(known_, v_, #call);    \
	})
#define UNKNOWN(call, w)                                                          \
	do {                                                                      \
		double v_;                                                        \
		if (call(w, &v_))                                                 \
			fail_msg("%s says %f, which nobody can know", #call, v_); \
	} while (0)

static void a_rate_needs_two_samples_and_is_a_second(void **state)
{
	struct window w = window_of(0, true);

	(void)state;
	UNKNOWN(window_rate, &w);
	window_add(&w, 100 * S, true, 1000);
	UNKNOWN(window_rate, &w);
	window_add(&w, 110 * S, true, 1500);
	assert_float_equal(MUST(window_rate, &w), 50, 1e-9);
	window_add(&w, 110 * S + S / 2, true, 1500);
	assert_float_equal(MUST(window_rate, &w), 0, 1e-9);
}

static void a_counter_that_goes_backwards_starts_again(void **state)
{
	struct window w = window_of(10 * S, true);

	(void)state;
	for (unsigned i = 0; i <= 20; i++)
		window_add(&w, (100 + i) * S, true, 1000 + 10 * i);
	assert_float_equal(MUST(window_delta, &w), 100, 1e-9);
	window_add(&w, 121 * S, true, 3);
	UNKNOWN(window_rate, &w);
	UNKNOWN(window_delta, &w);
	window_add(&w, 122 * S, true, 10);
	assert_float_equal(MUST(window_rate, &w), 7, 1e-9);
	UNKNOWN(window_delta, &w);
	for (unsigned i = 3; i <= 11; i++)
		window_add(&w, (120 + i) * S, true, 10);
	assert_float_equal(MUST(window_delta, &w), 7, 1e-9);
}

static void a_value_that_is_no_counter_may_fall(void **state)
{
	struct window w = window_of(10 * S, false);

	(void)state;
	for (unsigned i = 0; i <= 10; i++)
		window_add(&w, (100 + i) * S, true, 100 - i);
	assert_float_equal(MUST(window_delta, &w), -10, 1e-9);
	assert_float_equal(MUST(window_rate, &w), -1, 1e-9);
}

static void an_unknown_sample_makes_a_rate_unknown_twice(void **state)
{
	struct window w = window_of(10 * S, true);

	(void)state;
	for (unsigned i = 0; i <= 10; i++)
		window_add(&w, (100 + i) * S, true, i);
	window_add(&w, 111 * S, false, 0);
	UNKNOWN(window_rate, &w);
	UNKNOWN(window_delta, &w);
	UNKNOWN(window_avg, &w);
	window_add(&w, 112 * S, true, 12);
	UNKNOWN(window_rate, &w);
	assert_float_equal(MUST(window_delta, &w), 10, 1e-9);
	window_add(&w, 113 * S, true, 13);
	assert_float_equal(MUST(window_rate, &w), 1, 1e-9);
}

static void an_average_weighs_by_time(void **state)
{
	struct window w = window_of(60 * S, false);

	(void)state;
	window_add(&w, 1000 * S, true, 10);
	UNKNOWN(window_avg, &w);
	window_add(&w, 1050 * S, true, 10); /* 50 s at 10 */
	window_add(&w, 1060 * S, true, 70); /* 10 s at 70 */
	assert_float_equal(MUST(window_avg, &w), 20, 1e-6);
	assert_float_equal(MUST(window_min, &w), 10, 1e-9);
	assert_float_equal(MUST(window_max, &w), 70, 1e-9);
}

static void a_window_forgets_what_lies_before_it(void **state)
{
	struct window w = window_of(60 * S, false);

	(void)state;
	for (unsigned i = 0; i < 300; i++)
		window_add(&w, (1000 + i) * S, true, i < 200 ? 100 : 1);
	assert_float_equal(MUST(window_avg, &w), 1, 1e-6);
	assert_float_equal(MUST(window_max, &w), 1, 1e-9);
}

static void fifteen_minutes_fit_whatever_the_interval(void **state)
{
	static const uint64_t steps[] = {1, 100000, 999999, S, S + 1, 3 * S + 7, 10 * S, 100 * S};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
		struct window w = window_of(WINDOW_SPAN_MAX, true);
		uint64_t step = steps[k], n = step < 1000 ? 100000 : 2 * WINDOW_SPAN_MAX / step;

		for (uint64_t i = 0; i < n; i++) {
			window_add(&w, 5000 * S + i * step, true, (double)(i * step));
			assert_true(w.n <= w.room);
		}
		if (n * step < WINDOW_SPAN_MAX)
			continue;
		assert_float_equal(MUST(window_delta, &w), (double)WINDOW_SPAN_MAX, 1e-3);
		assert_float_equal(MUST(window_max, &w), (double)((n - 1) * step), 1e-3);
	}
}

static void times_that_go_back_are_left_out(void **state)
{
	struct window w = window_of(10 * S, true);

	(void)state;
	window_add(&w, 100 * S, true, 5);
	window_add(&w, 101 * S, true, 6);
	window_add(&w, 101 * S, true, 900);
	window_add(&w, 50 * S, true, 900);
	assert_float_equal(MUST(window_rate, &w), 1, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_needs_two_samples_and_is_a_second),
		cmocka_unit_test(a_counter_that_goes_backwards_starts_again),
		cmocka_unit_test(a_value_that_is_no_counter_may_fall),
		cmocka_unit_test(an_unknown_sample_makes_a_rate_unknown_twice),
		cmocka_unit_test(an_average_weighs_by_time),
		cmocka_unit_test(a_window_forgets_what_lies_before_it),
		cmocka_unit_test(fifteen_minutes_fit_whatever_the_interval),
		cmocka_unit_test(times_that_go_back_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
