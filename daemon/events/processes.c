/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "processes.h"

#include "netlink.h"
#include "procconn.h"
#include "process-table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include <netlink/socket.h>

#define MESSAGE_MAX   256U
#define BATCH         64U
#define ROUNDS_MAX    64U
#define RECEIVE_BYTES (1 << 20)
/* CPU time of events in a second that makes it a busy one, and how many of those in a row end it */
#define BUSY_USEC       (5 * USEC_PER_MSEC)
#define BUSY_SECONDS    3U
#define CALM_SECONDS    3U
#define STORM_USEC      (30 * USEC_PER_SEC)
#define STORM_MAX_USEC  (10 * USEC_PER_MINUTE)
#define SCAN_PAUSE_USEC (USEC_PER_SEC)
#define NAMES_AT_ONCE   256U
#define TIMER_ACCURACY  (5 * USEC_PER_MSEC)

struct processes {
	sd_event *event;
	const struct sysroot *root;
	uint64_t scan_usec;
	struct watch_sink sink;
	struct watch watch;
	struct process_table *table;
	bool known;
	uint64_t told; /* a hash of the names that ran when the sink was told last */
	int proc_fd;

	struct nl_sock *socket;
	sd_event_source *io, *batch, *scan, *again;
	uint64_t scan_cost_usec, last_scan_usec;
	bool must_scan; /* the kernel dropped events, or the table asks for it */

	/* what events cost */
	uint64_t second_started_usec, busy_usec;
	unsigned busy_seconds, calm_seconds;
	uint64_t storm_usec; /* how long the next storm is sat out; 0: no storm yet */

	struct mmsghdr headers[BATCH];
	struct iovec iovs[BATCH];
	struct sockaddr_nl from[BATCH];
	unsigned char messages[BATCH][MESSAGE_MAX];
};

static int subscribe(struct processes *p, struct error *why);

static uint64_t clock_usec(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

static int arm(struct processes *p, sd_event_source **s, uint64_t usec, sd_event_time_handler_t f)
{
	int r;

	if (!*s)
		return sd_event_add_time_relative(p->event, s, CLOCK_MONOTONIC, usec,
						  TIMER_ACCURACY, f, p);
	r = sd_event_source_set_time_relative(*s, usec);
	return r < 0 ? r : sd_event_source_set_enabled(*s, SD_EVENT_ONESHOT);
}

static void disarm(sd_event_source *s)
{
	if (s)
		(void)sd_event_source_set_enabled(s, SD_EVENT_OFF);
}

/* reading /proc */

static int open_proc(struct processes *p)
{
	if (p->proc_fd >= 0)
		return 0;
	p->proc_fd = sysroot_openat(p->root, "proc", O_RDONLY | O_DIRECTORY, 0);
	return p->proc_fd < 0 ? p->proc_fd : 0;
}

static ssize_t read_small(int dir, const char *rel, char *buf, size_t size)
{
	_cleanup_(closep) int fd = openat(dir, rel, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return n;
}

/* A process that has ended and waits for its parent keeps its name and is none that runs. */
static bool is_zombie(int dir, const char *pid)
{
	char rel[32], buf[128];
	const char *state;

	(void)snprintf(rel, sizeof(rel), "%.20s/stat", pid);
	if (read_small(dir, rel, buf, sizeof(buf)) < 0)
		return true;
	state = strrchr(buf, ')');
	return state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
}

static int read_name(struct processes *p, const char *pid_text, pid_t pid)
{
	char rel[32], comm[64];
	ssize_t n;

	(void)snprintf(rel, sizeof(rel), "%.20s/comm", pid_text);
	n = read_small(p->proc_fd, rel, comm, sizeof(comm));
	if (n < 0) {
		process_table_exit(p->table, pid);
		return 0; /* ended meanwhile, or hidden from us */
	}
	comm[strcspn(comm, "\n")] = '\0';
	if (process_table_wants(p->table, comm) && is_zombie(p->proc_fd, pid_text)) {
		process_table_exit(p->table, pid);
		return 0;
	}
	return process_table_named(p->table, pid, comm);
}

static int scan_all(struct processes *p)
{
	DIR *dir;
	int fd, r = open_proc(p);

	if (r < 0)
		return r;
	fd = fcntl(p->proc_fd, F_DUPFD_CLOEXEC, 0);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		r = -errno;
		closep(&fd);
		return r;
	}
	rewinddir(dir);
	for (struct dirent *d; r >= 0 && (d = readdir(dir));) {
		char *end;
		long pid;

		if (d->d_name[0] < '1' || d->d_name[0] > '9')
			continue;
		pid = strtol(d->d_name, &end, 10);
		if (*end == '\0')
			r = read_name(p, d->d_name, (pid_t)pid);
	}
	(void)closedir(dir);
	return r;
}

static void tell_if_changed(struct processes *p)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	const char(*running)[PROCESS_NAME_MAX];
	uint32_t n;

	running = process_table_running(p->table, &n);
	for (size_t i = 0; i < n * sizeof(*running); i++)
		hash = (hash ^ ((const unsigned char *)running)[i]) * UINT64_C(1099511628211);
	if (hash == p->told)
		return;
	p->told = hash;
	watch_tell(&p->sink);
}

