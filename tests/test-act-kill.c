/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SIGKILL at every point of acting: a child does it and dies at the n-th point, for all n; then
 * the next start finds either the value that was there or the one that was intended, and a
 * rollback the true baseline.
 */
#include "act-tree.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

#define BASELINE UINT64_C(64)
#define TUNED    UINT64_C(100)
#define RETUNED  UINT64_C(200)

struct scenario {
	const char *name;
	uint64_t kept;      /* tuned to this by an earlier run that ended with "keep"; 0: none */
	uint64_t may_be[3]; /* what the next start may settle on; 0: none */
	void (*act)(struct tree *t);
};

static void set(struct actor *a, uint64_t value)
{
	const struct actor_request req = {TREE_FRACTION, value, "rule"};

	(void)actor_set(a, &req, act_time_now(), NULL);
	(void)actor_wait(a, false, -1, 10 * USEC_PER_SEC, NULL, NULL);
}

static void change(struct tree *t)
{
	struct actor *a = tree_actor(t, (struct actor_options){0});

	set(a, RETUNED);
	(void)actor_close(a);
}

static void restore(struct tree *t)
{
	struct actor *a = tree_actor(t, (struct actor_options){0});

	actor_restore_all(a, act_time_now());
	(void)actor_wait(a, true, -1, 10 * USEC_PER_SEC, NULL, NULL);
	(void)actor_close(a);
}

static void drain(struct tree *t, enum drain_mode mode)
{
	const struct drain_options o = {.mode = mode, .fast = true};
	struct actor *a = tree_actor(t, (struct actor_options){0});
	struct drain *d = NULL;

	if (drain_start(&d, &t->env, a, &o, act_time_now(), NULL) == 0)
		(void)drain_run(d, -1, NULL, NULL);
	(void)drain_free(d, act_time_now());
	(void)actor_close(a);
}

static void squeeze(struct tree *t)
{
	drain(t, DRAIN_SQUEEZE);
}

static void trim(struct tree *t)
{
	drain(t, DRAIN_TRIM);
}

static void restore_while_squeezing(struct tree *t)
{
	const struct actor_request req = {TREE_FRACTION, HIGH_FRACTION_MAX, "squeeze"};
	struct actor *a = tree_actor(t, (struct actor_options){0});

	(void)actor_moment_begin(a, &req, false, act_time_now(), NULL);
	(void)actor_wait(a, false, -1, 10 * USEC_PER_SEC, NULL, NULL);
	actor_restore_all(a, act_time_now());
	(void)actor_wait(a, true, -1, 10 * USEC_PER_SEC, NULL, NULL);
	(void)actor_close(a);
}

/* Also what a recovery does, killed in its turn: begins where a squeeze was killed. */
static void recover_a_killed_squeeze(struct tree *t)
{
	int at = atomic_load(&t->kill_at);
	pid_t pid;

	atomic_store(&t->kill_at, 0);
	pid = fork();
	if (pid == 0) {
		const struct actor_request req = {TREE_FRACTION, HIGH_FRACTION_MAX, "squeeze"};
		struct actor *a = tree_actor(t, (struct actor_options){0});

		(void)actor_moment_begin(a, &req, false, act_time_now(), NULL);
		(void)actor_wait(a, false, -1, 10 * USEC_PER_SEC, NULL, NULL);
		(void)kill(getpid(), SIGKILL);
	}
	(void)waitpid(pid, NULL, 0);
	atomic_store(&t->calls, 0);
	atomic_store(&t->kill_at, at);
	restore(t);
}

static void prepare(struct tree *t, const struct scenario *s)
{
	struct actor *a;

	tree_make(t, false);
	tree_write(t, HIGH_FRACTION_REL, "64\n");
	t->cpu[0] = (struct tree_cpu){.count = 400, .high = 400};
	t->cpu[1] = (struct tree_cpu){.count = 300, .high = 300};
	tree_write_zoneinfo(t);
	if (s->kept == 0)
		return;
	a = tree_actor(t, (struct actor_options){0});
	set(a, s->kept);
	(void)actor_close(a);
}

