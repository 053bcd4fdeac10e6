/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control file: what happens to this kernel, in words. */
#include "files.h"

#include <errno.h>
#include <inttypes.h>

#define WORDS_MAX 8

/* One command line, split at blanks. rest[i] is the text from word i to the end of the line. */
struct command {
	struct fake *f;
	const char *word[WORDS_MAX], *rest[WORDS_MAX];
	size_t n;
	unsigned times, skip;
};

_printf_(3, 4) static int refuse(struct fake *f, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(f->last_error, sizeof(f->last_error), fmt, ap);
	va_end(ap);
	return code;
}

static int number(struct command *c, const char *word, double *ret)
{
	char *end;

	*ret = strtod(word, &end);
	return *end || end == word ? refuse(c->f, -EINVAL, "%s is no number", word) : 0;
}

static int cpus_of(struct command *c, const char *word, struct cpuset *ret)
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
static int zone_of(struct command *c, const char *word, int *node, enum zone_type *type)
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

static int folio_of(struct command *c, const char *word, unsigned *order)
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

static int bytes_of(struct command *c, const char *word, uint64_t *ret)
{
	int r = parse_bytes(word, ret);

	return r < 0 ? refuse(c->f, -EINVAL, "%s is no size", word) : 0;
}

/* time */

static int cmd_advance(struct command *c)
{
	double seconds;
	int r = number(c, c->word[1], &seconds);

	if (r == 0)
		fake_advance(c->f, (uint64_t)(seconds * (double)USEC_PER_SEC));
	return r;
}

static int cmd_clock(struct command *c)
{
	c->f->manual_clock = streq(c->word[1], "manual");
	return c->f->manual_clock || streq(c->word[1], "real")
		       ? 0
		       : refuse(c->f, -EINVAL, "clock manual, or clock real");
}

static int add_timer(struct command *c, bool again)
{
	struct fake *f = c->f;
	struct timer *t = &f->timers[f->nr_timers];
	double seconds;
	int r = number(c, c->word[1], &seconds);

	if (r < 0)
		return r;
	if (f->nr_timers == TIMERS_MAX || strlen(c->rest[2]) >= sizeof(t->command) ||
	    (again && seconds < 0.001))
		return refuse(f, -EINVAL,
			      "too many timers, too long a command or too short a time");
	t->every_usec = again ? (uint64_t)(seconds * (double)USEC_PER_SEC) : 0;
	t->due_usec = f->model.now_usec + (uint64_t)(seconds * (double)USEC_PER_SEC);
	(void)snprintf(t->command, sizeof(t->command), "%s", c->rest[2]);
	f->nr_timers++;
	return 0;
}

static int cmd_after(struct command *c)
{
	return add_timer(c, false);
}

static int cmd_every(struct command *c)
{
	return add_timer(c, true);
}

static int cmd_cancel(struct command *c)
{
	c->f->nr_timers = 0;
	return 0;
}

/* load */

static int cmd_unload(struct command *c)
{
	struct model *m = &c->f->model;
	size_t kept = 0;

	for (size_t i = 0; i < m->nr_loads; i++)
		if (streq(c->word[1], "all") || streq(c->word[1], m->loads[i].name))
			cpuset_free(&m->loads[i].cpus);
		else
			m->loads[kept++] = m->loads[i];
	m->nr_loads = kept;
	return 0;
}

static int cmd_load(struct command *c)
{
	struct model *m = &c->f->model;
	struct load l = {.burst = 2 << 20, .anon = true};
	int r;

	if (m->nr_loads == MODEL_LOADS_MAX)
		return refuse(c->f, -ENOSPC, "too many loads");
	(void)cmd_unload(c);
	r = folio_of(c, c->word[3], &l.order);
	if (r == 0)
		r = bytes_of(c, c->word[4], &l.rate);
	if (r == 0 && c->n > 5)
		r = bytes_of(c, c->word[5], &l.burst);
	if (r == 0)
		r = cpus_of(c, c->word[2], &l.cpus);
	if (r < 0) {
		cpuset_free(&l.cpus);
		return r;
	}
	(void)snprintf(l.name, sizeof(l.name), "%s", c->word[1]);
	l.anon = !(c->n > 6 && streq(c->word[6], "other"));
	m->loads[m->nr_loads++] = l;
	return 0;
}

