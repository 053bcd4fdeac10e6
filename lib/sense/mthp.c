/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sense/mthp.h"

#include "sense/files.h"

#include <errno.h>
#include <inttypes.h>

/* A path is kept with its descriptor: what vanished must be opened again by name. */
struct attr {
	char *rel;
	struct kept_file file;
};

struct size_files {
	struct attr enabled, shmem_enabled, pcp_enabled, stat[MTHP_STATS_MAX];
};

struct mthp_reader {
	const struct sysroot *root;
	struct attr allow_high_order;
	struct size_files size[PCP_ORDERS_MAX]; /* by place in struct mthp */
};

/* mm/page_alloc.c, PAGE_ALLOC_COSTLY_ORDER: up to here, and at the PMD order, always on the lists.
 */
#define COSTLY_ORDER 3U
/* The only order that pcp_allow_high_order switches. */
#define SINGLE_ORDER (COSTLY_ORDER + 1)

/* Statistics that kernels, or the drafts and vendor trees before them, named otherwise. */
static const struct {
	const char *old, *present;
} renamed[] = {
	{"anon_alloc", "anon_fault_alloc"},
	{"anon_alloc_fallback", "anon_fault_fallback"},
	{"anon_swpout", "swpout"},
	{"anon_swpout_fallback", "swpout_fallback"},
	{"file_alloc", "shmem_alloc"},
	{"file_fallback", "shmem_fallback"},
	{"file_fallback_charge", "shmem_fallback_charge"},
};

static const char *present_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(renamed); i++)
		if (streq(name, renamed[i].old))
			return renamed[i].present;
	return name;
}

static void attr_free(struct attr *a)
{
	if (a->rel)
		kept_file_close(&a->file);
	free(a->rel);
	*a = (struct attr){0};
}

static int attr_make(struct attr *a, const char *rel)
{
	char *copy = strdup(rel);

	if (!copy)
		return -ENOMEM;
	attr_free(a);
	a->rel = copy;
	a->file = KEPT_FILE(copy);
	return 0;
}

static void attr_swap(struct attr *a, struct attr *b)
{
	struct attr c = *a;

	*a = *b;
	*b = c;
}

struct mthp_reader *mthp_reader_free(struct mthp_reader *r)
{
	if (!r)
		return NULL;
	attr_free(&r->allow_high_order);
	for (size_t i = 0; i < ARRAY_SIZE(r->size); i++) {
		attr_free(&r->size[i].enabled);
		attr_free(&r->size[i].shmem_enabled);
		attr_free(&r->size[i].pcp_enabled);
		for (size_t j = 0; j < ARRAY_SIZE(r->size[i].stat); j++)
			attr_free(&r->size[i].stat[j]);
	}
	free(r);
	return NULL;
}

static void mthp_reader_freep(struct mthp_reader **r)
{
	*r = mthp_reader_free(*r);
}

struct scan {
	struct mthp_reader *reader;
	struct mthp *m;
	uint64_t page_bytes;
	struct mthp_size *size;   /* whose stats/ is being listed */
	struct size_files *files; /* … and its files */
	const char *dir;
};

static int make_if_there(struct scan *s, struct attr *a, const char *dir, const char *name)
{
	char rel[128];

	(void)snprintf(rel, sizeof(rel), "%s/%s", dir, name);
	if (!sysroot_exists(s->reader->root, rel))
		return 0;
	return attr_make(a, rel);
}

/* Keeps the names in order, so that the same kernel always shows the same list. */
static uint32_t insert_stat(struct scan *s, const char *name)
{
	struct mthp_size *z = s->size;
	uint32_t at = z->nr_stats++;

	for (; at > 0 && strcmp(z->stat[at - 1].name, name) > 0; at--) {
		z->stat[at] = z->stat[at - 1];
		attr_swap(&s->files->stat[at], &s->files->stat[at - 1]);
	}
	z->stat[at] = (struct mthp_stat){0};
	memcpy(z->stat[at].name, name, strlen(name) + 1);
	return at;
}