static void check_next_start(struct tree *t, const struct scenario *s, int n)
{
	struct actor *a;
	uint64_t v;

	a = tree_actor(t, (struct actor_options){0});
	assert_int_equal(actor_wait(a, false, -1, 10 * USEC_PER_SEC, NULL, NULL), 0);
	v = tree_fraction(t);
	if (v != s->may_be[0] && v != s->may_be[1] && v != s->may_be[2])
		fail_msg("%s killed at point %d: the next start leaves %llu", s->name, n,
			 (unsigned long long)v);
	if (tree_count_events(a, ACTOR_FOREIGN) > 0)
		fail_msg("%s killed at point %d: our own value is taken for somebody else's",
			 s->name, n);
	(void)actor_close(a);
	restore(t);
	if (tree_fraction(t) != BASELINE)
		fail_msg("%s killed at point %d: a rollback leaves %llu", s->name, n,
			 (unsigned long long)tree_fraction(t));
}

/* True where the child ended before it came to the n-th point. */
static bool kill_at(const struct scenario *s, int n)
{
	struct tree t;
	int status;
	pid_t pid;

	prepare(&t, s);
	atomic_store(&t.calls, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		atomic_store(&t.kill_at, n);
		s->act(&t);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSIGNALED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	check_next_start(&t, s, n);
	tree_remove(&t);
	return !WIFSIGNALED(status);
}

static void at_every_point(const struct scenario *s)
{
	int n = 1;

	while (!kill_at(s, n))
		n++;
	assert_true(n > 3);
	print_message("%s: killed at each of %d points\n", s->name, n - 1);
}

static void a_kill_during_a_first_change_leaves_old_or_new(void **state)
{
	(void)state;
	at_every_point(&(struct scenario){"first change", 0, {BASELINE, RETUNED, 0}, change});
}

static void a_kill_during_a_later_change_leaves_old_or_new(void **state)
{
	(void)state;
	at_every_point(&(struct scenario){"later change", TUNED, {TUNED, RETUNED, 0}, change});
}

static void a_kill_during_a_restore_leaves_tuned_or_baseline(void **state)
{
	(void)state;
	at_every_point(&(struct scenario){"restore", TUNED, {TUNED, BASELINE, 0}, restore});
}

static void a_kill_during_a_squeeze_leaves_what_was_there(void **state)
{
	(void)state;
	at_every_point(&(struct scenario){"squeeze", 0, {BASELINE, 0, 0}, squeeze});
}

static void a_kill_during_a_squeeze_of_a_tuned_fraction_leaves_what_was_there(void **state)
{
	(void)state;
	at_every_point(&(struct scenario){"squeeze of a tuned one", TUNED, {TUNED, 0, 0}, squeeze});
}

static void a_kill_during_a_trim_changes_nothing(void **state)
{
	(void)state;
	at_every_point(&(struct scenario){"trim", TUNED, {TUNED, 0, 0}, trim});
}

static void a_kill_while_a_squeeze_is_restored_leaves_tuned_or_baseline(void **state)
{
	(void)state;
	at_every_point(&(struct scenario){
		"restore while squeezing", TUNED, {TUNED, BASELINE, 0}, restore_while_squeezing});
}

static void a_kill_during_the_recovery_from_a_kill_is_recovered_from(void **state)
{
	(void)state;
	at_every_point(&(struct scenario){
		"recovery", TUNED, {TUNED, BASELINE, 0}, recover_a_killed_squeeze});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kill_during_a_first_change_leaves_old_or_new),
		cmocka_unit_test(a_kill_during_a_later_change_leaves_old_or_new),
		cmocka_unit_test(a_kill_during_a_restore_leaves_tuned_or_baseline),
		cmocka_unit_test(a_kill_during_a_squeeze_leaves_what_was_there),
		cmocka_unit_test(a_kill_during_a_squeeze_of_a_tuned_fraction_leaves_what_was_there),
		cmocka_unit_test(a_kill_during_a_trim_changes_nothing),
		cmocka_unit_test(a_kill_while_a_squeeze_is_restored_leaves_tuned_or_baseline),
		cmocka_unit_test(a_kill_during_the_recovery_from_a_kill_is_recovered_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