static int cmd_busy(struct command *c)
{
	_cleanup_(cpuset_free) struct cpuset cpus = {0};
	struct model *m = &c->f->model;
	bool busy = streq(c->word[0], "busy");
	int r = cpus_of(c, c->word[1], &cpus);

	for (unsigned cpu = 0; r == 0 && cpu < m->config.cpus; cpu++)
		if (cpuset_has(&cpus, cpu))
			m->cpus[cpu].busy = busy;
	return r;
}

static int cmd_spin(struct command *c)
{
	_cleanup_(cpuset_free) struct cpuset cpus = {0};
	struct model *m = &c->f->model;
	bool spin = streq(c->word[0], "spin");
	int r = cpus_of(c, c->word[1], &cpus);

	for (unsigned cpu = 0; r == 0 && cpu < m->config.cpus; cpu++)
		if (cpuset_has(&cpus, cpu))
			m->cpus[cpu].spinning = spin;
	return r;
}

static int cmd_park(struct command *c)
{
	_cleanup_(cpuset_free) struct cpuset cpus = {0};
	struct model *m = &c->f->model;
	enum zone_type type;
	unsigned order = 0;
	uint64_t pages;
	int node, r;

	r = cpus_of(c, c->word[1], &cpus);
	if (r == 0)
		r = zone_of(c, c->word[2], &node, &type);
	if (r == 0 && parse_u64(c->word[3], &pages) < 0)
		r = refuse(c->f, -EINVAL, "%s is no number of pages", c->word[3]);
	if (r == 0 && c->n > 4)
		r = folio_of(c, c->word[4], &order);
	for (int cpu = cpuset_next(&cpus, 0); r == 0 && cpu >= 0;
	     cpu = cpuset_next(&cpus, cpu + 1)) {
		r = model_park(m, node, type, (unsigned)cpu, order, pages);
		if (r < 0)
			return refuse(c->f, r, "cannot park that on CPU %d: %s", cpu, strerror(-r));
	}
	return r;
}

/* Takes so many bytes and gives them back, once. */
static int cmd_touch(struct command *c)
{
	_cleanup_(cpuset_free) struct cpuset cpus = {0};
	struct model *m = &c->f->model;
	unsigned order;
	uint64_t bytes, got;
	int r;

	r = cpus_of(c, c->word[1], &cpus);
	if (r == 0)
		r = folio_of(c, c->word[2], &order);
	if (r == 0)
		r = bytes_of(c, c->word[3], &bytes);
	for (int cpu = cpuset_next(&cpus, 0); r == 0 && cpu >= 0;
	     cpu = cpuset_next(&cpus, cpu + 1)) {
		struct model_zone *z =
			(unsigned)cpu < m->config.cpus ? model_home_zone(m, (unsigned)cpu) : NULL;

		got = 0;
		for (uint64_t i = 0; z && i < bytes >> (order + m->config.page_shift); i++)
			got += pcp_alloc(m, z, (unsigned)cpu, order);
		for (; got > 0; got--)
			pcp_free(m, z, (unsigned)cpu, order);
	}
	return r;
}

static int cmd_drain(struct command *c)
{
	model_drain_all(&c->f->model);
	return 0;
}

/* shortage */

static int cmd_free(struct command *c)
{
	struct model *m = &c->f->model;
	enum zone_type type;
	double ratio;
	int node, r = number(c, c->word[2], &ratio);

	if (r < 0 || ratio < 0 || ratio > 1)
		return refuse(c->f, -EINVAL, "the share of free memory is 0 to 1");
	if (streq(c->word[1], "all")) {
		for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
			zone_set_free(m, z, (uint64_t)(ratio * (double)z->managed));
		return 0;
	}
	r = zone_of(c, c->word[1], &node, &type);
	if (r == 0 && !model_zone(m, node, type))
		return refuse(c->f, -ENOENT, "no zone %s", c->word[1]);
	if (r == 0)
		zone_set_free(m, model_zone(m, node, type),
			      (uint64_t)(ratio * (double)model_zone(m, node, type)->managed));
	return r;
}

