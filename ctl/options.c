/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"

#include "base/nearest.h"

#include <errno.h>

static const struct option_info options[] = {
	[OPTION_ROOT] = {"root", 0, "DIR", "look at the machine captured in DIR"},
	[OPTION_PAGE_SIZE] = {"page-size", 0, "SIZE",
			      "of the captured machine (default: this one's)"},
	[OPTION_JSON] = {"json", 0, NULL, "print JSON, for programs"},
	[OPTION_NO_PAGER] = {"no-pager", 0, NULL, "do not pipe long output into a pager"},
	[OPTION_HELP] = {"help", 'h', NULL, "print this help, or that of a verb"},
	[OPTION_VERSION] = {"version", 'V', NULL, "print the version"},
	[OPTION_ALL] = {"all", 'a', NULL, "also what is empty or has no pages"},
	[OPTION_NODE] = {"node", 0, "N", "only of this node"},
	[OPTION_ZONE] = {"zone", 0, "NAME", "only of zones with this name"},
	[OPTION_CPU] = {"cpu", 0, "LIST", "only of these CPUs: 0-3,8"},
	[OPTION_MODE] = {"mode", 0, "MODE", "trim (default), squeeze or kernel"},
	[OPTION_FAST] = {"fast", 0, NULL, "first free a few pages on each CPU: fewer passes"},
	[OPTION_MAX_TIME] = {"max-time", 0, "TIME", "stop after this long (60s)"},
	[OPTION_ISOLATED_TOO] = {"isolated-too", 0, NULL, "also where that wakes isolated CPUs"},
	[OPTION_DRY_RUN] = {"dry-run", 0, NULL, "print the commands, write nothing"},
	[OPTION_FOR] = {"for", 0, "TIME", "until then only: 30min, 8h (default: without end)"},
	[OPTION_LINES] = {"lines", 'n', "N", "only the last N (50, or all since TIME)"},
	[OPTION_FOLLOW] = {"follow", 'f', NULL, "go on with what happens"},
	[OPTION_SINCE] = {"since", 0, "TIME", "8h (ago), 22:00, 2026-11-30, yesterday"},
	[OPTION_OPENMETRICS] = {"openmetrics", 0, NULL, "in the OpenMetrics 1.0 format"},
	[OPTION_SERIES] = {"series", 0, "SET", "basic (default) or full"},
	[OPTION_PER_CPU] = {"per-cpu", 0, NULL, "count, high and batch of each CPU, too"},
	[OPTION_POLICY_DIR] = {"policy-dir", 0, "DIR", "policies of DIR instead (may be repeated)"},
};
_Static_assert(ARRAY_SIZE(options) == _OPTION_MAX, "describe every option");

const struct option_info *option_info(enum option_id o)
{
	return &options[o];
}

static int unknown(const char *arg, size_t len, struct error *e)
{
	char word[64];
	struct nearest n = NEAREST(word);

	(void)snprintf(word, sizeof(word), "%.*s", (int)len, arg);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		nearest_try(&n, options[i].name);
	if (n.best)
		return error_set(e, -EINVAL, "unknown option --%s; did you mean --%s?", word,
				 n.best);
	return error_set(e, -EINVAL, "unknown option --%s; see pcptunectl --help", word);
}

static int take(struct options *o, enum option_id id, const char *value, struct error *e)
{
	o->given |= OPTION_BIT(id);
	o->value[id] = value;
	if (id != OPTION_POLICY_DIR)
		return 0;
	if (o->nr_policy_dirs == POLICY_DIRS_MAX)
		return error_set(e, -EINVAL, "--policy-dir was given more than %u times",
				 POLICY_DIRS_MAX);
	o->policy_dirs[o->nr_policy_dirs++] = value;
	return 0;
}

/* *i is the argument's index, and moves on where the value is the next argument. */
static int parse_long(struct options *o, int argc, char *const argv[], int *i, struct error *e)
{
	const char *arg = argv[*i] + 2, *equals = strchr(arg, '=');
	size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
	enum option_id id = 0;

	while (id < _OPTION_MAX &&
	       !(strncmp(options[id].name, arg, len) == 0 && options[id].name[len] == '\0'))
		id++;
	if (id == _OPTION_MAX)
		return unknown(arg, len, e);
	if (!options[id].arg)
		return equals ? error_set(e, -EINVAL, "--%s takes no value", options[id].name)
			      : take(o, id, NULL, e);
	if (equals)
		return take(o, id, equals + 1, e);
	if (*i + 1 == argc)
		return error_set(e, -EINVAL, "--%s needs a value: --%s=%s", options[id].name,
				 options[id].name, options[id].arg);
	return take(o, id, argv[++*i], e);
}

/* Several may stand behind one dash; what is behind one that takes a value is its value. */
static int parse_short(struct options *o, int argc, char *const argv[], int *i, struct error *e)
{
	for (const char *c = argv[*i] + 1; *c; c++) {
		enum option_id id = 0;
		int r;

		while (id < _OPTION_MAX && options[id].letter != *c)
			id++;
		if (id == _OPTION_MAX)
			return error_set(e, -EINVAL, "unknown option -%c; see pcptunectl --help",
					 *c);
		if (options[id].arg && c[1])
			return take(o, id, c + 1, e);
		if (options[id].arg && *i + 1 == argc)
			return error_set(e, -EINVAL, "-%c needs a value: -%c %s", *c, *c,
					 options[id].arg);
		r = take(o, id, options[id].arg ? argv[++*i] : NULL, e);
		if (r < 0 || options[id].arg)
			return r;
	}
	return 0;
}

static int add_operand(struct options *o, const char *arg, struct error *e)
{
	if (o->nr_operands == OPERANDS_MAX)
		return error_set(e, -EINVAL, "more than %u arguments", OPERANDS_MAX);
	o->operands[o->nr_operands++] = arg;
	return 0;
}

int options_parse(struct options *o, int argc, char *const argv[], struct error *e)
{
	bool ended = false;

	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		int r;

		if (ended || arg[0] != '-' || arg[1] == '\0') {
			r = add_operand(o, arg, e);
		} else if (streq(arg, "--")) {
			ended = true;
			r = 0;
		} else if (arg[1] == '-') {
			r = parse_long(o, argc, argv, &i, e);
		} else {
			r = parse_short(o, argc, argv, &i, e);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int options_check(const struct options *o, uint32_t allowed, const char *verb, struct error *e)
{
	for (enum option_id id = _OPTION_GLOBAL_MAX; id < _OPTION_MAX; id++)
		if (option_given(o, id) && !(allowed & OPTION_BIT(id)))
			return error_set(
				e, -EINVAL,
				"\"pcptunectl %s\" does not take --%s; see pcptunectl help %s",
				verb, options[id].name, verb);
	return 0;
}
