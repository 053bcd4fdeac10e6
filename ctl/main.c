/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptunectl: one table of verbs, from which dispatch, help and the tests of the page are made. */
#include "ctl.h"

#include "base/nearest.h"

#include <errno.h>

#define PCP_FILTERS                                                                   \
	(OPTION_BIT(OPTION_ALL) | OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_ZONE) | \
	 OPTION_BIT(OPTION_CPU))
#define ZONE_FILTERS (OPTION_BIT(OPTION_ALL) | OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_ZONE))

/* clang-format off */
static const struct verb verbs[] = {
	{ "status", "", "what is set, by whom and why, and what is parked",
	  0, 0, 0, verb_status,
	  "Whether a daemon runs, the knobs with their owners, the memory that is parked\n"
	  "on the per-CPU lists and where, the last decisions, and what is wrong. Works\n"
	  "without a daemon.\n" },
	{ "zones", "", "zones: free and parked pages, watermarks, list sizes",
	  ZONE_FILTERS, 0, 0, verb_zones,
	  "LOW is the low watermark, EXCESS what a trim returns; HIGH_MIN, HIGH_MAX and\n"
	  "BATCH are pages of one CPU's list. \"~\" marks what this kernel does not print\n"
	  "and was computed.\n" },
	{ "pcp", "", "the per-CPU page lists, one a line",
	  PCP_FILTERS, 0, 0, verb_pcp,
	  "COUNT, HIGH, HIGH_MIN, HIGH_MAX and BATCH are pages, as /proc/zoneinfo has them;\n"
	  "SHARE is of the zone's managed pages. \"~\" marks what this kernel does not print\n"
	  "and was computed. Lists without pages are left out unless --all is given.\n" },
	{ "orders", "", "folio orders: on the lists or not, rates, fragmentation",
	  0, 0, 0, verb_orders,
	  "ON LISTS: always (the kernel keeps this order on the lists), on or off (it can\n"
	  "be controlled), no (goes to the zone's lock each time). UNUSABLE is the share\n"
	  "of free memory in blocks too small for the order.\n" },
	{ "drain", "", "return parked pages now",
	  OPTION_BIT(OPTION_MODE) | OPTION_BIT(OPTION_FAST) | OPTION_BIT(OPTION_MAX_TIME) |
	  OPTION_BIT(OPTION_ISOLATED_TOO), 0, 0, verb_drain,
	  "trim     what exceeds high_min, at the present fraction (kernels from 6.7)\n"
	  "squeeze  down to 4 * batch: the fraction is raised for a moment (from 6.7)\n"
	  "kernel   everything, where an order's pcp_enabled can be switched\n"
	  "Needs root or a polkit authorization. A running daemon does it; else pcptunectl\n"
	  "does, until Ctrl-C or SIGTERM. The fraction is put back whatever happens.\n" },
	{ "pin", "KNOB VALUE", "fix a knob by hand, above every policy",
	  OPTION_BIT(OPTION_FOR), 2, 2, verb_pin,
	  "KNOB is high_fraction (0, or 8 to 2147483647) or pcp_enabled/SIZE (0 or 1).\n"
	  "Returns when the value was read back from the kernel. [Limits] stand above it.\n"
	  "It survives a restart, and ends with --for or unpin.\n" },
	{ "unpin", "KNOB", "give a pinned knob back to the policies",
	  0, 1, 1, verb_unpin, "" },
	{ "adopt", "KNOB", "take a foreign knob's present value as its baseline",
	  0, 1, 1, verb_adopt,
	  "What somebody else wrote into a knob stays, and pcptune keeps its hands off,\n"
	  "until it is adopted: then that value is the baseline, and policies may set the\n"
	  "knob again.\n" },
	{ "pause", "", "let no policy change anything for now",
	  OPTION_BIT(OPTION_FOR), 0, 0, verb_pause,
	  "Values stay as they are. It survives a restart, and ends with --for or resume.\n" },
	{ "resume", "", "end a pause", 0, 0, 0, verb_resume, "" },
	{ "rollback", "", "put every knob back to its baseline, and pause",
	  OPTION_BIT(OPTION_DRY_RUN), 0, 0, verb_rollback,
	  "The baseline is the value a knob had before pcptune first wrote it. Needed\n"
	  "after a daemon was killed or stopped with OnStop=keep; one that stops does it\n"
	  "by itself. --dry-run prints the shell commands that would do the same. A running\n"
	  "daemon pauses, too, until \"pcptunectl resume\".\n" },
	{ "reload", "", "read configuration and policies again",
	  0, 0, 0, verb_reload,
	  "All or nothing: with an error, what ran goes on. The journal names each file,\n"
	  "line and column.\n" },
	{ "doctor", "", "what this kernel offers, what is missing, what to do",
	  0, 0, 0, verb_doctor,
	  "For each thing that this kernel lacks or that gets in the way: what it costs,\n"
	  "and what can be done.\n" },
	{ "metrics", "", "the metrics, as Prometheus reads them",
	  OPTION_BIT(OPTION_OPENMETRICS) | OPTION_BIT(OPTION_SERIES) | OPTION_BIT(OPTION_PER_CPU),
	  0, 0, verb_metrics,
	  "The machine's part, read now; a running daemon serves its own counters, too.\n"
	  "The names are explained in doc/metrics.md.\n" },
	{ "explain", "[KNOB]", "every rule that could have a knob, and what is missing",
	  OPTION_BIT(OPTION_POLICY_DIR), 0, 1, verb_explain,
	  "Decides by itself from three looks at this machine a second apart, and writes\n"
	  "nothing. KNOB is high_fraction, pcp_enabled/SIZE, or trim for the rules that\n"
	  "trim; without it, all of them. Conditions that look further back than the three\n"
	  "looks are unknown.\n" },
	{ "history", "", "what pcptuned did, and why",
	  OPTION_BIT(OPTION_LINES) | OPTION_BIT(OPTION_FOLLOW) | OPTION_BIT(OPTION_SINCE), 0, 0,
	  verb_history,
	  "From the journal; where there is none, the last decisions that the running\n"
	  "daemon remembers. Oldest first.\n" },
	{ "policy check", "[FILE...]", "every error of policy files, and warnings",
	  OPTION_BIT(OPTION_POLICY_DIR), 0, OPERANDS_MAX, verb_policy_check,
	  "Without FILE: of the installed policies. Exits with 1 where there is an error.\n" },
	{ "policy list", "", "the policies, and which of them match this machine",
	  OPTION_BIT(OPTION_POLICY_DIR), 0, 0, verb_policy_list,
	  "Highest priority first. A policy whose [Match] does not hold sleeps.\n" },
	{ "policy cat", "NAME...", "a policy's effective text, and where it came from",
	  OPTION_BIT(OPTION_POLICY_DIR), 1, OPERANDS_MAX, verb_policy_cat,
	  "The file that counts with its drop-ins, key by key.\n" },
	{ "help", "[VERB]", "this help, or that of a verb",
	  0, 0, 2, verb_help, "" },
};
/* clang-format on */

