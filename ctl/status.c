/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl status: what is set, by whom and why, what is parked, and what is wrong. */
#include "ctl.h"

#include "act/record.h"
#include "base/format.h"

#include <errno.h>
#include <stdarg.h>

/* So that it stays one screen. */
#define ZONES_SHOWN     6U
#define DECISIONS_SHOWN 3U
#define DRAINS_SHOWN    2U
#define PROBLEMS_MAX    32U

struct problem {
	char text[400];
};

struct status {
	struct ctl *c;
	struct holder holder;
	struct state_knob knobs[STATE_KNOBS_MAX];
	uint32_t nr_knobs;
	struct record record;
	bool has_record;
	struct problem problems[PROBLEMS_MAX];
	unsigned nr_problems;
	uint64_t now_usec; /* CLOCK_REALTIME */
	char kernel[80];
};

static void _printf_(2, 3) add_problem(struct status *s, const char *fmt, ...)
{
	va_list ap;

	if (s->nr_problems == PROBLEMS_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(s->problems[s->nr_problems].text, sizeof(s->problems[0].text), fmt, ap);
	va_end(ap);
	s->nr_problems++;
}

/* gathering */

static void read_kernel(struct status *s)
{
	_cleanup_(text_free) struct text text = {0};

	if (sysroot_read(&s->c->root, "proc/sys/kernel/osrelease", &text) < 0)
		return;
	(void)snprintf(s->kernel, sizeof(s->kernel), "%.*s", (int)strcspn(text.data, "\n"),
		       text.data);
}

/* What the record says about a knob that the kernel has at `value`. */
static void judge_by_record(struct status *s, struct state_knob *k, struct knob_id id)
{
	const struct record_knob *r = s->has_record ? record_find(&s->record, id) : NULL;

	if (!r)
		return;
	k->has_baseline = true;
	k->baseline = r->baseline;
	k->since_usec = r->since_usec;
	if (r->foreign || (k->value != r->now && k->value != r->intended)) {
		k->owner = OWNER_FOREIGN;
		k->state = SHOWN_FOREIGN;
		return;
	}
	if (k->value == r->baseline)
		return;
	k->owner = OWNER_POLICY;
	k->state = SHOWN_ON;
	(void)snprintf(k->reason, sizeof(k->reason), "%s", r->reason);
	add_problem(s,
		    "%s has %llu, which a pcptune that is gone has left; \"pcptunectl rollback\" "
		    "puts %llu back",
		    k->name, (unsigned long long)k->value, (unsigned long long)r->baseline);
}

static struct state_knob *knob_of(struct status *s, struct knob_id id, uint64_t value)
{
	const struct daemon_state *d = &s->holder.state;
	struct state_knob *k = &s->knobs[s->nr_knobs++];
	char name[KNOB_NAME_MAX];

	(void)knob_name(id, s->c->snapshot->page_bytes, name);
	for (uint32_t i = 0; s->holder.has_state && i < d->nr_knobs; i++)
		if (streq(d->knobs[i].name, name))
			*k = d->knobs[i];
	(void)snprintf(k->name, sizeof(k->name), "%s", name);
	k->has_value = true;
	k->value = value;
	if (!s->holder.has_state)
		judge_by_record(s, k, id);
	if (!k->reason[0] && id.kind == KNOB_HIGH_FRACTION && value == 0)
		(void)snprintf(k->reason, sizeof(k->reason), "the kernel's own sizing");
	return k;
}

static void gather_knobs(struct status *s)
{
	const struct snapshot *snap = s->c->snapshot;

	if (!snapshot_has(snap, SOURCE_KNOBS))
		return;
	if (snap->has_high_fraction)
		(void)knob_of(s, (struct knob_id){KNOB_HIGH_FRACTION, 0}, snap->high_fraction);
	for (uint32_t i = 0; i < snap->mthp.nr_sizes; i++) {
		const struct mthp_size *size = &snap->mthp.size[i];

		if (size->controllable && size->pcp_enabled >= 0 && s->nr_knobs < STATE_KNOBS_MAX)
			(void)knob_of(s, (struct knob_id){KNOB_PCP_ENABLED, size->order},
				      (uint64_t)size->pcp_enabled);
	}
}

static void gather_record(struct status *s)
{
	struct act_env env = act_env_from(&s->c->root, s->c->snapshot);
	struct error e = {0};
	int r;

	if (s->holder.is == HOLDER_RUNS || !sysroot_exists(&s->c->root, RECORD_REL))
		return;
	r = record_load(&s->record, &env, NULL, &e);
	s->has_record = r == 0;
	if (r == -EACCES)
		add_problem(s,
			    "%s/%s is there and only root may read it: it may hold values to put "
			    "back",
			    s->c->root.path, RECORD_REL);
	else if (r < 0)
		add_problem(s, "%s", e.text);
}

static void gather_problems(struct status *s)
{
	const struct daemon_state *d = &s->holder.state;
	unsigned invalid = 0;

	for (uint32_t i = 0; i < s->nr_knobs; i++) {
		const struct state_knob *k = &s->knobs[i];

		if (k->state == SHOWN_FOREIGN || k->state == SHOWN_FAILED ||
		    k->state == SHOWN_LOCKED_OUT || k->state == SHOWN_BLIND)
			add_problem(s, "%s is %s%s%s", k->name, shown_state_name(k->state),
				    k->reason[0] ? ": " : "", k->reason);
	}
	if (s->holder.stale_state)
		add_problem(s, "the daemon that wrote %s/%s is gone without a word: killed?",
			    s->c->root.path, STATE_REL);
	if (s->holder.why.text[0])
		add_problem(s, "%s", s->holder.why.text);
	if (s->c->snapshot->missing_pagesets > 0)
		add_problem(s, "%u lists of online CPUs are missing in /proc/zoneinfo",
			    s->c->snapshot->missing_pagesets);
	if (!s->holder.has_state)
		return;
	if (d->drain_blocked)
		add_problem(s, "drain blocked: a pass hangs in the kernel; look for a real-time "
			       "task that never sleeps");
	for (uint32_t i = 0; i < d->nr_policies; i++)
		invalid += streq(d->policies[i].state, "invalid") ? 1 : 0;
	if (invalid > 0)
		add_problem(s, "%u %s not used because of errors: see pcptunectl policy check",
			    invalid, invalid == 1 ? "policy is" : "policies are");
}

/* the screen */

static void print_head(const struct status *s)
{
	const struct topology *t = &s->c->snapshot->topology;
	struct parked p = snapshot_parked(s->c->snapshot);
	size_t cpus = cpuset_count(&t->online), nodes = cpuset_count(&t->nodes);
	char bytes[FORMAT_MAX];

	(void)fprintf(s->c->screen.out, "%spcptune %s%s on Linux %s: %zu CPU%s, %zu node%s, %s\n",
		      shade(&s->c->screen, SHADE_HEADING), PACKAGE_VERSION,
		      shade(&s->c->screen, SHADE_PLAIN), s->kernel[0] ? s->kernel : "(unknown)",
		      cpus, cpus == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s",
		      format_bytes(bytes, sizeof(bytes), p.managed * s->c->snapshot->page_bytes));
}

static void print_daemon_mode(const struct status *s)
{
	const struct daemon_state *d = &s->holder.state;
	FILE *out = s->c->screen.out;
	char when[FORMAT_MAX * 2];

	(void)fprintf(out, ", %s", d->enforce ? "enforcing" : "observing: it writes nothing");
	if (d->mode_reason[0])
		(void)fprintf(out, " (%s)", d->mode_reason);
	if (d->paused && d->paused_until_usec)
		(void)fprintf(out, ", paused until %s",
			      format_when(when, sizeof(when), d->paused_until_usec, s->now_usec));
	else if (d->paused)
		(void)fputs(", paused", out);
	if (d->metrics[0])
		(void)fprintf(out, "\n           metrics at %s", d->metrics);
}

static void print_daemon(const struct status *s)
{
	const struct screen *sc = &s->c->screen;
	const struct lock_holder *h = &s->holder.lock;
	uint64_t since = s->holder.has_state ? s->holder.state.started_usec : h->since_usec;
	long long pid = s->holder.has_state ? s->holder.state.pid : (long long)h->pid;
	char when[FORMAT_MAX * 2];

	(void)fprintf(sc->out, "  Daemon   ");
	if (s->holder.is == HOLDER_NONE) {
		(void)fputs("not running\n", sc->out);
		return;
	}
	if (s->holder.is == HOLDER_UNKNOWN) {
		(void)fputs("cannot be told: only root may look at its lock\n", sc->out);
		return;
	}
	(void)fprintf(sc->out, "%s%s runs%s", shade(sc, SHADE_GOOD),
		      h->program[0] ? h->program : "pcptuned", shade(sc, SHADE_PLAIN));
	if (pid > 0)
		(void)fprintf(sc->out, " (pid %lld)", pid);
	if (since > 0)
		(void)fprintf(sc->out, ", started %s",
			      format_when(when, sizeof(when), since, s->now_usec));
	if (s->holder.has_state)
		print_daemon_mode(s);
	(void)fputc('\n', sc->out);
}

static void print_parked(const struct status *s)
{
	const struct snapshot *snap = s->c->snapshot;
	struct parked p = snapshot_parked(snap);
	double share = p.managed ? (double)p.pages / (double)p.managed : 0;
	char bytes[FORMAT_MAX], ratio[FORMAT_MAX];
	FILE *out = s->c->screen.out;

	(void)fprintf(out, "  Parked   %s on the per-CPU lists, %s of managed memory",
		      format_bytes(bytes, sizeof(bytes), p.pages * snap->page_bytes),
		      format_ratio(ratio, sizeof(ratio), share));
	if (p.worst)
		(void)fprintf(out, "; most in node %d, %s: %s", p.worst->node, p.worst->name,
			      format_ratio(ratio, sizeof(ratio), p.share_max));
	if (p.excess_known)
		(void)fprintf(out, "\n           %s of it exceeds high_min: a trim returns that",
			      format_bytes(bytes, sizeof(bytes), p.excess * snap->page_bytes));
	(void)fputc('\n', out);
}

static void print_memory(const struct status *s)
{
	const struct psi *psi = &s->c->snapshot->psi_memory;
	char some[FORMAT_MAX], full[FORMAT_MAX];

	if (!snapshot_has(s->c->snapshot, SOURCE_PSI_MEMORY) || !psi->some.present)
		return;
	(void)fprintf(s->c->screen.out,
		      "  Pressure %s of the last 10 s some task waited for memory, %s all\n",
		      format_ratio(some, sizeof(some), psi->some.avg10),
		      format_ratio(full, sizeof(full), psi->full.avg10));
}

static void print_policies(const struct status *s)
{
	const struct daemon_state *d = &s->holder.state;
	unsigned active = 0, sleeping = 0;

	if (!s->holder.has_state)
		return;
	for (uint32_t i = 0; i < d->nr_policies; i++) {
		active += streq(d->policies[i].state, "active") ? 1 : 0;
		sleeping += streq(d->policies[i].state, "sleeping") ? 1 : 0;
	}
	(void)fprintf(s->c->screen.out, "  Policies %u active, %u sleeping, %u not used\n", active,
		      sleeping, d->nr_policies - active - sleeping);
}

static void knob_row(struct table *t, const struct status *s, const struct state_knob *k)
{
	char when[FORMAT_MAX * 2], by[STATE_WORD * 2 + 8] = "";

	if (k->policy[0])
		(void)snprintf(by, sizeof(by), "%s/%s%s", k->policy, k->rule,
			       k->reason[0] ? ": " : "");
	table_cell(t, "  %s", k->name);
	table_cell(t, "%llu", (unsigned long long)k->value);
	table_cell(t, "%llu", (unsigned long long)(k->has_baseline ? k->baseline : k->value));
	table_cell(t, "%s", shown_owner_name(k->owner));
	table_cell(t, "%s", shown_state_name(k->state));
	table_cell(t, "%s",
		   k->since_usec ? format_when(when, sizeof(when), k->since_usec, s->now_usec)
				 : "-");
	/* what the reason begins with already need not be said twice */
	if (k->policy[0] && strncmp(k->reason, k->policy, strlen(k->policy)) == 0)
		by[0] = '\0';
	table_cell(t, "%s%s", by, k->reason);
}

static int print_knobs(const struct status *s)
{
	static const char *const names[] = {"  KNOB", "VALUE", "BASELINE", "OWNER",
					    "STATE",  "SINCE", "WHY"};
	_cleanup_(table_freep) struct table *t = table_new(ARRAY_SIZE(names));

	if (!t)
		return -ENOMEM;
	if (s->nr_knobs == 0) {
		(void)fputs("\n  No knobs: this kernel offers none; pcptunectl doctor says more.\n",
			    s->c->screen.out);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		table_cell(t, "%s", names[i]);
		if (i != 1 && i != 2)
			table_align_left(t, i);
	}
	for (uint32_t i = 0; i < s->nr_knobs; i++)
		knob_row(t, s, &s->knobs[i]);
	(void)fputc('\n', s->c->screen.out);
	return table_print(t, s->c->screen.out);
}

static void zone_row(struct table *t, const struct status *s, const struct zone *z)
{
	const struct snapshot *snap = s->c->snapshot;
	uint64_t managed = zone_managed(z), parked = zone_parked(&snap->zoneinfo, z);
	char buf[FORMAT_MAX];

	table_cell(t, "  %d", z->node);
	table_cell(t, "%s", z->name);
	table_cell(t, "%s", format_bytes(buf, sizeof(buf), managed * snap->page_bytes));
	table_cell(t, "%s", format_bytes(buf, sizeof(buf), z->value[ZONE_FREE] * snap->page_bytes));
	table_cell(t, "%s", format_bytes(buf, sizeof(buf), parked * snap->page_bytes));
	table_cell(t, "%s",
		   format_ratio(buf, sizeof(buf), managed ? (double)parked / (double)managed : 0));
	table_cell(t, "%s",
		   z->value[ZONE_FREE] < z->value[ZONE_LOW] ? "below its low watermark" : "");
}

/* The zones that have most parked, most first. */
static unsigned choose_zones(const struct snapshot *snap, const struct zone *chosen[ZONES_SHOWN])
{
	const struct zoneinfo *zi = &snap->zoneinfo;
	unsigned nr = 0;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];
		unsigned at = nr;

		if (!snapshot_zone_counts(snap, z))
			continue;
		while (at > 0 && zone_parked(zi, chosen[at - 1]) < zone_parked(zi, z))
			at--;
		if (at >= ZONES_SHOWN)
			continue;
		nr = MIN_OF(nr + 1, ZONES_SHOWN);
		for (unsigned k = nr - 1; k > at; k--)
			chosen[k] = chosen[k - 1];
		chosen[at] = z;
	}
	return nr;
}

