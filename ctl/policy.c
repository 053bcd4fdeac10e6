/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl policy check, list, cat. */
#include "ctl.h"

#include "base/format.h"
#include "base/nearest.h"
#include "policy/check.h"

#include <errno.h>

struct loaded {
	struct policy_set *set; /* NULL with FILEs */
	struct diagnostics found;
	unsigned checked;
};

static void loaded_free(struct loaded *l)
{
	l->set = policy_set_free(l->set);
	diagnostics_free(&l->found);
}

/* Sizes of this machine make warnings better; without them the rest is checked all the same. */
static int look(struct ctl *c)
{
	return ctl_take(c, SOURCES_ALL, 0);
}

static int load(struct ctl *c, struct loaded *l)
{
	const char *const *extra = c->options.nr_policy_dirs ? c->options.policy_dirs : NULL;
	int r = look(c);

	if (r != EXIT_DONE)
		return r;
	if (policy_set_load(&l->set, &c->root, extra, c->snapshot->page_bytes, NULL, &l->found) < 0)
		return ctl_failf(c, EXIT_FAILED, "out of memory while loading the policies");
	l->checked = (unsigned)(l->set->nr + l->set->nr_unused);
	return EXIT_DONE;
}

/* check */

static const struct snapshot *sizes_of(const struct ctl *c)
{
	return snapshot_has(c->snapshot, SOURCE_ZONEINFO) ? c->snapshot : NULL;
}

static int read_file(const char *path, struct text *into)
{
	_cleanup_(fclosep) FILE *f = streq(path, "-") ? fdopen(dup(STDIN_FILENO), "r")
						      : fopen(path, "re");
	char buf[4096];
	size_t n;

	if (!f)
		return -errno;
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0 && into->len <= INI_FILE_LIMIT)
		text_add_n(into, buf, n);
	if (ferror(f))
		return errno ? -errno : -EIO;
	return into->failed ? -ENOMEM : 0;
}

/* "dir/hot-orders.policy" is called hot-orders. */
static void name_of(const char *path, char *name, size_t size)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t len = strlen(base);

	if (len > 7 && streq(base + len - 7, ".policy"))
		len -= 7;
	(void)snprintf(name, size, "%.*s", (int)len, base);
}

static int check_file(struct ctl *c, const char *path, struct expr_table *table, struct loaded *l)
{
	_cleanup_(text_free) struct text text = {0};
	struct policy *p = NULL;
	char name[128];
	int r = read_file(path, &text);

	if (r < 0)
		return ctl_failf(c, EXIT_FAILED, "cannot read the policy file %s: %s", path,
				 error_name(r));
	name_of(path, name, sizeof(name));
	r = policy_parse(table, name, path, text_str(&text), text.len, &p, &l->found);
	l->checked++;
	if (r == 0)
		policy_check(p, table, sizes_of(c), &l->found);
	(void)policy_free(p);
	return r == -ENOMEM ? ctl_failf(c, EXIT_FAILED, "out of memory") : EXIT_DONE;
}

static int check_files(struct ctl *c, struct loaded *l)
{
	struct expr_table table = {.page_bytes = c->snapshot->page_bytes};
	int code = EXIT_DONE;

	for (unsigned i = 0; i < c->nr_operands; i++) {
		int r = check_file(c, c->operands[i], &table, l);

		code = r == EXIT_DONE ? code : r;
	}
	expr_table_free(&table);
	return code;
}

static void put_diagnostics(struct json_out *j, const struct diagnostics *d)
{
	json_begin_array(j, "diagnostics");
	for (size_t i = 0; i < d->nr; i++) {
		json_begin_object(j, NULL);
		json_put_str(j, "file", d->list[i].file);
		json_put_u64(j, "line", d->list[i].line);
		json_put_u64(j, "column", d->list[i].column);
		json_put_str(j, "severity", d->list[i].warning ? "warning" : "error");
		json_put_str(j, "message", d->list[i].message);
		json_put_str(j, "nearest", d->list[i].nearest);
		json_put_str(j, "source", d->list[i].source);
		json_end_object(j);
	}
	json_end_array(j);
}