static void scan(struct processes *p)
{
	uint64_t start = clock_usec(CLOCK_MONOTONIC);
	struct error why = {0};
	int r;

	process_table_scan_begin(p->table);
	r = scan_all(p);
	process_table_scan_end(p->table, r >= 0);
	p->last_scan_usec = clock_usec(CLOCK_MONOTONIC);
	p->scan_cost_usec = p->last_scan_usec - start;
	p->must_scan = false;
	p->known = r >= 0;
	if (r < 0) {
		(void)error_set(&why, r, "cannot read the processes in %s/proc: %s", p->root->path,
				error_name(r));
		watch_set(&p->watch, &p->sink, WATCH_BROKEN, &why);
	}
	tell_if_changed(p);
}

static int on_scan(sd_event_source *s, uint64_t scheduled, void *userdata);

/* Plans the next scan: soon if one is due, at the interval where scans are all we have. */
static void plan_scan(struct processes *p)
{
	uint64_t pause = MAX_OF(SCAN_PAUSE_USEC, p->scan_cost_usec * PROCESSES_SCAN_FACTOR);
	uint64_t now = clock_usec(CLOCK_MONOTONIC), at;

	if (p->socket && !p->must_scan) {
		disarm(p->scan);
		return;
	}
	if (!p->must_scan)
		pause = MAX_OF(pause, p->scan_usec);
	at = p->last_scan_usec + pause;
	(void)arm(p, &p->scan, at > now ? at - now : 0, on_scan);
}

static int on_scan(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	struct processes *p = userdata;

	(void)s;
	(void)scheduled;
	scan(p);
	plan_scan(p);
	return 0;
}

/* events */

static void close_socket(struct processes *p)
{
	unsigned char request[PROCCONN_REQUEST_MAX];

	p->io = sd_event_source_disable_unref(p->io);
	disarm(p->batch);
	if (!p->socket)
		return;
	/* kernels before 6.6 go on counting a listener that does not say that it leaves */
	(void)send(netlink_fd(p->socket), request, procconn_request(PROCCONN_IGNORE, request),
		   MSG_DONTWAIT);
	p->socket = netlink_close(p->socket);
}

static int on_again(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	struct processes *p = userdata;
	struct error why = {0};

	(void)s;
	(void)scheduled;
	if (p->socket || process_table_wanted(p->table) == 0 || subscribe(p, &why) < 0)
		return 0;
	scan(p);
	plan_scan(p);
	return 0;
}

/* No more events: /proc is read at the interval instead. `again_usec` 0: for good. */
static void fall_back(struct processes *p, const struct error *why, uint64_t again_usec)
{
	close_socket(p);
	watch_set(&p->watch, &p->sink, WATCH_SCAN, why);
	if (again_usec)
		(void)arm(p, &p->again, again_usec, on_again);
	plan_scan(p);
}

static void sit_out_storm(struct processes *p)
{
	struct error why = {0};

	p->storm_usec = p->storm_usec ? MIN_OF(2 * p->storm_usec, STORM_MAX_USEC) : STORM_USEC;
	p->busy_seconds = p->calm_seconds = 0;
	(void)error_set(&why, -EBUSY,
			"so many processes start and end that following them costs too much: /proc "
			"is read from time to time instead");
	fall_back(p, &why, p->storm_usec);
}

/* True: events cost too much and were given up. */
static bool account(struct processes *p, uint64_t spent_usec)
{
	uint64_t now = clock_usec(CLOCK_MONOTONIC), past = now - p->second_started_usec;

	p->busy_usec += spent_usec;
	if (past < USEC_PER_SEC)
		return false;
	if (p->busy_usec * USEC_PER_SEC / past > BUSY_USEC) {
		p->busy_seconds++;
		p->calm_seconds = 0;
	} else {
		p->busy_seconds = 0;
		p->calm_seconds++;
	}
	p->second_started_usec = now;
	p->busy_usec = 0;
	if (p->busy_seconds >= BUSY_SECONDS) {
		sit_out_storm(p);
		return true;
	}
	/* said only now, so that a storm that goes on is not told again and again */
	if (p->watch.state != WATCH_EVENTS && p->calm_seconds >= CALM_SECONDS)
		watch_set(&p->watch, &p->sink, WATCH_EVENTS, NULL);
	return false;
}

