/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl doctor: what this kernel offers, what is missing, what it costs and what to do. */
#include "ctl.h"

#include "act/record.h"
#include "base/format.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/statvfs.h>

#define FINDINGS_MAX 64U
#define SYSCTL_NAME  "percpu_pagelist_high_fraction"

enum level {
	LEVEL_OK,
	LEVEL_NOTE,    /* something is missing, and pcptune lives with it */
	LEVEL_PROBLEM, /* something is in the way */
};

struct finding {
	enum level level;
	const char *topic;
	char what[320];
	const char *cost, *todo; /* NULL: nothing */
};

struct doctor {
	struct ctl *c;
	struct finding list[FINDINGS_MAX];
	unsigned nr;
};

static void _printf_(6, 7) find(struct doctor *d, enum level level, const char *topic,
				const char *cost, const char *todo, const char *fmt, ...)
{
	struct finding *f;
	va_list ap;

	if (d->nr == FINDINGS_MAX)
		return;
	f = &d->list[d->nr++];
	*f = (struct finding){.level = level, .topic = topic, .cost = cost, .todo = todo};
	va_start(ap, fmt);
	(void)vsnprintf(f->what, sizeof(f->what), fmt, ap);
	va_end(ap);
}

static bool read_word(const struct sysroot *root, const char *rel, char *buf, size_t size)
{
	_cleanup_(text_free) struct text text = {0};

	if (sysroot_read(root, rel, &text) < 0)
		return false;
	(void)snprintf(buf, size, "%.*s", (int)strcspn(text.data, "\n"), text.data);
	return true;
}

/* what the kernel offers */

static void look_at_kernel(struct doctor *d)
{
	const struct topology *t = &d->c->snapshot->topology;
	size_t cpus = cpuset_count(&t->online), nodes = cpuset_count(&t->nodes);
	char release[96] = "unknown";

	(void)read_word(&d->c->root, "proc/sys/kernel/osrelease", release, sizeof(release));
	find(d, LEVEL_OK, "kernel", NULL, NULL,
	     "Linux %s, %zu CPU%s, %zu node%s, pages of %llu KiB", release, cpus,
	     cpus == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s",
	     (unsigned long long)(d->c->snapshot->page_bytes / 1024));
	if (cpus == 1)
		find(d, LEVEL_NOTE, "kernel", "with one CPU nobody competes for the zone lock",
		     NULL, "only one CPU is online");
}

static void look_at_sources(struct doctor *d)
{
	for (enum source s = 0; s < _SOURCE_MAX; s++) {
		const struct source_state *st = sensor_source(d->c->sensor, s);

		if (s == SOURCE_KNOBS || s == SOURCE_MTHP || snapshot_has(d->c->snapshot, s))
			continue;
		if (st->error == -ENOENT && s == SOURCE_PSI_MEMORY)
			find(d, LEVEL_NOTE, "pressure", "policies cannot use psi.memory signals",
			     "build the kernel with CONFIG_PSI, or boot with psi=1",
			     "/%s is not there", source_rel(s));
		else
			find(d, s == SOURCE_ZONEINFO ? LEVEL_PROBLEM : LEVEL_NOTE, source_name(s),
			     "what is read from it stays unknown", NULL, "%s", st->why.text);
	}
	if (d->c->snapshot->zoneinfo.unknown_lines > 0)
		find(d, LEVEL_NOTE, "zoneinfo", "nothing: they are skipped",
		     "please report them with the text of /proc/zoneinfo",
		     "%u lines of /proc/zoneinfo are of no known form",
		     d->c->snapshot->zoneinfo.unknown_lines);
	if (d->c->snapshot->missing_pagesets > 0)
		find(d, LEVEL_NOTE, "zoneinfo", "their pages are not counted",
		     "run it again: CPUs may just be coming or going",
		     "%u lists of online CPUs are missing", d->c->snapshot->missing_pagesets);
}

static void look_at_fraction(struct doctor *d)
{
	const struct snapshot *s = d->c->snapshot;

	if (!s->has_high_fraction) {
		find(d, LEVEL_NOTE, "high_fraction",
		     "list sizes can be seen but not set: pcptune only shows",
		     "use Linux 5.14 or later", "this kernel has no vm.%s", SYSCTL_NAME);
		return;
	}
	if (s->high_fraction == 0)
		find(d, LEVEL_OK, "high_fraction", NULL, NULL,
		     "vm.%s is there and 0: the kernel sizes the lists", SYSCTL_NAME);
	else
		find(d, LEVEL_OK, "high_fraction", NULL, NULL, "vm.%s is there and %llu",
		     SYSCTL_NAME, (unsigned long long)s->high_fraction);
}

