/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control file: what happens to this kernel, in words. */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>

int refuse(struct fake *f, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(f->last_error, sizeof(f->last_error), fmt, ap);
	va_end(ap);
	return code;
}

int number(struct command *c, const char *word, double *ret)
{
	char *end;

	*ret = strtod(word, &end);
	return *end || end == word ? refuse(c->f, -EINVAL, "%s is no number", word) : 0;
}

int cpus_of(struct command *c, const char *word, struct cpuset *ret)
{
	int r = 0;

	if (streq(word, "all")) {
		for (unsigned cpu = 0; cpu < c->f->model.config.cpus && r == 0; cpu++)
			r = cpuset_add(ret, cpu);
		return r;
	}
	r = parse_cpulist(word, ret);
	return r < 0 ? refuse(c->f, r, "%s is no list of CPUs", word) : 0;
}

/* "0:Normal" */
int zone_of(struct command *c, const char *word, int *node, enum zone_type *type)
{
	const char *colon = strchr(word, ':');

	if (colon && colon[1])
		for (int t = 0; t < _ZONE_TYPE_MAX; t++)
			if (streq(colon + 1, zone_type_name((enum zone_type)t))) {
				*node = atoi(word);
				*type = (enum zone_type)t;
				return 0;
			}
	return refuse(c->f, -EINVAL, "%s is no zone: say NODE:NAME as 0:Normal", word);
}

int folio_of(struct command *c, const char *word, unsigned *order)
{
	const struct model *m = &c->f->model;
	uint64_t bytes, number_of;

	if (parse_u64(word, &number_of) == 0 && number_of <= m->pmd_order) {
		*order = (unsigned)number_of;
		return 0;
	}
	if (parse_bytes(word, &bytes) == 0)
		for (unsigned o = 0; o <= m->pmd_order; o++)
			if (bytes == UINT64_C(1) << (o + m->config.page_shift)) {
				*order = o;
				return 0;
			}
	return refuse(c->f, -EINVAL, "%s is no order and no folio size of this kernel", word);
}

int bytes_of(struct command *c, const char *word, uint64_t *ret)
{
	int r = parse_bytes(word, ret);

	return r < 0 ? refuse(c->f, -EINVAL, "%s is no size", word) : 0;
}

static const struct verb {
	const char *name, *args, *help;
	size_t min, max; /* words, the name included; max 0: any */
	int (*run)(struct command *c);
} verbs[] = {
	{"advance", "SECONDS", "let model time pass", 2, 2, cmd_advance},
	{"clock", "manual|real", "does time pass by itself", 2, 2, cmd_clock},
	{"after", "SECONDS COMMAND", "run a command later, once", 3, 0, cmd_after},
	{"every", "SECONDS COMMAND", "run a command again and again", 3, 0, cmd_every},
	{"cancel", "", "forget all of after and every", 1, 1, cmd_cancel},
	{"load", "NAME CPUS ORDER RATE [BURST [anon|other]]",
	 "take and give back blocks, RATE bytes a second on each CPU, BURST bytes at a time", 5, 7,
	 cmd_load},
	{"unload", "NAME|all", "end a load", 2, 2, cmd_unload},
	{"touch", "CPUS ORDER BYTES", "take and give back once", 4, 4, cmd_touch},
	{"park", "CPUS NODE:ZONE PAGES [ORDER]", "put free pages on lists, high as high as count",
	 4, 5, cmd_park},
	{"drain", "", "empty every list", 1, 1, cmd_drain},
	{"busy", "CPUS", "these CPUs' lists decay once a second", 2, 2, cmd_busy},
	{"idle", "CPUS", "... and these do not", 2, 2, cmd_busy},
	{"spin", "CPUS", "a real-time task keeps these from working for a pass", 2, 2, cmd_spin},
	{"unspin", "CPUS", "... and these no longer", 2, 2, cmd_spin},
	{"free", "NODE:ZONE|all SHARE", "so much of the zone is free (0 to 1)", 3, 3, cmd_free},
	{"fragment", "NODE:ZONE|all ORDER SHARE", "so much of what is free is below ORDER", 4, 4,
	 cmd_fragment},
	{"count", "vmstat.X|mthp.SIZE.X N", "add to a counter", 3, 3, cmd_count},
	{"rate", "vmstat.X|mthp.SIZE.X N", "add N a second to a counter", 3, 3, cmd_rate},
	{"pressure", "SOME FULL", "shares of time stalled for memory (0 to 1)", 3, 3, cmd_pressure},
	{"cpu", "CPUS online|offline", "CPU hotplug", 3, 3, cmd_cpu},
	{"node", "NODE online|offline", "a node and its memory comes or goes", 3, 3, cmd_node},
	{"zone", "NODE:ZONE +SIZE|-SIZE", "memory comes or goes at once", 3, 3, cmd_zone},
	{"offline-memory", "NODE:ZONE SIZE SECONDS", "... takes so long, with the lists off", 4, 4,
	 cmd_offline_memory},
	{"offline-end", "NODE:ZONE SIZE", "... ends", 3, 3, cmd_offline_end},
	{"write", "PATH TEXT", "somebody else writes to a file", 3, 0, cmd_write},
	{"hide", "PATTERN", "files vanish", 2, 2, cmd_hide},
	{"show", "PATTERN|all", "... and are there again", 2, 2, cmd_show},
	{"process", "add|remove PID [COMM]", "a process in /proc", 3, 4, cmd_process},
	{"fault", "[times=N] [skip=K] PATTERN OP ACTION [ARG...]",
	 "OP open, open-write, read, write; ACTION an errno, block SECONDS|forever, cut BYTE, "
	 "change BYTE [COMMAND], drop, value TEXT, short BYTES",
	 4, 0, cmd_fault},
	{"clear", "[PATTERN]", "end faults and hooks, wake who is blocked", 1, 2, cmd_clear},
	{"when", "PATTERN OP COUNT COMMAND", "run a command before the COUNT-th operation", 5, 0,
	 cmd_when},
	{"race", "BLOCKS", "order-4 blocks freed between drain and store of the single file", 2, 2,
	 cmd_race},
	{"reboot", "", "defaults, empty lists, another boot id", 1, 1, cmd_reboot},
	{"reset", "", "forget the counts and the log of writes", 1, 1, cmd_reset},
};