static int take_event(struct processes *p, const struct proc_event *ev)
{
	switch (ev->change) {
	case PROC_EXEC:
		p->watch.events++;
		return process_table_exec(p->table, ev->pid);
	case PROC_COMM:
		p->watch.events++;
		return process_table_named(p->table, ev->pid, ev->comm);
	case PROC_EXIT:
		p->watch.events++;
		process_table_exit(p->table, ev->pid);
		return 0;
	case PROC_ACK:
	case PROC_OTHER:
		break;
	}
	return 0;
}

/* Up to BATCH messages; their number or a negative errno. */
static int receive_batch(struct processes *p)
{
	int n;

	for (size_t i = 0; i < BATCH; i++) {
		p->iovs[i] = (struct iovec){p->messages[i], MESSAGE_MAX};
		p->headers[i].msg_hdr = (struct msghdr){
			.msg_name = &p->from[i],
			.msg_namelen = sizeof(p->from[i]),
			.msg_iov = &p->iovs[i],
			.msg_iovlen = 1,
		};
	}
	do
		n = recvmmsg(netlink_fd(p->socket), p->headers, BATCH, MSG_DONTWAIT, NULL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Hands every event of the batch's message `i` to `take`; stops at its first error. */
static int each_event(struct processes *p, size_t i,
		      int (*take)(struct processes *p, const struct proc_event *ev))
{
	const unsigned char *at = p->messages[i];
	size_t len = p->headers[i].msg_len;
	struct proc_event ev;
	int r = 0;

	if (p->from[i].nl_pid != 0 || (p->headers[i].msg_hdr.msg_flags & MSG_TRUNC))
		return 0;
	while (r >= 0 && procconn_next(&at, &len, &ev) > 0)
		r = take(p, &ev);
	return r;
}

/* Empties the socket. The number of messages, or an errno after which it is of no use. */
static int drain(struct processes *p)
{
	int total = 0;

	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		int n = receive_batch(p);

		if (n == -EAGAIN)
			return total;
		if (n == -ENOBUFS) {
			p->watch.overruns++;
			p->must_scan = true;
			continue;
		}
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			if (each_event(p, (size_t)i, take_event) < 0)
				p->must_scan = true;
		total += n;
		if ((unsigned)n < BATCH)
			return total;
	}
	return total;
}

static void read_unnamed(struct processes *p)
{
	pid_t pids[NAMES_AT_ONCE];
	size_t n = process_table_unnamed(p->table, pids, ARRAY_SIZE(pids));
	char text[24];

	if (n > 0 && open_proc(p) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(text, sizeof(text), "%d", pids[i]);
		if (read_name(p, text, pids[i]) < 0)
			p->must_scan = true;
	}
}

static int on_batch(sd_event_source *s, uint64_t scheduled, void *userdata);

static void take_batch(struct processes *p)
{
	uint64_t start = clock_usec(CLOCK_THREAD_CPUTIME_ID);
	struct error why = {0};
	int n = drain(p);

	if (n < 0) {
		(void)error_set(&why, n, "the proc connector stopped working: %s", error_name(n));
		p->storm_usec = watch_next_pause(p->storm_usec);
		fall_back(p, &why, p->storm_usec);
		return;
	}
	read_unnamed(p);
	p->must_scan = p->must_scan || process_table_wants_scan(p->table);
	tell_if_changed(p);
	if (account(p, clock_usec(CLOCK_THREAD_CPUTIME_ID) - start))
		return;
	if (p->must_scan)
		plan_scan(p);
	/* while there is something, at a pace; then the socket wakes us again */
	if (n > 0 || process_table_has_unnamed(p->table))
		(void)arm(p, &p->batch, PROCESSES_BATCH_USEC, on_batch);
	else
		(void)sd_event_source_set_enabled(p->io, SD_EVENT_ON);
}

static int on_batch(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	(void)s;
	(void)scheduled;
	take_batch(userdata);
	return 0;
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct processes *p = userdata;

	(void)fd;
	(void)revents;
	(void)sd_event_source_set_enabled(s, SD_EVENT_OFF);
	take_batch(p);
	return 0;
}

/* subscribing */

/* 1 once our own change of name was heard, or the errno with which we were turned away. */
static int take_answer(struct processes *p, const struct proc_event *ev)
{
	(void)p;
	if (ev->change == PROC_ACK && ev->error < 0)
		return ev->error;
	if (ev->change == PROC_COMM && ev->pid == getpid())
		return -EALREADY; /* stops each_event() */
	return 0;
}

static int hear(struct processes *p)
{
	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		int n = receive_batch(p), r;

		if (n == -ENOBUFS)
			return 1; /* too much of it, but it is there */
		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return n;
		for (int i = 0; i < n; i++) {
			r = each_event(p, (size_t)i, take_answer);
			if (r < 0)
				return r == -EALREADY ? 1 : r;
		}
	}
	return 1;
}

