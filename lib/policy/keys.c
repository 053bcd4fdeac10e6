/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one table of keys, and how each kind of value is read. */
#include "policy/policy-internal.h"

#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>

#define ALWAYS   .least = 0, .most = USEC_PER_DAY
#define POSITIVE .least = USEC_PER_SEC, .most = USEC_PER_DAY

#define POLICY_KEY(k, t, m, d, text)                                                \
	{                                                                           \
		{"Policy", k, d, text}, KEY_##t, offsetof(struct policy, m), ALWAYS \
	}
#define MATCH_KEY(k, t, m, d, text)                                                      \
	{                                                                                \
		{"Match", k, d, text}, KEY_##t, offsetof(struct policy_match, m), ALWAYS \
	}
#define RULE_KEY(s, k, t, m, d, text)                                             \
	{                                                                         \
		{s, k, d, text}, KEY_##t, offsetof(struct policy_rule, m), ALWAYS \
	}
#define GUARD_KEY(k, t, m, d, text)                                                        \
	{                                                                                  \
		{"Guard", k, d, text}, KEY_##t, offsetof(struct policy_guard, m), POSITIVE \
	}

static const struct key keys[] = {
	POLICY_KEY("Description", TEXT, description, "", "One line for people."),
	POLICY_KEY(
		"Priority", PRIORITY, priority, "50",
		"0 to 100. Where two rules want the same knob, that of the policy with the larger "
		"priority wins."),
	POLICY_KEY("Mode", MODE, mode, "enforce",
		   "enforce, or observe: decide and tell, write nothing."),
	POLICY_KEY(
		"UnknownFor", TIME, unknown_for_usec, "5min",
		"A rule that is on and whose release has been unknown this long goes back to the "
		"baseline; its state is then blind."),

	MATCH_KEY(
		"Kernel", KERNEL, kernel, "",
		"Kernel version, as in >=6.8. Only the numbers that are written are compared: 6.8 "
		"stands for every 6.8.y."),
	MATCH_KEY("CPUs", COUNTS, cpus, "", "CPUs that are online, as in >=4."),
	MATCH_KEY(
		"Memory", BYTES, memory, "",
		"Memory that the kernel manages, as in >=15G. It is a few percent less than what is "
		"installed."),
	MATCH_KEY("Host", PATTERNS, host, "",
		  "Host name; shell patterns separated by blanks, one of which must match, as in "
		  "web-*."),
	MATCH_KEY(
		"Rollout", RATIO, rollout, "100%",
		"The share of machines that run the policy, chosen by a hash of the machine-id and "
		"the policy's name: a larger share contains the smaller one."),
	MATCH_KEY("When", FACT, when, "",
		  "A condition on facts of the machine. No functions that look back."),
	MATCH_KEY("Process", PROCESSES, process, "",
		  "Commands separated by blanks, one of which must be running."),
	MATCH_KEY("LinkMTU", MTU, link_mtu, "",
		  "The largest MTU of the links that are up, as in >=9000."),

	RULE_KEY("Order", "Enable", CONDITION, on, "required",
		 "When blocks of this order are to be kept on the lists."),
	RULE_KEY("Order", "EnableFor", TIME, on_usec, "30s",
		 "How long Enable= must have held without a break."),
	RULE_KEY("Order", "Disable", CONDITION, off, "",
		 "When they are not any more. Without it: when Enable= is false."),
	RULE_KEY("Order", "DisableFor", TIME, off_usec, "60s",
		 "How long Disable= must have held without a break."),
	RULE_KEY("Order", "MinHold", TIME, min_hold_usec, "",
		 "No change sooner than this after the last one, besides MinHold= of the daemon. A "
		 "disable drains every list of the machine."),

	RULE_KEY(
		"HighFraction", "When", CONDITION, on, "required",
		"When the fraction is to be set. Of several rules the first that holds wins, in file "
		"order."),
	RULE_KEY("HighFraction", "For", TIME, on_usec, "30s",
		 "How long When= must have held without a break."),
	RULE_KEY(
		"HighFraction", "Value", NUMBER, value, "required",
		"The fraction: computed when the rule turns on and after hotplug, rounded down, and "
		"brought into 8 to 2147483647."
		" At N, the lists of a zone may hold 1/N of it, over all CPUs: 50 for 2%."),
	RULE_KEY("HighFraction", "Until", CONDITION, off, "",
		 "When the rule lets go. Without it: when When= is false."),
	RULE_KEY("HighFraction", "UntilFor", TIME, off_usec, "60s",
		 "How long Until= must have held without a break."),
	RULE_KEY("HighFraction", "MinHold", TIME, min_hold_usec, "",
		 "No change sooner than this after the last one, besides MinHold= of the daemon."),
	RULE_KEY("HighFraction", "Drain", DRAIN, drain, "trim",
		 "What follows a change that makes lists smaller: trim, squeeze or no."),

	RULE_KEY("Trim", "When", CONDITION, on, "required", "When memory is to be given back."),
	RULE_KEY("Trim", "For", TIME, on_usec, "5s",
		 "How long When= must have held without a break."),
	RULE_KEY("Trim", "Cooldown", TIME, cooldown_usec, "10min",
		 "The pause until the next trim of this rule."),
	RULE_KEY("Trim", "Squeeze", SWITCH, squeeze, "no",
		 "yes: down to the floor of the lists instead of high_min."),

	GUARD_KEY("Trip", CONDITION, trip, "required",
		  "When a change of this policy is taken back. Seen knob by knob."),
	GUARD_KEY("Within", TIME, within_usec, "120s",
		  "How long after a change the guard looks; meanwhile the policy changes no other "
		  "knob."),
	GUARD_KEY(
		"Lockout", TIME, lockout_usec, "10min",
		"How long the knob is left alone then. Doubles at each trip up to 24 h, halves each "
		"clean day."),
};