static void look_at_tuning(struct doctor *d)
{
	const struct snapshot *s = d->c->snapshot;

	if (s->pcp_autotune == 1)
		find(d, LEVEL_OK, "self-tuning", NULL, NULL,
		     "the lists size themselves between high_min and high_max%s",
		     s->zoneinfo.prints_high_min ? "" : " (not printed by this kernel: computed)");
	else if (s->pcp_autotune == 0)
		find(d, LEVEL_NOTE, "self-tuning",
		     "what is parked stays until the CPU frees something",
		     "use Linux 6.7 or later, or set sizes by a policy",
		     "the lists of this kernel do not size themselves");
	if (s->pcp_autotune == 1 && s->has_stat_refresh)
		find(d, LEVEL_OK, "trim", NULL, NULL,
		     "trim and squeeze work: vm.stat_refresh makes CPUs give pages back");
	else
		find(d, LEVEL_NOTE, "trim", "parked memory can be seen but not returned",
		     s->has_stat_refresh ? "use Linux 6.7 or later"
					 : "use Linux 6.7 or later with CONFIG_PROC_SYSCTL",
		     "trim and squeeze do not work here");
}

static void look_at_orders(struct doctor *d)
{
	const struct mthp *m = &d->c->snapshot->mthp;
	unsigned controllable = 0;

	for (uint32_t i = 0; i < m->nr_sizes; i++)
		controllable += m->size[i].controllable;
	if (m->orders == ORDERS_NONE)
		find(d, LEVEL_NOTE, "orders",
		     "folios above 32 KiB (4 KiB pages), except the PMD size, go to the zone lock "
		     "each time",
		     "use a kernel with pcp_enabled (contrib has a patch) or openEuler 6.6",
		     "this kernel does not let orders be put on the lists");
	else
		find(d, LEVEL_OK, "orders", NULL, NULL, "%u orders can be controlled (%s)",
		     m->orders == ORDERS_SINGLE ? 1 : controllable,
		     m->orders == ORDERS_SINGLE ? "pcp_allow_high_order" : "pcp_enabled");
	if (m->nr_sizes == 0)
		find(d, LEVEL_NOTE, "mTHP", "nothing is known of folio sizes and their rates",
		     "use Linux 6.10 or later with transparent huge pages",
		     "this kernel has no directories of folio sizes");
}

/* what gets in the way */

static void look_at_isolation(struct doctor *d)
{
	const struct topology *t = &d->c->snapshot->topology;
	size_t isolated = cpuset_count(&t->isolated), nohz = cpuset_count(&t->nohz_full);

	if (isolated + nohz > 0)
		find(d, LEVEL_PROBLEM, "isolated CPUs",
		     "nothing is drained automatically: a pass would wake every CPU",
		     "drain by hand with --isolated-too when that may be",
		     "%zu CPUs are isolated, %zu run without ticks (nohz_full)", isolated, nohz);
}

static const char *container_of_root(const struct sysroot *root, char *buf, size_t size)
{
	_cleanup_(text_free) struct text env = {0};

	if (read_word(root, "run/systemd/container", buf, size))
		return buf;
	if (sysroot_exists(root, ".dockerenv"))
		return "docker";
	if (sysroot_exists(root, "run/.containerenv"))
		return "podman";
	/* NUL between the variables; only root may read it */
	if (sysroot_read(root, "proc/1/environ", &env) < 0)
		return NULL;
	for (size_t i = 0; i < env.len; i += strlen(env.data + i) + 1)
		if (strncmp(env.data + i, "container=", 10) == 0 && env.data[i + 10]) {
			(void)snprintf(buf, size, "%s", env.data + i + 10);
			return buf;
		}
	return NULL;
}

/* Opening for writing writes nothing. */
static bool can_write(const struct doctor *d)
{
	_cleanup_(closep) int fd = sysroot_openat(&d->c->root, HIGH_FRACTION_REL, O_WRONLY, 0);

	return fd >= 0 && sysroot_is_live(&d->c->root);
}

