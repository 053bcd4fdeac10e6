/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * killat [OPTION...] N COMMAND...: runs COMMAND and kills it, with every process and thread it
 * started, as it enters its N-th system call. What was entered before has happened, the N-th has
 * not. killat --count COMMAND... kills nothing and tells how many there are.
 */
#include "base/parse.h"

#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>

#define EXIT_KILLED   137 /* as a shell says of SIGKILL */
#define EXIT_NO_TRACE 125
#define TRACEES_MAX   4096U
#define CALLS_MAX     32U

static const struct call_name {
	const char *name;
	uint64_t nr;
} call_names[] = {
#ifdef SYS_open
	{"open", SYS_open},
#endif
	{"openat", SYS_openat},       {"openat2", SYS_openat2},     {"close", SYS_close},
	{"read", SYS_read},           {"pread64", SYS_pread64},     {"write", SYS_write},
	{"writev", SYS_writev},       {"pwrite64", SYS_pwrite64},   {"ftruncate", SYS_ftruncate},
	{"fsync", SYS_fsync},         {"fdatasync", SYS_fdatasync},
#ifdef SYS_rename
	{"rename", SYS_rename},
#endif
#ifdef SYS_renameat
	{"renameat", SYS_renameat},
#endif
	{"renameat2", SYS_renameat2}, {"linkat", SYS_linkat},
#ifdef SYS_unlink
	{"unlink", SYS_unlink},
#endif
	{"unlinkat", SYS_unlinkat},
#ifdef SYS_mkdir
	{"mkdir", SYS_mkdir},
#endif
	{"mkdirat", SYS_mkdirat},     {"flock", SYS_flock},         {"fchmod", SYS_fchmod},
	{"fchown", SYS_fchown},
};

struct tracer {
	bool count_only, counting;
	const char *from; /* counting starts with the opening of a path that contains this */
	const char *output;
	uint64_t calls[CALLS_MAX]; /* count only these; none: all */
	size_t nr_calls;
	uint64_t target, count;
	pid_t child, tracees[TRACEES_MAX];
	size_t nr_tracees;
	bool killed;
	int status; /* of the child */
};

static volatile sig_atomic_t forward_to; /* a handler has no other way to its data */

static void usage(FILE *out)
{
	(void)fputs("Usage: killat [OPTION...] N COMMAND...\n"
		    "       killat --count [OPTION...] COMMAND...\n\n"
		    "  --count        only count the system calls and print the number\n"
		    "  --output=FILE  ... into a file\n"
		    "  --from=TEXT    count from the first open of a path that contains TEXT\n"
		    "  --calls=LIST   count only these calls (open,openat,write,fsync,rename ...)\n"
		    "  --help\n\n"
		    "Exits with 137 where it killed, else as COMMAND does; 125 where tracing is\n"
		    "not allowed. SIGTERM and SIGINT are passed on to COMMAND.\n",
		    out);
}

static int add_calls(struct tracer *t, char *list)
{
	char *save = NULL;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		size_t i = 0;

		while (i < ARRAY_SIZE(call_names) && !streq(call_names[i].name, word))
			i++;
		if (i == ARRAY_SIZE(call_names) || t->nr_calls == CALLS_MAX) {
			(void)fprintf(stderr, "killat: no call %s in my list\n", word);
			return -EINVAL;
		}
		t->calls[t->nr_calls++] = call_names[i].nr;
	}
	return 0;
}

/* 0, 1 for --help, or -EINVAL. *command: index of the command's first word. */
static int parse_argv(struct tracer *t, int argc, char **argv, int *command)
{
	static const struct option options[] = {
		{"count", no_argument, NULL, 'c'},      {"output", required_argument, NULL, 'o'},
		{"from", required_argument, NULL, 'f'}, {"calls", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},       {0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) >= 0) {
		if (opt == 'c')
			t->count_only = true;
		else if (opt == 'o')
			t->output = optarg;
		else if (opt == 'f')
			t->from = optarg;
		else if (opt == 'h')
			return 1;
		else if (opt != 's' || add_calls(t, optarg) < 0)
			return -EINVAL;
	}
	if (!t->count_only &&
	    (optind >= argc || parse_u64(argv[optind++], &t->target) < 0 || t->target == 0)) {
		(void)fputs("killat: at which call? Say a number from 1\n", stderr);
		return -EINVAL;
	}
	if (optind >= argc) {
		(void)fputs("killat: no command\n", stderr);
		return -EINVAL;
	}
	*command = optind;
	return 0;
}

static void on_signal(int sig)
{
	if (forward_to > 0)
		(void)kill((pid_t)forward_to, sig);
}

/* LeakSanitizer cannot work while somebody traces. */
static void without_leak_detection(void)
{
	const char *was = getenv("ASAN_OPTIONS");
	char text[512];

	(void)snprintf(text, sizeof(text), "%s%sdetect_leaks=0", was ? was : "", was ? ":" : "");
	(void)setenv("ASAN_OPTIONS", text, 1);
}

/* One stop as a call is entered, where PTRACE_SYSCALL would stop as it ends too: half the time. */
static bool stop_at_every_call(void)
{
	struct sock_filter stop[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE)};
	struct sock_fprog program = {.len = ARRAY_SIZE(stop), .filter = stop};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static _Noreturn void run_command(int wait_fd, char **argv)
{
	char c;

