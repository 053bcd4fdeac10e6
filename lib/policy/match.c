/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does a policy apply to this machine? */
#include "policy/policy-internal.h"

#include "base/format.h"

#include <fnmatch.h>

static void read_line(const struct sysroot *root, const char *rel, char *into, size_t size)
{
	_cleanup_(text_free) struct text text = {0};

	*into = '\0';
	if (sysroot_read(root, rel, &text) < 0 || !text.data)
		return;
	text.data[strcspn(text.data, "\r\n")] = '\0';
	if (strlen(text.data) < size)
		(void)snprintf(into, size, "%s", text.data);
}

void machine_facts_read(struct machine_facts *ret, const struct sysroot *root,
			const struct snapshot *s)
{
	struct machine_facts f = {0};
	struct signal_ref ref;
	double bytes;

	read_line(root, "proc/sys/kernel/osrelease", f.kernel, sizeof(f.kernel));
	read_line(root, "proc/sys/kernel/hostname", f.host, sizeof(f.host));
	read_line(root, "etc/machine-id", f.machine_id, sizeof(f.machine_id));
	if (strspn(f.machine_id, "0123456789abcdef") != 32)
		f.machine_id[0] = '\0';
	if (s) {
		f.cpus = cpuset_count(&s->topology.online);
		if (signal_resolve("machine.memory_bytes", s->page_bytes, &ref) == 0 &&
		    signal_read(&ref, s, 0, &bytes, NULL) && bytes > 0)
			f.memory_bytes = (uint64_t)bytes;
	}
	*ret = f;
}

/* The finalizer of MurmurHash3: spreads what FNV leaves in the low bits over all of them. */
static uint64_t spread(uint64_t h)
{
	h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 33;
}

double policy_rollout_hash(const char *machine_id, const char *policy_name)
{
	uint64_t h = hash_text(hash_text(HASH_START, machine_id), policy_name);

	return (double)(spread(h) >> 11) * 0x1p-53;
}

struct matching {
	const struct policy *p;
	struct match_result *ret;
};

static const char *key_text(const struct policy *p, const char *key)
{
	const struct ini_section *s = ini_doc_section(&p->doc, "Match");
	const struct ini_value *v = s ? ini_section_get(s, key) : NULL;

	return v ? v->text : "";
}

/* Joins one condition to the result; the first that does not hold is the reason. */
static void join(const struct matching *m, enum kleene holds, const char *key, const char *fact)
{
	struct match_result *ret = m->ret;

	if (holds == KLEENE_TRUE || ret->holds == KLEENE_FALSE)
		return;
	if (holds == KLEENE_FALSE || !*ret->why)
		(void)snprintf(ret->why, sizeof(ret->why), "%s=%.80s%s: %s", key,
			       key_text(m->p, key), holds == KLEENE_FALSE ? "" : " is unknown",
			       fact);
	ret->holds = holds;
}

static void match_kernel(const struct matching *m, const char *release)
{
	const struct comparisons *list = &m->p->match.kernel;
	enum kleene holds = KLEENE_TRUE;
	unsigned version[3] = {0};
	char fact[96];

	if (list->nr == 0)
		return;
	(void)snprintf(fact, sizeof(fact), "this is kernel %s", *release ? release : "(unknown)");
	if (kernel_version_parse(release, version) < 2)
		holds = KLEENE_UNKNOWN;
	for (unsigned i = 0; i < list->nr && holds == KLEENE_TRUE; i++)
		if (!comparison_kernel_holds(&list->list[i], version))
			holds = KLEENE_FALSE;
	join(m, holds, "Kernel", fact);
}

static void match_number(const struct matching *m, const struct comparisons *list, const char *key,
			 uint64_t value, const char *fact)
{
	enum kleene holds = value == 0 ? KLEENE_UNKNOWN : KLEENE_TRUE;

	for (unsigned i = 0; i < list->nr && holds == KLEENE_TRUE; i++)
		if (!comparison_holds(&list->list[i], value))
			holds = KLEENE_FALSE;
	if (list->nr > 0)
		join(m, holds, key, fact);
}

static bool host_matches(const char *patterns, const char *host)
{
	char pattern[256], brief[65];

	(void)snprintf(brief, sizeof(brief), "%.*s", (int)strcspn(host, "."), host);
	for (const char *s = patterns; *s;) {
		size_t n = strcspn(s, " \t");

		(void)snprintf(pattern, sizeof(pattern), "%.*s", (int)MIN_OF(n, (size_t)255), s);
		if (fnmatch(pattern, host, FNM_CASEFOLD) == 0 ||
		    fnmatch(pattern, brief, FNM_CASEFOLD) == 0)
			return true;
		s += n;
		s += strspn(s, " \t");
	}
	return false;
}

static void match_host(const struct matching *m, const char *host)
{
	char fact[96];

	if (!m->p->match.host)
		return;
	(void)snprintf(fact, sizeof(fact), "this is %s", *host ? host : "(unknown)");
	join(m,
	     !*host                                 ? KLEENE_UNKNOWN
	     : host_matches(m->p->match.host, host) ? KLEENE_TRUE
						    : KLEENE_FALSE,
	     "Host", fact);
}

static void match_rollout(const struct matching *m, const char *machine_id)
{
	double at, share = m->p->match.rollout;
	char fact[96], shown[FORMAT_MAX];

	if (share >= 1)
		return;
	if (!*machine_id) {
		join(m, KLEENE_UNKNOWN, "Rollout", "this machine has no machine-id");
		return;
	}
	at = policy_rollout_hash(machine_id, m->p->name);
	(void)snprintf(fact, sizeof(fact), "this machine's place is at %s",
		       format_ratio(shown, sizeof(shown), at));
	join(m, at < share ? KLEENE_TRUE : KLEENE_FALSE, "Rollout", fact);
}

static void match_expr(const struct matching *m, const struct expr *e, const char *key,
		       const struct expr_env *env)
{
	static const struct expr_env nothing;

	if (e)
		join(m, expr_test(e, env ? env : &nothing), key, "does not hold here");
}

void policy_match_eval(const struct policy *p, const struct machine_facts *facts,
		       const struct expr_env *env, struct match_result *ret)
{
	struct matching m = {p, ret};
	char cpus[96], memory[96], shown[FORMAT_MAX];

	*ret = (struct match_result){.holds = KLEENE_TRUE};
	(void)snprintf(cpus, sizeof(cpus), "%llu are online", (unsigned long long)facts->cpus);
	(void)snprintf(memory, sizeof(memory), "the kernel manages %s",
		       format_bytes(shown, sizeof(shown), facts->memory_bytes));
	match_kernel(&m, facts->kernel);
	match_number(&m, &p->match.cpus, "CPUs", facts->cpus, cpus);
	match_number(&m, &p->match.memory, "Memory", facts->memory_bytes, memory);
	match_host(&m, facts->host);
	match_rollout(&m, facts->machine_id);
	match_expr(&m, p->match.when, "When", env);
	match_expr(&m, p->match.process, "Process", env);
	match_expr(&m, p->match.link_mtu, "LinkMTU", env);
}