static int cmd_fragment(struct command *c)
{
	struct model *m = &c->f->model;
	enum zone_type type = ZONE_TYPE_DMA;
	bool all = streq(c->word[1], "all");
	unsigned order;
	double ratio;
	int node = 0, r = folio_of(c, c->word[2], &order);

	if (r == 0)
		r = number(c, c->word[3], &ratio);
	if (r == 0 && !all)
		r = zone_of(c, c->word[1], &node, &type);
	if (r < 0)
		return r;
	for (struct model_zone *z = NULL; (z = model_next_zone(m, z));)
		if (all || (z->node == node && z->type == type)) {
			z->unusable_from = order;
			z->unusable = ratio;
		}
	return 0;
}

/* "vmstat.compact_stall", "mthp.64kB.swpout" */
static int counter_of(struct command *c, const char *word, uint64_t **ret)
{
	struct model *m = &c->f->model;
	char size[16] = "";
	const char *dot;
	unsigned order;
	int r;

	if (strncmp(word, "vmstat.", 7) == 0) {
		const struct counter_row *row = vmstat_find(word + 7, m->config.release);

		*ret = row ? &m->vmstat[row->id] : NULL;
	} else if (strncmp(word, "mthp.", 5) == 0 && (dot = strchr(word + 5, '.')) &&
		   (size_t)(dot - word - 5) < sizeof(size)) {
		const struct mthp_row *row = mthp_find(dot + 1, m->config.release);

		memcpy(size, word + 5, (size_t)(dot - word - 5));
		r = folio_of(c, size, &order);
		if (r < 0)
			return r;
		*ret = row ? &m->mthp[order][row->id] : NULL;
	} else {
		*ret = NULL;
	}
	return *ret ? 0 : refuse(c->f, -ENOENT, "this kernel has no counter %s", word);
}

static int cmd_count(struct command *c)
{
	uint64_t *counter;
	double n;
	int r = counter_of(c, c->word[1], &counter);

	if (r == 0)
		r = number(c, c->word[2], &n);
	if (r == 0)
		*counter += (uint64_t)(int64_t)n;
	return r;
}

static int cmd_rate(struct command *c)
{
	struct model *m = &c->f->model;
	struct counter_rate *at = NULL;
	uint64_t *counter;
	double n;
	int r = counter_of(c, c->word[1], &counter);

	if (r == 0)
		r = number(c, c->word[2], &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m->nr_rates && !at; i++)
		if (m->rates[i].counter == counter)
			at = &m->rates[i];
	if (!at && m->nr_rates == MODEL_RATES_MAX)
		return refuse(c->f, -ENOSPC, "too many rates");
	if (!at)
		at = &m->rates[m->nr_rates++];
	*at = (struct counter_rate){.counter = counter, .per_second = n};
	return 0;
}

static int cmd_pressure(struct command *c)
{
	double some, full;
	int r = number(c, c->word[1], &some);

	if (r == 0)
		r = number(c, c->word[2], &full);
	if (r < 0)
		return r;
	c->f->model.some.share = some;
	c->f->model.full.share = full;
	return 0;
}

/* hotplug */

static int cmd_cpu(struct command *c)
{
	_cleanup_(cpuset_free) struct cpuset cpus = {0};
	bool online = streq(c->word[2], "online");
	int r = cpus_of(c, c->word[1], &cpus);

	if (!online && !streq(c->word[2], "offline"))
		return refuse(c->f, -EINVAL, "online or offline");
	for (int cpu = cpuset_next(&cpus, 0); r == 0 && cpu >= 0;
	     cpu = cpuset_next(&cpus, cpu + 1)) {
		r = model_cpu_set(&c->f->model, (unsigned)cpu, online);
		if (r < 0)
			return refuse(c->f, r, "no CPU %d", cpu);
	}
	return r < 0 ? r : fake_rebuild(c->f);
}

static int cmd_node(struct command *c)
{
	bool online = streq(c->word[2], "online");
	int r = model_node_set(&c->f->model, atoi(c->word[1]), online);

	if (r < 0)
		return refuse(c->f, r, "cannot set node %s %s: %s", c->word[1], c->word[2],
			      strerror(-r));
	return fake_rebuild(c->f);
}

static int cmd_zone(struct command *c)
{
	struct model *m = &c->f->model;
	enum zone_type type;
	uint64_t bytes;
	int64_t pages;
	int node, r = zone_of(c, c->word[1], &node, &type);

	if (r < 0)
		return r;
	if (c->word[2][0] != '+' && c->word[2][0] != '-')
		return refuse(c->f, -EINVAL, "say +SIZE or -SIZE");
	r = bytes_of(c, c->word[2] + 1, &bytes);
	if (r < 0)
		return r;
	pages = (int64_t)(bytes >> m->config.page_shift);
	r = model_zone_resize(m, node, type, c->word[2][0] == '-' ? -pages : pages);
	return r < 0 ? refuse(c->f, r, "no node %d", node) : fake_rebuild(c->f);
}

