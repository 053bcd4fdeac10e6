/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracer that kills at the n-th system call. This program is also what it runs: called with a
 * file it writes there from several threads and a child process.
 */
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define THREADS 3U
#define WRITES  5U
#define TOTAL   (WRITES * (THREADS + 1)) /* the child process writes as often as a thread */

static const char *self;

static void *write_some(void *arg)
{
	for (unsigned i = 0; i < WRITES; i++)
		if (pwrite(*(int *)arg, "x", 1, 0) != 1 || write(*(int *)arg, "y", 1) != 1)
			_exit(9);
	return NULL;
}

static int be_the_command(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), status;
	pthread_t threads[THREADS];
	pid_t child;

	if (fd < 0)
		return 9;
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, write_some, &fd) != 0)
			return 9;
	child = fork();
	if (child == 0) {
		(void)write_some(&fd);
		_exit(0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 7 : 9;
}

/* Runs killat with these words; its exit status. Skips the test where tracing is not allowed. */
static int killat(const char *const words[])
{
	const char *argv[16] = {"killat"};
	size_t n = 1;
	int status;
	pid_t pid;

	while (words[n - 1]) {
		argv[n] = words[n - 1];
		n++;
	}
	pid = fork();
	if (pid == 0) {
		(void)execv(KILLAT, (char *const *)(uintptr_t)argv);
		_exit(126);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status))
		fail_msg("killat itself was ended by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) == 125) {
		print_message("SKIP: tracing is not allowed here\n");
		skip();
	}
	return WEXITSTATUS(status);
}

static void temp_path(char *path, size_t size, const char *name)
{
	(void)snprintf(path, size, "/tmp/pcptune-killpoint.%d.%s", (int)getpid(), name);
	(void)unlink(path);
}

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

static void counting_sees_all_threads_and_processes_and_changes_nothing(void **state)
{
	char data[64], number[64], text[32] = "";
	_cleanup_(fclosep) FILE *f = NULL;

	(void)state;
	temp_path(data, sizeof(data), "data");
	temp_path(number, sizeof(number), "count");
	{
		char output[96];
		const char *words[] = {"--count", output, "--calls=write,pwrite64",
				       self,      data,   NULL};

		(void)snprintf(output, sizeof(output), "--output=%s", number);
		assert_int_equal(killat(words), 7);
	}
	f = fopen(number, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	assert_int_equal(atoi(text), 2 * TOTAL);
	assert_int_equal(size_of(data), 2 * TOTAL);
	(void)unlink(data);
	(void)unlink(number);
}

static void what_was_entered_before_has_happened_and_the_nth_call_has_not(void **state)
{
	unsigned killed = 0;

	(void)state;
	for (unsigned n = 1; n <= 2 * TOTAL + 1; n++) {
		char data[64], at[16];
		const char *words[] = {"--calls=write,pwrite64", at, self, data, NULL};
		int status;

		temp_path(data, sizeof(data), "data");
		(void)snprintf(at, sizeof(at), "%u", n);
		status = killat(words);
		if (status != (n <= 2 * TOTAL ? 137 : 7))
			fail_msg("killed at call %u of %u: exit status %d", n, 2 * TOTAL, status);
		/* a call that another thread had entered may or may not have written its byte */
		if (size_of(data) > n - 1 || size_of(data) + (off_t)THREADS < n - 1)
			fail_msg("killed at write %u, but the file has %lld bytes", n,
				 (long long)size_of(data));
		killed += status == 137;
		(void)unlink(data);
	}
	print_message("%u kill points\n", killed);
}

static void every_system_call_is_a_kill_point_from_the_marked_file_on(void **state)
{
	unsigned n = 1;
	char data[64];

	(void)state;
	temp_path(data, sizeof(data), "marked");
	for (;; n++) {
		char at[16];
		const char *words[] = {"--from=killpoint",       at,   "/bin/sh", "-c",
				       "echo x >\"$0\"; exit 3", data, NULL};
		int status;

		(void)unlink(data);
		(void)snprintf(at, sizeof(at), "%u", n);
		status = killat(words);
		if (n == 1)
			assert_int_equal(size_of(data), 0); /* the open itself has not happened */
		if (status != 137) {
			assert_int_equal(status, 3);
			assert_int_equal(size_of(data), 2);
			break;
		}
	}
	assert_true(n > 3);
	(void)unlink(data);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counting_sees_all_threads_and_processes_and_changes_nothing),
		cmocka_unit_test(what_was_entered_before_has_happened_and_the_nth_call_has_not),
		cmocka_unit_test(every_system_call_is_a_kill_point_from_the_marked_file_on),
	};

	if (argc > 1)
		return be_the_command(argv[1]);
	self = "/proc/self/exe";
	{
		static char path[4096];
		ssize_t n = readlink(self, path, sizeof(path) - 1);

		if (n > 0)
			path[n] = '\0';
		self = path;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
