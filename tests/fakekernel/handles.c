/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "handles.h"

#include <errno.h>
#include <fcntl.h>

/* Takes the fault for this operation, if there is one. 0, or what the operation must return. */
static int meet_fault(struct fake *f, const char *path, enum op op, struct fault *ret)
{
	*ret = (struct fault){.action = _FAULT_NONE};
	if (streq(path, CONTROL_PATH))
		return 0;
	fake_count(f, path, op);
	hooks_run(f, path, op);
	if (!fault_take(f, path, op, ret))
		return 0;
	if (ret->action == FAULT_ERRNO)
		return -ret->code;
	if (ret->action == FAULT_BLOCK)
		fault_sleep(f, path, ret->number);
	return 0;
}

int handle_open(struct fake *f, const char *path, int flags, struct handle *h)
{
	const struct tree_entry *e = tree_find(&f->tree, path);
	struct fault fault;
	int r;

	if (!e)
		return -ENOENT;
	r = meet_fault(f, path, OP_OPEN, &fault);
	if (r == 0 && (flags & O_ACCMODE) != O_RDONLY)
		r = meet_fault(f, path, OP_OPEN_WRITE, &fault);
	e = tree_find(&f->tree, path);
	if (r < 0 || !e)
		return r < 0 ? r : -ENOENT;
	*h = (struct handle){.entry = *e, .room = PAGE_ROOM};
	h->entry.path = strdup(e->path);
	if (!h->entry.path)
		return -ENOMEM;
	pthread_mutex_init(&h->lock, NULL);
	return 0;
}

void handle_link(struct handle **list, struct handle *h)
{
	h->next = *list;
	h->link = list;
	if (h->next)
		h->next->link = &h->next;
	*list = h;
}

void handle_unlink(struct handle *h)
{
	*h->link = h->next;
	if (h->next)
		h->next->link = h->link;
}

void handle_free(struct handle *h)
{
	pthread_mutex_destroy(&h->lock);
	text_free(&h->buffer);
	free(h->entry.path);
	free(h);
}

/* Formats one record behind what is in the buffer. 1, 0 at the end, negative errno. */
static int next_record(struct fake *f, struct handle *h, bool may_grow)
{
	size_t before = h->buffer.len;
	int r = file_text(f, &h->entry, h->record, &h->buffer);

	if (r <= 0)
		return r;
	if (h->buffer.failed)
		return -ENOMEM;
	while (may_grow && h->buffer.len >= h->room)
		h->room *= 2;
	if (h->buffer.len >= h->room) {
		h->buffer.len = before;
		return 0;
	}
	h->record++;
	return 1;
}

/* Everything from the start, up to `off`. */
static int traverse(struct fake *f, struct handle *h, off_t off)
{
	h->record = 0;
	h->pos = 0;
	for (;;) {
		int r;

		text_clear(&h->buffer);
		h->from = 0;
		if (h->pos == off)
			return 0;
		r = next_record(f, h, true);
		if (r <= 0)
			return r;
		if (h->pos + (off_t)h->buffer.len > off) {
			h->from = (size_t)(off - h->pos);
			h->pos = off;
			return 0;
		}
		h->pos += (off_t)h->buffer.len;
	}
}

static size_t hand_out(struct handle *h, char *buf, size_t size)
{
	size_t n = MIN_OF(h->buffer.len - h->from, size);

	if (n)
		memcpy(buf, h->buffer.data + h->from, n);
	h->from += n;
	h->pos += (off_t)n;
	return n;
}

static int read_table(struct fake *f, struct handle *h, char *buf, size_t size, off_t off)
{
	size_t done;
	int r;

	if (off == 0 || off != h->pos) {
		r = traverse(f, h, off);
		if (r < 0)
			return r;
	}
	if (h->pos != off)
		return 0; /* behind the end */
	done = hand_out(h, buf, size);
	if (done == size)
		return (int)done;
	text_clear(&h->buffer);
	h->from = 0;
	r = next_record(f, h, true);
	while (r > 0 && h->buffer.len < size - done)
		r = next_record(f, h, false);
	if (r < 0 && h->buffer.len == 0)
		return done ? (int)done : r;
	return (int)(done + hand_out(h, buf + done, size - done));
}

