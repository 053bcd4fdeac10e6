/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "commands.h"

#include <errno.h>

/* time */

int cmd_advance(struct command *c)
{
	double seconds;
	int r = number(c, c->word[1], &seconds);

	if (r == 0)
		fake_advance(c->f, (uint64_t)(seconds * (double)USEC_PER_SEC));
	return r;
}

int cmd_clock(struct command *c)
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

int cmd_after(struct command *c)
{
	return add_timer(c, false);
}

int cmd_every(struct command *c)
{
	return add_timer(c, true);
}

int cmd_cancel(struct command *c)
{
	c->f->nr_timers = 0;
	return 0;
}

/* files */

int cmd_write(struct command *c)
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

int cmd_hide(struct command *c)
{
	struct fake *f = c->f;

	if (f->nr_hidden == HIDDEN_MAX || strlen(c->word[1]) >= FAKE_PATH_MAX)
		return refuse(f, -ENOSPC, "too many hidden files");
	(void)snprintf(f->hidden[f->nr_hidden++], FAKE_PATH_MAX, "%s", c->word[1]);
	return fake_rebuild(f);
}

int cmd_show(struct command *c)
{
	struct fake *f = c->f;
	size_t kept = 0;

	for (size_t i = 0; i < f->nr_hidden; i++)
		if (!streq(f->hidden[i], c->word[1]) && !streq(c->word[1], "all"))
			memmove(f->hidden[kept++], f->hidden[i], FAKE_PATH_MAX);
	f->nr_hidden = kept;
	return fake_rebuild(f);
}

int cmd_process(struct command *c)
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

int cmd_fault(struct command *c)
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

int cmd_clear(struct command *c)
{
	faults_clear(c->f, c->n > 1 ? c->word[1] : "*");
	return 0;
}

int cmd_when(struct command *c)
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

int cmd_race(struct command *c)
{
	return parse_u64(c->word[1], &c->f->race_blocks) < 0 ? refuse(c->f, -EINVAL, "race BLOCKS")
							     : 0;
}

int cmd_reboot(struct command *c)
{
	fake_reboot(c->f);
	return 0;
}

int cmd_reset(struct command *c)
{
	c->f->nr_written = 0;
	c->f->nr_paths = 0;
	c->f->model.passes = 0;
	c->f->model.order_drains = 0;
	return 0;
}
