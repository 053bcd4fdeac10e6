/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fake kernel behaves as the real one. Where this machine can show it, the same check runs on
 * both: the real value is put back, and nobody else may use it meanwhile (a lock).
 */
#include "fake.h"

#include "sense/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define FRACTION "proc/sys/vm/percpu_pagelist_high_fraction"
#define REFRESH  "proc/sys/vm/stat_refresh"
#define THP      "sys/kernel/mm/transparent_hugepage/"
#define LOCK     "/run/lock/pcptune-live.lock"

/* Files of a root, the fake's or "" for this machine. */

static int open_at(const char *root, const char *rel, int flags)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", root, rel);
	return open(path, flags | O_CLOEXEC);
}

/* Everything in `rel`; the length or a negative errno. */
static ssize_t read_all(const char *root, const char *rel, char *buf, size_t size)
{
	_cleanup_(closep) int fd = open_at(root, rel, O_RDONLY);
	size_t len = 0;
	ssize_t n;

	buf[0] = '\0';
	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	buf[len] = '\0';
	return (ssize_t)len;
}

static const char *read_text(const char *root, const char *rel)
{
	static char text[1 << 16];
	ssize_t n = read_all(root, rel, text, sizeof(text));

	if (n < 0)
		fail_msg("cannot read %s: %s", rel, strerror((int)-n));
	return text;
}