static int print_zones(const struct status *s)
{
	static const char *const names[] = {"  NODE", "ZONE",  "MANAGED", "FREE",
					    "PARKED", "SHARE", ""};
	_cleanup_(table_freep) struct table *t = table_new(ARRAY_SIZE(names));
	const struct zone *chosen[ZONES_SHOWN] = {0};
	unsigned nr = choose_zones(s->c->snapshot, chosen);

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		table_cell(t, "%s", names[i]);
	table_align_left(t, 1);
	table_align_left(t, ARRAY_SIZE(names) - 1);
	for (unsigned i = 0; i < nr; i++)
		zone_row(t, s, chosen[i]);
	(void)fputc('\n', s->c->screen.out);
	return table_print(t, s->c->screen.out);
}

static void print_decisions(const struct status *s)
{
	const struct daemon_state *d = &s->holder.state;
	char when[FORMAT_MAX * 2];

	for (uint32_t i = 0; i < MIN_OF(d->nr_decisions, DECISIONS_SHOWN); i++) {
		const struct state_decision *x = &d->decisions[i];

		(void)fprintf(s->c->screen.out, "  %-11s  %s %llu -> %llu, %s: %s\n",
			      format_when(when, sizeof(when), x->time_usec, s->now_usec), x->knob,
			      (unsigned long long)x->from, (unsigned long long)x->to, x->result,
			      x->reason);
	}
}