const struct verb *verb_at(size_t i)
{
	return i < ARRAY_SIZE(verbs) ? &verbs[i] : NULL;
}

/* Does the verb's name, of one word or two, stand at the front of the operands? */
static unsigned words_that_match(const struct verb *v, const char *const *words, unsigned nr)
{
	const char *blank = strchr(v->name, ' ');
	size_t first = blank ? (size_t)(blank - v->name) : strlen(v->name);

	if (nr == 0 || strlen(words[0]) != first || strncmp(words[0], v->name, first) != 0)
		return 0;
	if (!blank)
		return 1;
	return nr > 1 && streq(words[1], blank + 1) ? 2 : 0;
}

static const struct verb *find_verb(const char *const *words, unsigned nr, unsigned *ret_used)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		*ret_used = words_that_match(&verbs[i], words, nr);
		if (*ret_used > 0)
			return &verbs[i];
	}
	return NULL;
}

static int unknown_verb(const struct ctl *c, const char *const *words, unsigned nr)
{
	char typed[128], first[64];
	struct nearest n;

	(void)snprintf(first, sizeof(first), "%s", words[0]);
	(void)snprintf(typed, sizeof(typed), "%s%s%s", words[0], nr > 1 ? " " : "",
		       nr > 1 ? words[1] : "");
	/* both words where the verb has two, else the first alone: the others are arguments */
	n = NEAREST(typed);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strchr(verbs[i].name, ' '))
			nearest_try(&n, verbs[i].name);
	if (!n.best) {
		n = NEAREST(first);
		for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
			nearest_try(&n, verbs[i].name);
	}
	if (!n.best && streq(first, "policy"))
		return ctl_failf(c, EXIT_USAGE,
				 "\"policy\" needs one of check, list or cat behind it");
	if (n.best)
		return ctl_failf(c, EXIT_USAGE, "unknown verb \"%s\"; did you mean \"%s\"?",
				 strchr(n.best, ' ') ? typed : first, n.best);
	return ctl_failf(c, EXIT_USAGE, "unknown verb \"%s\"; see pcptunectl --help", first);
}

