/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the sources of events read from the kernel's messages, and that each works on this kernel.
 */
#include "events/events.h"
#include "events/link-message.h"
#include "events/links.h"
#include "events/netlink.h"
#include "events/pressure.h"
#include "events/procconn.h"
#include "events/process-table.h"
#include "events/processes.h"
#include "events/uevent.h"
#include "sense/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

/* What this kernel should tell at once is waited for this long before it counts as not told. */
#define PATIENCE_USEC (10 * USEC_PER_SEC)

struct bytes {
	_Alignas(8) unsigned char data[65536];
	size_t len;
};

static void load(const char *name, struct bytes *ret)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[512];

	(void)snprintf(path, sizeof(path), TEST_DATA "/netlink/%s", name);
	f = fopen(path, "re");
	if (!f)
		fail_msg("cannot open %s: %s", path, strerror(errno));
	ret->len = fread(ret->data, 1, sizeof(ret->data), f);
}

/* uevents */

static void test_a_cpu_that_changes_is_a_change_of_topology(void **state)
{
	struct bytes b;
	struct uevent u = {0};

	(void)state;
	load("uevent-cpu.bin", &b);
	assert_int_equal(uevent_parse((const char *)b.data, b.len, &u), 0);
	assert_string_equal(u.action, "change");
	assert_string_equal(u.devpath, "/devices/system/cpu/cpu0");
	assert_string_equal(u.subsystem, "cpu");
	assert_true(uevent_is_topology(&u));
}