static void look_at_container(struct doctor *d)
{
	char buf[64];
	const char *name = container_of_root(&d->c->root, buf, sizeof(buf));

	if (name && can_write(d))
		find(d, LEVEL_NOTE, "container", "what is set here is set for the whole host",
		     "run one pcptuned a host, not one a container",
		     "this is a container (%s) that may write to the knobs", name);
	else if (name && geteuid() != 0)
		find(d, LEVEL_NOTE, "container", NULL,
		     "run pcptunectl doctor as root to learn that",
		     "this is a container (%s); whether root may write to the knobs here cannot be "
		     "told",
		     name);
	else if (name)
		find(d, LEVEL_PROBLEM, "container",
		     "the knobs are the host's, and may not be written from here",
		     "run pcptuned on the host; read verbs work here", "this is a container (%s)",
		     name);
}

static void look_at_mount(struct doctor *d, const char *rel, const char *todo)
{
	_cleanup_(closep) int fd = sysroot_openat(&d->c->root, rel, O_PATH | O_DIRECTORY, 0);
	struct statvfs fs;

	if (fd < 0 || fstatvfs(fd, &fs) < 0)
		return;
	if (fs.f_flag & ST_RDONLY)
		find(d, LEVEL_PROBLEM, "read-only", "nothing can be set below it", todo,
		     "%s/%s is mounted read-only", d->c->root.path, rel);
}

/* Opening for writing writes nothing. */
static void look_at_permission(struct doctor *d, const char *rel)
{
	_cleanup_(closep) int fd = -1;

	if (!sysroot_exists(&d->c->root, rel))
		return;
	fd = sysroot_openat(&d->c->root, rel, O_WRONLY | O_NONBLOCK, 0);
	if (fd >= 0 || fd == -EROFS)
		return;
	if (geteuid() == 0)
		find(d, LEVEL_PROBLEM, "permission", "the kernel or a security module refuses",
		     "look at dmesg and the audit log", "root cannot open %s/%s for writing: %s",
		     d->c->root.path, rel, error_name(fd));
}

static void look_at_writing(struct doctor *d)
{
	if (!sysroot_is_live(&d->c->root)) {
		find(d, LEVEL_NOTE, "root", "it can only be looked at", NULL,
		     "%s is a capture, not a running kernel", d->c->root.path);
		return;
	}
	look_at_mount(d, "proc/sys/vm", "mount /proc writable, or run pcptuned on the host");
	look_at_mount(d, THP_REL, "mount /sys writable, or run pcptuned on the host");
	if (geteuid() != 0)
		find(d, LEVEL_NOTE, "permission", "drain and rollback need root",
		     "run pcptunectl doctor as root to see more", "you are not root");
	look_at_permission(d, HIGH_FRACTION_REL);
	look_at_permission(d, STAT_REFRESH_REL);
}

/* The line sets our knob: [-]vm.name = value or vm/name, as sysctl.d(5) has it. */
static bool sets_fraction(const char *line, char *value, size_t size)
{
	const char *s = line + strspn(line, " \t-");
	size_t n = strlen(SYSCTL_NAME);

	if (strncmp(s, "vm", 2) != 0 || (s[2] != '.' && s[2] != '/') ||
	    strncmp(s + 3, SYSCTL_NAME, n) != 0)
		return false;
	s += 3 + n;
	s += strspn(s, " \t");
	if (*s++ != '=')
		return false;
	s += strspn(s, " \t");
	(void)snprintf(value, size, "%.*s", (int)strcspn(s, " \t\r\n"), s);
	return true;
}

static void look_at_sysctl_file(struct doctor *d, const char *rel)
{
	_cleanup_(text_free) struct text text = {0};
	char value[32];
	unsigned line = 1;

	if (sysroot_read(&d->c->root, rel, &text) < 0)
		return;
	for (const char *s = text.data; *s; line++) {
		if (sets_fraction(s, value, sizeof(value)))
			find(d, LEVEL_PROBLEM, "another tuner",
			     "it is written at boot and whenever sysctl --system runs, and pcptune "
			     "then takes its hands off",
			     "take the line out, or let it be and run pcptuned in observe mode",
			     "%s/%s:%u sets vm.%s to %s", d->c->root.path, rel, line, SYSCTL_NAME,
			     value);
		s += strcspn(s, "\n");
		s += *s == '\n';
	}
}

