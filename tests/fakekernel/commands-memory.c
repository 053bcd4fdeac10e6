/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "commands.h"

#include <errno.h>

/* load */

int cmd_unload(struct command *c)
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

int cmd_load(struct command *c)
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

int cmd_busy(struct command *c)
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

int cmd_spin(struct command *c)
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

int cmd_park(struct command *c)
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
int cmd_touch(struct command *c)
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

int cmd_drain(struct command *c)
{
	model_drain_all(&c->f->model);
	return 0;
}

/* shortage */

int cmd_free(struct command *c)
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

int cmd_fragment(struct command *c)
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

int cmd_count(struct command *c)
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

int cmd_rate(struct command *c)
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

int cmd_pressure(struct command *c)
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

int cmd_cpu(struct command *c)
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

int cmd_node(struct command *c)
{
	bool online = streq(c->word[2], "online");
	int r = model_node_set(&c->f->model, atoi(c->word[1]), online);

	if (r < 0)
		return refuse(c->f, r, "cannot set node %s %s: %s", c->word[1], c->word[2],
			      strerror(-r));
	return fake_rebuild(c->f);
}

int cmd_zone(struct command *c)
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
int cmd_offline_memory(struct command *c)
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

int cmd_offline_end(struct command *c)
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