static int add_stat(const char *file, void *userdata)
{
	struct scan *s = userdata;
	const char *name = present_name(file);
	uint32_t at = 0;
	char rel[384];

	if (strlen(name) >= sizeof(s->size->stat[0].name))
		return 0;
	while (at < s->size->nr_stats && !streq(s->size->stat[at].name, name))
		at++;
	if (at < s->size->nr_stats && !streq(file, name))
		return 0; /* there under both names: the present one counts */
	if (at == s->size->nr_stats) {
		if (s->size->nr_stats == MTHP_STATS_MAX)
			return 0;
		at = insert_stat(s, name);
	}
	(void)snprintf(rel, sizeof(rel), "%s/stats/%s", s->dir, file);
	return attr_make(&s->files->stat[at], rel);
}

static int add_size(struct scan *s, unsigned order)
{
	struct mthp *m = s->m;
	uint32_t at = m->nr_sizes;
	char dir[96], stats[128];
	int r;

	for (; at > 0 && m->size[at - 1].order > order; at--) {
		m->size[at] = m->size[at - 1];
		s->reader->size[at] = s->reader->size[at - 1];
	}
	m->nr_sizes++;
	s->size = &m->size[at];
	s->files = &s->reader->size[at];
	*s->files = (struct size_files){0};
	*s->size = (struct mthp_size){
		.order = order,
		.bytes = s->page_bytes << order,
		.pcp_enabled = -ENOENT,
	};
	(void)snprintf(dir, sizeof(dir), THP_REL "/hugepages-%" PRIu64 "kB", s->size->bytes / 1024);
	(void)snprintf(stats, sizeof(stats), "%s/stats", dir);
	s->dir = dir;
	r = make_if_there(s, &s->files->enabled, dir, "enabled");
	if (r == 0)
		r = make_if_there(s, &s->files->shmem_enabled, dir, "shmem_enabled");
	if (r == 0)
		r = make_if_there(s, &s->files->pcp_enabled, dir, "pcp_enabled");
	if (r == 0)
		r = dir_each(s->reader->root, stats, add_stat, s);
	s->size->has_pcp_enabled = s->files->pcp_enabled.rel;
	return r == -ENOMEM ? r : 0;
}

/* "hugepages-64kB" as order 4; -EINVAL for what is no folio size here. */
static int order_of_dir(const char *name, uint64_t page_bytes, unsigned *ret)
{
	static const char prefix[] = "hugepages-";
	uint64_t kib;
	const char *p = name + strlen(prefix), *end = name + strlen(name);

	if (strncmp(name, prefix, strlen(prefix)) != 0 || parse_u64_at(&p, end, &kib) < 0 ||
	    !streq(p, "kB"))
		return -EINVAL;
	for (unsigned order = 0; order < PCP_ORDERS_MAX; order++)
		if (kib == (page_bytes << order) / 1024) {
			*ret = order;
			return 0;
		}
	return -EINVAL;
}

static int add_dir(const char *name, void *userdata)
{
	struct scan *s = userdata;
	unsigned order;

	if (order_of_dir(name, s->page_bytes, &order) < 0 || mthp_by_order(s->m, order))
		return 0;
	return add_size(s, order);
}

static void find_pmd_order(struct scan *s)
{
	char word[32];
	uint64_t bytes;

	if (attr_read_once(s->reader->root, THP_REL "/hpage_pmd_size", word, sizeof(word)) < 0 ||
	    parse_u64(word, &bytes) < 0)
		return;
	for (unsigned order = 1; order < PCP_ORDERS_MAX; order++)
		if (s->page_bytes << order == bytes)
			s->m->pmd_order = order;
}

/* Per-size files before the single one before none. */
static int find_interface(struct scan *s)
{
	struct mthp *m = s->m;
	int r;

	for (uint32_t i = 0; i < m->nr_sizes; i++) {
		struct mthp_size *z = &m->size[i];

		if (!z->has_pcp_enabled)
			continue;
		m->orders = ORDERS_PER_SIZE;
		z->controllable = z->order > COSTLY_ORDER && z->order != m->pmd_order;
	}
	if (m->orders != ORDERS_NONE || !sysroot_exists(s->reader->root, PCP_ALLOW_HIGH_ORDER_REL))
		return 0;
	m->orders = ORDERS_SINGLE;
	r = attr_make(&s->reader->allow_high_order, PCP_ALLOW_HIGH_ORDER_REL);
	if (r == 0 && !mthp_by_order(m, SINGLE_ORDER))
		r = add_size(s, SINGLE_ORDER);
	for (uint32_t i = 0; i < m->nr_sizes; i++)
		m->size[i].controllable = m->size[i].order == SINGLE_ORDER &&
					  m->pmd_order != SINGLE_ORDER;
	return r;
}

