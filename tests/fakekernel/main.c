/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fakekernel DIR [OPTIONS]: a kernel of a test's own below DIR/proc and DIR/sys. */
#include "mounts.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <sys/stat.h>

static void usage(FILE *out)
{
	(void)fputs(
		"Usage: fakekernel DIR [OPTION...]\n"
		"Serves DIR/proc and DIR/sys (FUSE) as a Linux kernel's page lists would, until\n"
		"SIGTERM. Prints \"ready\"; exits with 77 where it cannot mount. Commands go to DIR/control, its text tells the state.\n\n"
		"  --cpus=N                 CPUs (2)\n"
		"  --nodes=N                nodes (1); CPUs are dealt out in equal blocks\n"
		"  --cpulist=NODE:LIST      ... or as said; more than once\n"
		"  --zones=[NODE:]ZONE:SIZE,...  memory; without NODE of each node\n"
		"                           (0:DMA:15M,0:DMA32:3G,Normal:4G)\n"
		"  --release=VERSION        what it behaves as (6.12)\n"
		"  --orders=per-size|single|none  control over the orders (none)\n"
		"  --no-order-stats         without the counts of blocks by order\n"
		"  --page-size=4K|16K|64K   (4K)\n"
		"  --no-thp                 without transparent huge pages\n"
		"  --scale-max=N            CONFIG_PCP_BATCH_SCALE_MAX (5)\n"
		"  --offline=LIST           CPUs that are not online at first\n"
		"  --isolated=LIST          isolcpus\n"
		"  --nohz-full=LIST\n"
		"  --l2=SIZE --l2-cpus=N    L2 cache and how many CPUs share it (1M, 1)\n"
		"  --l3=SIZE --l3-cpus=N    L3 cache (32M, all of the node)\n"
		"  --cmdline=TEXT           /proc/cmdline\n"
		"  --boot-id=UUID\n"
		"  --clock=manual           time passes only by \"advance\"\n"
		"  --help                   and the commands of DIR/control\n\nCommands:\n",
		out);
	control_help(out);
}

#define EXIT_SKIP 77 /* as the test harness has it: what is missing is not ours */

enum {
	OPT_CPUS = 256,
	OPT_NODES,
	OPT_CPULIST,
	OPT_ZONES,
	OPT_RELEASE,
	OPT_ORDERS,
	OPT_NO_ORDER_STATS,
	OPT_PAGE_SIZE,
	OPT_NO_THP,
	OPT_SCALE_MAX,
	OPT_OFFLINE,
	OPT_ISOLATED,
	OPT_NOHZ_FULL,
	OPT_L2,
	OPT_L2_CPUS,
	OPT_L3,
	OPT_L3_CPUS,
	OPT_CMDLINE,
	OPT_BOOT_ID,
	OPT_CLOCK,
	OPT_HELP,
};

