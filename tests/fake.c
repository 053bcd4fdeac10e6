/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fake.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define OPTIONS_MAX 32U

static pid_t spawn(const char *const argv[], int out)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)dup2(out, STDOUT_FILENO);
		(void)execv(FAKEKERNEL, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return pid;
}

/* Starts one and sees whether it says that it is ready. */
static bool can_mount(void)
{
	char dir[] = "/tmp/pcptune-fake.XXXXXX", said[8], path[64];
	const char *argv[] = {"fakekernel", dir, NULL};
	static const char *const names[] = {"control", "proc", "sys", ""};
	int fds[2], status;
	bool ready;
	pid_t pid;

	if (!mkdtemp(dir) || pipe2(fds, O_CLOEXEC) < 0)
		return false;
	pid = spawn(argv, fds[1]);
	(void)close(fds[1]);
	ready = read(fds[0], said, sizeof(said)) > 0;
	(void)close(fds[0]);
	(void)kill(pid, SIGTERM);
	(void)waitpid(pid, &status, 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)remove(path);
	}
	/* whatever else went wrong is for the tests to show */
	return ready || !WIFEXITED(status) || WEXITSTATUS(status) != 77;
}

bool fake_kernel_available(void)
{
	_cleanup_(closep) int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		print_message("SKIP: /dev/fuse cannot be opened: %s\n", strerror(errno));
	else if (access(FAKEKERNEL, X_OK) < 0)
		print_message("SKIP: %s is not there\n", FAKEKERNEL);
	else if (!can_mount())
		print_message("SKIP: no FUSE can be mounted here\n");
	else
		return true;
	return false;
}

const char *fake_path(const struct fake_kernel *k, const char *rel, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s/%s", k->dir, rel);
	return buf;
}

static void make_directories(const struct fake_kernel *k)
{
	static const char *const names[] = {"etc", "run", "usr", "usr/lib"};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (mkdir(fake_path(k, names[i], path, sizeof(path)), 0755) < 0)
			fail_msg("cannot make %s: %s", path, strerror(errno));
}

void fake_kernel_start(struct fake_kernel *k, const char *const options[])
{
	const char *argv[OPTIONS_MAX] = {"fakekernel", k->dir};
	char said[8] = "";
	size_t n = 2;
	int fds[2];

	*k = (struct fake_kernel){.dir = "/tmp/pcptune-fake.XXXXXX"};
	if (!mkdtemp(k->dir) || pipe2(fds, O_CLOEXEC) < 0)
		fail_msg("cannot prepare a fake kernel: %s", strerror(errno));
	make_directories(k);
	for (; options && options[n - 2] && n < OPTIONS_MAX - 1; n++)
		argv[n] = options[n - 2];
	k->pid = spawn(argv, fds[1]);
	(void)close(fds[1]);
	for (size_t got = 0; got < 6;) {
		ssize_t r = read(fds[0], said + got, 6 - got);

		if (r <= 0)
			fail_msg("the fake kernel did not start");
		got += (size_t)r;
	}
	(void)close(fds[0]);
	assert_string_equal(said, "ready\n");
}

_printf_(2, 0) static int control(const struct fake_kernel *k, const char *fmt, va_list ap)
{
	_cleanup_(closep) int fd = -1;
	char path[128], command[512];
	int n = vsnprintf(command, sizeof(command), fmt, ap);

	fd = open(fake_path(k, "control", path, sizeof(path)), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, command, (size_t)n) == n ? 0 : -errno;
}

int fake_kernel_try(const struct fake_kernel *k, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = control(k, fmt, ap);
	va_end(ap);
	return r;
}

static void read_state(const struct fake_kernel *k, struct text *t)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[128], line[512];

	f = fopen(fake_path(k, "control", path, sizeof(path)), "re");
	while (f && fgets(line, sizeof(line), f))
		text_add(t, line);
}

void fake_kernel_do(const struct fake_kernel *k, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = control(k, fmt, ap);
	va_end(ap);
	if (r < 0) {
		_cleanup_(text_free) struct text t = {0};

		read_state(k, &t);
		fail_msg("the fake kernel refuses \"%s\": %s\n%s", fmt, strerror(-r), text_str(&t));
	}
}

long long fake_kernel_number(const struct fake_kernel *k, const char *key)
{
	_cleanup_(text_free) struct text t = {0};
	size_t len = strlen(key);

	read_state(k, &t);
	for (const char *line = text_str(&t); line && *line;) {
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return strtoll(line + len + 1, NULL, 0);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return 0;
}

void fake_kernel_stop(struct fake_kernel *k)
{
	static const char *const names[] = {"control", "proc",    "sys", "etc",
					    "run",     "usr/lib", "usr", ""};
	char path[128];
	int status = 0;

	(void)kill(k->pid, SIGTERM);
	assert_int_equal(waitpid(k->pid, &status, 0), k->pid);
	if (status != 0)
		fail_msg("the fake kernel ended with status %#x", (unsigned)status);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (remove(fake_path(k, names[i], path, sizeof(path))) < 0 && i < 3)
			fail_msg("cannot remove %s: %s", path, strerror(errno));
}