static const char *const type_names[] = {
	[KEY_TEXT] = "text",
	[KEY_PRIORITY] = "0 to 100",
	[KEY_MODE] = "enforce or observe",
	[KEY_TIME] = "time",
	[KEY_CONDITION] = "condition",
	[KEY_FACT] = "condition",
	[KEY_NUMBER] = "expression",
	[KEY_KERNEL] = "comparisons",
	[KEY_COUNTS] = "comparisons",
	[KEY_BYTES] = "comparisons",
	[KEY_PATTERNS] = "patterns",
	[KEY_RATIO] = "ratio",
	[KEY_PROCESSES] = "names",
	[KEY_MTU] = "comparisons",
	[KEY_DRAIN] = "trim, squeeze or no",
	[KEY_SWITCH] = "yes or no",
};

const struct key *key_at(size_t i)
{
	return i < ARRAY_SIZE(keys) ? &keys[i] : NULL;
}

const struct policy_key *policy_key_at(size_t i)
{
	return i < ARRAY_SIZE(keys) ? &keys[i].doc : NULL;
}

const char *policy_key_type(const struct policy_key *k)
{
	return type_names[((const struct key *)k)->type];
}

const struct key *key_find(const char *section, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (streq(keys[i].doc.section, section) && streq(keys[i].doc.key, name))
			return &keys[i];
	return NULL;
}

bool section_kind_known(const char *kind, bool *ret_named)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (streq(keys[i].doc.section, kind)) {
			*ret_named = !streq(kind, "Policy") && !streq(kind, "Match") &&
				     !streq(kind, "Guard");
			return true;
		}
	return false;
}

static int refuse(const struct key_context *c, const struct ini_value *v, size_t offset,
		  const char *nearest, const char *fmt, ...) _printf_(5, 6);
static int refuse(const struct key_context *c, const struct ini_value *v, size_t offset,
		  const char *nearest, const char *fmt, ...)
{
	const char *raw;
	struct ini_pos pos = ini_value_pos(v, offset, &raw);
	char message[300];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	return diagnostics_add(c->d, &pos, raw, nearest, "%s", message);
}

static int read_text(const struct ini_value *v, char **target)
{
	free(*target);
	*target = strdup(v->text);
	return *target ? 0 : -ENOMEM;
}

static int read_priority(const struct key_context *c, const struct ini_value *v, int *target)
{
	uint64_t n;

	if (parse_u64(v->text, &n) < 0 || n > 100)
		return refuse(c, v, 0, NULL, "a priority is a whole number from 0 to 100");
	*target = (int)n;
	return 0;
}

static int read_time(const struct key *k, const struct key_context *c, const struct ini_value *v,
		     uint64_t *target)
{
	uint64_t usec;

	if (parse_timespan(v->text, &usec) < 0)
		return refuse(c, v, 0, NULL, "%s= takes a time, as in 90s or 1min 30s", k->doc.key);
	if (usec < k->least || usec > k->most)
		return refuse(c, v, 0, NULL, "%s= is at least %ss and at most 24h", k->doc.key,
			      k->least ? "1" : "0");
	*target = usec;
	return 0;
}

/* One of a few words; its index. */
static int read_word(const struct key *k, const struct key_context *c, const struct ini_value *v,
		     const char *const *words, size_t n)
{
	struct nearest nearest = NEAREST(v->text);
	char list[80] = "";
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (streq(v->text, words[i]))
			return (int)i;
		nearest_try(&nearest, words[i]);
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       i == 0      ? ""
				       : i + 1 < n ? ", "
						   : " or ",
				       words[i]);
	}
	return refuse(c, v, 0, nearest.best, "%s= takes %s", k->doc.key, list);
}