static void test_device_messages_that_are_none_are_refused(void **state)
{
#define MESSAGE(text) text, sizeof(text)
	static const struct {
		const char *why, *text;
		size_t len;
		int want;
		bool topology;
	} rows[] = {
		{"memory block",
		 MESSAGE("online@/devices/system/memory/memory32\0ACTION=online\0"
			 "DEVPATH=/devices/system/memory/memory32\0SUBSYSTEM=memory\0SEQNUM=9"),
		 0, true},
		{"node",
		 MESSAGE("add@/devices/system/node/node1\0ACTION=add\0DEVPATH=/x\0SUBSYSTEM=node"),
		 0, true},
		{"a disk", MESSAGE("add@/devices/x\0ACTION=add\0DEVPATH=/x\0SUBSYSTEM=block"), 0,
		 false},
		{"sent on by udev", MESSAGE("libudev\0\xfe\xed\xca\xfe@/x\0ACTION=add"), -EBADMSG,
		 false},
		{"cut off in a string", "add@/x\0ACTION=add\0DEVPATH=/x\0SUBSYSTEM=cpu", 40,
		 -EBADMSG, false},
		{"without subsystem", MESSAGE("add@/x\0ACTION=add\0DEVPATH=/x"), -EBADMSG, false},
		{"a key that only begins so",
		 MESSAGE("add@/x\0ACTION=add\0DEVPATH=/x\0SUBSYSTEMS=cpu"), -EBADMSG, false},
		{"empty", "", 0, -EBADMSG, false},
		{"only NULs", MESSAGE("\0\0\0\0\0"), -EBADMSG, false},
		{"no action before @", MESSAGE("@/x\0ACTION=add\0DEVPATH=/x\0SUBSYSTEM=cpu"),
		 -EBADMSG, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct uevent u = {0};
		int r = uevent_parse(rows[i].text, rows[i].len, &u);

		if (r != rows[i].want || (r == 0 && uevent_is_topology(&u) != rows[i].topology))
			fail_msg("%s: got %d", rows[i].why, r);
	}
}

/* the proc connector's bytes */

static void test_the_life_of_a_process_is_read_from_captured_messages(void **state)
{
	const unsigned char *at;
	struct proc_event ev;
	struct bytes b;
	size_t len;
	pid_t pid;

	(void)state;
	load("proc-life.bin", &b);
	at = b.data;
	len = b.len;
	assert_int_equal(procconn_next(&at, &len, &ev), 1);
	assert_int_equal(ev.change, PROC_OTHER); /* the fork */
	assert_int_equal(procconn_next(&at, &len, &ev), 1);
	assert_int_equal(ev.change, PROC_COMM);
	assert_string_equal(ev.comm, "renamed process");
	pid = ev.pid;
	assert_int_equal(procconn_next(&at, &len, &ev), 1);
	assert_int_equal(ev.change, PROC_EXEC);
	assert_int_equal(ev.pid, pid);
	assert_int_equal(procconn_next(&at, &len, &ev), 1);
	assert_int_equal(ev.change, PROC_EXIT);
	assert_int_equal(ev.pid, pid);
	assert_int_equal(procconn_next(&at, &len, &ev), 0);

	load("proc-ack.bin", &b);
	at = b.data;
	len = b.len;
	assert_int_equal(procconn_next(&at, &len, &ev), 1);
	assert_int_equal(ev.change, PROC_ACK);
	assert_int_equal(ev.error, 0);
}

static void test_process_messages_cut_anywhere_are_never_read_beyond_their_end(void **state)
{
	struct bytes b;

	(void)state;
	load("proc-life.bin", &b);
	for (size_t cut = 0; cut < b.len; cut++) {
		/* memory of exactly that size, so that a sanitizer sees a read behind it */
		_cleanup_(freep) unsigned char *copy = malloc(cut ? cut : 1);
		const unsigned char *at = copy;
		struct proc_event ev;
		size_t len = cut;
		unsigned n = 0;
		int r;

		assert_non_null(copy);
		memcpy(copy, b.data, cut);
		while ((r = procconn_next(&at, &len, &ev)) > 0)
			n++;
		if (r != (cut % 76 ? -EBADMSG : 0) || n != cut / 76)
			fail_msg("cut at %zu: %d after %u messages", cut, r, n);
	}
}

static void test_events_of_threads_are_not_those_of_processes(void **state)
{
	const unsigned char *at;
	struct proc_event ev;
	uint32_t thread = 4242;
	struct bytes b;
	size_t len;

	(void)state;
	load("proc-life.bin", &b);
	for (unsigned i = 1; i < 4; i++) {
		memcpy(b.data + i * 76 + 52, &thread, sizeof(thread));
		at = b.data + i * 76;
		len = 76;
		assert_int_equal(procconn_next(&at, &len, &ev), 1);
		assert_int_equal(ev.change, PROC_OTHER);
	}
}

/* links' bytes */

static void test_the_life_of_a_link_is_read_from_captured_messages(void **state)
{
	const unsigned char *at;
	struct link_message m;
	struct bytes b;
	bool up_1500 = false, up_9000 = false, loopback = false, gone = false;
	unsigned gone_before_time = 0, left_bridge = 0;
	size_t len;
	int r;

	(void)state;
	load("link-life.bin", &b);
	at = b.data;
	len = b.len;
	while ((r = link_message_next(&at, &len, &m)) > 0) {
		if (m.kind == LINK_GONE && m.index == 3) {
			gone = true;
			gone_before_time += left_bridge == 0;
		}
		left_bridge += m.kind == LINK_OTHER;
		if (m.kind != LINK_IS)
			continue;
		loopback = loopback || (m.index == 1 && m.counts);
		up_1500 = up_1500 || (m.index == 3 && m.counts && m.mtu == 1500);
		up_9000 = up_9000 || (m.index == 3 && m.counts && m.mtu == 9000);
	}
	assert_int_equal(r, 0);
	assert_true(up_1500);
	assert_true(up_9000);
	assert_false(loopback);
	assert_true(gone);
	/* what a bridge says of its ports is neither a link's state nor its end */
	assert_int_equal(left_bridge, 3);
	assert_int_equal(gone_before_time, 0);
}

static void test_link_messages_cut_anywhere_are_never_read_beyond_their_end(void **state)
{
	struct bytes b;

	(void)state;
	load("link-life.bin", &b);
	for (size_t cut = 0; cut < 1500; cut++) {
		_cleanup_(freep) unsigned char *copy = malloc(cut ? cut : 1);
		const unsigned char *at = copy;
		struct link_message m;
		size_t len = cut;
		int r;

		assert_non_null(copy);
		memcpy(copy, b.data, cut);
		while ((r = link_message_next(&at, &len, &m)) > 0)
			;
		if (r != (cut == 0 || cut == 1492 ? 0 : -EBADMSG))
			fail_msg("cut at %zu: %d", cut, r);
	}
}

/* the table of processes */

static unsigned running(struct process_table *t, const char *name)
{
	const char(*names)[PROCESS_NAME_MAX];
	unsigned found = 0;
	uint32_t n;

	names = process_table_running(t, &n);
	for (uint32_t i = 0; i < n; i++)
		found += streq(names[i], name) ? 1 : 0;
	return found;
}

static struct process_table *table_of(const char *name)
{
	struct process_table *t = NULL;

	assert_int_equal(process_table_new(&t), 0);
	assert_int_equal(process_table_want(t, &name, 1), 0);
	return t;
}

static void empty_scan(struct process_table *t)
{
	process_table_scan_begin(t);
	process_table_scan_end(t, true);
}

static void test_processes_that_live_for_a_moment_are_never_read(void **state)
{
	struct process_table *t = table_of("postgres");
	pid_t pids[8];

	(void)state;
	for (pid_t pid = 100; pid < 5100; pid++) {
		assert_int_equal(process_table_exec(t, pid), 0);
		if (pid % 100 == 0) /* a batch ends between start and end */
			assert_int_equal(process_table_unnamed(t, pids, ARRAY_SIZE(pids)), 0);
		process_table_exit(t, pid);
	}
	assert_false(process_table_has_unnamed(t));
	process_table_free(t);
}

static void test_a_process_that_stays_is_read_once(void **state)
{
	struct process_table *t = table_of("postgres");
	pid_t pids[8];

	(void)state;
	assert_int_equal(process_table_exec(t, 77), 0);
	assert_int_equal(process_table_unnamed(t, pids, ARRAY_SIZE(pids)), 0);
	assert_int_equal(process_table_unnamed(t, pids, ARRAY_SIZE(pids)), 1);
	assert_int_equal(pids[0], 77);
	assert_int_equal(process_table_named(t, 77, "postgres"), 0);
	assert_int_equal(running(t, "postgres"), 1);
	assert_int_equal(process_table_unnamed(t, pids, ARRAY_SIZE(pids)), 0);
	process_table_free(t);
}

static void test_a_reused_pid_is_no_one_else(void **state)
{
	struct process_table *t = table_of("postgres");

	(void)state;
	assert_int_equal(process_table_named(t, 50, "postgres"), 0);
	process_table_exit(t, 50);
	assert_int_equal(process_table_exec(t, 50), 0);
	assert_int_equal(process_table_named(t, 50, "cat"), 0);
	assert_true(process_table_wants_scan(t));
	empty_scan(t);
	assert_int_equal(running(t, "postgres"), 0);
	process_table_free(t);
}

static void test_a_child_without_exec_keeps_its_parents_name_running(void **state)
{
	struct process_table *t = table_of("daemonised");

	(void)state;
	assert_int_equal(process_table_named(t, 50, "daemonised"), 0);
	process_table_exit(t, 50); /* its child 51 was never told of */
	assert_int_equal(running(t, "daemonised"), 1);
	assert_true(process_table_wants_scan(t));
	process_table_scan_begin(t);
	assert_int_equal(process_table_named(t, 51, "daemonised"), 0);
	process_table_scan_end(t, true);
	assert_false(process_table_wants_scan(t));
	assert_int_equal(running(t, "daemonised"), 1);
	process_table_exit(t, 51);
	empty_scan(t);
	assert_int_equal(running(t, "daemonised"), 0);
	process_table_free(t);
}

static void test_a_process_that_becomes_another_program_does_not_count_any_more(void **state)
{
	struct process_table *t = table_of("sh");

	(void)state;
	assert_int_equal(process_table_named(t, 9, "sh"), 0);
	assert_int_equal(process_table_exec(t, 9), 0);
	assert_int_equal(running(t, "sh"), 1); /* until its new name was read */
	assert_int_equal(process_table_named(t, 9, "sleep"), 0);
	empty_scan(t);
	assert_int_equal(running(t, "sh"), 0);
	process_table_free(t);
}

static void test_a_scan_that_fails_changes_nothing(void **state)
{
	struct process_table *t = table_of("sh");

	(void)state;
	assert_int_equal(process_table_named(t, 9, "sh"), 0);
	process_table_scan_begin(t);
	process_table_scan_end(t, false);
	assert_int_equal(running(t, "sh"), 1);
	process_table_free(t);
}

static void test_names_are_compared_as_far_as_the_kernel_keeps_them(void **state)
{
	struct process_table *t = table_of("a-rather-long-name-of-a-program");

	(void)state;
	assert_int_equal(process_table_named(t, 9, "a-rather-long-n"), 0);
	assert_int_equal(running(t, "a-rather-long-n"), 1);
	process_table_free(t);
}

/* Against a plain array: starts, names, ends and scans in any order. */
static void test_the_table_agrees_with_a_list_of_all_processes(void **state)
{
	enum { PIDS = 3000 };
	static bool named[PIDS];
	struct process_table *t = table_of("x");
	uint32_t seed = 1;
	unsigned count = 0;

	(void)state;
	for (unsigned step = 0; step < 300000; step++) {
		pid_t pid;

		seed = seed * 1664525 + 1013904223;
		pid = (pid_t)(seed >> 8) % PIDS;
		switch (seed >> 30) {
		case 0:
			assert_int_equal(process_table_exec(t, pid + 1), 0);
			break;
		case 1:
			assert_int_equal(process_table_named(t, pid + 1, "x"), 0);
			count += !named[pid];
			named[pid] = true;
			break;
		case 2:
			assert_int_equal(process_table_named(t, pid + 1, "y"), 0);
			count -= named[pid];
			named[pid] = false;
			break;
		default:
			process_table_exit(t, pid + 1);
			count -= named[pid];
			named[pid] = false;
			break;
		}
		if (count > 0 && running(t, "x") != 1)
			fail_msg("step %u: %u run and none is seen", step, count);
	}
	process_table_scan_begin(t);
	for (pid_t pid = 0; pid < PIDS; pid++)
		if (named[pid] && pid % 2)
			assert_int_equal(process_table_named(t, pid + 1, "x"), 0);
	process_table_scan_end(t, true);
	for (pid_t pid = 1; pid < PIDS; pid += 2)
		process_table_exit(t, pid + 1);
	empty_scan(t);
	assert_int_equal(running(t, "x"), 0);
	process_table_free(t);
}

/* signals */

static void test_signals_of_events_are_known_once_a_source_fills_them(void **state)
{
	static const char names[][PROCESS_NAME_MAX] = {"postgres"};
	struct snapshot s = {0};
	struct signal_ref mtu, count, process;
	const char *why = NULL;
	double v = -1;

	(void)state;
	assert_int_equal(signal_resolve("link.mtu_max", 4096, &mtu), 0);
	assert_int_equal(signal_resolve("link.count", 4096, &count), 0);
	assert_int_equal(signal_resolve("process.running", 4096, &process), 0);
	(void)snprintf(process.arg, sizeof(process.arg), "postgres");
	assert_false(signal_read(&mtu, &s, 0, &v, &why));
	assert_false(signal_read(&count, &s, 0, &v, &why));
	assert_false(signal_read(&process, &s, 0, &v, &why));
	assert_non_null(why);

	s.events = (struct events){
		.has_links = true,
		.has_processes = true,
		.mtu_max = 9000,
		.nr_links = 2,
		.running = names,
		.nr_running = 1,
	};
	assert_true(signal_read(&mtu, &s, 0, &v, &why));
	assert_true(v == 9000);
	assert_true(signal_read(&count, &s, 0, &v, &why));
	assert_true(v == 2);
	assert_true(signal_read(&process, &s, 0, &v, &why));
	assert_true(v == 1);
	(void)snprintf(process.arg, sizeof(process.arg), "mysqld");
	assert_true(signal_read(&process, &s, 0, &v, &why));
	assert_true(v == 0);
}

/* on this kernel */

struct heard {
	unsigned topology, facts, pressure;
};

static void hear_topology(void *user)
{
	((struct heard *)user)->topology++;
}

static void hear_facts(void *user)
{
	((struct heard *)user)->facts++;
}

static void hear_pressure(void *user)
{
	((struct heard *)user)->pressure++;
}

struct fixture {
	sd_event *event;
	struct sysroot root;
	struct log log;
	struct event_sources *sources;
	struct heard heard;
};

static void open_fixture(struct fixture *f, enum event_source which)
{
	const struct event_ops ops = {hear_topology, hear_facts, hear_pressure, &f->heard};
	struct event_options o = {.scan_usec = USEC_PER_SEC};
	struct error e = {0};

	*f = (struct fixture){.log = {.max_level = LOG_ERR, .program = "test-events"}};
	o.on[which] = true;
	assert_int_equal(sysroot_open(&f->root, "/", &e), 0);
	assert_true(sd_event_new(&f->event) >= 0);
	assert_true(event_sources_new(&f->sources, f->event, &f->root, &f->log, &o, &ops) >= 0);
}

static void close_fixture(struct fixture *f)
{
	event_sources_free(f->sources);
	sd_event_unref(f->event);
	sysroot_close(&f->root);
}

/* Runs the loop until `done`; false after PATIENCE_USEC. */
static bool run_until(struct fixture *f, bool (*done)(struct fixture *f, const void *arg),
		      const void *arg)
{
	uint64_t start, now;

	assert_true(sd_event_now(f->event, CLOCK_MONOTONIC, &start) >= 0);
	do {
		if (done(f, arg))
			return true;
		assert_true(sd_event_run(f->event, 100 * USEC_PER_MSEC) >= 0);
		assert_true(sd_event_now(f->event, CLOCK_MONOTONIC, &now) >= 0);
	} while (now - start < PATIENCE_USEC);
	return done(f, arg);
}

static const struct watch *watch_of(struct fixture *f, enum event_source s)
{
	return event_sources_watch(f->sources, s);
}

static bool topology_heard(struct fixture *f, const void *arg)
{
	(void)arg;
	return f->heard.topology > 0;
}

static void test_a_uevent_of_this_kernel_is_heard_once_for_a_burst(void **state)
{
	struct fixture f;
	int fd = open("/sys/devices/system/cpu/cpu0/uevent", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0) {
		print_message("skipped: no synthetic uevents without root\n");
		skip();
	}
	open_fixture(&f, EVENT_HOTPLUG);
	if (watch_of(&f, EVENT_HOTPLUG)->state != WATCH_EVENTS) {
		print_message("skipped: %s\n", watch_of(&f, EVENT_HOTPLUG)->why.text);
		close_fixture(&f);
		skip();
	}
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(write(fd, "change", 6), 6);
	(void)close(fd);
	if (!run_until(&f, topology_heard, NULL) || watch_of(&f, EVENT_HOTPLUG)->events < 20)
		fail_msg("%u changes told of %llu events", f.heard.topology,
			 (unsigned long long)watch_of(&f, EVENT_HOTPLUG)->events);
	assert_in_range(f.heard.topology, 1, 3); /* others may make some, too */
	close_fixture(&f);
}

static bool links_are(struct fixture *f, const void *arg)
{
	const struct events *want = arg;
	struct events e;

	event_sources_fill(f->sources, &e);
	return e.has_links && e.mtu_max == want->mtu_max && e.nr_links == want->nr_links;
}

static void expect_links(struct fixture *f, const char *command, uint64_t mtu, uint32_t count)
{
	const struct events want = {.mtu_max = mtu, .nr_links = count};
	struct events e;

	if (command && system(command) != 0)
		fail_msg("%s failed", command);
	if (run_until(f, links_are, &want))
		return;
	event_sources_fill(f->sources, &e);
	fail_msg("after %s: MTU %llu of %u links instead of %llu of %u",
		 command ? command : "start", (unsigned long long)e.mtu_max, e.nr_links,
		 (unsigned long long)mtu, count);
}

static void in_own_network(void)
{
	struct fixture f;

	open_fixture(&f, EVENT_LINKS);
	expect_links(&f, "ip link set lo up", 0, 0);
	expect_links(&f, "ip link add v0 type veth peer name v1 && ip link set v1 up", 0, 0);
	expect_links(&f, "ip link set v0 up", 1500, 2);
	expect_links(&f, "ip link set v0 mtu 9000", 9000, 2);
	f.heard.facts = 0;
	expect_links(&f, "ip link set v0 alias same", 9000, 2);
	if (f.heard.facts)
		fail_msg("told of a change that changes nothing we show");
	expect_links(&f, "ip link set v0 down", 0, 0);
	expect_links(&f, "ip link set v0 up", 9000, 2);
	expect_links(&f,
		     "ip link add b0 type bridge && ip link set v0 master b0 && "
		     "ip link set v0 nomaster",
		     9000, 2);
	expect_links(&f, "ip link del v0", 0, 0);
	close_fixture(&f);
}

/* In a child, since a network namespace is for good. */
static void test_a_links_mtu_is_followed(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0 || system("ip link show >/dev/null 2>&1") != 0) {
		print_message("skipped: needs root and ip(8)\n");
		skip();
	}
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNET) < 0 ||
		    system("ip link add t0 type veth peer name t1 2>/dev/null && ip link del t0"))
			_exit(77);
		in_own_network();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("skipped: no network namespace with veth here\n");
		skip();
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the links were not followed (status %d)", status);
}

