/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What writing does, by the kernel's rules for each knob. */
#include "files.h"

#include <errno.h>

static bool lists_are_on(struct fake *f)
{
	for (struct model_zone *z = NULL; (z = model_next_zone(&f->model, z));)
		if (z->lists_off)
			return false;
	return true;
}

static int write_fraction(struct fake *f, const char *path, const char *buf, size_t len)
{
	int value, n;

	/* pcp_batch_high_lock: held by memory hotplug from zone_pcp_disable() to its end */
	if (!f->in_command)
		fake_sleep_until(f, path, lists_are_on);
	n = sysctl_parse_int(buf, len, 0, INT32_MAX, &value);
	if (n < 0)
		return n;
	return model_set_fraction(&f->model, (uint64_t)value) < 0 ? -EINVAL : n;
}

static int write_sysctl(struct fake *f, int id, const char *buf, size_t len)
{
	const struct sysctl_row *row = &sysctl_rows[id];
	int value, n = sysctl_parse_int(buf, len, row->min, row->max, &value);

	if (n < 0)
		return n;
	f->sysctl[id] = value;
	if (id == SYSCTL_MIN_FREE_KBYTES)
		model_set_min_free(&f->model, (uint64_t)value);
	if (id == SYSCTL_WATERMARK_SCALE_FACTOR) {
		f->model.watermark_scale_factor = (unsigned)value;
		model_recompute(&f->model);
	}
	return n;
}

static bool no_cpu_spins(struct fake *f)
{
	for (unsigned cpu = 0; cpu < f->model.config.cpus; cpu++)
		if (f->model.cpus[cpu].online && f->model.cpus[cpu].spinning)
			return false;
	return true;
}

/* Work on every online CPU; the caller waits for all of it, however long a CPU is kept busy. */
void file_refresh(struct fake *f, const char *path)
{
	struct model *m = &f->model;
	bool late[MODEL_CPUS_MAX] = {false}, waits = false;

	m->passes++;
	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++) {
		late[cpu] = m->cpus[cpu].online && m->cpus[cpu].spinning;
		waits |= late[cpu];
		if (m->cpus[cpu].online && !late[cpu])
			model_refresh_cpu(m, cpu);
	}
	if (!waits || f->in_command)
		return;
	fake_sleep_until(f, path, no_cpu_spins);
	for (unsigned cpu = 0; cpu < m->config.cpus; cpu++)
		if (late[cpu] && m->cpus[cpu].online)
			model_refresh_cpu(m, cpu);
}

static int write_pcp_enabled(struct fake *f, unsigned order, const char *buf, size_t len)
{
	unsigned long value;

	if (order_always_on(&f->model, order) || sysfs_parse_ulong(buf, len, &value) < 0 ||
	    value > 1)
		return -EINVAL;
	model_set_order(&f->model, order, value);
	return (int)len;
}

/* Drains before it stores: what is freed between the two stays on the lists. */
static int write_pcp_allow(struct fake *f, const char *buf, size_t len)
{
	struct model *m = &f->model;
	struct model_zone *z = model_home_zone(m, 0);
	unsigned long value;

	if (sysfs_parse_ulong(buf, len, &value) < 0 || (value != 0 && value != 4))
		return -EINVAL;
	if (value == 0) {
		m->order_drains++;
		model_drain_all(m);
		if (z && f->race_blocks && f->pcp_allow_high_order)
			(void)model_park(m, z->node, z->type, 0, 4, f->race_blocks << 4);
		f->race_blocks = 0;
	}
	f->pcp_allow_high_order = value == 4;
	m->orders_on = value == 4 ? 1U << 4 : 0;
	return (int)len;
}

static int write_choice(struct choices *c, const char *buf, size_t len)
{
	size_t n = len && buf[len - 1] == '\n' ? len - 1 : len;

	for (unsigned i = 0; c->words[i]; i++)
		if (strlen(c->words[i]) == n && memcmp(c->words[i], buf, n) == 0) {
			c->now = i;
			return (int)len;
		}
	return -EINVAL;
}

static int write_cpu_online(struct fake *f, int cpu, const char *buf, size_t len)
{
	unsigned long value;
	int r;

	if (sysfs_parse_ulong(buf, len, &value) < 0 || value > 1)
		return -EINVAL;
	r = model_cpu_set(&f->model, (unsigned)cpu, value);
	if (r == 0)
		r = fake_rebuild(f);
	return r < 0 ? r : (int)len;
}

int psi_parse_trigger(const char *buf, size_t len, struct psi_trigger *ret)
{
	char kind[8], text[32];
	unsigned long threshold, window;

	if (len == 0 || len > sizeof(text))
		return -EINVAL;
	memcpy(text, buf, len);
	text[len - 1] = '\0'; /* psi_write() overwrites the last byte */
	if (sscanf(text, "%7s %lu %lu", kind, &threshold, &window) != 3 ||
	    (!streq(kind, "some") && !streq(kind, "full")) || threshold == 0 ||
	    threshold > window || window > 10000000)
		return -EINVAL;
	*ret = (struct psi_trigger){
		.full = streq(kind, "full"), .threshold_usec = threshold, .window_usec = window};
	return 0;
}

int file_write(struct fake *f, const struct tree_entry *e, const char *buf, size_t len, off_t off)
{
	/* sysctl_writes_strict: what is written behind the start counts as taken and is ignored */
	if (off != 0 && (e->kind == FILE_FRACTION || e->kind == FILE_SYSCTL))
		return (int)len;
	switch (e->kind) {
	case FILE_FRACTION:
		return write_fraction(f, "proc/sys/vm/percpu_pagelist_high_fraction", buf, len);
	case FILE_STAT_REFRESH:
		file_refresh(f, "proc/sys/vm/stat_refresh");
		return (int)len;
	case FILE_SYSCTL:
		return write_sysctl(f, e->a, buf, len);
	case FILE_PCP_ENABLED:
		return write_pcp_enabled(f, (unsigned)e->a, buf, len);
	case FILE_PCP_ALLOW:
		return write_pcp_allow(f, buf, len);
	case FILE_THP_ENABLED:
		return write_choice(&f->thp_enabled, buf, len);
	case FILE_THP_DEFRAG:
		return write_choice(&f->thp_defrag, buf, len);
	case FILE_THP_SHMEM:
		return write_choice(&f->thp_shmem, buf, len);
	case FILE_SIZE_ENABLED:
		return write_choice(&f->size_enabled[e->a], buf, len);
	case FILE_SIZE_SHMEM:
		return write_choice(&f->size_shmem[e->a], buf, len);
	case FILE_CPU_ONLINE:
		return write_cpu_online(f, e->a, buf, len);
	default:
		return -EACCES;
	}
}