static void print_drains(const struct status *s)
{
	const struct daemon_state *d = &s->holder.state;
	char when[FORMAT_MAX * 2], before[FORMAT_MAX], after[FORMAT_MAX], took[FORMAT_MAX];

	for (uint32_t i = 0; i < MIN_OF(d->nr_drains, DRAINS_SHOWN); i++) {
		const struct state_drain *x = &d->drains[i];

		(void)fprintf(s->c->screen.out,
			      "  %-11s  %s: parked %s -> %s, %s, %llu passes, %s: %s\n",
			      format_when(when, sizeof(when), x->time_usec, s->now_usec), x->mode,
			      format_bytes(before, sizeof(before), x->before_pages * d->page_bytes),
			      format_bytes(after, sizeof(after), x->after_pages * d->page_bytes),
			      format_usec(took, sizeof(took), x->took_usec),
			      (unsigned long long)x->passes, x->result, x->reason);
	}
}

static void print_problems(const struct status *s)
{
	const struct screen *sc = &s->c->screen;

	if (s->nr_problems == 0) {
		(void)fprintf(sc->out, "\n  %sNothing is wrong.%s\n", shade(sc, SHADE_GOOD),
			      shade(sc, SHADE_PLAIN));
		return;
	}
	(void)fputc('\n', sc->out);
	for (unsigned i = 0; i < s->nr_problems; i++)
		(void)fprintf(sc->out, "  %sWrong:%s %s\n", shade(sc, SHADE_BAD),
			      shade(sc, SHADE_PLAIN), s->problems[i].text);
}

