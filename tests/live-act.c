/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Acting on this machine's own kernel. Needs root; everything is put back. */
#include "act/drain.h"
#include "parking.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cmocka.h>

#define LIVE_LOCK "/run/lock/pcptune-live.lock"
#define PARK_MIB  256U
#define FRACTION  ((struct knob_id){.kind = KNOB_HIGH_FRACTION})

struct live {
	struct sysroot root;
	struct act_env env;
	struct instance_lock lock;
	uint64_t fraction; /* as found */
};

static uint64_t fraction_now(const struct live *l)
{
	uint64_t v;

	assert_int_equal(sysroot_read_u64(&l->root, HIGH_FRACTION_REL, &v), 0);
	return v;
}

static struct actor *open_actor(const struct live *l)
{
	const struct actor_options o = {.env = &l->env};
	struct error e = {0};
	struct actor *a = NULL;

	if (actor_open(&a, &o, act_time_now(), &e) < 0)
		fail_msg("%s", e.text);
	return a;
}

static void park_everywhere(void)
{
	cpu_set_t before;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &before))
			(void)park_on_cpu(cpu, PARK_MIB);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void a_fraction_is_set_verified_and_put_back(void **state)
{
	struct live *l = *state;
	uint64_t other = l->fraction == 500 ? 600 : 500;
	const struct actor_request req = {.id = FRACTION, .value = other, .reason = "live test"};
	struct actor *a = open_actor(l);

	assert_int_equal(actor_set(a, &req, act_time_now(), NULL), 0);
	assert_int_equal(actor_wait(a, false, -1, 30 * USEC_PER_SEC, NULL, NULL), 0);
	assert_int_equal(fraction_now(l), other);
	actor_restore_all(a, act_time_now());
	assert_int_equal(actor_wait(a, true, -1, 30 * USEC_PER_SEC, NULL, NULL), 0);
	assert_int_equal(fraction_now(l), l->fraction);
	(void)actor_close(a);
}

static void progress(void *user, const struct drain_report *r)
{
	(void)user;
	(void)r;
}

/* Whether every list came to where this drain brings it; other work may hold one above. */
static bool run_drain_once(struct live *l, const struct drain_options *o)
{
	bool at_floor;

	_cleanup_(text_free) struct text text = {0};
	struct actor *a = open_actor(l);
	struct drain *d = NULL;
	struct error e = {0};
	int r;

	r = drain_start(&d, &l->env, a, o, act_time_now(), &e);
	if (r == -EOPNOTSUPP || r == -EPERM) {
		print_message("not here: %s\n", e.text);
		(void)actor_close(a);
		skip();
	}
	if (r < 0)
		fail_msg("%s", e.text);
	r = drain_run(d, -1, progress, NULL);
	drain_report_print(drain_report(d), l->env.page_bytes, &text);
	print_message("%s", text_str(&text));
	assert_int_equal(r, 0);
	assert_int_equal(fraction_now(l), l->fraction);
	at_floor = drain_report(d)->end == DRAIN_END_FLOOR;
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
	return at_floor;
}

static void run_drain(struct live *l, const struct drain_options *o)
{
	for (int i = 0; i < 5; i++) {
		park_everywhere();
		if (run_drain_once(l, o))
			return;
	}
	fail_msg("five times some list did not come down; the reports are above");
}

static void a_trim_leaves_the_fraction_alone(void **state)
{
	const struct drain_options o = {.mode = DRAIN_TRIM, .reason = "live test"};

	run_drain(*state, &o);
}

static void a_squeeze_returns_pages_and_puts_the_fraction_back(void **state)
{
	const struct drain_options o = {.mode = DRAIN_SQUEEZE, .reason = "live test"};

	run_drain(*state, &o);
}

static void a_fast_squeeze_returns_pages_and_puts_the_fraction_back(void **state)
{
	const struct drain_options o = {.mode = DRAIN_SQUEEZE, .fast = true, .reason = "live test"};

	run_drain(*state, &o);
}

#define NOT_HERE 77 /* the child's word for a kernel without squeezes */

/*
 * Squeezes in a child until a signal ends it. Before its first pass, with the fraction raised, it
 * waits for the parent to have looked. In shared memory, since a pass has descriptors of its own.
 */
struct meeting {
	atomic_bool arrived, go_on;
};

static int meet_parent(void *user, enum act_point point, const char *rel)
{
	struct meeting *m = user;

	(void)rel;
	if (point != ACT_PASS || atomic_exchange(&m->arrived, true))
		return 0;
	for (int i = 0; i < 6000 && !atomic_load(&m->go_on); i++)
		(void)usleep(10000);
	return 0;
}

