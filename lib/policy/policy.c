/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From an INI document to a policy. */
#include "policy/policy-internal.h"

#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

static const char *const rule_kinds[_RULE_KIND_MAX] = {
	[RULE_ORDER] = "Order",
	[RULE_HIGH_FRACTION] = "HighFraction",
	[RULE_TRIM] = "Trim",
};

const char *rule_kind_name(enum rule_kind k)
{
	return rule_kinds[k];
}

uint64_t hash_bytes(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

uint64_t hash_text(uint64_t h, const char *s)
{
	return hash_bytes(h, s, strlen(s) + 1);
}

static void rule_clear(struct policy_rule *r)
{
	free(r->section);
	free(r->name);
	(void)expr_free(r->on);
	(void)expr_free(r->off);
	(void)expr_free(r->value);
}

struct policy *policy_free(struct policy *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < p->nr_rules; i++)
		rule_clear(&p->rules[i]);
	free(p->rules);
	free(p->name);
	free(p->file);
	free(p->description);
	free(p->match.host);
	(void)expr_free(p->match.when);
	(void)expr_free(p->match.process);
	(void)expr_free(p->match.link_mtu);
	(void)expr_free(p->guard.trip);
	ini_doc_free(&p->doc);
	free(p);
	return NULL;
}

static void policy_freep(struct policy **p)
{
	*p = policy_free(*p);
}

struct load {
	struct policy *p;
	struct key_context context;
	bool failed;
};

static int section_error(struct load *l, const struct ini_section *s, size_t offset,
			 const char *nearest, const char *fmt, ...) _printf_(5, 6);
static int section_error(struct load *l, const struct ini_section *s, size_t offset,
			 const char *nearest, const char *fmt, ...)
{
	struct ini_pos pos = {s->file, s->line, (unsigned)offset + 1};
	char message[300];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	l->failed = true;
	return diagnostics_add(l->context.d, &pos, s->raw, nearest, "%s", message);
}

/* The name of a key that nobody knows: where it would be at home, or what is near. */
static void unknown_key(struct load *l, const char *kind, const struct ini_entry *e)
{
	struct nearest n = NEAREST(e->key);
	struct ini_pos pos = ini_key_pos(&e->value);
	const struct key *elsewhere = NULL;

	for (size_t i = 0; key_at(i); i++) {
		if (streq(key_at(i)->doc.section, kind))
			nearest_try(&n, key_at(i)->doc.key);
		else if (!elsewhere && streq(key_at(i)->doc.key, e->key))
			elsewhere = key_at(i);
	}
	l->failed = true;
	if (elsewhere)
		(void)diagnostics_add(l->context.d, &pos, e->value.raw, n.best,
				      "[%s] has no %s=; [%s] has", kind, e->key,
				      elsewhere->doc.section);
	else
		(void)diagnostics_add(l->context.d, &pos, e->value.raw, n.best,
				      "[%s] has no %s=", kind, e->key);
}

static int read_keys(struct load *l, const struct ini_section *s, const char *kind, void *target)
{
	int r = key_defaults(kind, l->context.d, target);

	if (r < 0)
		return r;
	for (size_t i = 0; i < s->nr; i++) {
		const struct key *k = key_find(kind, s->entries[i].key);

		if (!k) {
			unknown_key(l, kind, &s->entries[i]);
			continue;
		}
		r = key_read(k, &l->context, &s->entries[i].value, target);
		if (r == -ENOMEM)
			return r;
		l->failed = l->failed || r < 0;
	}
	for (size_t i = 0; key_at(i); i++) {
		const struct policy_key *k = &key_at(i)->doc;

		if (streq(k->section, kind) && streq(k->default_text, "required") &&
		    !ini_section_get(s, k->key))
			(void)section_error(l, s, 0, NULL, "[%s] needs %s=", s->name, k->key);
	}
	return 0;
}