static int print_screen(const struct status *s)
{
	print_head(s);
	print_daemon(s);
	print_parked(s);
	print_memory(s);
	print_policies(s);
	if (print_knobs(s) < 0 || print_zones(s) < 0)
		return ctl_failf(s->c, EXIT_FAILED, "out of memory");
	if (s->holder.has_state && s->holder.state.nr_decisions + s->holder.state.nr_drains > 0)
		(void)fputc('\n', s->c->screen.out);
	if (s->holder.has_state) {
		print_decisions(s);
		print_drains(s);
	}
	print_problems(s);
	return EXIT_DONE;
}

/* JSON */

static void put_daemon(struct json_out *j, const struct status *s)
{
	static const char *const words[] = {
		[HOLDER_NONE] = "no",
		[HOLDER_RUNS] = "yes",
		[HOLDER_UNKNOWN] = "unknown",
	};
	const struct daemon_state *d = &s->holder.state;

	json_begin_object(j, "daemon");
	json_put_str(j, "running", words[s->holder.is]);
	json_put_str(j, "program", s->holder.lock.program);
	json_put_i64(j, "pid", s->holder.has_state ? d->pid : s->holder.lock.pid);
	if (s->holder.has_state) {
		json_put_str(j, "mode", d->enforce ? "enforce" : "observe");
		json_put_str(j, "mode_reason", d->mode_reason);
		json_put_bool(j, "paused", d->paused);
		json_put_usec(j, "started", d->started_usec);
		json_put_str(j, "metrics", d->metrics);
		json_put_bool(j, "drain_blocked", d->drain_blocked);
	}
	json_end_object(j);
}