static void print_option(FILE *out, enum option_id id)
{
	const struct option_info *o = option_info(id);
	char name[48];

	(void)snprintf(name, sizeof(name), "%s%s%s", o->name, o->arg ? "=" : "",
		       o->arg ? o->arg : "");
	if (o->letter)
		(void)fprintf(out, "  -%c, --%-16s %s\n", o->letter, name, o->help);
	else
		(void)fprintf(out, "      --%-16s %s\n", name, o->help);
}

/* The verbs in the order in which one needs them, those that belong together on a line. */
static const struct {
	const char *verbs, *help;
} summary[] = {
	{"status", "what is set, by whom and why"},
	{"zones | pcp | orders", "tables: zones, per-CPU lists, orders"},
	{"explain [KNOB]", "why a knob has the value it has"},
	{"history", "what pcptuned did, and why"},
	{"policy list | policy cat | policy check", "policies: all, their text, errors"},
	{"pin KNOB VALUE | unpin KNOB", "fix a knob by hand, above every policy"},
	{"adopt KNOB", "take a foreign value as the baseline"},
	{"pause | resume", "let no policy change anything for now"},
	{"rollback", "put every knob back, and pause"},
	{"reload", "read configuration and policies again"},
	{"drain", "return parked pages now"},
	{"doctor", "what is missing here, and what to do"},
	{"metrics", "the metrics, as Prometheus reads them"},
	{"help [VERB]", "this help, or that of a verb"},
};