static int read_sysctl(struct fake *f, struct handle *h, char *buf, size_t size, off_t off)
{
	if (h->entry.kind == FILE_STAT_REFRESH) {
		file_refresh(f, h->entry.path);
		return 0;
	}
	if (off != 0)
		return 0;
	text_clear(&h->buffer);
	h->from = 0;
	if (file_text(f, &h->entry, 0, &h->buffer) < 0 || h->buffer.failed)
		return -ENOMEM;
	return (int)hand_out(h, buf, size);
}

/* What a fault leaves of a read of `size` bytes at `off`; *changed: the text is a newer one. */
static size_t size_left(struct fake *f, struct handle *h, const struct fault *fault, size_t size,
			off_t off)
{
	off_t at = (off_t)fault->number;

	if (fault->action == FAULT_CUT)
		return off >= at ? 0 : MIN_OF(size, (size_t)(at - off));
	if (fault->action == FAULT_CHANGE && off < at)
		return MIN_OF(size, (size_t)(at - off));
	if (fault->action == FAULT_CHANGE && off == at) {
		(void)control_run(f, fault->text);
		h->pos = -1; /* format anew */
	}
	return size;
}

int handle_read(struct fake *f, struct handle *h, char *buf, size_t size, off_t off)
{
	struct fault fault;
	int r;

	r = meet_fault(f, h->entry.path, OP_READ, &fault);
	size = size_left(f, h, &fault, size, off);
	if (r == 0 && !tree_find(&f->tree, h->entry.path))
		r = -ENODEV; /* as kernfs says of what was removed */
	if (r < 0 || size == 0)
		return r;
	return file_is_sysctl(&h->entry) ? read_sysctl(f, h, buf, size, off)
					 : read_table(f, h, buf, size, off);
}

/* One trigger an open file, for as long as it is open. */
static int write_trigger(struct fake *f, struct handle *h, const char *buf, size_t size)
{
	if (h->trigger.window_usec)
		return -EBUSY;
	if (psi_parse_trigger(buf, size, &h->trigger) < 0)
		return -EINVAL;
	h->trigger.last_usec = f->model.now_usec;
	return (int)size;
}

static int write_through(struct fake *f, struct handle *h, const struct fault *fault,
			 const char *buf, size_t size, off_t off)
{
	char stored[FAKE_TEXT_MAX];
	int r;

	if (fault->action == FAULT_DROP)
		return (int)size;
	if (fault->action == FAULT_SHORT)
		size = MIN_OF(size, (size_t)fault->number);
	if (h->entry.kind == FILE_PSI)
		return write_trigger(f, h, buf, size);
	if (fault->action == FAULT_VALUE) {
		(void)snprintf(stored, sizeof(stored), "%s", fault->text);
		r = file_write(f, &h->entry, stored, strlen(stored), off);
		return r < 0 ? r : (int)size;
	}
	return file_write(f, &h->entry, buf, size, off);
}

bool handle_fires(const struct fake *f, struct handle *h)
{
	const struct psi_state *state = h->trigger.full ? &f->model.full : &f->model.some;
	struct psi_trigger *t = &h->trigger;

	if (!t->window_usec || f->model.now_usec < t->last_usec + t->window_usec ||
	    state->share * (double)t->window_usec < (double)t->threshold_usec)
		return false;
	t->last_usec = f->model.now_usec;
	h->event = true;
	return true;
}

static int write_control(struct fake *f, const char *buf, size_t size)
{
	char *copy = strndup(buf, size);
	int r = copy ? control_run(f, copy) : -ENOMEM;

	free(copy);
	return r < 0 ? r : (int)size;
}

int handle_write(struct fake *f, struct handle *h, const char *buf, size_t size, off_t off, int pid)
{
	struct fault fault;
	int r;

	if (h->entry.kind == FILE_CONTROL)
		return write_control(f, buf, size);
	r = meet_fault(f, h->entry.path, OP_WRITE, &fault);
	if (r == 0 && !tree_find(&f->tree, h->entry.path))
		r = -ENODEV;
	if (r == 0)
		r = write_through(f, h, &fault, buf, size, off);
	fake_note_write(f, h->entry.path, buf, size, pid, r);
	return r;
}