int mthp_scan(struct mthp_reader **reader, struct mthp *m, const struct sysroot *root,
	      uint64_t page_bytes)
{
	_cleanup_(mthp_reader_freep) struct mthp_reader *fresh = calloc(1, sizeof(*fresh));
	struct scan s = {.reader = fresh, .m = m, .page_bytes = page_bytes};
	int r;

	*m = (struct mthp){0};
	*reader = mthp_reader_free(*reader);
	if (!fresh)
		return -ENOMEM;
	fresh->root = root;
	find_pmd_order(&s);
	r = dir_each(root, THP_REL, add_dir, &s);
	if (r != -ENOMEM)
		r = find_interface(&s);
	if (r == -ENOMEM) {
		*m = (struct mthp){0};
		return r;
	}
	*reader = TAKE_PTR(fresh);
	return 0;
}

/* "always [madvise] never": the word in brackets */
static int read_choice(struct attr *a, const struct sysroot *root, char *word, size_t size)
{
	char line[128];
	const char *open, *close;
	int r;

	word[0] = '\0';
	if (!a->rel)
		return 0;
	r = attr_read(&a->file, root, line, sizeof(line));
	if (r < 0)
		return r;
	open = strchr(line, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close || (size_t)(close - open) > size)
		return -EBADMSG;
	memcpy(word, open + 1, (size_t)(close - open - 1));
	word[close - open - 1] = '\0';
	return 0;
}

static void note(int *first, int r)
{
	if (*first == 0)
		*first = r;
}

int mthp_read_stats(struct mthp_reader *r, struct mthp *m)
{
	int first = m->nr_sizes ? 0 : -ENOENT;

	for (uint32_t i = 0; i < m->nr_sizes; i++) {
		struct mthp_size *z = &m->size[i];
		struct size_files *f = &r->size[i];

		note(&first, read_choice(&f->enabled, r->root, z->enabled, sizeof(z->enabled)));
		note(&first, read_choice(&f->shmem_enabled, r->root, z->shmem_enabled,
					 sizeof(z->shmem_enabled)));
		for (uint32_t j = 0; j < z->nr_stats; j++) {
			int k = attr_read_u64(&f->stat[j].file, r->root, &z->stat[j].value);

			z->stat[j].valid = k == 0;
			note(&first, k);
		}
	}
	return first;
}

static int read_knob(struct attr *a, const struct sysroot *root, enum order_interface orders)
{
	const struct knob_id id = {.kind = KNOB_PCP_ENABLED};
	uint64_t text, value;
	int r;

	r = attr_read_u64(&a->file, root, &text);
	if (r == 0)
		r = knob_from_file(id, orders, text, &value);
	return r < 0 ? r : (int)value;
}

int mthp_read_knobs(struct mthp_reader *r, struct mthp *m)
{
	int first = 0;

	for (uint32_t i = 0; i < m->nr_sizes; i++) {
		struct mthp_size *z = &m->size[i];
		struct attr *a = m->orders == ORDERS_SINGLE ? &r->allow_high_order
							    : &r->size[i].pcp_enabled;

		if (!a->rel || (m->orders == ORDERS_SINGLE && !z->controllable)) {
			z->pcp_enabled = -ENOENT;
			continue;
		}
		z->pcp_enabled = read_knob(a, r->root, m->orders);
		note(&first, MIN_OF(z->pcp_enabled, 0));
	}
	return first;
}

const struct mthp_size *mthp_by_order(const struct mthp *m, unsigned order)
{
	for (uint32_t i = 0; i < m->nr_sizes; i++)
		if (m->size[i].order == order)
			return &m->size[i];
	return NULL;
}

bool mthp_stat_get(const struct mthp_size *s, const char *name, uint64_t *ret)
{
	name = present_name(name);
	for (uint32_t i = 0; i < s->nr_stats; i++)
		if (streq(s->stat[i].name, name)) {
			*ret = s->stat[i].value;
			return s->stat[i].valid;
		}
	return false;
}