static uint64_t section_hash(const struct ini_section *s)
{
	uint64_t h = hash_text(HASH_START, s->name);

	for (size_t i = 0; i < s->nr; i++) {
		h = hash_text(h, s->entries[i].key);
		h = hash_text(h, s->entries[i].value.text);
	}
	return h;
}

/* "64kB", "4" or "*" behind [Order. */
static void read_order(struct load *l, const struct ini_section *s, struct policy_rule *r)
{
	uint64_t page = l->context.table->page_bytes, n;
	size_t at = strlen("[Order ");

	r->any_order = streq(r->name, "*");
	if (r->any_order)
		return;
	if (parse_u64(r->name, &n) == 0) {
		if (n >= PCP_ORDERS_MAX)
			(void)section_error(l, s, at, NULL,
					    "orders go up to %u; a size has a unit, as in 64kB",
					    PCP_ORDERS_MAX - 1);
		r->order = (unsigned)MIN_OF(n, UINT64_C(255));
		return;
	}
	if (parse_bytes(r->name, &n) < 0 || n == 0 || (n & (n - 1))) {
		(void)section_error(
			l, s, at, NULL,
			"[Order] takes a folio size as in 64kB, an order as in 4, or *");
		return;
	}
	for (r->order = 0; r->order < PCP_ORDERS_MAX; r->order++)
		if (page << r->order == n)
			return;
	r->order = POLICY_ORDER_NONE;
}

static void check_repeated(struct load *l, const struct ini_section *s, const struct policy_rule *r)
{
	const struct policy *p = l->p;

	if (r->kind != RULE_ORDER || r->any_order || r->order == POLICY_ORDER_NONE)
		return;
	for (size_t i = 0; i < p->nr_rules; i++) {
		const struct policy_rule *other = &p->rules[i];

		if (other->kind == RULE_ORDER && !other->any_order && other->order == r->order)
			(void)section_error(l, s, strlen("[Order "), NULL,
					    "[%s] is the same order, in line %u", other->section,
					    other->line);
	}
}

static int read_rule(struct load *l, const struct ini_section *s, enum rule_kind kind,
		     const char *name)
{
	struct policy *p = l->p;
	struct policy_rule *r = &p->rules[p->nr_rules];
	bool order_at_hand = kind == RULE_ORDER;

	*r = (struct policy_rule){.kind = kind,
				  .section = strdup(s->name),
				  .name = strdup(name),
				  .file = s->file,
				  .line = s->line,
				  .fingerprint = section_hash(s)};
	if (!r->section || !r->name) {
		rule_clear(r);
		return -ENOMEM;
	}
	if (kind == RULE_ORDER)
		read_order(l, s, r);
	check_repeated(l, s, r);
	p->nr_rules++;
	l->context.expr_flags = order_at_hand ? EXPR_ORDER_AT_HAND : 0;
	return read_keys(l, s, rule_kinds[kind], r);
}

static bool name_is_sound(const char *name)
{
	return *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789_.:@-")];
}

static int unknown_section(struct load *l, const struct ini_section *s, const char *kind)
{
	struct nearest n = NEAREST(kind);

	for (size_t i = 0; key_at(i); i++)
		nearest_try(&n, key_at(i)->doc.section);
	return section_error(l, s, 1, n.best, "policies have no section [%s]", kind);
}