static int show_check(struct ctl *c, struct loaded *l)
{
	struct json_out *j;

	diagnostics_sort(&l->found);
	if (c->wants_json) {
		j = ctl_json_begin(c);
		json_put_u64(j, "policies", l->checked);
		json_put_u64(j, "errors", l->found.errors);
		json_put_u64(j, "warnings", l->found.warnings);
		put_diagnostics(j, &l->found);
		return ctl_json_end(c);
	}
	diagnostics_print(&l->found, c->screen.out, c->screen.colour);
	(void)fprintf(c->screen.out, "%s%u polic%s checked: %zu error%s, %zu warning%s\n",
		      l->found.nr ? "\n" : "", l->checked, l->checked == 1 ? "y" : "ies",
		      l->found.errors, l->found.errors == 1 ? "" : "s", l->found.warnings,
		      l->found.warnings == 1 ? "" : "s");
	return EXIT_DONE;
}

int verb_policy_check(struct ctl *c)
{
	_cleanup_(loaded_free) struct loaded l = {0};
	int r, shown;

	r = c->nr_operands > 0 ? look(c) : load(c, &l);
	if (r != EXIT_DONE)
		return r;
	if (c->nr_operands > 0)
		r = check_files(c, &l);
	for (size_t i = 0; l.set && i < l.set->nr; i++)
		policy_check(l.set->policies[i], &l.set->table, sizes_of(c), &l.found);
	shown = show_check(c, &l);
	if (r == EXIT_DONE)
		r = shown;
	return r == EXIT_DONE && l.found.errors > 0 ? EXIT_FAILED : r;
}

/* list */

static const char *match_name(enum kleene k)
{
	return k == KLEENE_TRUE ? "matches" : k == KLEENE_FALSE ? "sleeps" : "unknown";
}

struct row {
	const char *name, *file, *state, *mode, *description, *why;
	const struct policy *policy; /* NULL: not used */
};

static void add_row(struct table *t, const struct row *r)
{
	table_cell(t, "%s", r->name);
	if (r->policy)
		table_cell(t, "%d", r->policy->priority);
	else
		table_cell(t, "-");
	table_cell(t, "%s", r->mode);
	table_cell(t, "%s", r->state);
	table_cell(t, "%s", r->why[0] ? r->why : r->description);
}

static void put_row(struct json_out *j, const struct row *r)
{
	json_begin_object(j, NULL);
	json_put_str(j, "policy", r->name);
	if (r->policy)
		json_put_i64(j, "priority", r->policy->priority);
	else
		json_put_null(j, "priority");
	json_put_str(j, "mode", r->policy ? r->mode : NULL);
	json_put_str(j, "state", r->state);
	json_put_str(j, "why", r->why);
	json_put_str(j, "description", r->description);
	json_put_str(j, "file", r->file);
	json_end_object(j);
}

static void emit(struct ctl *c, struct table *t, const struct row *r)
{
	if (c->wants_json)
		put_row(&c->json, r);
	else
		add_row(t, r);
}

static void list_used(struct ctl *c, struct table *t, const struct policy *p,
		      const struct machine_facts *facts, const struct expr_env *env)
{
	struct match_result match;
	struct row r = {.name = p->name,
			.file = p->file,
			.mode = policy_mode_name(p->mode),
			.description = p->description ? p->description : "",
			.policy = p};

	policy_match_eval(p, facts, env, &match);
	r.state = match_name(match.holds);
	r.why = match.why;
	emit(c, t, &r);
}

static void list_all(struct ctl *c, struct table *t, const struct policy_set *set,
		     const double *slots)
{
	struct expr_env env = {.slots = slots};
	struct machine_facts facts;

	machine_facts_read(&facts, &c->root, c->snapshot);
	for (size_t i = 0; i < set->nr; i++)
		list_used(c, t, set->policies[i], &facts, &env);
	for (size_t i = 0; i < set->nr_unused; i++) {
		const struct policy_unused *u = &set->unused[i];
		struct row r = {.name = u->name,
				.file = u->file,
				.state = u->masked ? "masked" : "invalid",
				.mode = "-",
				.description = "",
				.why = u->masked ? "an empty file or a link to /dev/null hides it"
						 : "has errors: see pcptunectl policy check"};

		emit(c, t, &r);
	}
}

