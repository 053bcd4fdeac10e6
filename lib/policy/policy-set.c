/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All policies of a machine. */
#include "policy/policy-internal.h"

#include <errno.h>

#define SUFFIX ".policy"

struct policy_set *policy_set_free(struct policy_set *set)
{
	if (!set)
		return NULL;
	for (size_t i = 0; i < set->nr; i++)
		(void)policy_free(set->policies[i]);
	free(set->policies);
	for (size_t i = 0; i < set->nr_unused; i++) {
		free(set->unused[i].name);
		free(set->unused[i].file);
	}
	free(set->unused);
	expr_table_free(&set->table);
	free(set);
	return NULL;
}

int policy_set_add(struct policy_set *set, struct policy *p)
{
	struct policy **list = realloc(set->policies, (set->nr + 1) * sizeof(struct policy *));

	if (!list)
		return -ENOMEM;
	set->policies = list;
	list[set->nr++] = p;
	return 0;
}

static int by_precedence(const void *a, const void *b)
{
	const struct policy *x = *(struct policy *const *)a, *y = *(struct policy *const *)b;

	return x->priority != y->priority ? y->priority - x->priority : strcmp(x->name, y->name);
}

void policy_set_sort(struct policy_set *set)
{
	if (set->nr > 0)
		qsort(set->policies, set->nr, sizeof(struct policy *), by_precedence);
}

const struct policy *policy_set_find(const struct policy_set *set, const char *name)
{
	for (size_t i = 0; i < set->nr; i++)
		if (streq(set->policies[i]->name, name))
			return set->policies[i];
	return NULL;
}

bool policy_rule_beats(const struct policy *pa, const struct policy_rule *a,
		       const struct policy *pb, const struct policy_rule *b)
{
	int names = strcmp(pa->name, pb->name);

	if (pa->priority != pb->priority)
		return pa->priority > pb->priority;
	if (a->any_order != b->any_order)
		return b->any_order;
	return names ? names < 0 : a < b;
}

static int add_unused(struct policy_set *set, const char *name, const char *file, bool masked)
{
	struct policy_unused *list = realloc(set->unused, (set->nr_unused + 1) * sizeof(*list));

	if (!list)
		return -ENOMEM;
	set->unused = list;
	list[set->nr_unused] = (struct policy_unused){strdup(name), strdup(file), masked};
	set->nr_unused++;
	return list[set->nr_unused - 1].name && list[set->nr_unused - 1].file ? 0 : -ENOMEM;
}

struct loading {
	struct policy_set *set;
	const struct sysroot *root;
	const char *const *dirs;
	const struct policy_set *previous;
	struct diagnostics *d;
};

/* What ran before a file was broken, for the table of this set. */
static int keep_previous(const struct loading *l, const char *name)
{
	const struct policy *old = l->previous ? policy_set_find(l->previous, name) : NULL;
	_cleanup_(ini_doc_free) struct ini_doc doc = {0};
	struct policy *p;
	int r;

	if (!old)
		return 0;
	r = ini_doc_copy(&doc, &old->doc);
	if (r < 0)
		return r;
	r = policy_compile(&l->set->table, name, &doc, &p, NULL);
	if (r < 0)
		return r == -EBADMSG ? 0 : r;
	p->kept = true;
	r = policy_set_add(l->set, p);
	if (r < 0)
		(void)policy_free(p);
	return r;
}

static int load_one(const struct loading *l, const struct search_file *f)
{
	_cleanup_(ini_doc_free) struct ini_doc doc = {0};
	_cleanup_(freep) char *name = strndup(f->name, strlen(f->name) - strlen(SUFFIX));
	struct policy *p = NULL;
	int r, bad;

	if (!name)
		return -ENOMEM;
	if (f->masked)
		return add_unused(l->set, name, f->path, true);
	bad = search_load(l->root, l->dirs, f->name, NULL, &doc, NULL, l->d);
	if (bad < 0 && bad != -EBADMSG)
		return bad;
	r = policy_compile(&l->set->table, name, &doc, &p, l->d);
	if (r < 0 && r != -EBADMSG)
		return r;
	if (r == 0 && bad == 0) {
		r = policy_set_add(l->set, p);
		if (r < 0)
			(void)policy_free(p);
		return r;
	}
	(void)policy_free(p);
	r = add_unused(l->set, name, f->path, false);
	return r < 0 ? r : keep_previous(l, name);
}

int policy_set_load(struct policy_set **ret, const struct sysroot *root, const char *const *extra,
		    uint64_t page_bytes, const struct policy_set *previous, struct diagnostics *d)
{
	_cleanup_(search_files_free) struct search_files files = {0};
	_cleanup_(policy_set_freep) struct policy_set *set = calloc(1, sizeof(*set));
	struct loading l = {.set = set,
			    .root = extra ? NULL : root,
			    .dirs = extra ? extra : search_policy_dirs,
			    .previous = previous,
			    .d = d};
	int r;

	if (!set)
		return -ENOMEM;
	set->table.page_bytes = page_bytes;
	r = search_files(l.root, l.dirs, SUFFIX, &files, d);
	for (size_t i = 0; r == 0 && i < files.nr; i++)
		r = load_one(&l, &files.list[i]);
	if (r < 0)
		return r;
	policy_set_sort(set);
	*ret = TAKE_PTR(set);
	return 0;
}