/* offline-memory ZONE SIZE SECONDS: the lists are off meanwhile, and the fraction is locked */
static int cmd_offline_memory(struct command *c)
{
	struct fake *f = c->f;
	char later[FAKE_TEXT_MAX];
	enum zone_type type;
	double seconds;
	uint64_t bytes;
	int node, r = zone_of(c, c->word[1], &node, &type);

	if (r == 0)
		r = bytes_of(c, c->word[2], &bytes);
	if (r == 0)
		r = number(c, c->word[3], &seconds);
	if (r < 0)
		return r;
	if (!model_zone(&f->model, node, type) || f->nr_timers == TIMERS_MAX)
		return refuse(f, -ENOENT, "no zone %s, or too many timers", c->word[1]);
	zone_lists_off(&f->model, model_zone(&f->model, node, type), true);
	(void)snprintf(later, sizeof(later), "offline-end %s %s", c->word[1], c->word[2]);
	f->timers[f->nr_timers] = (struct timer){
		.due_usec = f->model.now_usec + (uint64_t)(seconds * (double)USEC_PER_SEC)};
	memcpy(f->timers[f->nr_timers++].command, later, sizeof(later));
	return 0;
}

static int cmd_offline_end(struct command *c)
{
	struct model *m = &c->f->model;
	enum zone_type type;
	uint64_t bytes;
	int node, r = zone_of(c, c->word[1], &node, &type);

	if (r == 0)
		r = bytes_of(c, c->word[2], &bytes);
	if (r < 0)
		return r;
	m->nodes[node].zones[type].lists_off = false;
	r = model_zone_resize(m, node, type, -(int64_t)(bytes >> m->config.page_shift));
	return r < 0 ? r : fake_rebuild(c->f);
}

/* files */

static int cmd_write(struct command *c)
{
	struct fake *f = c->f;
	const struct tree_entry *e = tree_find(&f->tree, c->word[1]);
	struct tree_entry copy;
	int n;

	if (!e)
		return refuse(f, -ENOENT, "no file %s", c->word[1]);
	copy = *e;
	n = file_write(f, &copy, c->rest[2], strlen(c->rest[2]), 0);
	return n < 0 ? refuse(f, n, "%s does not take %s", c->word[1], c->rest[2]) : 0;
}

static int cmd_hide(struct command *c)
{
	struct fake *f = c->f;

	if (f->nr_hidden == HIDDEN_MAX || strlen(c->word[1]) >= FAKE_PATH_MAX)
		return refuse(f, -ENOSPC, "too many hidden files");
	(void)snprintf(f->hidden[f->nr_hidden++], FAKE_PATH_MAX, "%s", c->word[1]);
	return fake_rebuild(f);
}

static int cmd_show(struct command *c)
{
	struct fake *f = c->f;
	size_t kept = 0;

	for (size_t i = 0; i < f->nr_hidden; i++)
		if (!streq(f->hidden[i], c->word[1]) && !streq(c->word[1], "all"))
			memmove(f->hidden[kept++], f->hidden[i], FAKE_PATH_MAX);
	f->nr_hidden = kept;
	return fake_rebuild(f);
}

static int cmd_process(struct command *c)
{
	struct fake *f = c->f;
	int pid = atoi(c->word[2]);
	size_t kept = 0;

	for (size_t i = 0; i < f->nr_processes; i++)
		if (f->processes[i].pid != pid)
			f->processes[kept++] = f->processes[i];
	f->nr_processes = kept;
	if (streq(c->word[1], "add") && c->n > 3 && kept < PROCESSES_MAX) {
		f->processes[kept].pid = pid;
		(void)snprintf(f->processes[kept].comm, sizeof(f->processes[kept].comm), "%.15s",
			       c->word[3]);
		f->nr_processes++;
	}
	return fake_rebuild(f);
}

/* faults */