static void put_knobs(struct json_out *j, const struct status *s)
{
	json_begin_array(j, "knobs");
	for (uint32_t i = 0; i < s->nr_knobs; i++) {
		const struct state_knob *k = &s->knobs[i];

		json_begin_object(j, NULL);
		json_put_str(j, "knob", k->name);
		json_put_u64(j, "value", k->value);
		json_put_u64(j, "baseline", k->has_baseline ? k->baseline : k->value);
		json_put_str(j, "owner", shown_owner_name(k->owner));
		json_put_str(j, "state", shown_state_name(k->state));
		json_put_str(j, "policy", k->policy);
		json_put_str(j, "rule", k->rule);
		json_put_str(j, "reason", k->reason);
		json_put_usec(j, "since", k->since_usec);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_parked(struct json_out *j, const struct status *s)
{
	struct parked p = snapshot_parked(s->c->snapshot);

	json_begin_object(j, "parked");
	json_put_u64(j, "pages", p.pages);
	json_put_u64(j, "bytes", p.pages * s->c->snapshot->page_bytes);
	json_put_u64(j, "managed", p.managed);
	json_put_double(j, "share", p.managed ? (double)p.pages / (double)p.managed : 0);
	json_put_double(j, "worst_zone_share", p.share_max);
	if (p.excess_known)
		json_put_u64(j, "excess", p.excess);
	else
		json_put_null(j, "excess");
	json_end_object(j);
}

static void put_policies(struct json_out *j, const struct status *s)
{
	const struct daemon_state *d = &s->holder.state;

	json_begin_array(j, "policies");
	for (uint32_t i = 0; s->holder.has_state && i < d->nr_policies; i++) {
		json_begin_object(j, NULL);
		json_put_str(j, "policy", d->policies[i].name);
		json_put_i64(j, "priority", d->policies[i].priority);
		json_put_str(j, "mode", d->policies[i].enforce ? "enforce" : "observe");
		json_put_str(j, "state", d->policies[i].state);
		json_put_str(j, "why", d->policies[i].reason);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_history(struct json_out *j, const struct status *s)
{
	const struct daemon_state *d = &s->holder.state;

	json_begin_array(j, "decisions");
	for (uint32_t i = 0; s->holder.has_state && i < d->nr_decisions; i++) {
		json_begin_object(j, NULL);
		json_put_usec(j, "time", d->decisions[i].time_usec);
		json_put_str(j, "knob", d->decisions[i].knob);
		json_put_u64(j, "from", d->decisions[i].from);
		json_put_u64(j, "to", d->decisions[i].to);
		json_put_str(j, "policy", d->decisions[i].policy);
		json_put_str(j, "rule", d->decisions[i].rule);
		json_put_str(j, "result", d->decisions[i].result);
		json_put_str(j, "reason", d->decisions[i].reason);
		json_end_object(j);
	}
	json_end_array(j);
	json_begin_array(j, "drains");
	for (uint32_t i = 0; s->holder.has_state && i < d->nr_drains; i++) {
		json_begin_object(j, NULL);
		json_put_usec(j, "time", d->drains[i].time_usec);
		json_put_str(j, "mode", d->drains[i].mode);
		json_put_str(j, "policy", d->drains[i].policy);
		json_put_str(j, "rule", d->drains[i].rule);
		json_put_str(j, "result", d->drains[i].result);
		json_put_u64(j, "before", d->drains[i].before_pages);
		json_put_u64(j, "after", d->drains[i].after_pages);
		json_put_u64(j, "passes", d->drains[i].passes);
		json_put_usec(j, "seconds", d->drains[i].took_usec);
		json_put_str(j, "reason", d->drains[i].reason);
		json_end_object(j);
	}
	json_end_array(j);
}

static int print_json(const struct status *s)
{
	struct json_out *j = ctl_json_begin(s->c);
	const struct topology *t = &s->c->snapshot->topology;

	json_put_str(j, "version", PACKAGE_VERSION);
	json_put_str(j, "kernel", s->kernel);
	json_put_u64(j, "cpus", cpuset_count(&t->online));
	json_put_u64(j, "nodes", cpuset_count(&t->nodes));
	json_put_u64(j, "page_bytes", s->c->snapshot->page_bytes);
	put_daemon(j, s);
	put_parked(j, s);
	put_knobs(j, s);
	put_policies(j, s);
	put_history(j, s);
	json_begin_array(j, "problems");
	for (unsigned i = 0; i < s->nr_problems; i++)
		json_put_str(j, NULL, s->problems[i].text);
	json_end_array(j);
	return ctl_json_end(s->c);
}

static int gather_and_print(struct status *s)
{
	int r;

	s->now_usec = act_time_now().real_usec;
	read_kernel(s);
	holder_find(s->c, &s->holder);
	gather_record(s);
	gather_knobs(s);
	gather_problems(s);
	r = s->c->wants_json ? print_json(s) : print_screen(s);
	holder_free(&s->holder);
	return r;
}

int verb_status(struct ctl *c)
{
	_cleanup_(freep) struct status *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	r = ctl_take(c,
		     SOURCE_BIT(SOURCE_ZONEINFO) | SOURCE_BIT(SOURCE_PSI_MEMORY) |
			     SOURCE_BIT(SOURCE_KNOBS),
		     SOURCE_BIT(SOURCE_ZONEINFO));
	if (r != EXIT_DONE)
		return r;
	s->c = c;
	return gather_and_print(s);
}