static bool process_is(struct fixture *f, const void *arg)
{
	const struct events *want = arg;
	struct events e;

	event_sources_fill(f->sources, &e);
	return e.has_processes && e.nr_running == want->nr_running;
}

static void expect_running(struct fixture *f, bool runs, const char *when)
{
	const struct events want = {.nr_running = runs};

	if (!run_until(f, process_is, &want))
		fail_msg("%s: the process %s", when, runs ? "is not seen" : "is still seen");
}

static pid_t start_process(const char *name)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_NAME, name);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void stop_process(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void follow_processes(struct fixture *f)
{
	static const char *const names[] = {"pcptune-test-a"};
	pid_t a, b;

	a = start_process("pcptune-test-a");
	(void)sd_event_run(f->event, 100 * USEC_PER_MSEC);
	assert_true(event_sources_want_processes(f->sources, names, 1) >= 0);
	expect_running(f, true, "one that ran before");
	b = start_process("pcptune-test-a");
	stop_process(a);
	expect_running(f, true, "after the end of one of two");
	stop_process(b);
	expect_running(f, false, "after the end of both");
	a = start_process("pcptune-test-a");
	expect_running(f, true, "one that started since");
	/* ended, but its parent has not asked: it does not run */
	assert_int_equal(kill(a, SIGKILL), 0);
	expect_running(f, false, "one that nobody has waited for");
	assert_int_equal(waitpid(a, NULL, 0), a);
}

static void test_real_processes_are_followed_by_events(void **state)
{
	static const char *const names[] = {"pcptune-test-a"};
	struct fixture f;

	(void)state;
	open_fixture(&f, EVENT_PROCESSES);
	assert_true(event_sources_want_processes(f.sources, names, 1) >= 0);
	if (watch_of(&f, EVENT_PROCESSES)->state != WATCH_EVENTS) {
		print_message("skipped: %s\n", watch_of(&f, EVENT_PROCESSES)->why.text);
		close_fixture(&f);
		skip();
	}
	follow_processes(&f);
	assert_true(event_sources_want_processes(f.sources, NULL, 0) >= 0);
	assert_int_equal(watch_of(&f, EVENT_PROCESSES)->state, WATCH_OFF);
	close_fixture(&f);
}

static void hear_change(void *user)
{
	++*(unsigned *)user;
}

static void test_without_the_connector_processes_are_found_by_looking(void **state)
{
	static const char *const names[] = {"pcptune-test-b"};
	struct sysroot root;
	struct processes *p = NULL;
	struct events e = {0};
	sd_event *event = NULL;
	struct error err = {0};
	unsigned changes = 0;
	const struct watch_sink sink = {.changed = hear_change, .user = &changes};
	pid_t pid;

	(void)state;
	assert_int_equal(sysroot_open(&root, "/", &err), 0);
	assert_true(sd_event_new(&event) >= 0);
	assert_true(processes_new(&p, event, &root, USEC_PER_SEC, &sink) >= 0);
	assert_true(processes_want(p, names, 1) >= 0);
	processes_give_up_events(p);
	assert_int_equal(processes_watch(p)->state, WATCH_SCAN);
	changes = 0;
	pid = start_process(names[0]);
	for (unsigned i = 0; i < 100 && changes == 0; i++)
		assert_true(sd_event_run(event, 100 * USEC_PER_MSEC) >= 0);
	assert_true(processes_events(p, &e));
	if (changes == 0 || e.nr_running != 1)
		fail_msg("%u changes, %u running", changes, e.nr_running);
	stop_process(pid);
	processes_free(p);
	sd_event_unref(event);
	sysroot_close(&root);
}

static void test_what_is_missing_is_a_state_and_no_error(void **state)
{
	char dir[] = "/tmp/pcptune-test-events-XXXXXX";
	struct pressure *p = NULL;
	struct sysroot root;
	sd_event *event = NULL;
	struct error err = {0};
	const struct watch_sink sink = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(sysroot_open(&root, dir, &err), 0);
	assert_true(sd_event_new(&event) >= 0);
	assert_true(pressure_new(&p, event, &root, &sink) >= 0);
	assert_int_equal(pressure_watch(p)->state, WATCH_ABSENT);
	if (!strstr(pressure_watch(p)->why.text, "proc/pressure/memory"))
		fail_msg("it does not name the file: %s", pressure_watch(p)->why.text);
	pressure_free(p);
	sd_event_unref(event);
	sysroot_close(&root);
	(void)rmdir(dir);
}

/* memory pressure, made in a cgroup of our own */

#define CGROUP_NAME "pcptune-test-events"

/* A group that holds less than the file; the second hierarchy's, or the first one's. */
static const char *const cgroups[][3] = {
	{"/sys/fs/cgroup/" CGROUP_NAME, "memory.high", "8388608"},
	{"/sys/fs/cgroup/memory/" CGROUP_NAME, "memory.limit_in_bytes", "8388608"},
};

static bool put(const char *path, const char *text)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Reads a file over and over that does not fit: refaults are stalls, and nothing is killed. */
static void thrash(const char *file)
{
	static char buf[1 << 16];

	for (;;) {
		_cleanup_(closep) int fd = open(file, O_RDONLY | O_CLOEXEC);

		while (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
			;
	}
}

static pid_t start_thrashing(const char *cgroup, const char *file)
{
	char procs[256];
	pid_t pid = fork();

	assert_true(pid >= 0);
	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (put(procs, "0"))
			thrash(file);
		_exit(1);
	}
	return pid;
}

static bool pressure_heard(struct fixture *f, const void *arg)
{
	(void)arg;
	return f->heard.pressure > 0;
}

/* The group's directory, or NULL where none can be made. */
static const char *make_cgroup(void)
{
	char path[256];

	(void)put("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	for (size_t i = 0; i < ARRAY_SIZE(cgroups); i++) {
		(void)rmdir(cgroups[i][0]);
		if (mkdir(cgroups[i][0], 0755) < 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", cgroups[i][0], cgroups[i][1]);
		if (put(path, cgroups[i][2]))
			return cgroups[i][0];
		(void)rmdir(cgroups[i][0]);
	}
	return NULL;
}

static void write_file(int fd, unsigned mib)
{
	static const char block[1 << 20];

	assert_true(fd >= 0);
	for (unsigned i = 0; i < mib; i++)
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	/* out of the cache: pages that are there are this process's and cost the reader nothing */
	(void)fsync(fd);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	(void)close(fd);
}

static void test_memory_pressure_wakes_us(void **state)
{
	char file[] = "/var/tmp/pcptune-test-events-XXXXXX";
	const char *cgroup = NULL;
	const struct watch *w;
	struct fixture f;
	bool heard;
	pid_t pid;

	(void)state;
	open_fixture(&f, EVENT_PRESSURE);
	w = watch_of(&f, EVENT_PRESSURE);
	if (w->state == WATCH_EVENTS)
		cgroup = make_cgroup();
	if (!cgroup) {
		print_message("skipped: %s\n",
			      w->why.code ? w->why.text : "no cgroup with a memory limit here");
		close_fixture(&f);
		skip();
	}
	write_file(mkstemp(file), 64);
	pid = start_thrashing(cgroup, file);
	heard = run_until(&f, pressure_heard, NULL);
	stop_process(pid);
	(void)unlink(file);
	for (unsigned i = 0; i < 50 && rmdir(cgroup) < 0; i++)
		(void)usleep(20000);
	close_fixture(&f);
	if (!heard)
		fail_msg("tasks stalled for memory and the trigger said nothing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cpu_that_changes_is_a_change_of_topology),
		cmocka_unit_test(test_device_messages_that_are_none_are_refused),
		cmocka_unit_test(test_the_life_of_a_process_is_read_from_captured_messages),
		cmocka_unit_test(
			test_process_messages_cut_anywhere_are_never_read_beyond_their_end),
		cmocka_unit_test(test_events_of_threads_are_not_those_of_processes),
		cmocka_unit_test(test_the_life_of_a_link_is_read_from_captured_messages),
		cmocka_unit_test(test_link_messages_cut_anywhere_are_never_read_beyond_their_end),
		cmocka_unit_test(test_processes_that_live_for_a_moment_are_never_read),
		cmocka_unit_test(test_a_process_that_stays_is_read_once),
		cmocka_unit_test(test_a_reused_pid_is_no_one_else),
		cmocka_unit_test(test_a_child_without_exec_keeps_its_parents_name_running),
		cmocka_unit_test(
			test_a_process_that_becomes_another_program_does_not_count_any_more),
		cmocka_unit_test(test_a_scan_that_fails_changes_nothing),
		cmocka_unit_test(test_names_are_compared_as_far_as_the_kernel_keeps_them),
		cmocka_unit_test(test_the_table_agrees_with_a_list_of_all_processes),
		cmocka_unit_test(test_signals_of_events_are_known_once_a_source_fills_them),
		cmocka_unit_test(test_what_is_missing_is_a_state_and_no_error),
		cmocka_unit_test(test_a_uevent_of_this_kernel_is_heard_once_for_a_burst),
		cmocka_unit_test(test_a_links_mtu_is_followed),
		cmocka_unit_test(test_real_processes_are_followed_by_events),
		cmocka_unit_test(test_without_the_connector_processes_are_found_by_looking),
		cmocka_unit_test(test_memory_pressure_wakes_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
