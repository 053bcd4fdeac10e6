/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policies.h"

#include "policy/policy.h"

#include <errno.h>

struct policies {
	struct policy_set *set;
	struct machine_facts facts;
};

int policies_load(struct policies **ret, const struct sysroot *root, const char *const *dirs,
		  const struct snapshot *s, const struct policies *previous, FILE *out,
		  struct error *e)
{
	struct policies *p = calloc(1, sizeof(*p));
	struct diagnostics d = {0};
	int r;

	if (!p)
		return error_set(e, -ENOMEM, "out of memory while loading the policies");
	r = policy_set_load(&p->set, root, dirs, s->page_bytes, previous ? previous->set : NULL,
			    &d);
	diagnostics_sort(&d);
	diagnostics_print(&d, out, false);
	diagnostics_free(&d);
	if (r < 0) {
		policies_free(p);
		return error_set(e, r, "out of memory while loading the policies");
	}
	machine_facts_read(&p->facts, root, s);
	*ret = p;
	return 0;
}

struct policies *policies_free(struct policies *p)
{
	if (!p)
		return NULL;
	p->set = policy_set_free(p->set);
	free(p);
	return NULL;
}

const struct policy_set *policies_set(const struct policies *p)
{
	return p->set;
}

const struct machine_facts *policies_facts(const struct policies *p)
{
	return &p->facts;
}

void policies_refresh_facts(struct policies *p, const struct sysroot *root,
			    const struct snapshot *s)
{
	machine_facts_read(&p->facts, root, s);
}

size_t policies_process_names(const struct policies *p, const char **names, size_t room)
{
	const struct expr_table *t = &p->set->table;
	size_t n = 0;

	for (uint32_t i = 0; i < t->nr_slots; i++) {
		const struct signal_info *info = signal_describe(&t->slots[i].ref);

		if (!streq(info->name, "process.running"))
			continue;
		if (n < room)
			names[n] = t->slots[i].ref.arg;
		n++;
	}
	return n;
}

size_t policies_count(const struct policies *p)
{
	return p->set->nr;
}

/* Has it rules here at all, and do they sleep? A policy sleeps as a whole: the first one tells. */
static bool has_rules(const struct engine *engine, const char *name, bool *ret_asleep)
{
	struct engine_rule_view view;

	for (size_t i = 0; i < engine_nr_rules(engine); i++) {
		engine_rule_view(engine, i, &view);
		if (!streq(view.policy, name))
			continue;
		*ret_asleep = view.asleep;
		return true;
	}
	return false;
}

static void view_loaded(const struct policy *p, const struct machine_facts *facts,
			const struct engine *engine, struct policies_view *ret)
{
	struct match_result match;
	bool asleep = false;
	bool rules = has_rules(engine, p->name, &asleep);

	*ret = (struct policies_view){
		.name = p->name,
		.priority = p->priority,
		.enforce = p->mode == POLICY_ENFORCE,
		.state = POLICY_AWAKE,
	};
	if (p->kept)
		(void)snprintf(ret->why, sizeof(ret->why),
			       "its file has errors now: what was loaded before still runs");
	policy_match_eval(p, facts, NULL, &match);
	if (!asleep && rules)
		return;
	ret->state = POLICY_ASLEEP;
	(void)snprintf(ret->why, sizeof(ret->why), "%s",
		       match.holds == KLEENE_FALSE || rules
			       ? match.why
			       : "nothing that its rules set is on this kernel");
}

bool policies_view(const struct policies *p, size_t i, const struct engine *engine,
		   struct policies_view *ret)
{
	const struct policy_unused *unused;

	if (i < p->set->nr) {
		view_loaded(p->set->policies[i], &p->facts, engine, ret);
		return true;
	}
	i -= p->set->nr;
	if (i >= p->set->nr_unused)
		return false;
	unused = &p->set->unused[i];
	*ret = (struct policies_view){
		.name = unused->name,
		.state = unused->masked ? POLICY_MASKED : POLICY_INVALID,
	};
	(void)snprintf(ret->why, sizeof(ret->why),
		       unused->masked ? "masked by %s" : "%s has errors", unused->file);
	return true;
}

void policies_report(const struct policies *p, const struct log *log, const struct engine *engine)
{
	struct policies_view v;
	size_t i;

	for (i = 0; policies_view(p, i, engine, &v); i++) {
		const char *mode = v.enforce ? "" : ", only observes";

		switch (v.state) {
		case POLICY_AWAKE:
			log_info(log, "policy: %s (priority %d%s)%s%s", v.name, v.priority, mode,
				 v.why[0] ? ": " : "", v.why);
			break;
		case POLICY_ASLEEP:
			log_info(log, "policy: %s (priority %d%s) sleeps: %s", v.name, v.priority,
				 mode, v.why);
			break;
		case POLICY_INVALID:
		case POLICY_MASKED:
			log_info(log, "policy: %s is not used: %s", v.name, v.why);
			break;
		}
	}
	if (i == 0)
		log_info(log, "policy: none is loaded, so nothing will be decided");
}