static void look_at_sysctl_dir(struct doctor *d, const char *dir)
{
	int fd = sysroot_openat(&d->c->root, dir, O_RDONLY | O_DIRECTORY, 0);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!list && fd >= 0)
		(void)close(fd);
	while (list && (entry = readdir(list))) {
		size_t n = strlen(entry->d_name);
		char rel[320];

		/* Debian links /etc/sysctl.conf under this name: looked at apart */
		if (n < 5 || !streq(entry->d_name + n - 5, ".conf") ||
		    streq(entry->d_name, "99-sysctl.conf"))
			continue;
		(void)snprintf(rel, sizeof(rel), "%s/%s", dir, entry->d_name);
		look_at_sysctl_file(d, rel);
	}
	if (list)
		(void)closedir(list);
}

static void look_at_sysctl(struct doctor *d)
{
	static const char *const dirs[] = {"etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d",
					   "usr/lib/sysctl.d"};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		look_at_sysctl_dir(d, dirs[i]);
	look_at_sysctl_file(d, "etc/sysctl.conf");
}

static bool is_number(const char *s)
{
	while (isdigit((unsigned char)*s))
		s++;
	return *s == '\0';
}

static void look_at_process(struct doctor *d, const char *pid)
{
	static const char *const tuners[] = {"tuned", "bpftune", "tuned-ppd"};
	char rel[64], comm[32];

	(void)snprintf(rel, sizeof(rel), "proc/%.20s/comm", pid);
	if (!read_word(&d->c->root, rel, comm, sizeof(comm)))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(tuners); i++)
		if (streq(comm, tuners[i]))
			find(d, LEVEL_NOTE, "another tuner",
			     "if it writes the same settings, pcptune takes its hands off",
			     "see that its profile does not set vm." SYSCTL_NAME,
			     "%s runs (pid %s)", comm, pid);
}

static void look_at_processes(struct doctor *d)
{
	int fd = sysroot_openat(&d->c->root, "proc", O_RDONLY | O_DIRECTORY, 0);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!list && fd >= 0)
		(void)close(fd);
	while (list && (entry = readdir(list)))
		if (is_number(entry->d_name))
			look_at_process(d, entry->d_name);
	if (list)
		(void)closedir(list);
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = text; (s = strstr(s, word)); s += n)
		if ((s == text || s[-1] == ' ') && strchr(" \n", s[n]))
			return true;
	return false;
}

static void look_at_switches(struct doctor *d)
{
	_cleanup_(text_free) struct text cmdline = {0};

	if (sysroot_exists(&d->c->root, "etc/pcptune/disabled"))
		find(d, LEVEL_PROBLEM, "switched off", "the daemon restores and then observes",
		     "remove the file", "%s/etc/pcptune/disabled is there", d->c->root.path);
	if (sysroot_read(&d->c->root, "proc/cmdline", &cmdline) == 0 &&
	    has_word(cmdline.data, "pcptune=off"))
		find(d, LEVEL_PROBLEM, "switched off", "the daemon restores and then observes",
		     "boot without it", "the kernel command line has pcptune=off");
}

static void look_at_record(struct doctor *d)
{
	_cleanup_(freep) struct record *record = calloc(1, sizeof(*record));
	struct act_env env = act_env_from(&d->c->root, d->c->snapshot);
	struct error e = {0};
	int r;

	if (!record || !sysroot_exists(&d->c->root, RECORD_REL))
		return;
	r = record_load(record, &env, NULL, &e);
	if (r < 0 && r != -EACCES)
		find(d, LEVEL_PROBLEM, "record", "nothing is written until that is settled", NULL,
		     "%s", e.text);
}

static void look_at_events(struct doctor *d, const struct daemon_state *s)
{
	for (uint32_t i = 0; i < s->nr_events; i++) {
		const struct state_event *e = &s->events[i];

		if (streq(e->state, "events") || streq(e->state, "off"))
			continue;
		find(d, streq(e->state, "broken") ? LEVEL_PROBLEM : LEVEL_NOTE, "events",
		     "such changes are noticed later, or not at all",
		     "where the unit's restrictions are the cause, a drop-in of the package's "
		     "documentation lifts them; [Events] in pcptuned.conf switches a source off",
		     "%s: %s", e->source, e->reason);
	}
}