static const struct option long_options[] = {
	{"cpus", required_argument, NULL, OPT_CPUS},
	{"nodes", required_argument, NULL, OPT_NODES},
	{"cpulist", required_argument, NULL, OPT_CPULIST},
	{"zones", required_argument, NULL, OPT_ZONES},
	{"release", required_argument, NULL, OPT_RELEASE},
	{"orders", required_argument, NULL, OPT_ORDERS},
	{"no-order-stats", no_argument, NULL, OPT_NO_ORDER_STATS},
	{"page-size", required_argument, NULL, OPT_PAGE_SIZE},
	{"no-thp", no_argument, NULL, OPT_NO_THP},
	{"scale-max", required_argument, NULL, OPT_SCALE_MAX},
	{"offline", required_argument, NULL, OPT_OFFLINE},
	{"isolated", required_argument, NULL, OPT_ISOLATED},
	{"nohz-full", required_argument, NULL, OPT_NOHZ_FULL},
	{"l2", required_argument, NULL, OPT_L2},
	{"l2-cpus", required_argument, NULL, OPT_L2_CPUS},
	{"l3", required_argument, NULL, OPT_L3},
	{"l3-cpus", required_argument, NULL, OPT_L3_CPUS},
	{"cmdline", required_argument, NULL, OPT_CMDLINE},
	{"boot-id", required_argument, NULL, OPT_BOOT_ID},
	{"clock", required_argument, NULL, OPT_CLOCK},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

struct options {
	struct config config;
	const char *dir, *zones, *cpulists[MODEL_NODES_MAX];
	size_t nr_cpulists;
	struct cpuset offline;
	char boot_id[40];
	bool manual_clock, help;
};

static int read_unsigned(const char *text, unsigned min, unsigned max, unsigned *ret)
{
	uint64_t v;

	if (parse_u64(text, &v) < 0 || v < min || v > max)
		return -EINVAL;
	*ret = (unsigned)v;
	return 0;
}

static int read_release(struct config *c, const char *text)
{
	unsigned major, minor;

	if (sscanf(text, "%u.%u", &major, &minor) != 2 || RELEASE(major, minor) < RELEASE(4, 19))
		return -EINVAL;
	c->release = RELEASE(major, minor);
	(void)snprintf(c->release_text, sizeof(c->release_text), "%s%s", text,
		       strchr(strchr(text, '.') + 1, '.') ? "" : ".0-fake");
	return 0;
}

static int read_orders(struct config *c, const char *text)
{
	static const char *const names[] = {[CONTROL_NONE] = "none",
					    [CONTROL_PER_SIZE] = "per-size",
					    [CONTROL_SINGLE] = "single"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(names[i], text)) {
			c->control = (enum order_control)i;
			return 0;
		}
	return -EINVAL;
}

static int read_page_size(struct config *c, const char *text)
{
	uint64_t bytes;

	if (parse_bytes(text, &bytes) < 0)
		return -EINVAL;
	for (c->page_shift = 12; c->page_shift <= 16; c->page_shift += 2)
		if (bytes == UINT64_C(1) << c->page_shift)
			return 0;
	return -EINVAL;
}

static int read_machine_option(struct options *o, int opt)
{
	struct config *c = &o->config;

	switch (opt) {
	case OPT_CPUS:
		return read_unsigned(optarg, 1, MODEL_CPUS_MAX, &c->cpus);
	case OPT_NODES:
		return read_unsigned(optarg, 1, MODEL_NODES_MAX, &c->nodes);
	case OPT_CPULIST:
		if (o->nr_cpulists == MODEL_NODES_MAX)
			return -EINVAL;
		o->cpulists[o->nr_cpulists++] = optarg;
		return 0;
	case OPT_ZONES:
		o->zones = optarg;
		return 0;
	case OPT_OFFLINE:
		return parse_cpulist(optarg, &o->offline);
	case OPT_ISOLATED:
		return parse_cpulist(optarg, &c->isolated);
	case OPT_NOHZ_FULL:
		return parse_cpulist(optarg, &c->nohz_full);
	case OPT_L2:
		return parse_bytes(optarg, &c->l2_bytes);
	case OPT_L2_CPUS:
		return read_unsigned(optarg, 1, MODEL_CPUS_MAX, &c->l2_cpus);
	case OPT_L3:
		return parse_bytes(optarg, &c->l3_bytes);
	case OPT_L3_CPUS:
		return read_unsigned(optarg, 1, MODEL_CPUS_MAX, &c->l3_cpus);
	default:
		return -ENOENT;
	}
}

static int read_kernel_option(struct options *o, int opt)
{
	struct config *c = &o->config;

	switch (opt) {
	case OPT_RELEASE:
		return read_release(c, optarg);
	case OPT_ORDERS:
		return read_orders(c, optarg);
	case OPT_NO_ORDER_STATS:
		c->order_stats = false;
		return 0;
	case OPT_PAGE_SIZE:
		return read_page_size(c, optarg);
	case OPT_NO_THP:
		c->thp = false;
		return 0;
	case OPT_SCALE_MAX:
		return read_unsigned(optarg, 0, 6, &c->scale_max);
	case OPT_CMDLINE:
		(void)snprintf(c->cmdline, sizeof(c->cmdline), "%s", optarg);
		return 0;
	case OPT_BOOT_ID:
		(void)snprintf(o->boot_id, sizeof(o->boot_id), "%s", optarg);
		return 0;
	case OPT_CLOCK:
		o->manual_clock = streq(optarg, "manual");
		return o->manual_clock || streq(optarg, "real") ? 0 : -EINVAL;
	case OPT_HELP:
		o->help = true;
		return 0;
	default:
		return -ENOENT;
	}
}

static int parse_argv(struct options *o, int argc, char **argv)
{
	int opt, r;

	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
		if (opt == '?')
			return -EINVAL;
		r = read_machine_option(o, opt);
		if (r == -ENOENT)
			r = read_kernel_option(o, opt);
		if (r < 0) {
			(void)fprintf(stderr, "fakekernel: %s is not accepted\n", argv[optind - 1]);
			return r;
		}
	}
	if (o->help)
		return 0;
	if (optind + 1 != argc) {
		(void)fputs("fakekernel: say one directory; see --help\n", stderr);
		return -EINVAL;
	}
	o->dir = argv[optind];
	return 0;
}

/* One [NODE:]ZONE:SIZE. */
static int add_zone(struct config *c, char *spec)
{
	int node = -1, type = -1;
	char *part = spec, *colon = strchr(part, ':');
	uint64_t bytes;

	if (colon && part[strspn(part, "0123456789")] == ':') {
		node = atoi(part);
		part = colon + 1;
		colon = strchr(part, ':');
	}
	if (!colon || node >= (int)c->nodes)
		return -EINVAL;
	*colon = '\0';
	for (int t = 0; t < ZONE_TYPE_DEVICE; t++)
		if (streq(part, zone_type_name((enum zone_type)t)))
			type = t;
	if (type < 0 || parse_bytes(colon + 1, &bytes) < 0)
		return -EINVAL;
	for (int n = node < 0 ? 0 : node; n <= (node < 0 ? (int)c->nodes - 1 : node); n++)
		c->zone_pages[n][type] = bytes >> c->page_shift;
	return 0;
}