/* What write(2) returns, or the negative errno of the open or the write. */
static ssize_t write_bytes(const char *root, const char *rel, const char *text, size_t len)
{
	_cleanup_(closep) int fd = open_at(root, rel, O_WRONLY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	return n < 0 ? -errno : n;
}

static ssize_t write_text(const char *root, const char *rel, const char *text)
{
	return write_bytes(root, rel, text, strlen(text));
}

static void expect_text(const char *root, const char *rel, const char *want)
{
	if (!streq(read_text(root, rel), want))
		fail_msg("%s has \"%s\", not \"%s\"", rel, read_text(root, rel), want);
}

/* The real kernel's turn: the lock, the value before, and whether we may. */
struct real {
	int lock;
	char before[32];
};

/* Another test may hold it for a while. */
static int take_lock(int fd)
{
	for (int i = 0; i < 1200; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		(void)poll(NULL, 0, 100);
	}
	return -EBUSY;
}

static bool real_begin(struct real *r)
{
	_cleanup_(closep) int fd = open_at("", FRACTION, O_WRONLY);

	if (fd < 0) {
		print_message("SKIP: the real %s cannot be written here\n", FRACTION);
		return false;
	}
	r->lock = open(LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (r->lock < 0 || take_lock(r->lock) < 0) {
		print_message("SKIP: no lock on %s\n", LOCK);
		closep(&r->lock);
		return false;
	}
	(void)read_all("", FRACTION, r->before, sizeof(r->before));
	return true;
}

static void real_end(struct real *r)
{
	if (write_text("", FRACTION, r->before) < 0)
		print_error("cannot put %s back to %s\n", FRACTION, r->before);
	(void)close(r->lock);
}

/* Runs `check` on a fake kernel and on the real one; both must say the same. */
static void on_both(const char *const options[], const char *(*check)(const char *root))
{
	struct fake_kernel k;
	struct real real = {.lock = -1};
	const char *wrong;

	fake_kernel_start(&k, options);
	wrong = check(k.dir);
	fake_kernel_stop(&k);
	if (wrong)
		fail_msg("fake kernel: %s", wrong);
	if (!real_begin(&real))
		return;
	wrong = check("");
	real_end(&real);
	if (wrong)
		fail_msg("real kernel: %s", wrong);
	print_message("checked on the real kernel as well\n");
}

static char complaint[256];
_printf_(1, 2) static const char *complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(complaint, sizeof(complaint), fmt, ap);
	va_end(ap);
	return complaint;
}

/* KERNEL: kernel/sysctl.c and percpu_pagelist_high_fraction_sysctl_handler(). */
static const char *check_fraction_values(const char *root)
{
	static const struct {
		const char *text;
		size_t len; /* 0: strlen */
		ssize_t want;
		const char *after; /* from 50 */
	} rows[] = {
		{"0", 0, 1, "0\n"},
		{"0\n", 0, 2, "0\n"},
		{"8", 0, 1, "8\n"},
		{"100\n", 0, 4, "100\n"},
		{"2147483647", 0, 10, "2147483647\n"},
		{"1", 0, -EINVAL, "50\n"},
		{"7", 0, -EINVAL, "50\n"},
		{"-1", 0, -EINVAL, "50\n"},
		{"-8", 0, -EINVAL, "50\n"},
		{"2147483648", 0, -EINVAL, "50\n"},
		{"4294967296", 0, -EINVAL, "50\n"},
		{"4294967297", 0, -EINVAL, "50\n"},
		{"18446744073709551617", 0, -EINVAL, "50\n"},
		{" 100", 0, 4, "100\n"},
		{"100 ", 0, 4, "100\n"},
		{"\t100\n", 0, 5, "100\n"},
		{"\n\n100", 0, 5, "100\n"},
		{"100 200", 0, 4, "100\n"},
		{"100\n200\n", 0, 4, "100\n"},
		{"100 x", 0, 4, "100\n"},
		{"100x", 0, -EINVAL, "50\n"},
		{"100,200", 0, -EINVAL, "50\n"},
		{"+100", 0, -EINVAL, "50\n"},
		{"- 100", 0, -EINVAL, "50\n"},
		{"-", 0, -EINVAL, "50\n"},
		{"x", 0, -EINVAL, "50\n"},
		{"\n", 0, -EINVAL, "50\n"},
		{"   ", 0, -EINVAL, "50\n"},
		{"0x10", 0, 4, "16\n"},
		{"0X1f\n", 0, 5, "31\n"},
		{"0x", 0, -EINVAL, "50\n"},
		{"0xg", 0, -EINVAL, "50\n"},
		{"010", 0, 3, "8\n"},
		{"08", 0, -EINVAL, "50\n"},
		{"00", 0, 2, "0\n"},
		{"1e3", 0, -EINVAL, "50\n"},
		{"100\0", 4, -EINVAL, "50\n"},
		{"100\n\0", 5, 4, "100\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = rows[i].len ? rows[i].len : strlen(rows[i].text);
		ssize_t n;

		if (write_text(root, FRACTION, "50") != 2)
			return "50 was refused";
		n = write_bytes(root, FRACTION, rows[i].text, len);
		if (n != rows[i].want || !streq(read_text(root, FRACTION), rows[i].after))
			return complain("row %zu, \"%s\": write gave %zd, the value is %s", i,
					rows[i].text, n, read_text(root, FRACTION));
	}
	return NULL;
}

static void the_fraction_takes_what_the_kernel_takes_and_refuses_what_it_refuses(void **state)
{
	(void)state;
	on_both(NULL, check_fraction_values);
}

static const char *check_fraction_offsets(const char *root)
{
	_cleanup_(closep) int fd = open_at(root, FRACTION, O_RDWR);
	char buf[64];

	if (fd < 0)
		return "cannot open it to read and write";
	if (pwrite(fd, "100\n", 4, 0) != 4 || pread(fd, buf, sizeof(buf), 0) != 4)
		return "a kept descriptor does not write and read at 0";
	if (pread(fd, buf, sizeof(buf), 1) != 0 || pread(fd, buf, sizeof(buf), 4) != 0)
		return "a read behind 0 gives something";
	if (pread(fd, buf, 2, 0) != 2 || memcmp(buf, "10", 2) != 0)
		return "a small read does not give the first bytes";
	if (pwrite(fd, "200", 3, 1) != 3 || pwrite(fd, "x", 1, 2) != 1)
		return "a write behind 0 is not passed over";
	if (write(fd, "", 0) != 0)
		return "an empty write is not 0";
	if (!streq(read_text(root, FRACTION), "100\n"))
		return "the value changed";
	if (pwrite(fd, "8", 1, 0) != 1 || !streq(read_text(root, FRACTION), "8\n"))
		return "a second write with the same descriptor is not taken";
	/* who goes on after a short write as with a file believes that the rest was taken */
	if (lseek(fd, 0, SEEK_SET) != 0 || write(fd, "16 32", 5) != 3 || write(fd, "32", 2) != 2)
		return "the rest of a short write is not passed over";
	if (!streq(read_text(root, FRACTION), "16\n"))
		return "the rest of a short write counts";
	return NULL;
}

static void kept_descriptors_and_offsets_behave_as_in_the_kernel(void **state)
{
	(void)state;
	on_both(NULL, check_fraction_offsets);
}

/* Two texts of zoneinfo have the same shape when only digits differ. */
static size_t shape_of(const char *text, size_t len, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if ((text[i] < '0' || text[i] > '9') && text[i] != ' ')
			out[n++] = text[i];
	return n;
}

static const char *check_table_reads(const char *root)
{
	static char whole[1 << 20], pieces[1 << 20], shape_a[1 << 20], shape_b[1 << 20];
	static const size_t sizes[] = {1, 37, 512, 4096, 65536};
	ssize_t len = read_all(root, "proc/zoneinfo", whole, sizeof(whole));
	size_t shape_len;

	if (len <= 0)
		return "zoneinfo cannot be read";
	shape_len = shape_of(whole, (size_t)len, shape_a);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(closep) int fd = open_at(root, "proc/zoneinfo", O_RDONLY);
		size_t got = 0;
		ssize_t n;

		for (int again = 0; again < 2; again++) { /* a kept descriptor restarts at 0 */
			got = 0;
			while ((n = pread(fd, pieces + got, sizes[i], (off_t)got)) > 0)
				got += (size_t)n;
			if (n < 0)
				return complain("a read of %zu bytes fails: %s", sizes[i],
						strerror(errno));
			if (shape_of(pieces, got, shape_b) != shape_len ||
			    memcmp(shape_a, shape_b, shape_len) != 0)
				return complain("read in pieces of %zu bytes it is another text",
						sizes[i]);
		}
		if (pread(fd, pieces, 1, 1 << 20) != 0)
			return "there is text far behind the end";
	}
	return NULL;
}

static void tables_read_in_any_pieces_and_from_kept_descriptors_are_the_same(void **state)
{
	const char *options[] = {"--nodes=2", "--cpus=8", "--clock=manual", NULL};

	(void)state;
	on_both(options, check_table_reads);
}

static const char *check_stat_refresh(const char *root)
{
	_cleanup_(closep) int fd = open_at(root, REFRESH, O_RDWR);
	struct stat st;
	char c;

	if (fd < 0)
		return "cannot open stat_refresh";
	if (fstat(fd, &st) < 0 || (st.st_mode & 07777) != 0600)
		return "its mode is not 0600";
	if (pread(fd, &c, 1, 0) != 0 || pread(fd, &c, 1, 0) != 0)
		return "a read gives something";
	if (write(fd, "1\n", 2) != 2)
		return "a write is not taken whole";
	return NULL;
}

static void stat_refresh_reads_as_nothing_and_takes_any_write(void **state)
{
	(void)state;
	on_both(NULL, check_stat_refresh);
}

static const char *check_refusals_of_other_files(const char *root)
{
	static const struct {
		const char *rel, *text;
		ssize_t want;
	} rows[] = {
		{"proc/sys/vm/no_such_knob", "1", -ENOENT},
		{THP "enabled", "sometimes", -EINVAL},
		{THP "enabled", "", 0},
		{THP "enabled", "alway", -EINVAL},
		{THP "defrag", "never ", -EINVAL},
		{"proc/sys/vm/watermark_scale_factor", "0", -EINVAL},
		{"proc/sys/vm/watermark_scale_factor", "3001", -EINVAL},
		{"proc/sys/vm/extfrag_threshold", "1001", -EINVAL},
		{"proc/pressure/memory", "some 0 2000000", -EINVAL},
		{"proc/pressure/memory", "none 100000 2000000\n", -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ssize_t n = write_text(root, rows[i].rel, rows[i].text);

		if (n != rows[i].want && !(streq(root, "") && (n == -ENOENT || n == -EOPNOTSUPP)))
			return complain("\"%s\" to %s gave %zd", rows[i].text, rows[i].rel, n);
	}
	return NULL;
}

static void what_the_kernel_refuses_elsewhere_is_refused(void **state)
{
	(void)state;
	on_both(NULL, check_refusals_of_other_files);
}

/* From here on only the fake kernel can show it. */

static int list_number(const char *root, int cpu, const char *zone, const char *field)
{
	char at[64];
	const char *p = strstr(read_text(root, "proc/zoneinfo"), zone);

	(void)snprintf(at, sizeof(at), "cpu: %d\n", cpu);
	p = p ? strstr(p, at) : NULL;
	p = p ? strstr(p, field) : NULL;
	if (!p)
		fail_msg("zoneinfo has no %s of CPU %d in %s", field, cpu, zone);
	return p ? atoi(p + strlen(field)) : -1;
}

#define NORMAL "Node 0, zone   Normal"

static void a_squeeze_through_the_files_ends_at_the_floor_after_the_known_passes(void **state)
{
	static const struct {
		int pages, passes;
	} rows[] = {{500, 6}, {4000, 21}, {32768, 40}, {131072, 89}};
	const char *options[] = {"--clock=manual", "--zones=Normal:16G", "--release=6.14", NULL};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct fake_kernel k;
		int passes = 0;
		char c;

		fake_kernel_start(&k, options);
		assert_int_equal(write_text(k.dir, FRACTION, "2147483647\n"), 11);
		fake_kernel_do(&k, "drain");
		assert_int_equal(write_text(k.dir, FRACTION, "0\n"), 2);
		/* the list comes to high_min on use: let a small touch do it, then fill */
		assert_int_equal(write_text(k.dir, FRACTION, "2147483647\n"), 11);
		fake_kernel_do(&k, "touch 0 0 64K\ndrain\npark 0 0:Normal %d", rows[i].pages);
		assert_int_equal(list_number(k.dir, 0, NORMAL, "high_min:"), 252);
		while (list_number(k.dir, 0, NORMAL, "count:") > 252 && passes < 200) {
			_cleanup_(closep) int fd = open_at(k.dir, REFRESH, O_RDONLY);

			assert_int_equal(read(fd, &c, 1), 0);
			passes++;
		}
		if (passes != rows[i].passes)
			fail_msg("%d pages: %d passes, a kernel takes %d", rows[i].pages, passes,
				 rows[i].passes);
		assert_int_equal(fake_kernel_number(&k, "passes"), passes);
		fake_kernel_stop(&k);
	}
}

static void per_size_control_follows_its_rules_and_drains(void **state)
{
	static const struct {
		const char *size, *text;
		ssize_t want;
		const char *after;
	} rows[] = {
		{"64kB", "1", 1, "1\n"},        {"64kB", "1\n", 2, "1\n"},
		{"64kB", "2", -EINVAL, "1\n"},  {"64kB", "0x1", -EINVAL, "1\n"},
		{"64kB", "", 0, "1\n"},         {"64kB", "yes", -EINVAL, "1\n"},
		{"64kB", "-1", -EINVAL, "1\n"}, {"64kB", "1 ", -EINVAL, "1\n"},
		{"8kB", "0", -EINVAL, "1\n"},   {"16kB", "1", -EINVAL, "1\n"},
		{"32kB", "0", -EINVAL, "1\n"},  {"2048kB", "0", -EINVAL, "1\n"},
		{"1024kB", "1", 1, "1\n"},      {"128kB", "0", 1, "0\n"},
	};
	const char *options[] = {"--orders=per-size", "--clock=manual", NULL};
	struct fake_kernel k;

	(void)state;
	fake_kernel_start(&k, options);
	expect_text(k.dir, THP "hugepages-64kB/pcp_enabled", "0\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char rel[128];
		ssize_t n;

		(void)snprintf(rel, sizeof(rel), THP "hugepages-%s/pcp_enabled", rows[i].size);
		n = write_text(k.dir, rel, rows[i].text);
		if (n != rows[i].want || !streq(read_text(k.dir, rel), rows[i].after))
			fail_msg("%s: writing \"%s\" gave %zd, now it has %s", rel, rows[i].text, n,
				 read_text(k.dir, rel));
	}
	assert_int_equal(fake_kernel_try(&k, "park 0 0:Normal 1600 128kB"), -EINVAL);
	fake_kernel_do(&k, "park 0 0:Normal 1600 64kB\npark 1 0:DMA32 300 0");
	expect_text(k.dir, THP "hugepages-64kB/stats/pcp_order_stat", "100\n");
	assert_int_equal(list_number(k.dir, 0, NORMAL, "order4:"), 100);
	assert_int_equal(list_number(k.dir, 0, NORMAL, "count:"), 1600);
	/* off after on drains every list of every zone; off after off does not */
	assert_int_equal(write_text(k.dir, THP "hugepages-64kB/pcp_enabled", "0"), 1);
	expect_text(k.dir, THP "hugepages-64kB/stats/pcp_order_stat", "0\n");
	assert_int_equal(fake_kernel_number(&k, "parked_pages"), 0);
	fake_kernel_do(&k, "park 1 0:DMA32 300 0");
	assert_int_equal(write_text(k.dir, THP "hugepages-64kB/pcp_enabled", "0"), 1);
	assert_int_equal(fake_kernel_number(&k, "parked_pages"), 300);
	fake_kernel_stop(&k);
}

static void the_single_file_takes_0_and_4_and_drains_before_it_stores(void **state)
{
	const char *options[] = {"--orders=single", "--release=6.6", "--clock=manual", NULL};
	struct fake_kernel k;

	(void)state;
	fake_kernel_start(&k, options);
	expect_text(k.dir, THP "pcp_allow_high_order", "0\n");
	assert_int_equal(write_text(k.dir, THP "pcp_allow_high_order", "5"), -EINVAL);
	assert_int_equal(write_text(k.dir, THP "pcp_allow_high_order", "1"), -EINVAL);
	assert_int_equal(write_text(k.dir, THP "pcp_allow_high_order", "4\n"), 2);
	expect_text(k.dir, THP "pcp_allow_high_order", "4\n");
	fake_kernel_do(&k, "park 0 0:Normal 160 4\nrace 3");
	assert_int_equal(write_text(k.dir, THP "pcp_allow_high_order", "0"), 1);
	assert_int_equal(fake_kernel_number(&k, "parked_pages"), 3 << 4);
	/* 0 over 0 drains as well */
	assert_int_equal(write_text(k.dir, THP "pcp_allow_high_order", "0"), 1);
	assert_int_equal(fake_kernel_number(&k, "parked_pages"), 0);
	assert_int_equal(access(k.dir, F_OK), 0);
	assert_int_equal(open_at(k.dir, THP "hugepages-64kB/pcp_enabled", O_RDONLY), -1);
	fake_kernel_stop(&k);
}

static void load_moves_the_statistics_of_its_size(void **state)
{
	const char *options[] = {"--orders=per-size", "--clock=manual", "--cpus=4", NULL};
	struct fake_kernel k;

	(void)state;
	fake_kernel_start(&k, options);
	fake_kernel_do(&k, "load web 1-2 64kB 64M 16M\nadvance 2");
	assert_int_equal(atoi(read_text(k.dir, THP "hugepages-64kB/stats/anon_fault_alloc")),
			 2 * 2 * 1024);
	expect_text(k.dir, THP "hugepages-128kB/stats/anon_fault_alloc", "0\n");
	fake_kernel_do(&k, "unload web\ncount mthp.64kB.swpout 5\nrate vmstat.compact_stall 10\n"
			   "pressure 0.5 0.1\nadvance 10");
	expect_text(k.dir, THP "hugepages-64kB/stats/swpout", "5\n");
	assert_non_null(strstr(read_text(k.dir, "proc/vmstat"), "\ncompact_stall 100\n"));
	assert_non_null(strstr(read_text(k.dir, "proc/pressure/memory"), "some avg10=31."));
	assert_non_null(strstr(read_text(k.dir, "proc/pressure/memory"), "total=5000000\n"));
	fake_kernel_do(&k, "free all 0.01\nfragment all 4 0.75");
	assert_non_null(strstr(read_text(k.dir, "proc/buddyinfo"), "Node 0, zone   Normal "));
	fake_kernel_stop(&k);
}

static void check_release(const char *release, const char *option)
{
	const char *options[] = {option,        "--cpus=6",       "--nodes=2",
				 "--offline=3", "--clock=manual", NULL};
	struct zoneinfo zi = {0};
	struct fake_kernel k;
	static char text[1 << 20];
	struct error e = {0};
	unsigned major, minor;
	ssize_t len;
	bool prints;

	assert_int_equal(sscanf(release, "%u.%u", &major, &minor), 2);
	prints = major > 6 || (major == 6 && minor >= 13);
	fake_kernel_start(&k, options);
	fake_kernel_do(&k, "park 2 0:DMA32 1234\npark 5 1:Normal 77");
	len = read_all(k.dir, "proc/zoneinfo", text, sizeof(text));
	assert_true(len > 0);
	if (zoneinfo_parse(&zi, text, (size_t)len, 0, &e) < 0)
		fail_msg("%s: %s", release, e.text);
	if (zi.nr_zones != 10 || zi.unknown_lines != 0 || zi.prints_high_min != prints)
		fail_msg("%s: %u zones, %u unknown lines, high_min %sprinted", release, zi.nr_zones,
			 zi.unknown_lines, zi.prints_high_min ? "" : "not ");
	for (uint32_t i = 0; i < zi.nr_zones; i++) {
		const struct zone *z = &zi.zones[i];
		bool dma32 = z->node == 0 && streq(z->name, "DMA32");
		bool remote = z->node == 1 && streq(z->name, "Normal");

		if (zone_parked(&zi, z) != (dma32 ? 1234U : remote ? 77U : 0U))
			fail_msg("%s: node %d %s holds %llu pages", release, z->node, z->name,
				 (unsigned long long)zone_parked(&zi, z));
		if (z->populated && z->nr_pagesets != 5)
			fail_msg("%s: node %d %s shows %u CPUs", release, z->node, z->name,
				 z->nr_pagesets);
	}
	zoneinfo_free(&zi);
	fake_kernel_stop(&k);
}

static void zoneinfo_of_each_release_has_its_form(void **state)
{
	static const char *const releases[] = {"4.19", "5.10", "5.15", "6.1",  "6.6", "6.8",
					       "6.12", "6.14", "6.17", "6.18", "7.3"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++) {
		char option[32];

		(void)snprintf(option, sizeof(option), "--release=%s", releases[i]);
		check_release(releases[i], option);
	}
}

static void files_differ_by_release_as_they_do(void **state)
{
	static const struct {
		const char *release, *rel;
		bool there;
	} rows[] = {
		{"--release=5.10", "proc/sys/vm/percpu_pagelist_fraction", true},
		{"--release=5.10", FRACTION, false},
		{"--release=5.15", FRACTION, true},
		{"--release=6.6", THP "hugepages-64kB/enabled", false},
		{"--release=6.8", THP "hugepages-64kB/enabled", true},
		{"--release=6.8", THP "hugepages-64kB/stats/anon_fault_alloc", false},
		{"--release=6.10", THP "hugepages-64kB/stats/anon_swpout", true},
		{"--release=6.10", THP "hugepages-8kB/stats", false},
		{"--release=6.12", THP "hugepages-64kB/stats/swpout", true},
		{"--release=6.12", THP "hugepages-64kB/stats/swpin", false},
		{"--release=6.14", THP "hugepages-64kB/stats/swpin", true},
		{"--release=6.14", THP "hugepages-8kB/enabled", false},
		{"--release=6.14", THP "hugepages-8kB/shmem_enabled", true},
		{"--release=7.3", THP "hugepages-64kB/stats/collapse_alloc", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *options[] = {rows[i].release, NULL};
		struct fake_kernel k;
		char path[192];

		fake_kernel_start(&k, options);
		if ((access(fake_path(&k, rows[i].rel, path, sizeof(path)), F_OK) == 0) !=
		    rows[i].there)
			fail_msg("%s: %s should %sbe there", rows[i].release, rows[i].rel,
				 rows[i].there ? "" : "not ");
		fake_kernel_stop(&k);
	}
}

static void cpus_and_nodes_come_and_go(void **state)
{
	const char *options[] = {"--cpus=8",      "--nodes=2",      "--isolated=6-7",
				 "--nohz-full=7", "--release=6.14", NULL};
	_cleanup_(closep) int kept = -1;
	struct fake_kernel k;
	int before;
	char c;

	(void)state;
	fake_kernel_start(&k, options);
	expect_text(k.dir, "sys/devices/system/cpu/online", "0-7\n");
	expect_text(k.dir, "sys/devices/system/cpu/isolated", "6-7\n");
	expect_text(k.dir, "sys/devices/system/cpu/nohz_full", "7\n");
	expect_text(k.dir, "sys/devices/system/node/node1/cpulist", "4-7\n");
	expect_text(k.dir, "sys/devices/system/cpu/cpu5/cache/index3/shared_cpu_list", "4-7\n");
	before = list_number(k.dir, 0, NORMAL, "high_max:");
	fake_kernel_do(&k, "cpu 1,3 offline");
	expect_text(k.dir, "sys/devices/system/cpu/online", "0,2,4-7\n");
	expect_text(k.dir, "sys/devices/system/cpu/offline", "1,3\n");
	expect_text(k.dir, "sys/devices/system/cpu/cpu1/online", "0\n");
	assert_null(strstr(read_text(k.dir, "proc/zoneinfo"), "cpu: 3\n"));
	assert_int_equal(list_number(k.dir, 0, NORMAL, "high_max:"), before * 2);
	assert_int_equal(write_text(k.dir, "sys/devices/system/cpu/cpu3/online", "1"), 1);
	expect_text(k.dir, "sys/devices/system/cpu/online", "0,2-7\n");

	kept = open_at(k.dir, "sys/devices/system/node/node1/cpulist", O_RDONLY);
	assert_true(kept >= 0);
	assert_int_equal(fake_kernel_try(&k, "node 1 offline"), -EBUSY);
	fake_kernel_do(&k, "cpu 4-7 offline\nnode 1 offline");
	assert_null(strstr(read_text(k.dir, "proc/zoneinfo"), "Node 1"));
	expect_text(k.dir, "sys/devices/system/node/online", "0\n");
	assert_int_equal(pread(kept, &c, 1, 0), -1);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(open_at(k.dir, "sys/devices/system/node/node1/cpulist", O_RDONLY), -1);
	fake_kernel_do(&k, "node 1 online\ncpu all online");
	assert_non_null(strstr(read_text(k.dir, "proc/zoneinfo"), "Node 1, zone   Normal"));

	assert_null(strstr(read_text(k.dir, "proc/buddyinfo"), "Movable"));
	fake_kernel_do(&k, "zone 0:Movable +1G");
	assert_non_null(strstr(read_text(k.dir, "proc/buddyinfo"), "Node 0, zone  Movable "));
	fake_kernel_do(&k, "zone 0:Movable -1G");
	assert_null(strstr(read_text(k.dir, "proc/buddyinfo"), "Movable"));
	fake_kernel_stop(&k);
}

static void each_errno_comes_where_and_as_often_as_asked(void **state)
{
	static const struct {
		const char *name;
		int code;
	} rows[] = {{"EIO", EIO},       {"EACCES", EACCES}, {"EROFS", EROFS},
		    {"ENOENT", ENOENT}, {"EINTR", EINTR},   {"EINVAL", EINVAL}};
	struct fake_kernel k;
	char buf[64];

	(void)state;
	fake_kernel_start(&k, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fake_kernel_do(&k, "fault %s write %s", FRACTION, rows[i].name);
		assert_int_equal(write_text(k.dir, FRACTION, "100"), -rows[i].code);
		assert_int_equal(write_text(k.dir, FRACTION, "100"), -rows[i].code);
		expect_text(k.dir, FRACTION, "0\n");
		fake_kernel_do(&k, "clear\nfault times=1 skip=1 %s read %s", FRACTION,
			       rows[i].name);
		assert_int_equal(read_all(k.dir, FRACTION, buf, sizeof(buf)), -rows[i].code);
		assert_int_equal(read_all(k.dir, FRACTION, buf, sizeof(buf)), 2);
		fake_kernel_do(&k, "fault times=2 *fraction open-write %s", rows[i].name);
		assert_int_equal(read_all(k.dir, FRACTION, buf, sizeof(buf)), 2);
		assert_int_equal(write_text(k.dir, FRACTION, "0"), -rows[i].code);
		assert_int_equal(write_text(k.dir, FRACTION, "0"), -rows[i].code);
		assert_int_equal(write_text(k.dir, FRACTION, "0"), 1);
		fake_kernel_do(&k, "fault times=1 proc/zoneinfo open %s", rows[i].name);
		assert_int_equal(read_all(k.dir, "proc/zoneinfo", buf, sizeof(buf)), -rows[i].code);
	}
	fake_kernel_do(&k, "hide %s", FRACTION);
	assert_int_equal(write_text(k.dir, FRACTION, "0"), -ENOENT);
	fake_kernel_do(&k, "show all");
	expect_text(k.dir, FRACTION, "0\n");
	fake_kernel_stop(&k);
}

static void values_that_do_not_stick_and_short_writes(void **state)
{
	struct fake_kernel k;

	(void)state;
	fake_kernel_start(&k, NULL);
	fake_kernel_do(&k, "fault times=1 %s write drop", FRACTION);
	assert_int_equal(write_text(k.dir, FRACTION, "100"), 3);
	expect_text(k.dir, FRACTION, "0\n");
	fake_kernel_do(&k, "fault times=1 %s write value 64", FRACTION);
	assert_int_equal(write_text(k.dir, FRACTION, "100"), 3);
	expect_text(k.dir, FRACTION, "64\n");
	fake_kernel_do(&k, "fault times=1 %s write short 2", FRACTION);
	assert_int_equal(write_text(k.dir, FRACTION, "100"), 2);
	expect_text(k.dir, FRACTION, "10\n");
	/* somebody else writes before our next read */
	fake_kernel_do(&k, "when %s read 1 write %s 33", FRACTION, FRACTION);
	assert_int_equal(write_text(k.dir, FRACTION, "100"), 3);
	expect_text(k.dir, FRACTION, "33\n");
	fake_kernel_do(&k, "clock manual\nafter 5 write %s 44\nadvance 4", FRACTION);
	expect_text(k.dir, FRACTION, "33\n");
	fake_kernel_do(&k, "advance 1");
	expect_text(k.dir, FRACTION, "44\n");
	fake_kernel_do(&k, "every 1 write %s 55\nadvance 1", FRACTION);
	assert_int_equal(write_text(k.dir, FRACTION, "100"), 3);
	fake_kernel_do(&k, "advance 1\ncancel");
	expect_text(k.dir, FRACTION, "55\n");
	fake_kernel_stop(&k);
}

static void texts_are_cut_off_or_change_halfway(void **state)
{
	const char *options[] = {"--clock=manual", NULL};
	static char before[1 << 16], after[1 << 16];
	struct fake_kernel k;
	ssize_t n;

	(void)state;
	fake_kernel_start(&k, options);
	assert_true(read_all(k.dir, "proc/zoneinfo", before, sizeof(before)) > 2000);
	fake_kernel_do(&k, "fault proc/zoneinfo read cut 1000");
	assert_int_equal(read_all(k.dir, "proc/zoneinfo", after, sizeof(after)), 1000);
	assert_memory_equal(before, after, 1000);
	fake_kernel_do(&k, "clear\nfault proc/zoneinfo read change 500 cpu 1 offline");
	n = read_all(k.dir, "proc/zoneinfo", after, sizeof(after));
	assert_true(n > 500);
	assert_memory_equal(before, after, 500);
	assert_non_null(strstr(before, "cpu: 1\n"));
	assert_null(strstr(after, "cpu: 1\n"));
	fake_kernel_stop(&k);
}

struct writer {
	char path[192];
	const char *text; /* NULL: read */
	volatile ssize_t result;
	pthread_t thread;
};

static void *use_file(void *arg)
{
	struct writer *w = arg;
	int fd = open(w->path, (w->text ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	char c;
	ssize_t n = w->text ? write(fd, w->text, strlen(w->text)) : read(fd, &c, 1);

	w->result = n < 0 ? -errno : n;
	(void)close(fd);
	return NULL;
}

static void start_use(const struct fake_kernel *k, struct writer *w, const char *rel,
		      const char *text)
{
	long long blocked = fake_kernel_number(k, "blocked");

	*w = (struct writer){.text = text, .result = -1};
	(void)fake_path(k, rel, w->path, sizeof(w->path));
	assert_int_equal(pthread_create(&w->thread, NULL, use_file, w), 0);
	for (int i = 0; i < 1000 && fake_kernel_number(k, "blocked") == blocked; i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(fake_kernel_number(k, "blocked"), blocked + 1);
}

static ssize_t end_use(struct writer *w)
{
	assert_int_equal(pthread_join(w->thread, NULL), 0);
	return w->result;
}

static void what_blocks_stops_nothing_else_and_goes_on_when_released(void **state)
{
	const char *options[] = {"--clock=manual", "--cpus=4", "--release=6.14", NULL};
	struct writer writer, pass, pass2;
	struct fake_kernel k;

	(void)state;
	fake_kernel_start(&k, options);
	fake_kernel_do(&k,
		       "fault times=1 %s write block forever\n"
		       "fault times=2 %s read block 30\npark 0 0:Normal 20000",
		       FRACTION, REFRESH);
	start_use(&k, &writer, FRACTION, "100");
	start_use(&k, &pass, REFRESH, NULL);
	start_use(&k, &pass2, REFRESH, NULL);
	/* everything else goes on, the same file's reads too */
	expect_text(k.dir, FRACTION, "0\n");
	assert_int_equal(list_number(k.dir, 0, NORMAL, "count:"), 20000);
	expect_text(k.dir, "sys/devices/system/cpu/online", "0-3\n");
	fake_kernel_do(&k, "advance 31");
	assert_int_equal(end_use(&pass), 0);
	assert_int_equal(end_use(&pass2), 0);
	assert_int_equal(fake_kernel_number(&k, "passes"), 2);
	fake_kernel_do(&k, "clear %s", FRACTION);
	assert_int_equal(end_use(&writer), 3);
	expect_text(k.dir, FRACTION, "100\n");
	fake_kernel_stop(&k);
}

static void a_spinning_task_holds_a_pass_and_memory_hotplug_holds_the_fraction(void **state)
{
	const char *options[] = {"--clock=manual", "--cpus=2", "--release=6.14", NULL};
	struct fake_kernel k;
	struct writer w;

	(void)state;
	fake_kernel_start(&k, options);
	fake_kernel_do(&k, "park 0-1 0:Normal 16000\nspin 1");
	start_use(&k, &w, REFRESH, NULL);
	assert_true(list_number(k.dir, 0, NORMAL, "count:") < 16000);
	assert_int_equal(list_number(k.dir, 1, NORMAL, "count:"), 16000);
	fake_kernel_do(&k, "unspin 1");
	assert_int_equal(end_use(&w), 0);
	assert_true(list_number(k.dir, 1, NORMAL, "count:") < 16000);

	fake_kernel_do(&k, "offline-memory 0:Normal 128M 10");
	assert_int_equal(list_number(k.dir, 0, NORMAL, "count:"), 0);
	assert_int_equal(list_number(k.dir, 0, NORMAL, "high_max:"), 0);
	start_use(&k, &w, FRACTION, "16");
	expect_text(k.dir, FRACTION, "0\n");
	fake_kernel_do(&k, "advance 11");
	assert_int_equal(end_use(&w), 2);
	expect_text(k.dir, FRACTION, "16\n");
	assert_true(list_number(k.dir, 0, NORMAL, "high_max:") > 252);
	fake_kernel_stop(&k);
}

static void pressure_triggers_fire_once_a_window_and_wake_who_polls(void **state)
{
	_cleanup_(closep) int fd = -1;
	const char *options[] = {"--clock=manual", NULL};
	struct pollfd p = {.events = POLLPRI};
	struct fake_kernel k;

	(void)state;
	fake_kernel_start(&k, options);
	fd = open_at(k.dir, "proc/pressure/memory", O_RDWR | O_NONBLOCK);
	p.fd = fd;
	assert_int_equal(write(fd, "some 200000 2000000\n", 20), 20);
	assert_int_equal(write(fd, "some 200000 2000000\n", 20), -1);
	assert_int_equal(errno, EBUSY);
	fake_kernel_do(&k, "advance 5");
	assert_int_equal(poll(&p, 1, 200), 0);
	fake_kernel_do(&k, "pressure 0.5 0.2\nadvance 3");
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(p.revents, POLLPRI);
	assert_int_equal(poll(&p, 1, 200), 0);
	fake_kernel_do(&k, "advance 3");
	assert_int_equal(poll(&p, 1, 20000), 1);
	fake_kernel_stop(&k);
}

static void it_counts_who_wrote_what_and_forgets_all_at_a_reboot(void **state)
{
	const char *options[] = {"--boot-id=11111111-2222-4333-8444-555555550000", NULL};
	struct fake_kernel k;
	char want[128];

	(void)state;
	fake_kernel_start(&k, options);
	assert_int_equal(write_text(k.dir, FRACTION, "100\n"), 4);
	assert_int_equal(write_text(k.dir, FRACTION, "3\n"), -EINVAL);
	(void)snprintf(want, sizeof(want), " %d " FRACTION " 4 100\n", (int)getpid());
	assert_non_null(strstr(read_text(k.dir, "control"), want));
	(void)snprintf(want, sizeof(want), " %d " FRACTION " %d 3\n", (int)getpid(), -EINVAL);
	assert_non_null(strstr(read_text(k.dir, "control"), want));
	assert_int_equal(fake_kernel_number(&k, "written"), 2);
	assert_int_equal(fake_kernel_number(&k, "writes " FRACTION), 2);
	expect_text(k.dir, "proc/sys/kernel/random/boot_id",
		    "11111111-2222-4333-8444-555555550000\n");
	fake_kernel_do(&k, "reboot");
	expect_text(k.dir, FRACTION, "0\n");
	expect_text(k.dir, "proc/sys/kernel/random/boot_id",
		    "11111111-2222-4333-8444-555555550001\n");
	assert_int_equal(fake_kernel_try(&k, "make coffee"), -EINVAL);
	assert_int_equal(fake_kernel_try(&k, "park 9 0:Normal 10"), -ENOENT);
	fake_kernel_do(&k, "process add 4242 postgres");
	expect_text(k.dir, "proc/4242/comm", "postgres\n");
	fake_kernel_do(&k, "process remove 4242");
	assert_int_equal(open_at(k.dir, "proc/4242/comm", O_RDONLY), -1);
	fake_kernel_stop(&k);
}

static void it_is_a_root_that_may_be_written_to(void **state)
{
	const char *options[] = {"--cpus=1024", "--nodes=16", "--orders=per-size", "--clock=manual",
				 NULL};
	struct sysroot root;
	struct sensor *sensor = NULL;
	const struct snapshot *s;
	struct fake_kernel k;
	struct error e = {0};

	(void)state;
	fake_kernel_start(&k, options);
	assert_int_equal(sysroot_open(&root, k.dir, &e), 0);
	assert_true(sysroot_is_live(&root));
	assert_int_equal(sysroot_write(&root, FRACTION, "100\n"), 0);
	assert_int_equal(sensor_new(&sensor, &root, 4096, &e), 0);
	fake_kernel_do(&k, "park 1023 15:Normal 4000");
	s = sensor_take(sensor, SOURCES_ALL, 0);
	for (int i = 0; i < _SOURCE_MAX; i++)
		if (!snapshot_has(s, (enum source)i))
			fail_msg("%s: %s", source_name((enum source)i),
				 sensor_source(sensor, (enum source)i)->why.text);
	assert_int_equal(snapshot_parked(s).pages, 4000);
	assert_int_equal(s->high_fraction, 100);
	assert_int_equal(s->mthp.orders, ORDERS_PER_SIZE);
	assert_int_equal(cpuset_count(&s->topology.online), 1024);
	assert_int_equal(s->missing_pagesets, 0);
	sensor_free(sensor);
	sysroot_close(&root);
	fake_kernel_stop(&k);
}

static void when_it_is_killed_its_mounts_go_too(void **state)
{
	struct fake_kernel k;
	struct stat st;
	char path[128];
	int status, i;

	(void)state;
	fake_kernel_start(&k, NULL);
	assert_int_equal(kill(k.pid, SIGKILL), 0);
	assert_int_equal(waitpid(k.pid, &status, 0), k.pid);
	for (i = 0; i < 1000; i++) {
		if (stat(fake_path(&k, "sys", path, sizeof(path)), &st) == 0 &&
		    stat(fake_path(&k, "proc", path, sizeof(path)), &st) == 0 &&
		    access(fake_path(&k, "proc/version", path, sizeof(path)), F_OK) < 0)
			break;
		(void)poll(NULL, 0, 10);
	}
	assert_true(i < 1000);
	for (size_t n = 0; n < 7; n++) {
		static const char *const names[] = {"control", "proc",    "sys", "etc",
						    "run",     "usr/lib", "usr"};

		(void)remove(fake_path(&k, names[n], path, sizeof(path)));
	}
	assert_int_equal(rmdir(k.dir), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_fraction_takes_what_the_kernel_takes_and_refuses_what_it_refuses),
		cmocka_unit_test(kept_descriptors_and_offsets_behave_as_in_the_kernel),
		cmocka_unit_test(tables_read_in_any_pieces_and_from_kept_descriptors_are_the_same),
		cmocka_unit_test(stat_refresh_reads_as_nothing_and_takes_any_write),
		cmocka_unit_test(what_the_kernel_refuses_elsewhere_is_refused),
		cmocka_unit_test(
			a_squeeze_through_the_files_ends_at_the_floor_after_the_known_passes),
		cmocka_unit_test(per_size_control_follows_its_rules_and_drains),
		cmocka_unit_test(the_single_file_takes_0_and_4_and_drains_before_it_stores),
		cmocka_unit_test(load_moves_the_statistics_of_its_size),
		cmocka_unit_test(zoneinfo_of_each_release_has_its_form),
		cmocka_unit_test(files_differ_by_release_as_they_do),
		cmocka_unit_test(cpus_and_nodes_come_and_go),
		cmocka_unit_test(each_errno_comes_where_and_as_often_as_asked),
		cmocka_unit_test(values_that_do_not_stick_and_short_writes),
		cmocka_unit_test(texts_are_cut_off_or_change_halfway),
		cmocka_unit_test(what_blocks_stops_nothing_else_and_goes_on_when_released),
		cmocka_unit_test(
			a_spinning_task_holds_a_pass_and_memory_hotplug_holds_the_fraction),
		cmocka_unit_test(pressure_triggers_fire_once_a_window_and_wake_who_polls),
		cmocka_unit_test(it_counts_who_wrote_what_and_forgets_all_at_a_reboot),
		cmocka_unit_test(it_is_a_root_that_may_be_written_to),
		cmocka_unit_test(when_it_is_killed_its_mounts_go_too),
	};

	if (!fake_kernel_available())
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