static int read_section(struct load *l, const struct ini_section *s)
{
	char kind[INI_NAME_LIMIT + 1];
	size_t n = strcspn(s->name, " \t");
	const char *name = s->name + n + strspn(s->name + n, " \t");
	bool named;

	(void)snprintf(kind, sizeof(kind), "%.*s", (int)n, s->name);
	if (!section_kind_known(kind, &named))
		return unknown_section(l, s, kind);
	if (!named && *name)
		return section_error(l, s, n + 1, NULL, "[%s] takes no name", kind);
	if (named && !*name)
		return section_error(l, s, n + 1, NULL, "[%s] needs a name, as in [%s %s]", kind,
				     kind, streq(kind, "Order") ? "64kB" : "mine");
	if (named && !streq(name, "*") && !name_is_sound(name))
		return section_error(l, s, (size_t)(name - s->name) + 1, NULL,
				     "a rule's name has letters, digits and _ . : @ - only");
	if (streq(name, "*") && !streq(kind, "Order"))
		return section_error(l, s, (size_t)(name - s->name) + 1, NULL,
				     "only [Order] takes *");
	for (int k = 0; k < _RULE_KIND_MAX; k++)
		if (streq(kind, rule_kinds[k]))
			return read_rule(l, s, (enum rule_kind)k, name);
	if (streq(kind, "Match"))
		return read_keys(l, s, kind, &l->p->match);
	if (streq(kind, "Policy"))
		return read_keys(l, s, kind, l->p);
	/* the order at hand is that of the knob that was changed: none without [Order] rules */
	l->context.expr_flags = 0;
	for (size_t i = 0; i < l->p->doc.nr; i++)
		if (strncmp(l->p->doc.sections[i].name, "Order ", 6) == 0)
			l->context.expr_flags = EXPR_ORDER_AT_HAND;
	return read_keys(l, s, kind, &l->p->guard);
}

static int read_all(struct load *l)
{
	struct policy *p = l->p;
	int r = key_defaults("Policy", l->context.d, p);

	if (r == 0)
		r = key_defaults("Match", l->context.d, &p->match);
	p->fingerprint = hash_text(HASH_START, p->name);
	for (size_t i = 0; r == 0 && i < p->doc.nr; i++) {
		uint64_t h = section_hash(&p->doc.sections[i]);

		p->fingerprint = hash_bytes(p->fingerprint, &h, sizeof(h));
		r = read_section(l, &p->doc.sections[i]);
		if (r == -EBADMSG)
			r = 0;
	}
	return r < 0 ? r : l->failed ? -EBADMSG : 0;
}

int policy_compile(struct expr_table *t, const char *name, struct ini_doc *doc, struct policy **ret,
		   struct diagnostics *d)
{
	_cleanup_(policy_freep) struct policy *p = calloc(1, sizeof(*p));
	struct load l = {.p = p, .context = {.table = t, .d = d}};
	int r;

	*ret = NULL;
	if (!p) {
		ini_doc_free(doc);
		return -ENOMEM;
	}
	p->doc = *doc;
	*doc = (struct ini_doc){0};
	p->name = strdup(name);
	p->file = strdup(p->doc.nr_files ? p->doc.files[0] : name);
	p->rules = calloc(p->doc.nr + 1, sizeof(*p->rules));
	if (!p->name || !p->file || !p->rules)
		return -ENOMEM;
	if (!name_is_sound(name) || strlen(name) > POLICY_NAME_LIMIT)
		return diagnostics_add(
			d, &(struct ini_pos){p->file, 0, 0}, NULL, NULL,
			"a policy's name has 1 to %u letters, digits and _ . : @ - only",
			POLICY_NAME_LIMIT);
	r = read_all(&l);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

int policy_parse(struct expr_table *t, const char *name, const char *file, const char *text,
		 size_t len, struct policy **ret, struct diagnostics *d)
{
	_cleanup_(ini_doc_free) struct ini_doc doc = {0};
	int bad = ini_doc_add(&doc, file, text, len, d), r;

	*ret = NULL;
	if (bad < 0 && bad != -EBADMSG)
		return bad;
	/* goes on behind an error of the text, so that all of them are told */
	r = policy_compile(t, name, &doc, ret, d);
	if (r == 0 && bad < 0) {
		*ret = policy_free(*ret);
		return bad;
	}
	return r;
}

int policy_fraction(const struct policy_rule *r, const struct expr_env *env, uint64_t *ret)
{
	double v = floor(expr_eval(r->value, env));

	if (!(v >= 1))
		return -ENODATA;
	*ret = v >= (double)HIGH_FRACTION_MAX ? HIGH_FRACTION_MAX
					      : MAX_OF((uint64_t)v, HIGH_FRACTION_MIN);
	return 0;
}
