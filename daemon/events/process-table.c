/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "process-table.h"

#include <errno.h>

#define SLOTS_MIN 64U
#define NO_NAME   UINT16_MAX

enum slot_state {
	SLOT_EMPTY,
	SLOT_NAMED,  /* carries wanted name number `name` */
	SLOT_NEW,    /* started a program since the last look */
	SLOT_LOOKED, /* … before the last look: due */
};

struct slot {
	pid_t pid;
	uint16_t state;
	uint16_t name; /* also of one that is unnamed now, so that it counts until it is read */
	uint32_t seen; /* the scan that saw it */
};

struct wanted {
	char name[PROCESS_NAME_MAX];
	uint32_t processes;
	bool doubtful; /* runs as far as we know, but no process is known: a scan will tell */
};

struct process_table {
	struct slot *slots; /* open addressing, linear probing */
	size_t nr_slots;    /* a power of two */
	size_t used, unnamed;
	struct wanted *wanted;
	char (*running)[PROCESS_NAME_MAX];
	size_t nr_wanted;
	uint32_t scan;
	bool scanning;
};

int process_table_new(struct process_table **ret)
{
	struct process_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->slots = calloc(SLOTS_MIN, sizeof(*t->slots));
	if (!t->slots) {
		free(t);
		return -ENOMEM;
	}
	t->nr_slots = SLOTS_MIN;
	*ret = t;
	return 0;
}

struct process_table *process_table_free(struct process_table *t)
{
	if (!t)
		return NULL;
	free(t->slots);
	free(t->wanted);
	free(t->running);
	free(t);
	return NULL;
}

