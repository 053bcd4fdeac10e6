/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/format.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/sysroot.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

static void times_are_read_as_systemd_writes_them(void **state)
{
	static const struct {
		const char *text;
		int want;
		uint64_t usec;
	} rows[] = {
		{"20s", 0, 20000000},      {"20", 0, 20000000},
		{"1min 30s", 0, 90000000}, {"500ms", 0, 500000},
		{"2h", 0, 7200000000},     {"1.5s", 0, 1500000},
		{"1d", 0, 86400000000},    {"0", 0, 0},
		{"", -EINVAL, 0},          {"-1s", -EINVAL, 0},
		{"5 parsecs", -EINVAL, 0}, {"s", -EINVAL, 0},
		{"1e3s", -EINVAL, 0},      {"9999999999999w", -ERANGE, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t usec = 0;
		int r = parse_timespan(rows[i].text, &usec);

		if (r != rows[i].want || usec != rows[i].usec)
			fail_msg("\"%s\": got %d and %llu us", rows[i].text, r,
				 (unsigned long long)usec);
	}
}

static void sizes_are_powers_of_1024(void **state)
{
	static const struct {
		const char *text;
		int want;
		uint64_t bytes;
	} rows[] = {
		{"64kB", 0, 65536},   {"2M", 0, 2097152},          {"16GiB", 0, 17179869184},
		{"1.5K", 0, 1536},    {"4096", 0, 4096},           {"64 kB", 0, 65536},
		{"64mB", -EINVAL, 0}, {"64kB/s", -EINVAL, 0},      {"+1", -EINVAL, 0},
		{"", -EINVAL, 0},     {"9999999999T", -ERANGE, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t bytes = 0;
		int r = parse_bytes(rows[i].text, &bytes);

		if (r != rows[i].want || bytes != rows[i].bytes)
			fail_msg("\"%s\": got %d and %llu bytes", rows[i].text, r,
				 (unsigned long long)bytes);
	}
}

static void numbers_with_anything_else_around_them_are_refused(void **state)
{
	uint64_t v = 7;

	(void)state;
	assert_int_equal(parse_u64("100\n", &v), 0);
	assert_int_equal(v, 100);
	assert_int_equal(parse_u64("18446744073709551615", &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(parse_u64("18446744073709551616", &v), -ERANGE);
	assert_int_equal(parse_u64(" 1", &v), -EINVAL);
	assert_int_equal(parse_u64("1 ", &v), -EINVAL);
	assert_int_equal(parse_u64("0x10", &v), -EINVAL);
	assert_int_equal(parse_u64("-1", &v), -EINVAL);
	assert_int_equal(parse_u64("", &v), -EINVAL);
}

static void cpu_lists_are_read_with_gaps_and_refused_whole(void **state)
{
	struct cpuset set = {0};

	(void)state;
	assert_int_equal(parse_cpulist("0-3,8,10-11\n", &set), 0);
	assert_int_equal(cpuset_count(&set), 7);
	assert_true(cpuset_has(&set, 8));
	assert_false(cpuset_has(&set, 9));
	assert_int_equal(cpuset_next(&set, 4), 8);
	assert_int_equal(cpuset_next(&set, 12), -1);
	assert_int_equal(parse_cpulist("\n", &set), 0);
	assert_int_equal(cpuset_count(&set), 0);
	assert_int_equal(parse_cpulist("3-1", &set), -EINVAL);
	assert_int_equal(parse_cpulist("1,", &set), -EINVAL);
	assert_int_equal(parse_cpulist("0-99999999999", &set), -ERANGE);
	cpuset_free(&set);
}

static void a_slip_of_the_fingers_finds_its_word(void **state)
{
	struct nearest n = NEAREST("staus");

	(void)state;
	nearest_try(&n, "zones");
	nearest_try(&n, "status");
	nearest_try(&n, "drain");
	assert_string_equal(n.best, "status");
	n = NEAREST("xyzzy");
	nearest_try(&n, "status");
	nearest_try(&n, "drain");
	assert_null(n.best);
}

static void numbers_for_people_have_three_digits(void **state)
{
	char buf[FORMAT_MAX];

	(void)state;
	assert_string_equal(format_bytes(buf, sizeof(buf), 812), "812 B");
	assert_string_equal(format_bytes(buf, sizeof(buf), 1593836), "1.52 MiB");
	assert_string_equal(format_bytes(buf, sizeof(buf), 1023 * 1024), "1.00 MiB");
	assert_string_equal(format_bytes(buf, sizeof(buf), UINT64_C(26414000000)), "24.6 GiB");
	assert_string_equal(format_usec(buf, sizeof(buf), 850), "850us");
	assert_string_equal(format_usec(buf, sizeof(buf), 3200000), "3.2s");
	assert_string_equal(format_usec(buf, sizeof(buf), 7500000000), "2h 5min");
	assert_string_equal(format_ratio(buf, sizeof(buf), 0.031), "3.1%");
	assert_string_equal(format_ratio(buf, sizeof(buf), 0.5), "50%");
}

static void no_link_leads_out_of_a_captured_root(void **state)
{
	char dir[] = "/tmp/pcptune-test-XXXXXX", path[64];
	struct sysroot root = {.dirfd = -1};
	struct text text = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/etc", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/out", dir);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(sysroot_open(&root, dir, NULL), 0);
	assert_int_equal(sysroot_read(&root, "out", &text), -ENOENT);
	assert_false(sysroot_is_live(&root));
	sysroot_close(&root);
	text_free(&text);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/etc", dir);
	(void)rmdir(path);
	(void)rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_read_as_systemd_writes_them),
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(numbers_with_anything_else_around_them_are_refused),
		cmocka_unit_test(cpu_lists_are_read_with_gaps_and_refused_whole),
		cmocka_unit_test(a_slip_of_the_fingers_finds_its_word),
		cmocka_unit_test(numbers_for_people_have_three_digits),
		cmocka_unit_test(no_link_leads_out_of_a_captured_root),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