static const char *const mode_words[] = {"enforce", "observe"};
static const char *const drain_words[] = {"trim", "squeeze", "no"};

const char *policy_mode_name(enum policy_mode m)
{
	return mode_words[m];
}

const char *drain_choice_name(enum drain_choice d)
{
	return drain_words[d];
}

static int read_ratio(const struct key *k, const struct key_context *c, const struct ini_value *v,
		      double *target)
{
	if (parse_ratio(v->text, target) < 0)
		return refuse(c, v, 0, NULL, "%s= takes a share, as in 10%% or 0.1", k->doc.key);
	return 0;
}

static int read_switch(const struct key *k, const struct key_context *c, const struct ini_value *v,
		       bool *target)
{
	if (parse_bool(v->text, target) < 0)
		return refuse(c, v, 0, NULL, "%s= takes yes or no", k->doc.key);
	return 0;
}

static int read_expr(const struct key_context *c, const struct ini_value *v, enum expr_want want,
		     unsigned flags, struct expr **target)
{
	*target = expr_free(*target);
	return expr_compile(c->table, v, want, flags, target, c->d);
}

/* A fraction that is written out must be one that the kernel takes. */
static int read_number(const struct key_context *c, const struct ini_value *v, struct expr **target)
{
	static const struct expr_env nothing;
	int r = read_expr(c, v, EXPR_NUMBER, c->expr_flags, target);
	double value;

	if (r < 0)
		return r;
	value = expr_eval(*target, &nothing);
	if (value < (double)HIGH_FRACTION_MIN || value >= (double)HIGH_FRACTION_MAX + 1)
		return refuse(c, v, 0, NULL, "the kernel takes fractions from 8 to 2147483647%s",
			      value == 0 ? "; its own sizing, 0, comes back when the rule lets go"
					 : "");
	return 0;
}

/* A condition that is ours to write, from a key in a shorter notation. */
static int compile_own(const struct key_context *c, const struct ini_value *v,
		       const struct text *text, struct expr **target)
{
	*target = expr_free(*target);
	return text->failed ? -ENOMEM
			    : expr_compile_text(c->table, v->file, text->data, EXPR_CONDITION,
						EXPR_FACTS, target, c->d);
}

static int read_processes(const struct key_context *c, const struct ini_value *v,
			  struct expr **target)
{
	_cleanup_(text_free) struct text text = {0};

	for (const char *s = v->text; *s;) {
		size_t n = strcspn(s, " \t"), bad = strcspn(s, "\"\\");

		if (bad < n)
			return refuse(c, v, (size_t)(s - v->text) + bad, NULL,
				      "`%c` in the name of a command", s[bad]);
		if (n > 40)
			return refuse(c, v, (size_t)(s - v->text), NULL,
				      "a command's name that is too long");
		text_addf(&text, "%sprocess.running(\"%.*s\")", text.len ? " or " : "", (int)n, s);
		s += n;
		s += strspn(s, " \t");
	}
	return compile_own(c, v, &text, target);
}

static const char *const comparison_words[] = {"<", "<=", "==", "!=", ">=", ">"};

static int read_mtu(const struct key_context *c, const struct ini_value *v, struct expr **target)
{
	_cleanup_(text_free) struct text text = {0};
	struct comparisons list = {0};
	int r = comparisons_parse(&list, KEY_COUNTS, v, c->d);

	if (r < 0)
		return r;
	for (unsigned i = 0; i < list.nr; i++)
		text_addf(&text, "%slink.mtu_max %s %lluB", i ? " and " : "",
			  comparison_words[list.list[i].op],
			  (unsigned long long)list.list[i].value);
	return compile_own(c, v, &text, target);
}

int key_read(const struct key *k, const struct key_context *c, const struct ini_value *v,
	     void *target)
{
	void *at = (char *)target + k->offset;
	int r;

	switch (k->type) {
	case KEY_TEXT:
	case KEY_PATTERNS:
		return read_text(v, at);
	case KEY_PRIORITY:
		return read_priority(c, v, at);
	case KEY_TIME:
		return read_time(k, c, v, at);
	case KEY_MODE:
		r = read_word(k, c, v, mode_words, ARRAY_SIZE(mode_words));
		if (r >= 0)
			*(enum policy_mode *)at = (enum policy_mode)r;
		return MIN_OF(r, 0);
	case KEY_DRAIN:
		r = read_word(k, c, v, drain_words, ARRAY_SIZE(drain_words));
		if (r >= 0)
			*(enum drain_choice *)at = (enum drain_choice)r;
		return MIN_OF(r, 0);
	case KEY_CONDITION:
		return read_expr(c, v, EXPR_CONDITION, c->expr_flags, at);
	case KEY_FACT:
		return read_expr(c, v, EXPR_CONDITION, EXPR_FACTS, at);
	case KEY_NUMBER:
		return read_number(c, v, at);
	case KEY_KERNEL:
	case KEY_COUNTS:
	case KEY_BYTES:
		return comparisons_parse(at, k->type, v, c->d);
	case KEY_RATIO:
		return read_ratio(k, c, v, at);
	case KEY_PROCESSES:
		return read_processes(c, v, at);
	case KEY_MTU:
		return read_mtu(c, v, at);
	case KEY_SWITCH:
		return read_switch(k, c, v, at);
	}
	return -EINVAL;
}