int process_table_want(struct process_table *t, const char *const *names, size_t n)
{
	_cleanup_(freep) struct wanted *wanted = calloc(n ? n : 1, sizeof(*wanted));
	char(*running)[PROCESS_NAME_MAX] = calloc(n ? n : 1, sizeof(*running));

	if (!wanted || !running || n >= NO_NAME) {
		free(running);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		(void)snprintf(wanted[i].name, sizeof(wanted[i].name), "%.*s",
			       (int)PROCESS_NAME_MAX - 1, names[i]);
	free(t->wanted);
	free(t->running);
	t->wanted = TAKE_PTR(wanted);
	t->running = running;
	t->nr_wanted = n;
	memset(t->slots, 0, t->nr_slots * sizeof(*t->slots));
	t->used = t->unnamed = 0;
	return 0;
}

size_t process_table_wanted(const struct process_table *t)
{
	return t->nr_wanted;
}

static uint16_t find_name(const struct process_table *t, const char *comm)
{
	for (size_t i = 0; i < t->nr_wanted; i++)
		if (strncmp(t->wanted[i].name, comm, PROCESS_NAME_MAX - 1) == 0)
			return (uint16_t)i;
	return NO_NAME;
}

bool process_table_wants(const struct process_table *t, const char *comm)
{
	return find_name(t, comm) != NO_NAME;
}

static size_t home_of(const struct process_table *t, pid_t pid)
{
	return ((uint32_t)pid * UINT32_C(2654435761) >> 7) & (t->nr_slots - 1);
}

/* The slot of `pid`, or the empty one where it would go. */
static struct slot *lookup(const struct process_table *t, pid_t pid)
{
	size_t i = home_of(t, pid);

	while (t->slots[i].state != SLOT_EMPTY && t->slots[i].pid != pid)
		i = (i + 1) & (t->nr_slots - 1);
	return &t->slots[i];
}

static int grow(struct process_table *t)
{
	struct process_table larger = *t;

	larger.nr_slots = 2 * t->nr_slots;
	larger.slots = calloc(larger.nr_slots, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->nr_slots; i++)
		if (t->slots[i].state != SLOT_EMPTY)
			*lookup(&larger, t->slots[i].pid) = t->slots[i];
	free(t->slots);
	*t = larger;
	return 0;
}

/* Finds the process's slot or makes it one that is due to be filled. NULL: no memory. */
static struct slot *slot_for(struct process_table *t, pid_t pid)
{
	struct slot *s = lookup(t, pid);

	if (s->state != SLOT_EMPTY)
		return s;
	if (4 * (t->used + 1) > 3 * t->nr_slots) {
		if (grow(t) < 0)
			return NULL;
		s = lookup(t, pid);
	}
	*s = (struct slot){.pid = pid, .name = NO_NAME};
	t->used++;
	return s;
}

/* Closes the gap, so that probing never stops short. */
static void vacate(struct process_table *t, struct slot *s)
{
	size_t mask = t->nr_slots - 1, gap = (size_t)(s - t->slots), i = gap;

	for (;;) {
		i = (i + 1) & mask;
		if (t->slots[i].state == SLOT_EMPTY)
			break;
		/* may it move into the gap: does the gap lie between its home and where it is? */
		if (((i - home_of(t, t->slots[i].pid)) & mask) >= ((i - gap) & mask)) {
			t->slots[gap] = t->slots[i];
			gap = i;
		}
	}
	t->slots[gap] = (struct slot){0};
	t->used--;
}

static void drop_name(struct process_table *t, struct slot *s)
{
	struct wanted *w;

	if (s->name == NO_NAME)
		return;
	w = &t->wanted[s->name];
	s->name = NO_NAME;
	if (--w->processes == 0 && !t->scanning)
		w->doubtful = true;
}

static void set_state(struct process_table *t, struct slot *s, enum slot_state state)
{
	bool was = s->state == SLOT_NEW || s->state == SLOT_LOOKED;
	bool is = state == SLOT_NEW || state == SLOT_LOOKED;

	s->state = (uint16_t)state;
	if (is && !was)
		t->unnamed++;
	else if (was && !is)
		t->unnamed--;
}

int process_table_exec(struct process_table *t, pid_t pid)
{
	struct slot *s = slot_for(t, pid);

	if (!s)
		return -ENOMEM;
	set_state(t, s, SLOT_NEW);
	return 0;
}

void process_table_exit(struct process_table *t, pid_t pid)
{
	struct slot *s = lookup(t, pid);

	if (s->state == SLOT_EMPTY)
		return;
	drop_name(t, s);
	set_state(t, s, SLOT_NAMED);
	vacate(t, s);
}

int process_table_named(struct process_table *t, pid_t pid, const char *comm)
{
	uint16_t name = find_name(t, comm);
	struct slot *s;

	if (name == NO_NAME) {
		process_table_exit(t, pid);
		return 0;
	}
	s = slot_for(t, pid);
	if (!s)
		return -ENOMEM;
	if (s->name != name) {
		drop_name(t, s);
		s->name = name;
		t->wanted[name].processes++;
	}
	t->wanted[name].doubtful = false;
	s->seen = t->scan;
	set_state(t, s, SLOT_NAMED);
	return 0;
}

size_t process_table_unnamed(struct process_table *t, pid_t *pids, size_t room)
{
	size_t n = 0;

	if (t->unnamed == 0)
		return 0;
	for (size_t i = 0; i < t->nr_slots; i++) {
		struct slot *s = &t->slots[i];

		if (s->state == SLOT_LOOKED && n < room)
			pids[n++] = s->pid;
		else if (s->state == SLOT_NEW)
			s->state = SLOT_LOOKED;
	}
	return n;
}

bool process_table_has_unnamed(const struct process_table *t)
{
	return t->unnamed > 0;
}

void process_table_scan_begin(struct process_table *t)
{
	t->scan++;
	t->scanning = true;
}

/* Vacating moves others about, so start over at each until a round finds nothing. */
static void drop_unseen(struct process_table *t)
{
	for (size_t i = 0; i < t->nr_slots;) {
		struct slot *s = &t->slots[i];

		if (s->state == SLOT_EMPTY || s->seen == t->scan) {
			i++;
			continue;
		}
		drop_name(t, s);
		set_state(t, s, SLOT_NAMED);
		vacate(t, s);
	}
}

void process_table_scan_end(struct process_table *t, bool complete)
{
	t->scanning = false;
	if (!complete)
		return;
	t->scanning = true; /* what is not there now is gone for certain */
	drop_unseen(t);
	t->scanning = false;
	for (size_t i = 0; i < t->nr_wanted; i++)
		t->wanted[i].doubtful = false;
}

bool process_table_wants_scan(const struct process_table *t)
{
	for (size_t i = 0; i < t->nr_wanted; i++)
		if (t->wanted[i].doubtful)
			return true;
	return false;
}

const char (*process_table_running(struct process_table *t, uint32_t *ret_n))[PROCESS_NAME_MAX]
{
	uint32_t n = 0;

	for (size_t i = 0; i < t->nr_wanted; i++)
		if (t->wanted[i].processes > 0 || t->wanted[i].doubtful)
			memcpy(t->running[n++], t->wanted[i].name, PROCESS_NAME_MAX);
	*ret_n = n;
	return (const char(*)[PROCESS_NAME_MAX])t->running;
}