static void split(char *line, char *rest_buffer, struct command *c)
{
	size_t at = 0;

	while (c->n < WORDS_MAX) {
		at += strspn(line + at, " \t");
		if (!line[at])
			return;
		c->word[c->n] = line + at;
		c->rest[c->n++] = rest_buffer + at;
		at += strcspn(line + at, " \t");
		if (!line[at])
			return;
		line[at++] = '\0';
	}
}

/* times=N and skip=K may stand before the other words. */
static void take_options(struct command *c)
{
	while (c->n > 1 &&
	       (strncmp(c->word[1], "times=", 6) == 0 || strncmp(c->word[1], "skip=", 5) == 0)) {
		unsigned n = (unsigned)atoi(strchr(c->word[1], '=') + 1);

		*(c->word[1][0] == 't' ? &c->times : &c->skip) = n;
		c->n--;
		memmove(&c->word[1], &c->word[2], (c->n - 1) * sizeof(c->word[0]));
		memmove(&c->rest[1], &c->rest[2], (c->n - 1) * sizeof(c->rest[0]));
	}
}

static int run_line(struct fake *f, const char *text, size_t len)
{
	char line[512], rest[512];
	struct command c = {.f = f};

	if (len >= sizeof(line))
		return refuse(f, -E2BIG, "a line is too long");
	memcpy(line, text, len);
	line[len] = '\0';
	memcpy(rest, line, sizeof(rest));
	split(line, rest, &c);
	if (c.n == 0 || c.word[0][0] == '#')
		return 0;
	take_options(&c);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		const struct verb *v = &verbs[i];

		if (!streq(v->name, c.word[0]))
			continue;
		if (c.n < v->min || (v->max && c.n > v->max))
			return refuse(f, -EINVAL, "say %s %s", v->name, v->args);
		return v->run(&c);
	}
	return refuse(f, -EINVAL, "no command is called %s", c.word[0]);
}

int control_run(struct fake *f, const char *text)
{
	bool was = f->in_command;
	int r = 0;

	f->in_command = true;
	while (*text && r == 0) {
		size_t len = strcspn(text, "\n");

		r = run_line(f, text, len);
		text += len + (text[len] == '\n');
	}
	f->in_command = was;
	pthread_cond_broadcast(&f->changed);
	return r;
}

void control_help(FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		(void)fprintf(out, "  %s %s\n      %s\n", verbs[i].name, verbs[i].args,
			      verbs[i].help);
}

void control_show(struct fake *f, struct text *t)
{
	struct model *m = &f->model;
	uint64_t first = f->nr_written > LOG_MAX ? f->nr_written - LOG_MAX : 0;

	text_addf(t, "time_usec %" PRIu64 "\nboot_id %s\n", m->now_usec, f->boot_id);
	text_addf(t, "fraction %" PRIu64 "\norders_on %#x\n", m->fraction, m->orders_on);
	text_addf(t, "parked_pages %" PRIu64 "\n", model_parked(m));
	text_addf(t, "passes %" PRIu64 "\norder_drains %" PRIu64 "\n", m->passes, m->order_drains);
	for (size_t i = 0; i < f->nr_paths; i++)
		for (int op = 0; op < _OP_MAX; op++)
			if (f->paths[i].n[op])
				text_addf(t, "%ss %s %" PRIu64 "\n", op_name((enum op)op),
					  f->paths[i].path, f->paths[i].n[op]);
	text_addf(t, "blocked %" PRIu64 "\nfaults %zu\nhooks %zu\ntimers %zu\n", f->blocked,
		  f->nr_faults, f->nr_hooks, f->nr_timers);
	if (f->last_error[0])
		text_addf(t, "last_error %s\n", f->last_error);
	text_addf(t, "written %" PRIu64 "\n", f->nr_written);
	for (uint64_t i = first; i < f->nr_written; i++) {
		const struct written *w = &f->log[i % LOG_MAX];

		text_addf(t, "write %" PRIu64 " %d %s %d %s\n", w->usec, w->pid, w->path, w->result,
			  w->text);
	}
}