int key_defaults(const char *section, struct diagnostics *d, void *target)
{
	struct key_context c = {.d = d};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *text = keys[i].doc.default_text;
		struct ini_part part = {.line = 1, .column = 1, .raw = (char *)text};
		struct ini_value v = {.text = (char *)text, .parts = &part, .nr_parts = 1};
		int r;

		if (!streq(keys[i].doc.section, section) || !*text || streq(text, "required"))
			continue;
		r = key_read(&keys[i], &c, &v, target);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Comparisons */

static int parse_operator(const char **s)
{
	/* longer ones first */
	static const struct {
		const char *text;
		int op;
	} ops[] = {{"<=", COMPARE_LE}, {">=", COMPARE_GE}, {"==", COMPARE_EQ}, {"!=", COMPARE_NE},
		   {"<", COMPARE_LT},  {">", COMPARE_GT},  {"=", COMPARE_EQ}};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (strncmp(*s, ops[i].text, strlen(ops[i].text)) == 0) {
			*s += strlen(ops[i].text);
			return ops[i].op;
		}
	return COMPARE_EQ;
}

unsigned kernel_version_parse(const char *release, unsigned version[3])
{
	const char *end = release + strlen(release);
	unsigned n = 0;

	while (n < 3) {
		uint64_t v;

		if (parse_u64_at(&release, end, &v) < 0 || v > UINT32_MAX)
			break;
		version[n++] = (unsigned)v;
		if (*release != '.')
			break;
		release++;
	}
	return n;
}

static bool parse_operand(enum key_type type, const char *word, struct comparison *c)
{
	if (type == KEY_KERNEL) {
		const char *rest = word + strspn(word, "0123456789.");

		c->nr_version = kernel_version_parse(word, c->version);
		return c->nr_version > 0 && !*rest && rest[-1] != '.' && !strstr(word, "..");
	}
	return (type == KEY_BYTES ? parse_bytes(word, &c->value) : parse_u64(word, &c->value)) == 0;
}

int comparisons_parse(struct comparisons *into, enum key_type type, const struct ini_value *v,
		      struct diagnostics *d)
{
	static const char *const what[] = {
		[KEY_KERNEL] = "a kernel version is compared, as in >=6.8",
		[KEY_COUNTS] = "a whole number is compared, as in >=4",
		[KEY_BYTES] = "a size is compared, as in >=15G",
	};
	struct key_context c = {.d = d};
	struct comparisons list = {0};
	const char *s = v->text;

	while (*s) {
		const char *start = s;
		char word[32];
		size_t n;

		if (list.nr == COMPARISONS_MAX)
			return refuse(&c, v, (size_t)(s - v->text), NULL,
				      "at most %u comparisons fit here", COMPARISONS_MAX);
		list.list[list.nr].op = (unsigned)parse_operator(&s);
		s += strspn(s, " \t");
		n = strcspn(s, " \t");
		(void)snprintf(word, sizeof(word), "%.*s", (int)MIN_OF(n, sizeof(word)), s);
		if (n >= sizeof(word) || !parse_operand(type, word, &list.list[list.nr]))
			return refuse(&c, v, (size_t)((n ? s : start) - v->text), NULL, "%s",
				      what[type]);
		list.nr++;
		s += n;
		s += strspn(s, " \t");
	}
	*into = list;
	return 0;
}

static bool holds(const struct comparison *c, int order)
{
	switch (c->op) {
	case COMPARE_LT:
		return order < 0;
	case COMPARE_LE:
		return order <= 0;
	case COMPARE_EQ:
		return order == 0;
	case COMPARE_NE:
		return order != 0;
	case COMPARE_GE:
		return order >= 0;
	case COMPARE_GT:
		return order > 0;
	}
	return false;
}

bool comparison_holds(const struct comparison *c, uint64_t value)
{
	return holds(c, value < c->value ? -1 : value > c->value);
}

bool comparison_kernel_holds(const struct comparison *c, const unsigned version[3])
{
	int order = 0;

	for (unsigned i = 0; i < c->nr_version && order == 0; i++)
		order = version[i] < c->version[i] ? -1 : version[i] > c->version[i];
	return holds(c, order);
}