/* The unit lets only this machine connect; the URL says where the daemon listens. */
static void look_at_listening(struct doctor *d, const char *url)
{
	const char *address = strstr(url, "://");

	address = address ? address + 3 : url;
	if (!address[0] || address[0] == '/' || strncmp(address, "127.", 4) == 0 ||
	    strncmp(address, "[::1]", 5) == 0 || strncmp(address, "localhost", 9) == 0 ||
	    strncmp(address, "unix", 4) == 0)
		return;
	find(d, LEVEL_NOTE, "metrics", "the packaged unit lets only this machine connect",
	     "allow the scraping hosts with the drop-in 10-listen.conf of the package's "
	     "documentation (IPAddressAllow=)",
	     "the daemon listens on %s", address);
}

static void look_at_daemon(struct doctor *d)
{
	_cleanup_(holder_free) struct holder h = {0};

	holder_find(d->c, &h);
	if (h.is == HOLDER_RUNS)
		find(d, LEVEL_OK, "daemon", NULL, NULL, "%s runs (pid %lld)",
		     h.lock.program[0] ? h.lock.program : "pcptuned",
		     (long long)(h.lock.pid ? h.lock.pid : h.state.pid));
	if (h.is == HOLDER_RUNS && h.has_state) {
		look_at_events(d, &h.state);
		look_at_listening(d, h.state.metrics);
	}
	if (h.is == HOLDER_NONE)
		find(d, LEVEL_NOTE, "daemon", "nothing is tuned; read verbs work without it",
		     "systemctl start pcptuned, or run pcptuned by hand", "pcptuned does not run");
	if (h.stale_state)
		find(d, LEVEL_PROBLEM, "daemon", "knobs may still have its values",
		     "pcptunectl rollback, or start the daemon again",
		     "the last daemon was killed: it left %s/%s behind", d->c->root.path,
		     STATE_REL);
}

/* telling */

static const char *level_name(enum level l)
{
	return l == LEVEL_OK ? "ok" : l == LEVEL_NOTE ? "note" : "problem";
}

static int by_level(const struct doctor *d, enum level l)
{
	int n = 0;

	for (unsigned i = 0; i < d->nr; i++)
		n += d->list[i].level == l;
	return n;
}

static int print_text(const struct doctor *d)
{
	static const enum shade shades[] = {SHADE_GOOD, SHADE_WARNING, SHADE_BAD};
	const struct screen *sc = &d->c->screen;

	for (unsigned i = 0; i < d->nr; i++) {
		const struct finding *f = &d->list[i];

		(void)fprintf(sc->out, "%s%-7s%s  %-14s %s\n", shade(sc, shades[f->level]),
			      level_name(f->level), shade(sc, SHADE_PLAIN), f->topic, f->what);
		if (f->cost)
			(void)fprintf(sc->out, "%25s costs: %s\n", "", f->cost);
		if (f->todo)
			(void)fprintf(sc->out, "%25s to do: %s\n", "", f->todo);
	}
	(void)fprintf(sc->out, "\n%d ok, %d to note, %d in the way.\n", by_level(d, LEVEL_OK),
		      by_level(d, LEVEL_NOTE), by_level(d, LEVEL_PROBLEM));
	return EXIT_DONE;
}

static int print_json(const struct doctor *d)
{
	struct json_out *j = ctl_json_begin(d->c);

	json_begin_array(j, "findings");
	for (unsigned i = 0; i < d->nr; i++) {
		json_begin_object(j, NULL);
		json_put_str(j, "level", level_name(d->list[i].level));
		json_put_str(j, "topic", d->list[i].topic);
		json_put_str(j, "what", d->list[i].what);
		json_put_str(j, "cost", d->list[i].cost);
		json_put_str(j, "todo", d->list[i].todo);
		json_end_object(j);
	}
	json_end_array(j);
	return ctl_json_end(d->c);
}

int verb_doctor(struct ctl *c)
{
	static void (*const looks[])(struct doctor * d) = {
		look_at_kernel, look_at_sources,   look_at_fraction,  look_at_tuning,
		look_at_orders, look_at_isolation, look_at_container, look_at_writing,
		look_at_sysctl, look_at_processes, look_at_switches,  look_at_record,
		look_at_daemon,
	};
	_cleanup_(freep) struct doctor *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	/* a table that cannot be read is a finding */
	r = ctl_take(c, SOURCES_ALL, 0);
	if (r != EXIT_DONE)
		return r;
	d->c = c;
	for (size_t i = 0; i < ARRAY_SIZE(looks); i++)
		looks[i](d);
	return c->wants_json ? print_json(d) : print_text(d);
}