static int lay_out_zones(struct options *o)
{
	char *copy = strdup(o->zones), *save = NULL;
	int r = copy ? 0 : -ENOMEM;

	for (char *spec = copy ? strtok_r(copy, ",", &save) : NULL; spec && r == 0;
	     spec = strtok_r(NULL, ",", &save))
		r = add_zone(&o->config, spec);
	free(copy);
	if (r < 0)
		(void)fprintf(stderr, "fakekernel: --zones=%s is not accepted\n", o->zones);
	return r;
}

static int lay_out_cpus(struct options *o)
{
	struct config *c = &o->config;

	for (unsigned cpu = 0; cpu < c->cpus; cpu++)
		c->node_of_cpu[cpu] = (int)(cpu * c->nodes / c->cpus);
	for (size_t i = 0; i < o->nr_cpulists; i++) {
		_cleanup_(cpuset_free) struct cpuset cpus = {0};
		const char *colon = strchr(o->cpulists[i], ':');
		int node = atoi(o->cpulists[i]);

		if (!colon || node < 0 || node >= (int)c->nodes ||
		    parse_cpulist(colon + 1, &cpus) < 0) {
			(void)fprintf(stderr, "fakekernel: --cpulist=%s is not accepted\n",
				      o->cpulists[i]);
			return -EINVAL;
		}
		for (unsigned cpu = 0; cpu < c->cpus; cpu++)
			if (cpuset_has(&cpus, cpu))
				c->node_of_cpu[cpu] = node;
	}
	return 0;
}

static int link_control(const char *dir)
{
	_cleanup_(freep) char *path = NULL;

	if (asprintf(&path, "%s/control", dir) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	(void)unlink(path);
	return symlink("proc/.fake/control", path) < 0 ? -errno : 0;
}

/* Until a signal ends it; meanwhile the model keeps up, so that no reader has to catch up. */
static void run(struct mounts *m, const sigset_t *ends)
{
	const struct timespec tick = {.tv_nsec = 50000000};

	while (sigtimedwait(ends, NULL, &tick) < 0)
		mounts_tick(m);
}

static int start_and_run(struct options *o)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct mounts *mounts = NULL;
	sigset_t ends;
	int r;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	r = f ? fake_init(f, &o->config, o->boot_id) : -ENOMEM;
	for (int cpu = cpuset_next(&o->offline, 0); r == 0 && cpu >= 0;
	     cpu = cpuset_next(&o->offline, cpu + 1))
		r = model_cpu_set(&f->model, (unsigned)cpu, false);
	if (r == 0) {
		f->manual_clock = o->manual_clock;
		r = fake_rebuild(f);
	}
	if (r == 0)
		r = mounts_start(&mounts, f, o->dir);
	if (r == 0)
		r = link_control(o->dir);
	if (r == 0) {
		(void)puts("ready");
		(void)fflush(stdout);
		run(mounts, &ends);
	} else {
		(void)fprintf(stderr, "fakekernel: cannot start on %s: %s\n", o->dir, strerror(-r));
	}
	mounts = mounts_stop(mounts);
	if (f)
		fake_free(f);
	free(f);
	return r;
}

int main(int argc, char **argv)
{
	struct options o = {
		.config = {.cpus = 2,
			   .nodes = 1,
			   .page_shift = 12,
			   .order_stats = true,
			   .thp = true,
			   .scale_max = 5,
			   .l2_bytes = 1 << 20,
			   .l2_cpus = 1,
			   .l3_bytes = 32 << 20},
		.zones = "0:DMA:15M,0:DMA32:3G,Normal:4G",
	};
	int r;

	(void)read_release(&o.config, "6.12");
	(void)snprintf(o.config.cmdline, sizeof(o.config.cmdline), "root=/dev/fake");
	(void)snprintf(o.boot_id, sizeof(o.boot_id), "fa4e0000-0000-4000-8000-%08x0000",
		       (unsigned)getpid());
	r = parse_argv(&o, argc, argv);
	if (r == 0 && o.help)
		usage(stdout);
	else if (r == 0)
		r = lay_out_zones(&o) < 0 || lay_out_cpus(&o) < 0 ? -EINVAL : start_and_run(&o);
	cpuset_free(&o.config.isolated);
	cpuset_free(&o.config.nohz_full);
	cpuset_free(&o.offline);
	return r == 0 ? 0 : r == -EINVAL ? 2 : r == -EOPNOTSUPP ? EXIT_SKIP : 1;
}
