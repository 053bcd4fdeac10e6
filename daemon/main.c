/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptuned: options in, exit code out. */
#include "base/nearest.h"
#include "base/parse.h"
#include "config.h"
#include "manager.h"

#include <getopt.h>

enum {
	EXIT_USAGE = 2,
	POLICY_DIRS_MAX = 16,
};

enum option_id {
	OPT_ROOT = 0x100,
	OPT_CONFIG,
	OPT_POLICY_DIR,
	OPT_OBSERVE,
	OPT_ENFORCE,
	OPT_ONCE,
	OPT_FOR,
	OPT_PAGE_SIZE,
	OPT_PRINT_CONFIG,
	OPT_DEBUG,
};

static const struct option long_options[] = {
	{"root", required_argument, NULL, OPT_ROOT},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"policy-dir", required_argument, NULL, OPT_POLICY_DIR},
	{"observe", no_argument, NULL, OPT_OBSERVE},
	{"enforce", no_argument, NULL, OPT_ENFORCE},
	{"once", no_argument, NULL, OPT_ONCE},
	{"for", required_argument, NULL, OPT_FOR},
	{"page-size", required_argument, NULL, OPT_PAGE_SIZE},
	{"print-config", no_argument, NULL, OPT_PRINT_CONFIG},
	{"debug", no_argument, NULL, OPT_DEBUG},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static int help(void)
{
	puts("Usage: pcptuned [OPTIONS]\n"
	     "\n"
	     "Tunes the kernel's per-CPU page lists by policies, and puts everything back at its "
	     "end.\n"
	     "\n"
	     "  --observe          decide and tell, write nothing (the packaged default)\n"
	     "  --enforce          carry decisions out\n"
	     "  --once             take one decision, tell it, write nothing, end\n"
	     "  --for=TIME         end after this long (20s, 5min)\n"
	     "  --config=FILE      read this instead of pcptune/pcptuned.conf in /etc, /run, "
	     "/usr/lib\n"
	     "  --policy-dir=DIR   read policies from DIR; may be given again, later ones hide "
	     "earlier\n"
	     "                     ones (default: pcptune/policies.d in /usr/lib, /run, /etc)\n"
	     "  --print-config     show the effective configuration and where each line came from\n"
	     "  --root=DIR         work on the files below DIR; captured ones are only observed\n"
	     "  --page-size=SIZE   the page size of a captured machine (default: this one's)\n"
	     "  --debug            tell more\n"
	     "  -h, --help         this text\n"
	     "  -V, --version      the version\n"
	     "\n"
	     "Exit codes: 0 done, 1 failed, 2 usage, 4 a setting could not be put back,\n"
	     "5 not available here. See pcptuned(8), pcptuned.conf(5) and pcptune.policy(5).");
	return 0;
}

/* getopt's own complaint names the option; the nearest known one helps more than the whole help. */
static int unknown_option(const char *word)
{
	struct nearest n = NEAREST(word + strspn(word, "-"));

	for (const struct option *o = long_options; o->name; o++)
		nearest_try(&n, o->name);
	if (n.best)
		(void)fprintf(stderr, "pcptuned: unknown option '%s'; did you mean --%s?\n", word,
			      n.best);
	else
		(void)fprintf(stderr, "pcptuned: unknown option '%s', see --help\n", word);
	return EXIT_USAGE;
}

static int bad_value(const char *option, const char *value, const char *want)
{
	(void)fprintf(stderr, "pcptuned: --%s=%s: %s\n", option, value, want);
	return EXIT_USAGE;
}

static int print_config(const struct manager_options *options)
{
	struct sysroot root = {.dirfd = -1};
	struct error e = {0};
	int r;

	r = sysroot_open(&root, options->root, &e);
	if (r >= 0) {
		r = config_print(&root, options->config_file, stdout, &e);
		sysroot_close(&root);
	}
	if (r < 0)
		(void)fprintf(stderr, "pcptuned: %s\n", e.text);
	return r < 0;
}

/* The option as typed, for messages: getopt may have looked at several words. */
static const char *typed(char **argv)
{
	return argv[optind - 1];
}

struct arguments {
	struct manager_options options;
	const char *policy_dirs[POLICY_DIRS_MAX + 1];
	size_t nr_policy_dirs;
	bool print_config, debug;
};

/* -1: go on; otherwise the exit code. */
static int take_option(struct arguments *a, int option, char **argv)
{
	switch (option) {
	case OPT_ROOT:
		a->options.root = optarg;
		return -1;
	case OPT_CONFIG:
		a->options.config_file = optarg;
		return -1;
	case OPT_POLICY_DIR:
		if (a->nr_policy_dirs == POLICY_DIRS_MAX)
			return bad_value("policy-dir", optarg, "more than 16 directories");
		a->policy_dirs[a->nr_policy_dirs++] = optarg;
		a->options.policy_dirs = a->policy_dirs;
		return -1;
	case OPT_OBSERVE:
		a->options.mode = MODE_OBSERVE;
		return -1;
	case OPT_ENFORCE:
		a->options.mode = MODE_ENFORCE;
		return -1;
	case OPT_ONCE:
		a->options.once = true;
		return -1;
	case OPT_FOR:
		if (parse_timespan(optarg, &a->options.for_usec) < 0)
			return bad_value("for", optarg, "not a time; write 20s, 5min, 1h 30min");
		return -1;
	case OPT_PAGE_SIZE:
		if (parse_bytes(optarg, &a->options.page_bytes) < 0 ||
		    a->options.page_bytes < 4096 ||
		    (a->options.page_bytes & (a->options.page_bytes - 1)) != 0)
			return bad_value("page-size", optarg,
					 "not a page size; write 4K, 16K or 64K");
		return -1;
	case OPT_PRINT_CONFIG:
		a->print_config = true;
		return -1;
	case OPT_DEBUG:
		a->debug = true;
		return -1;
	case 'h':
		return help();
	case 'V':
		puts("pcptuned " VERSION);
		return 0;
	case ':':
		(void)fprintf(stderr, "pcptuned: option '%s' needs a value, see --help\n",
			      typed(argv));
		return EXIT_USAGE;
	default:
		return unknown_option(typed(argv));
	}
}

int main(int argc, char **argv)
{
	struct arguments a = {.options = {.root = "/", .for_usec = USEC_INFINITY}};
	struct log log = log_open("pcptuned");
	int option, r;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":hV", long_options, NULL)) != -1) {
		r = take_option(&a, option, argv);
		if (r >= 0)
			return r;
	}
	if (optind < argc) {
		(void)fprintf(stderr,
			      "pcptuned: '%s' is not an option; this program takes no other "
			      "arguments, see --help\n",
			      argv[optind]);
		return EXIT_USAGE;
	}
	if (a.debug)
		log.max_level = LOG_DEBUG;
	return a.print_config ? print_config(&a.options) : manager_run(&a.options, &log);
}