static void print_help(FILE *out)
{
	(void)fprintf(out,
		      "Usage: pcptunectl [OPTION]... VERB [ARGUMENT]...\n"
		      "Looks at the kernel's per-CPU page lists and returns what they hold.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(summary); i++)
		(void)fprintf(out, "  %-39s %s\n", summary[i].verbs, summary[i].help);
	(void)fputc('\n', out);
	for (enum option_id id = 0; id < _OPTION_GLOBAL_MAX; id++)
		print_option(out, id);
}

static void print_verb_help(FILE *out, const struct verb *v)
{
	(void)fprintf(out, "Usage: pcptunectl %s%s%s%s\n\n%c%s.\n%s", v->name,
		      v->options ? " [OPTION]..." : "", v->args[0] ? " " : "", v->args,
		      v->help[0] - ('a' <= v->help[0] && v->help[0] <= 'z' ? 'a' - 'A' : 0),
		      v->help + 1, v->more);
	if (v->options)
		(void)fputc('\n', out);
	for (enum option_id id = _OPTION_GLOBAL_MAX; id < _OPTION_MAX; id++)
		if (v->options & OPTION_BIT(id))
			print_option(out, id);
}

int verb_help(struct ctl *c)
{
	const struct verb *v;
	unsigned used;

	if (c->nr_operands == 0) {
		print_help(c->screen.out);
		return EXIT_DONE;
	}
	v = find_verb(c->operands, c->nr_operands, &used);
	if (!v)
		return unknown_verb(c, c->operands, c->nr_operands);
	print_verb_help(c->screen.out, v);
	return EXIT_DONE;
}

static int check_operands(const struct ctl *c)
{
	const struct verb *v = c->verb;

	if (c->nr_operands < v->min_operands)
		return ctl_failf(c, EXIT_USAGE, "usage: pcptunectl %s %s", v->name, v->args);
	if (c->nr_operands > v->max_operands)
		return ctl_failf(c, EXIT_USAGE,
				 "\"pcptunectl %s\" does not know what to do with \"%s\"", v->name,
				 c->operands[v->max_operands]);
	return EXIT_DONE;
}

static int read_page_size(struct ctl *c)
{
	const char *size = c->options.value[OPTION_PAGE_SIZE];
	uint64_t v;

	if (!size)
		return EXIT_DONE;
	if (parse_bytes(size, &v) < 0 || v < 4096 || v > (1U << 20) || (v & (v - 1)) != 0)
		return ctl_failf(c, EXIT_USAGE,
				 "--page-size takes a size such as 4K or 64K, not \"%s\"", size);
	c->page_bytes = v;
	return EXIT_DONE;
}

static int run_verb(struct ctl *c)
{
	struct options *o = &c->options;
	struct error e = {0};
	unsigned used;
	int r;

	c->verb = find_verb(o->operands, o->nr_operands, &used);
	if (!c->verb)
		return unknown_verb(c, o->operands, o->nr_operands);
	c->operands = o->operands + used;
	c->nr_operands = o->nr_operands - used;
	if (option_given(o, OPTION_HELP)) {
		print_verb_help(c->screen.out, c->verb);
		return EXIT_DONE;
	}
	if (options_check(o, c->verb->options, c->verb->name, &e) < 0)
		return ctl_fail(c, EXIT_USAGE, &e);
	r = check_operands(c);
	if (r == EXIT_DONE)
		r = read_page_size(c);
	if (r != EXIT_DONE)
		return r;
	if (sysroot_open(&c->root, option_given(o, OPTION_ROOT) ? o->value[OPTION_ROOT] : "/", &e) <
	    0)
		return ctl_fail(c, EXIT_FAILED, &e);
	return c->verb->run(c);
}

static int run(struct ctl *c, int argc, char *argv[])
{
	struct error e = {0};

	if (options_parse(&c->options, argc, argv, &e) < 0)
		return ctl_fail(c, EXIT_USAGE, &e);
	c->wants_json = option_given(&c->options, OPTION_JSON);
	if (screen_open(&c->screen, option_given(&c->options, OPTION_NO_PAGER)) < 0)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	if (option_given(&c->options, OPTION_VERSION)) {
		(void)fprintf(c->screen.out, "pcptunectl %s\n", PACKAGE_VERSION);
		return EXIT_DONE;
	}
	if (c->options.nr_operands > 0)
		return run_verb(c);
	if (option_given(&c->options, OPTION_HELP)) {
		print_help(c->screen.out);
		return EXIT_DONE;
	}
	return ctl_failf(c, EXIT_USAGE,
			 "no verb was given; \"pcptunectl status\" is a start, and "
			 "\"pcptunectl --help\" lists the others");
}

int main(int argc, char *argv[])
{
	struct ctl c = {.root = {.dirfd = -1}};
	int code = run(&c, argc, argv), r;

	r = screen_show(&c.screen);
	/* a reader that has seen enough is no failure */
	if (r < 0 && r != -EPIPE)
		code = ctl_failf(&c, EXIT_FAILED, "cannot write the output: %s", error_name(r));
	c.sensor = sensor_free(c.sensor);
	text_free(&c.json_text);
	sysroot_close(&c.root);
	return code;
}
