/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fake.h"

#include <errno.h>
#include <time.h>

static const char *const thp_words[] = {"always", "madvise", "never", NULL};
static const char *const defrag_words[] = {"always",  "defer", "defer+madvise",
					   "madvise", "never", NULL};
static const char *const shmem_words[] = {"always", "within_size", "advise", "never",
					  "deny",   "force",       NULL};
static const char *const size_words[] = {"always", "inherit", "madvise", "never", NULL};
static const char *const size_shmem_words[] = {"always", "inherit", "within_size",
					       "advise", "never",   NULL};

static uint64_t real_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

static void set_defaults(struct fake *f)
{
	f->thp_enabled = (struct choices){thp_words, 1};
	f->thp_defrag = (struct choices){defrag_words, 3};
	f->thp_shmem = (struct choices){shmem_words, 3};
	for (unsigned order = 0; order < MODEL_ORDERS; order++) {
		f->size_enabled[order] =
			(struct choices){size_words, order == f->model.pmd_order ? 1 : 3};
		f->size_shmem[order] =
			(struct choices){size_shmem_words, order == f->model.pmd_order ? 1 : 4};
	}
	for (int i = 0; i < _SYSCTL_MAX; i++)
		f->sysctl[i] = sysctl_rows[i].initial;
	f->pcp_allow_high_order = false;
}

int fake_init(struct fake *f, struct config *config, const char *boot_id)
{
	int r;

	*f = (struct fake){.real_usec = real_now()};
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	(void)snprintf(f->boot_id, sizeof(f->boot_id), "%s", boot_id);
	f->log = calloc(LOG_MAX, sizeof(*f->log));
	r = f->log ? model_init(&f->model, config) : -ENOMEM;
	if (r < 0)
		return r;
	set_defaults(f);
	return tree_build(&f->tree, f);
}

void fake_free(struct fake *f)
{
	tree_free(&f->tree);
	model_free(&f->model);
	free(f->log);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
}

static void timer_remove(struct fake *f, size_t i)
{
	f->nr_timers--;
	memmove(&f->timers[i], &f->timers[i + 1], (f->nr_timers - i) * sizeof(f->timers[i]));
}

/* The timer that is due first, not later than `until`; -1: none. */
static int next_timer(const struct fake *f, uint64_t until)
{
	int found = -1;

	for (size_t i = 0; i < f->nr_timers; i++)
		if (f->timers[i].due_usec <= until) {
			until = f->timers[i].due_usec;
			found = (int)i;
		}
	return found;
}

void fake_advance(struct fake *f, uint64_t usec)
{
	uint64_t until = f->model.now_usec + usec;

	for (int i; (i = next_timer(f, until)) >= 0;) {
		struct timer t = f->timers[i];

		if (t.due_usec > f->model.now_usec)
			model_advance(&f->model, t.due_usec - f->model.now_usec);
		if (t.every_usec)
			f->timers[i].due_usec += t.every_usec;
		else
			timer_remove(f, (size_t)i);
		(void)control_run(f, t.command);
	}
	if (until > f->model.now_usec)
		model_advance(&f->model, until - f->model.now_usec);
	pthread_cond_broadcast(&f->changed);
}

void fake_lock(struct fake *f)
{
	uint64_t now;

	pthread_mutex_lock(&f->lock);
	now = real_now();
	if (!f->manual_clock && now > f->real_usec)
		fake_advance(f, now - f->real_usec);
	f->real_usec = now;
}

void fake_unlock(struct fake *f)
{
	pthread_mutex_unlock(&f->lock);
}

void fake_stop(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->stopping = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

int fake_rebuild(struct fake *f)
{
	return tree_build(&f->tree, f);
}

void fake_reboot(struct fake *f)
{
	struct model *m = &f->model;
	size_t len = strlen(f->boot_id);

	model_drain_all(m);
	m->orders_on = 0;
	m->fraction = 0;
	m->min_free_set = false;
	m->watermark_scale_factor = 10;
	memset(m->vmstat, 0, sizeof(m->vmstat));
	memset(m->mthp, 0, sizeof(m->mthp));
	model_recompute(m);
	set_defaults(f);
	f->boots++;
	if (len >= 4)
		(void)snprintf(f->boot_id + len - 4, 5, "%04x", f->boots & 0xffff);
}

void fake_count(struct fake *f, const char *path, enum op op)
{
	for (size_t i = 0; i < f->nr_paths; i++)
		if (streq(f->paths[i].path, path)) {
			f->paths[i].n[op]++;
			return;
		}
	if (f->nr_paths < PATHS_MAX) {
		struct path_count *p = &f->paths[f->nr_paths++];

		*p = (struct path_count){0};
		(void)snprintf(p->path, sizeof(p->path), "%s", path);
		p->n[op] = 1;
	}
}

void fake_note_write(struct fake *f, const char *path, const char *text, size_t len, int pid,
		     int result)
{
	struct written *w = &f->log[f->nr_written++ % LOG_MAX];

	*w = (struct written){.usec = f->model.now_usec, .pid = pid, .result = result};
	(void)snprintf(w->path, sizeof(w->path), "%s", path);
	(void)snprintf(w->text, sizeof(w->text), "%.*s", (int)MIN_OF(len, sizeof(w->text) - 1),
		       text);
	for (char *c = w->text; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	for (size_t n = strlen(w->text); n && w->text[n - 1] == ' '; n--)
		w->text[n - 1] = '\0';
}