	without_leak_detection();
	while (read(wait_fd, &c, 1) < 0 && errno == EINTR)
		;
	if (!stop_at_every_call()) {
		(void)fprintf(stderr, "killat: no seccomp filter: %s\n", strerror(errno));
		_exit(EXIT_NO_TRACE);
	}
	(void)execvp(argv[0], argv);
	(void)fprintf(stderr, "killat: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int start(struct tracer *t, char **argv)
{
	const unsigned long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |
				      PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
				      PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int fds[2], r = 0;

	if (pipe(fds) < 0)
		return -errno;
	t->child = fork();
	if (t->child < 0)
		return -errno;
	if (t->child == 0) {
		(void)close(fds[1]);
		run_command(fds[0], argv);
	}
	(void)close(fds[0]);
	if (ptrace(PTRACE_SEIZE, t->child, NULL, options) < 0) {
		r = -errno;
		(void)kill(t->child, SIGKILL);
		(void)waitpid(t->child, NULL, 0);
	}
	(void)close(fds[1]);
	forward_to = t->child;
	return r;
}

static void tracee_add(struct tracer *t, pid_t pid)
{
	for (size_t i = 0; i < t->nr_tracees; i++)
		if (t->tracees[i] == pid)
			return;
	if (t->nr_tracees < TRACEES_MAX)
		t->tracees[t->nr_tracees++] = pid;
}

static void tracee_remove(struct tracer *t, pid_t pid)
{
	for (size_t i = 0; i < t->nr_tracees; i++)
		if (t->tracees[i] == pid)
			t->tracees[i--] = t->tracees[--t->nr_tracees];
}

static void kill_all(struct tracer *t)
{
	t->killed = true;
	for (size_t i = 0; i < t->nr_tracees; i++)
		(void)kill(t->tracees[i], SIGKILL);
}

/* Does this call open a path that contains `text`? */
static bool opens(pid_t pid, const struct ptrace_syscall_info *info, const char *text)
{
	char path[1024];
	struct iovec here = {.iov_base = path}, there = {0};
	uint64_t at = info->seccomp.args[1];
	size_t got = 0;

#ifdef SYS_open
	if (info->seccomp.nr == SYS_open)
		at = info->seccomp.args[0];
	else
#endif
		if (info->seccomp.nr != SYS_openat && info->seccomp.nr != SYS_openat2)
		return false;
	/* in pieces, since the text may end just before memory that is not there */
	while (got < sizeof(path) - 1) {
		size_t piece = MIN_OF(64 - (at + got) % 64, sizeof(path) - 1 - got);

		here = (struct iovec){path + got, piece};
		there = (struct iovec){(void *)(uintptr_t)(at + got), piece};
		if (process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)piece)
			break;
		got += piece;
		if (memchr(path + got - piece, '\0', piece))
			break;
	}
	path[got] = '\0';
	return strstr(path, text) != NULL;
}

static bool is_counted(const struct tracer *t, uint64_t nr)
{
	for (size_t i = 0; i < t->nr_calls; i++)
		if (t->calls[i] == nr)
			return true;
	return t->nr_calls == 0;
}

static void at_syscall(struct tracer *t, pid_t pid)
{
	struct ptrace_syscall_info info = {0};

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_SECCOMP)
		return;
	if (!t->counting && t->from && opens(pid, &info, t->from))
		t->counting = true;
	if (!t->counting || !is_counted(t, info.seccomp.nr))
		return;
	if (++t->count == t->target)
		kill_all(t);
}

static void at_stop(struct tracer *t, pid_t pid, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	tracee_add(t, pid);
	if (t->killed) {
		(void)kill(pid, SIGKILL); /* started in the moment that the others were killed */
		return;
	}
	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) { /* stopped with all its threads */
		(void)ptrace(PTRACE_LISTEN, pid, NULL, NULL);
		return;
	}
	if (event == PTRACE_EVENT_EXEC && pid == t->child && !t->from)
		t->counting = true;
	if (event == PTRACE_EVENT_SECCOMP)
		at_syscall(t, pid);
	if (event)
		sig = 0;
	if (!t->killed)
		(void)ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)sig);
}

static void trace(struct tracer *t)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return;
		if (WIFSTOPPED(status)) {
			at_stop(t, pid, status);
			continue;
		}
		tracee_remove(t, pid);
		if (pid == t->child)
			t->status = status;
	}
}

static int tell(const struct tracer *t)
{
	FILE *out = t->output ? fopen(t->output, "we") : stdout;

	if (!out) {
		(void)fprintf(stderr, "killat: cannot write %s: %s\n", t->output, strerror(errno));
		return -errno;
	}
	(void)fprintf(out, "%llu\n", (unsigned long long)t->count);
	return (t->output ? fclose(out) : fflush(out)) == 0 ? 0 : -errno;
}

int main(int argc, char **argv)
{
	struct tracer *t = calloc(1, sizeof(*t));
	struct sigaction pass_on = {.sa_handler = on_signal};
	int command = 0, r = t ? parse_argv(t, argc, argv, &command) : -ENOMEM;

	if (r != 0) {
		if (r > 0)
			usage(stdout);
		free(t);
		return r > 0 ? 0 : 2;
	}
	(void)sigaction(SIGTERM, &pass_on, NULL);
	(void)sigaction(SIGINT, &pass_on, NULL);
	r = start(t, argv + command);
	if (r < 0) {
		(void)fprintf(stderr, "killat: cannot trace: %s\n", strerror(-r));
		free(t);
		return EXIT_NO_TRACE;
	}
	trace(t);
	if (t->killed)
		r = EXIT_KILLED;
	else
		r = WIFEXITED(t->status) ? WEXITSTATUS(t->status) : 128 + WTERMSIG(t->status);
	if (t->count_only && tell(t) < 0)
		r = 1;
	free(t);
	return r;
}