static int squeeze_in_child(struct live *l, struct meeting *m)
{
	const struct drain_options o = {
		.mode = DRAIN_SQUEEZE,
		.reason = "live test",
		.max_time_usec = 10 * USEC_PER_MINUTE,
		.pass_limit_usec = 10 * USEC_PER_MINUTE,
	};
	struct act_env env = l->env;
	const struct actor_options ao = {.env = &env};
	struct actor *a = NULL;
	struct drain *d = NULL;
	struct error e = {0};
	sigset_t set;
	int r, stop;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	stop = signalfd(-1, &set, SFD_CLOEXEC);
	env.hook = (struct act_hook){meet_parent, m};
	r = actor_open(&a, &ao, act_time_now(), &e);
	if (r == 0)
		r = drain_start(&d, &env, a, &o, act_time_now(), &e);
	if (r == -EOPNOTSUPP || r == -EPERM)
		return NOT_HERE;
	if (r < 0) {
		print_message("%s\n", e.text);
		return 3;
	}
	return drain_run(d, stop, NULL, NULL) == -EINTR ? 0 : 1;
}

/* Until the child is at its first pass; false where this kernel has no squeeze. */
static bool wait_for_child(struct meeting *m, pid_t pid)
{
	int status;

	while (!atomic_load(&m->arrived)) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
				return false;
			fail_msg("the child never came to its first pass (status %x)",
				 (unsigned)status);
		}
		(void)usleep(1000);
	}
	return true;
}

static void interrupt_squeeze(struct live *l, int sig)
{
	struct meeting *m =
		mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	assert_true(m != MAP_FAILED);
	park_everywhere();
	pid = fork();
	if (pid == 0)
		_exit(squeeze_in_child(l, m));
	if (!wait_for_child(m, pid)) {
		(void)munmap(m, sizeof(*m));
		skip();
	}
	assert_int_equal(fraction_now(l), HIGH_FRACTION_MAX);
	(void)kill(pid, sig);
	/* the fraction comes back although the pass has not */
	for (int i = 0; sig != SIGKILL && i < 2000 && fraction_now(l) != l->fraction; i++)
		(void)usleep(10000);
	assert_int_equal(fraction_now(l), sig == SIGKILL ? HIGH_FRACTION_MAX : l->fraction);
	atomic_store(&m->go_on, true);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)munmap(m, sizeof(*m));
}

static void an_interrupted_squeeze_puts_the_fraction_back(void **state)
{
	interrupt_squeeze(*state, SIGINT);
	interrupt_squeeze(*state, SIGTERM);
}

static void a_killed_squeeze_is_undone_by_the_next_start(void **state)
{
	struct live *l = *state;
	struct actor *a;

	interrupt_squeeze(l, SIGKILL);
	a = open_actor(l);
	assert_int_equal(actor_wait(a, false, -1, 30 * USEC_PER_SEC, NULL, NULL), 0);
	assert_int_equal(fraction_now(l), l->fraction);
	assert_int_equal(actor_unrestored(a, NULL), 0);
	(void)actor_close(a);
}

static int open_live(struct live *l, struct error *e)
{
	struct sensor *sensor = NULL;
	int r = sysroot_open(&l->root, "/", e);

	if (r == 0)
		r = sensor_new(&sensor, &l->root, 0, e);
	if (r < 0)
		return r;
	l->env = act_env_from(&l->root, sensor_take(sensor, SOURCE_BIT(SOURCE_KNOBS), 0));
	(void)sensor_free(sensor);
	r = sysroot_read_u64(&l->root, HIGH_FRACTION_REL, &l->fraction);
	if (r < 0)
		return error_set(e, r, "cannot read /%s: %s", HIGH_FRACTION_REL, error_name(r));
	r = act_env_check_live(&l->env, e);
	return r < 0 ? r : lock_take(&l->lock, &l->env, "live-act", act_time_now(), NULL, e);
}

int main(void)
{
	struct live l = {.root = {.dirfd = -1}, .lock = INSTANCE_LOCK_NONE};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(a_fraction_is_set_verified_and_put_back, &l),
		cmocka_unit_test_prestate(a_trim_leaves_the_fraction_alone, &l),
		cmocka_unit_test_prestate(a_squeeze_returns_pages_and_puts_the_fraction_back, &l),
		cmocka_unit_test_prestate(a_fast_squeeze_returns_pages_and_puts_the_fraction_back,
					  &l),
		cmocka_unit_test_prestate(an_interrupted_squeeze_puts_the_fraction_back, &l),
		cmocka_unit_test_prestate(a_killed_squeeze_is_undone_by_the_next_start, &l),
	};
	struct error e = {0};
	int others, failed;

	if (!getenv("PCPTUNE_LIVE")) {
		(void)puts(
			"SKIP live-act: this changes the running kernel's settings for a moment; sudo make check-live runs it");
		return 77;
	}
	if (geteuid() != 0) {
		(void)puts("SKIP live-act: needs root");
		return 77;
	}
	others = open(LIVE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (others >= 0)
		(void)flock(others, LOCK_EX);
	if (open_live(&l, &e) < 0) {
		(void)printf("SKIP live-act: %s\n", e.text);
		return 77;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	lock_release(&l.lock);
	sysroot_close(&l.root);
	closep(&others);
	return failed;
}