static int errno_of(const char *name)
{
	static const struct {
		const char *name;
		int code;
	} codes[] = {
		{"EIO", EIO},
		{"EACCES", EACCES},
		{"EPERM", EPERM},
		{"EROFS", EROFS},
		{"ENOENT", ENOENT},
		{"EINTR", EINTR},
		{"EINVAL", EINVAL},
		{"EBUSY", EBUSY},
		{"EAGAIN", EAGAIN},
		{"ENODEV", ENODEV},
		{"ENOMEM", ENOMEM},
		{"ENOSPC", ENOSPC},
		{"EOPNOTSUPP", EOPNOTSUPP},
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (streq(codes[i].name, name))
			return codes[i].code;
	return 0;
}

static int fault_action_of(struct command *c, struct fault *ret)
{
	static const struct {
		const char *name;
		enum fault_action action;
		size_t words; /* behind the name */
	} actions[] = {
		{"block", FAULT_BLOCK, 1}, {"cut", FAULT_CUT, 1},     {"change", FAULT_CHANGE, 1},
		{"drop", FAULT_DROP, 0},   {"value", FAULT_VALUE, 1}, {"short", FAULT_SHORT, 1},
	};
	const char *what = c->word[3];

	ret->code = errno_of(what);
	if (ret->code)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (!streq(actions[i].name, what))
			continue;
		ret->action = actions[i].action;
		if (c->n < 4 + actions[i].words)
			return refuse(c->f, -EINVAL, "fault ... %s wants a number or a text", what);
		if (ret->action == FAULT_DROP)
			return 0;
		if (ret->action == FAULT_BLOCK && streq(c->word[4], "forever")) {
			ret->number = -1;
			return 0;
		}
		(void)snprintf(ret->text, sizeof(ret->text), "%s",
			       ret->action == FAULT_VALUE ? c->rest[4]
			       : c->n > 5                 ? c->rest[5]
							  : "");
		return ret->action == FAULT_VALUE ? 0 : number(c, c->word[4], &ret->number);
	}
	return refuse(c->f, -EINVAL, "no fault is called %s", what);
}

static int cmd_fault(struct command *c)
{
	struct fake *f = c->f;
	struct fault fault = {.action = FAULT_ERRNO, .times = c->times, .skip = c->skip};
	int op = op_from_name(c->word[2]), r;

	if (op < 0)
		return refuse(f, -EINVAL, "no operation is called %s", c->word[2]);
	if (f->nr_faults == FAULTS_MAX || strlen(c->word[1]) >= sizeof(fault.pattern))
		return refuse(f, -ENOSPC, "too many faults");
	fault.op = (enum op)op;
	(void)snprintf(fault.pattern, sizeof(fault.pattern), "%s", c->word[1]);
	r = fault_action_of(c, &fault);
	if (r == 0)
		f->faults[f->nr_faults++] = fault;
	return r;
}

static int cmd_clear(struct command *c)
{
	faults_clear(c->f, c->n > 1 ? c->word[1] : "*");
	return 0;
}

static int cmd_when(struct command *c)
{
	struct fake *f = c->f;
	struct hook *h = &f->hooks[f->nr_hooks];
	int op = op_from_name(c->word[2]);
	uint64_t count;

	if (op < 0 || parse_u64(c->word[3], &count) < 0 || count == 0 || count > INT32_MAX)
		return refuse(f, -EINVAL, "when PATH open|open-write|read|write COUNT COMMAND");
	if (f->nr_hooks == HOOKS_MAX || strlen(c->rest[4]) >= sizeof(h->command) ||
	    strlen(c->word[1]) >= sizeof(h->pattern))
		return refuse(f, -ENOSPC, "too many hooks, or too long a one");
	*h = (struct hook){.op = (enum op)op, .left = (unsigned)count};
	(void)snprintf(h->pattern, sizeof(h->pattern), "%s", c->word[1]);
	(void)snprintf(h->command, sizeof(h->command), "%s", c->rest[4]);
	f->nr_hooks++;
	return 0;
}

static int cmd_race(struct command *c)
{
	return parse_u64(c->word[1], &c->f->race_blocks) < 0 ? refuse(c->f, -EINVAL, "race BLOCKS")
							     : 0;
}

static int cmd_reboot(struct command *c)
{
	fake_reboot(c->f);
	return 0;
}

static int cmd_reset(struct command *c)
{
	c->f->nr_written = 0;
	c->f->nr_paths = 0;
	c->f->model.passes = 0;
	c->f->model.order_drains = 0;
	return 0;
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