/*
 * Asks, and tries whether it works: a filtered subscription is not answered by new kernels, and an
 * unknown one not by old ones. Both sides are synchronous, so that a change of our own name is
 * there to be read as soon as it is made, if anything ever is.
 */
static int ask(struct processes *p)
{
	static const enum procconn_request requests[] = {PROCCONN_LISTEN_FILTERED, PROCCONN_LISTEN};
	unsigned char request[PROCCONN_REQUEST_MAX];
	char name[PROCESS_NAME_MAX] = "";
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(requests) && r == 0; i++) {
		size_t len = procconn_request(requests[i], request);

		if (send(netlink_fd(p->socket), request, len, MSG_DONTWAIT) < 0)
			return -errno;
		if (prctl(PR_GET_NAME, name) < 0 || prctl(PR_SET_NAME, name) < 0)
			return -errno;
		r = hear(p);
	}
	/* not in the initial user or pid namespace, say */
	return r == 0 ? -EOPNOTSUPP : r;
}

static int subscribe(struct processes *p, struct error *why)
{
	int r = netlink_open(&p->socket, NETLINK_CONNECTOR, CN_IDX_PROC);

	if (r >= 0) {
		(void)nl_socket_set_buffer_size(p->socket, RECEIVE_BYTES, 0);
		r = ask(p);
	}
	if (r >= 0)
		r = sd_event_add_io(p->event, &p->io, netlink_fd(p->socket), EPOLLIN, on_io, p);
	if (r < 0) {
		close_socket(p);
		return error_set(why, r,
				 "the kernel does not tell us of processes (%s): /proc is read "
				 "from time to time instead",
				 error_name(r));
	}
	p->second_started_usec = clock_usec(CLOCK_MONOTONIC);
	p->busy_usec = 0;
	return 0;
}

static void begin(struct processes *p)
{
	struct error why = {0};

	if (subscribe(p, &why) < 0)
		watch_set(&p->watch, &p->sink, WATCH_SCAN, &why);
	else
		watch_set(&p->watch, &p->sink, WATCH_EVENTS, NULL);
}

static void end(struct processes *p)
{
	close_socket(p);
	disarm(p->scan);
	disarm(p->again);
	p->known = false;
	watch_set(&p->watch, &p->sink, WATCH_OFF, NULL);
}

int processes_want(struct processes *p, const char *const *names, size_t n)
{
	int r = process_table_want(p->table, names, n);

	if (r < 0)
		return r;
	if (n == 0) {
		end(p);
		return 0;
	}
	if (p->watch.state == WATCH_OFF)
		begin(p);
	scan(p);
	plan_scan(p);
	return 0;
}

void processes_give_up_events(struct processes *p)
{
	struct error why = {0};

	(void)error_set(&why, -EOPNOTSUPP, "as if there were no proc connector");
	fall_back(p, &why, 0);
}

bool processes_events(struct processes *p, struct events *ret)
{
	if (!p->known)
		return false;
	ret->has_processes = true;
	ret->running = process_table_running(p->table, &ret->nr_running);
	return true;
}

int processes_new(struct processes **ret, sd_event *event, const struct sysroot *root,
		  uint64_t scan_usec, const struct watch_sink *sink)
{
	struct processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->proc_fd = -1;
	if (process_table_new(&p->table) < 0) {
		free(p);
		return -ENOMEM;
	}
	p->event = sd_event_ref(event);
	p->root = root;
	p->scan_usec = scan_usec;
	p->sink = *sink;
	*ret = p;
	return 0;
}

struct processes *processes_free(struct processes *p)
{
	if (!p)
		return NULL;
	close_socket(p);
	sd_event_source_disable_unref(p->batch);
	sd_event_source_disable_unref(p->scan);
	sd_event_source_disable_unref(p->again);
	sd_event_unref(p->event);
	process_table_free(p->table);
	closep(&p->proc_fd);
	free(p);
	return NULL;
}

const struct watch *processes_watch(const struct processes *p)
{
	return &p->watch;
}