static int print_list(struct ctl *c, const struct policy_set *set, const double *slots)
{
	_cleanup_(table_freep) struct table *t = table_new(5);
	static const char *const names[] = {"POLICY", "PRIORITY", "MODE", "STATE", "WHY"};

	if (!t)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		table_cell(t, "%s", names[i]);
		if (i != 1)
			table_align_left(t, i);
	}
	list_all(c, t, set, slots);
	if (set->nr + set->nr_unused == 0) {
		(void)fputs("No policies: put *.policy files into /etc/pcptune/policies.d.\n",
			    c->screen.out);
		return EXIT_DONE;
	}
	return table_print(t, c->screen.out) < 0 ? ctl_failf(c, EXIT_FAILED, "out of memory")
						 : EXIT_DONE;
}

int verb_policy_list(struct ctl *c)
{
	_cleanup_(loaded_free) struct loaded l = {0};
	_cleanup_(freep) double *slots = NULL;
	int r = load(c, &l);

	if (r != EXIT_DONE)
		return r;
	slots = calloc(l.set->table.nr_slots + 1, sizeof(*slots));
	if (!slots)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	expr_table_read(&l.set->table, c->snapshot, slots, NULL);
	if (!c->wants_json)
		return print_list(c, l.set, slots);
	json_begin_array(ctl_json_begin(c), "policies");
	list_all(c, NULL, l.set, slots);
	json_end_array(&c->json);
	return ctl_json_end(c);
}

/* cat */

static int cat_unknown(const struct ctl *c, const struct policy_set *set, const char *name)
{
	struct nearest n = NEAREST(name);

	for (size_t i = 0; i < set->nr_unused; i++) {
		if (streq(set->unused[i].name, name))
			return ctl_failf(c, EXIT_FAILED, "the policy %s is not used: %s %s", name,
					 set->unused[i].file,
					 set->unused[i].masked
						 ? "masks it"
						 : "has errors; see pcptunectl policy check");
		nearest_try(&n, set->unused[i].name);
	}
	for (size_t i = 0; i < set->nr; i++)
		nearest_try(&n, set->policies[i]->name);
	if (n.best)
		return ctl_failf(c, EXIT_FAILED, "there is no policy \"%s\"; did you mean \"%s\"?",
				 name, n.best);
	return ctl_failf(c, EXIT_FAILED,
			 "there is no policy \"%s\"; \"pcptunectl policy list\" shows those there "
			 "are",
			 name);
}

static void cat(struct ctl *c, const struct policy *p, bool first)
{
	_cleanup_(text_free) struct text text = {0};

	ini_doc_print(&p->doc, &text);
	if (!c->wants_json) {
		(void)fprintf(c->screen.out, "%s%s", first ? "" : "\n", text_str(&text));
		return;
	}
	json_begin_object(&c->json, NULL);
	json_put_str(&c->json, "policy", p->name);
	json_put_str(&c->json, "file", p->file);
	json_put_str(&c->json, "text", text_str(&text));
	json_end_object(&c->json);
}

int verb_policy_cat(struct ctl *c)
{
	_cleanup_(loaded_free) struct loaded l = {0};
	int r = load(c, &l);

	if (r != EXIT_DONE)
		return r;
	if (c->wants_json)
		json_begin_array(ctl_json_begin(c), "policies");
	for (unsigned i = 0; i < c->nr_operands; i++) {
		char name[128];
		const struct policy *p;

		name_of(c->operands[i], name, sizeof(name));
		p = policy_set_find(l.set, name);
		if (!p)
			return cat_unknown(c, l.set, name);
		cat(c, p, i == 0);
	}
	if (!c->wants_json)
		return EXIT_DONE;
	json_end_array(&c->json);
	return ctl_json_end(c);
}
