/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tell/exposition.h"
#include "tell/json.h"
#include "tell/metrics.h"
#include "tell/state.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <json-c/json.h>

/* A machine made up: zones of every node hold a list for each CPU, as the kernel prints them. */
struct machine {
	struct text zoneinfo;
	struct snapshot snapshot;
	struct source_state sources[_SOURCE_MAX];
	struct self_stats self;
	struct daemon_state state;
	struct metrics_input in;
};

static void add_zone(struct text *t, int node, const char *zone, unsigned cpus, bool first)
{
	text_addf(t, "Node %d, zone %8s\n", node, zone);
	if (first)
		text_addf(t,
			  "  per-node stats\n      nr_inactive_anon 100\n      nr_dirtied   7\n");
	text_addf(t,
		  "  pages free     40000\n        boost    0\n        min      100\n"
		  "        low      200\n        high     300\n        spanned  200000\n"
		  "        present  200000\n        managed  190000\n        cma      0\n"
		  "        protection: (0, 1, 2)\n      nr_free_pages 40000\n"
		  "      nr_mlock     18446744073709551615\n      numa_hit     12\n  pagesets\n");
	for (unsigned c = 0; c < cpus; c++)
		text_addf(t,
			  "    cpu: %u\n              count:    %u\n              high:     400\n"
			  "              batch:    63\n              high_min: 300\n"
			  "              high_max: 5000\n  vm stats threshold: 28\n",
			  c, 100 + c);
	text_addf(t, "  node_unreclaimable:  0\n  start_pfn:           4096\n");
}

static void add_size(struct snapshot *s, unsigned order)
{
	struct mthp_size *size = &s->mthp.size[s->mthp.nr_sizes++];

	*size = (struct mthp_size){
		.order = order,
		.bytes = s->page_bytes << order,
		.enabled = "madvise",
		.shmem_enabled = "never",
		.nr_stats = 2,
		.has_pcp_enabled = true,
		.controllable = order > 3,
		.pcp_enabled = order & 1,
	};
	size->stat[0] = (struct mthp_stat){"anon_fault_alloc", 5, true};
	size->stat[1] = (struct mthp_stat){"nr_anon", 2, true};
}

static void add_knob(struct daemon_state *d, const char *name)
{
	struct state_knob *k = &d->knobs[d->nr_knobs++];

	(void)snprintf(k->name, sizeof(k->name), "%s", name);
	k->has_value = true;
	k->state = SHOWN_FOREIGN;
	k->owner = OWNER_FOREIGN;
	k->since_usec = 1760000000123456;
	(void)snprintf(k->reason, sizeof(k->reason), "somebody wrote \"50\"\nbehind us");
}

static void machine_make(struct machine *m, int nodes, unsigned cpus, unsigned last_order)
{
	struct snapshot *s = &m->snapshot;

	*m = (struct machine){0};
	s->page_bytes = 4096;
	for (int n = 0; n < nodes; n++)
		add_zone(&m->zoneinfo, n, "Normal", cpus, true);
	assert_int_equal(zoneinfo_parse(&s->zoneinfo, m->zoneinfo.data, m->zoneinfo.len, 0, NULL),
			 0);
	s->valid = SOURCE_BIT(SOURCE_ZONEINFO) | SOURCE_BIT(SOURCE_PSI_MEMORY) |
		   SOURCE_BIT(SOURCE_MTHP) | SOURCE_BIT(SOURCE_KNOBS);
	s->psi_memory.some = (struct psi_line){.total_usec = 1500000, .present = true};
	s->psi_memory.full = (struct psi_line){.total_usec = 500000, .present = true};
	s->has_high_fraction = true;
	s->pcp_autotune = 1;
	for (unsigned o = 2; o <= last_order; o++)
		add_size(s, o);
	m->state.enforce = true;
	add_knob(&m->state, "high_fraction");
	for (unsigned o = 4; o <= last_order; o++) {
		char name[KNOB_NAME_MAX];

		add_knob(&m->state, knob_name((struct knob_id){KNOB_PCP_ENABLED, o}, 4096, name));
	}
	m->in = (struct metrics_input){.snapshot = s, .self = &m->self, .state = &m->state};
	for (int i = 0; i < _SOURCE_MAX; i++) {
		m->sources[i].reads = 1;
		m->in.source[i] = &m->sources[i];
	}
}

static void machine_free(struct machine *m)
{
	zoneinfo_free(&m->snapshot.zoneinfo);
	text_free(&m->zoneinfo);
}

static bool has_line(const struct text *t, const char *line)
{
	size_t n = strlen(line);

	for (const char *s = text_str(t); (s = strstr(s, line)); s++)
		if ((s == t->data || s[-1] == '\n') && s[n] == '\n')
			return true;
	return false;
}

#define assert_line(t, line)                                                   \
	do {                                                                   \
		if (!has_line(t, line))                                        \
			fail_msg("no line \"%s\" in:\n%s", line, text_str(t)); \
	} while (0)

static void labels_are_escaped_as_each_format_wants(void **state)
{
	_cleanup_(text_free) struct text t = {0};
	const struct label labels[] = {{"a", "x\"y\\z\n"}, {"b", ""}};
	struct exposition x;

	(void)state;
	exposition_start(&x, &t, EXPOSITION_TEXT);
	exposition_family(&x, "n_seconds", METRIC_COUNTER, "seconds", "a \"b\" \\ c\nd");
	exposition_u64(&x, labels, 2, UINT64_MAX);
	assert_int_equal(exposition_end(&x), 0);
	assert_string_equal(t.data, "# HELP n_seconds_total a \"b\" \\\\ c\\nd\n"
				    "# TYPE n_seconds_total counter\n"
				    "n_seconds_total{a=\"x\\\"y\\\\z\\n\",b=\"\"} "
				    "18446744073709551615\n");
	exposition_start(&x, &t, EXPOSITION_OPENMETRICS);
	exposition_family(&x, "n_seconds", METRIC_COUNTER, "seconds", "a \"b\" \\ c\nd");
	exposition_double(&x, NULL, 0, 1.5);
	exposition_family(&x, "g", METRIC_GAUGE, "seconds", "h");
	exposition_double(&x, NULL, 0, NAN);
	exposition_double(&x, NULL, 0, -INFINITY);
	assert_int_equal(exposition_end(&x), 0);
	assert_string_equal(t.data, "# HELP n_seconds a \\\"b\\\" \\\\ c\\nd\n"
				    "# TYPE n_seconds counter\n# UNIT n_seconds seconds\n"
				    "n_seconds_total 1.5\n# HELP g h\n# TYPE g gauge\n"
				    "g NaN\ng -Inf\n# EOF\n");
	assert_int_equal(x.series, 3);
}

static void the_accept_header_chooses_the_format(void **state)
{
	static const struct {
		const char *accept;
		enum exposition_format want;
	} rows[] = {
		{NULL, EXPOSITION_TEXT},
		{"", EXPOSITION_TEXT},
		{"*/*", EXPOSITION_TEXT},
		{"text/html", EXPOSITION_TEXT},
		/* what Prometheus 2.42 sends */
		{"application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
		 "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		 EXPOSITION_OPENMETRICS},
		{"application/openmetrics-text; version=0.0.1", EXPOSITION_TEXT},
		{"application/openmetrics-text;q=0.4, text/plain;q=0.5", EXPOSITION_TEXT},
		{"Application/OpenMetrics-Text ; Q=1.000 , */*", EXPOSITION_OPENMETRICS},
		{"application/openmetrics-text;q=0", EXPOSITION_TEXT},
		{"application/openmetrics-text;q=x,;;=,", EXPOSITION_TEXT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (exposition_negotiate(rows[i].accept) != rows[i].want)
			fail_msg("Accept: %s chose the other format", rows[i].accept);
}

static void gzip_is_given_to_who_takes_it(void **state)
{
	static const struct {
		const char *accept_encoding;
		bool want;
	} rows[] = {
		{NULL, false},
		{"", false},
		{"gzip", true},
		{"GZIP;q=1.0", true},
		{"gzip, deflate, br", true},
		{"deflate, br", false},
		{"identity", false},
		{"gzip;q=0", false},
		{"*;q=0.5", true},
		{"*", true},
		{"gzip;q=0, *", false},
		{"gzip;q=0.5, identity;q=0.8", false},
		{"gzip;q=0.8, identity;q=0.8", true},
		{"x-gzip", true},
		{"gzipped", false},
		{"gzip;q=x", false},
		{",;,=", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (exposition_wants_gzip(rows[i].accept_encoding) != rows[i].want)
			fail_msg("Accept-Encoding: %s was read wrongly", rows[i].accept_encoding);
}

static uint32_t render(const struct machine *m, struct text *t, bool full, bool percpu)
{
	struct metrics_options o = {.full = full, .percpu = percpu};
	uint32_t series = 0;

	assert_int_equal(metrics_render(&m->in, &o, t, &series), 0);
	return series;
}

static void basic_has_at_most_60_series_on_any_machine(void **state)
{
	static const struct {
		int nodes;
		unsigned cpus, last_order;
	} rows[] = {{1, 1, 1}, {1, 64, 9}, {2, 128, 9}, {8, 256, 9}, {16, 64, 12}, {1, 8, 13}};
	_cleanup_(text_free) struct text t = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct machine m;
		uint32_t series;

		machine_make(&m, rows[i].nodes, rows[i].cpus, rows[i].last_order);
		series = render(&m, &t, false, false);
		if (series > SERIES_BASIC_MAX)
			fail_msg("%d nodes, orders to %u: %u series", rows[i].nodes,
				 rows[i].last_order, series);
		assert_line(&t, "pcptune_knob_value{knob=\"high_fraction\"} 0");
		machine_free(&m);
	}
}

static void the_numbers_are_those_of_the_snapshot(void **state)
{
	_cleanup_(text_free) struct text t = {0};
	struct machine m;

	(void)state;
	machine_make(&m, 2, 3, 5);
	m.self.writes[WRITE_REFUSED] = 4;
	m.self.tick_usec = 1500000;
	(void)render(&m, &t, true, true);
	assert_line(&t, "pcptune_pcp_parked_pages 606");
	assert_line(&t, "pcptune_pcp_parked_bytes 2482176");
	assert_line(&t, "pcptune_pcp_high_min_pages 1800");
	assert_line(&t, "pcptune_zone_parked_bytes{node=\"1\",zone=\"Normal\"} 1241088");
	assert_line(&t, "pcptune_cpu_pcp_count_pages{node=\"1\",zone=\"Normal\",cpu=\"2\"} 102");
	assert_line(&t,
		    "pcptune_zone_watermark_pages{node=\"0\",zone=\"Normal\",watermark=\"low\"} "
		    "200");
	assert_line(&t, "pcptune_memory_pressure_seconds_total{kind=\"some\"} 1.5");
	assert_line(&t, "pcptune_writes_total{result=\"refused\"} 4");
	assert_line(&t, "pcptune_tick_seconds_total 1.5");
	assert_line(&t, "pcptune_knobs{state=\"foreign\"} 3");
	assert_line(&t, "pcptune_knob_owner{knob=\"pcp_enabled/64kB\",owner=\"foreign\"} 1");
	assert_line(&t, "pcptune_mthp_events_total{order=\"4\",size=\"64kB\","
			"event=\"anon_fault_alloc\"} 5");
	machine_free(&m);
}

static void gauges_and_counters_of_the_kernel_are_told_apart(void **state)
{
	_cleanup_(text_free) struct text t = {0};
	struct machine m;

	(void)state;
	machine_make(&m, 1, 1, 4);
	(void)render(&m, &t, true, false);
	assert_line(&t, "pcptune_node_stat{node=\"0\",stat=\"nr_inactive_anon\"} 100");
	assert_line(&t, "pcptune_node_events_total{node=\"0\",event=\"nr_dirtied\"} 7");
	assert_line(&t, "pcptune_zone_events_total{node=\"0\",zone=\"Normal\",event=\"numa_hit\"} "
			"12");
	/* below zero, as the kernel's counters can be for a moment */
	assert_line(&t, "pcptune_zone_stat{node=\"0\",zone=\"Normal\",stat=\"nr_mlock\"} -1");
	assert_line(&t, "pcptune_mthp_folios{order=\"4\",size=\"64kB\",stat=\"nr_anon\"} 2");
	machine_free(&m);
}

static void no_node_value_carries_a_zone(void **state)
{
	struct metric_info m;

	(void)state;
	for (size_t i = 0; metric_info_at(i, &m); i++) {
		bool zone = false, node = false;

		for (size_t k = 0; k < ARRAY_SIZE(m.labels) && m.labels[k]; k++) {
			zone = zone || streq(m.labels[k], "zone");
			node = node || streq(m.labels[k], "node");
		}
		if (strncmp(m.name, "pcptune_node_", 13) == 0 && (zone || !node))
			fail_msg("%s", m.name);
		if (zone && !node)
			fail_msg("%s: zones of two nodes cannot be told apart", m.name);
	}
}

static bool ends_with(const char *s, const char *end)
{
	return strlen(s) >= strlen(end) && streq(s + strlen(s) - strlen(end), end);
}

static void names_follow_the_conventions(void **state)
{
	struct metric_info m, other;

	(void)state;
	for (size_t i = 0; metric_info_at(i, &m); i++) {
		char unit[32];

		(void)snprintf(unit, sizeof(unit), "_%s%s", m.unit,
			       m.kind == METRIC_COUNTER ? "_total" : "");
		if (strncmp(m.name, "pcptune_", 8) != 0 && strncmp(m.name, "process_", 8) != 0)
			fail_msg("%s: prefix", m.name);
		if (m.unit[0] && !ends_with(m.name, unit))
			fail_msg("%s: does not end in its unit, %s", m.name, m.unit);
		if (m.kind == METRIC_GAUGE && ends_with(m.name, "_total"))
			fail_msg("%s: a gauge named as a counter", m.name);
		if (strlen(m.help) < 10 || m.help[strlen(m.help) - 1] != '.')
			fail_msg("%s: its help is no sentence", m.name);
		for (size_t k = 0; k < i && metric_info_at(k, &other); k++)
			if (streq(m.name, other.name))
				fail_msg("%s: twice", m.name);
	}
}

static void without_a_daemon_only_the_machine_is_told(void **state)
{
	_cleanup_(text_free) struct text t = {0};
	struct machine m;

	(void)state;
	machine_make(&m, 1, 2, 9);
	m.in.self = NULL;
	m.in.state = NULL;
	(void)render(&m, &t, true, true);
	assert_null(strstr(t.data, "_ticks"));
	assert_null(strstr(t.data, "process_"));
	assert_null(strstr(t.data, "pcptune_knob_owner"));
	assert_line(&t, "pcptune_knob_value{knob=\"high_fraction\"} 0");
	machine_free(&m);
}

static void a_source_that_failed_is_down_and_its_values_are_gone(void **state)
{
	_cleanup_(text_free) struct text t = {0};
	struct machine m;

	(void)state;
	machine_make(&m, 1, 2, 9);
	m.snapshot.valid &= ~SOURCE_BIT(SOURCE_ZONEINFO);
	m.sources[SOURCE_ZONEINFO].error = -EIO;
	m.sources[SOURCE_ZONEINFO].errors = 2;
	m.sources[SOURCE_PSI_MEMORY].error = -ENOENT;
	(void)render(&m, &t, false, false);
	assert_line(&t, "pcptune_source_up{source=\"zoneinfo\"} 0");
	assert_line(&t, "pcptune_read_errors_total 2");
	assert_null(strstr(t.data, "pcptune_pcp_parked"));
	assert_null(strstr(t.data, "source_up{source=\"psi_memory\"}"));
	machine_free(&m);
}

static void rendering_again_allocates_nothing(void **state)
{
	_cleanup_(text_free) struct text t = {0};
	struct machine m;
	const char *data;
	size_t room;

	(void)state;
	machine_make(&m, 4, 64, 9);
	(void)render(&m, &t, true, true);
	data = t.data;
	room = t.room;
	(void)render(&m, &t, true, true);
	assert_ptr_equal(t.data, data);
	assert_int_equal(t.room, room);
	machine_free(&m);
}

static void promtool_has_no_complaint(void **state)
{
	_cleanup_(text_free) struct text t = {0};
	struct machine m;
	FILE *p;
	int status;

	(void)state;
	if (system("command -v promtool >/dev/null 2>&1") != 0) {
		print_message("promtool is not installed (Debian: prometheus): skipped\n");
		skip();
	}
	machine_make(&m, 2, 4, 9);
	(void)render(&m, &t, true, true);
	p = popen("promtool check metrics", "w");
	assert_non_null(p);
	assert_int_equal(fwrite(t.data, 1, t.len, p), t.len);
	status = pclose(p);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("promtool check metrics: status %d for:\n%s", status, t.data);
	machine_free(&m);
}

/* The document's text up to and from its markers, and what stands between. */
static char *slurp(const char *path)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	_cleanup_(text_free) struct text t = {0};
	char buf[4096];
	size_t n;

	if (!f)
		return NULL;
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		text_add_n(&t, buf, n);
	return TAKE_PTR(t.data);
}

static void the_document_lists_every_metric(void **state)
{
	_cleanup_(freep) char *doc = slurp(DOC_METRICS);
	_cleanup_(text_free) struct text want = {0};
	char *begin, *finish;

	(void)state;
	assert_non_null(doc);
	begin = strstr(doc, ": begin -->\n");
	assert_non_null(begin);
	begin += strlen(": begin -->\n");
	finish = strstr(begin, "<!-- end -->\n");
	assert_non_null(finish);
	text_add(&want, "\n");
	metrics_document(&want);
	text_add(&want, "\n");
	if (getenv("PCPTUNE_WRITE_DOC")) {
		_cleanup_(fclosep) FILE *f = fopen(DOC_METRICS, "we");

		assert_non_null(f);
		(void)fprintf(f, "%.*s%s%s", (int)(begin - doc), doc, want.data, finish);
		return;
	}
	if ((size_t)(finish - begin) != want.len || memcmp(begin, want.data, want.len) != 0)
		fail_msg(
			"doc/metrics.md differs from lib/tell/metrics.c: run \"make doc-metrics\"");
}

static void json_is_what_json_c_reads(void **state)
{
	_cleanup_(text_free) struct text t = {0};
	struct json_out j = JSON_OUT(&t);
	struct json_object *o, *v;

	(void)state;
	json_begin_object(&j, NULL);
	json_put_str(&j, "s", "a\"b\\c\n\t\001\xc3\xa9\xff\xed\xa0\x80");
	json_put_u64(&j, "u", UINT64_MAX);
	json_put_double(&j, "nan", NAN);
	json_put_usec(&j, "t", 1500000);
	json_begin_array(&j, "empty");
	json_end_array(&j);
	json_begin_array(&j, "list");
	json_put_bool(&j, NULL, true);
	json_begin_object(&j, NULL);
	json_end_object(&j);
	json_end_array(&j);
	json_put_null(&j, "null");
	json_end_object(&j);
	o = json_tokener_parse(t.data);
	if (!o)
		fail_msg("no JSON:\n%s", t.data);
	assert_true(json_object_object_get_ex(o, "u", &v));
	assert_true(json_object_get_uint64(v) == UINT64_MAX);
	assert_true(json_object_object_get_ex(o, "s", &v));
	assert_string_equal(
		json_object_get_string(v),
		"a\"b\\c\n\t\001\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_true(json_object_object_get_ex(o, "list", &v));
	assert_int_equal(json_object_array_length(v), 2);
	(void)json_object_put(o);
}

static void make_state(struct daemon_state *s)
{
	struct state_decision d = {.time_usec = 1760000000000001, .to = 100};
	struct state_drain drain = {.mode = "trim", .before_pages = 9, .took_usec = 400000};

	*s = (struct daemon_state){.pid = 42, .enforce = true, .page_bytes = 4096, .paused = true};
	(void)snprintf(s->metrics, sizeof(s->metrics), "127.0.0.1:9978");
	add_knob(s, "high_fraction");
	for (unsigned i = 0; i < STATE_DECISIONS_MAX + 5; i++) {
		d.from = i;
		state_add_decision(s, &d);
	}
	state_add_drain(s, &drain);
	s->policies = calloc(1, sizeof(*s->policies));
	assert_non_null(s->policies);
	s->nr_policies = 1;
	s->policies[0].priority = 90;
	(void)snprintf(s->policies[0].name, STATE_WORD, "trim-under-pressure");
}

static void what_the_daemon_says_of_itself_is_read_back(void **state)
{
	_cleanup_(text_free) struct text t = {0};
	struct daemon_state s, back = {0};
	struct error e = {0};

	(void)state;
	make_state(&s);
	state_to_json(&s, &t);
	if (state_from_json(&back, t.data, &e) < 0)
		fail_msg("%s:\n%s", e.text, t.data);
	assert_int_equal(back.pid, 42);
	assert_true(back.enforce && back.paused);
	assert_int_equal(back.paused_until_usec, 0);
	assert_memory_equal(back.knobs, s.knobs, sizeof(s.knobs));
	assert_int_equal(back.nr_decisions, STATE_DECISIONS_MAX);
	assert_int_equal(back.decisions[0].from, STATE_DECISIONS_MAX + 4);
	assert_int_equal(back.decisions[0].time_usec, 1760000000000001);
	assert_int_equal(back.drains[0].took_usec, 400000);
	assert_string_equal(back.policies[0].name, "trim-under-pressure");
	state_free(&back);
	state_free(&s);
}

static void another_text_is_no_state(void **state)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {
		{"", -EBADMSG},
		{"{", -EBADMSG},
		{"[]", -EBADMSG},
		{"{}", -EBADMSG},
		{"{\"schema\": \"1\"}", -EBADMSG},
		{"{\"schema\": 2}", -EPROTONOSUPPORT},
		{"{\"schema\": 1}", 0},
		{"{\"schema\": 1, \"knobs\": [1, null], \"policies\": {}, \"pid\": -4}", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct daemon_state s = {0};
		struct error e = {0};
		int r = state_from_json(&s, rows[i].text, &e);

		if (r != rows[i].want || (r < 0 && !e.text[0]))
			fail_msg("%s: got %d \"%s\"", rows[i].text, r, e.text);
		state_free(&s);
	}
}

static void the_state_file_is_replaced_whole_and_readable(void **state)
{
	char dir[] = "/tmp/pcptune-test-XXXXXX", path[80];
	_cleanup_(text_free) struct text t = {0};
	struct sysroot root = {.dirfd = -1};
	struct daemon_state s, back = {0};
	struct error e = {0};
	struct stat st;

	(void)state;
	make_state(&s);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(sysroot_open(&root, dir, NULL), 0);
	assert_int_equal(state_read(&back, &root, &e), -ENOENT);
	assert_int_equal(state_write(&s, &root, 5, &t, &e), -ENOENT);
	(void)snprintf(path, sizeof(path), "%s/run", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/run/pcptune", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	for (uint64_t now = 1; now < 4; now++)
		if (state_write(&s, &root, now, &t, &e) < 0)
			fail_msg("%s", e.text);
	assert_int_equal(state_read(&back, &root, &e), 0);
	assert_int_equal(back.written_usec, 3);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, STATE_REL);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(state_remove(&root), 0);
	assert_int_equal(state_remove(&root), 0);
	sysroot_close(&root);
	state_free(&back);
	state_free(&s);
	for (const char *rel = "/run/pcptune"; rel;
	     rel = streq(rel, "/run/pcptune") ? "/run" : NULL) {
		(void)snprintf(path, sizeof(path), "%s%s", dir, rel);
		assert_int_equal(rmdir(path), 0);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void this_process_has_numbers(void **state)
{
	struct process_stats p = {0};
	uint64_t fds;
	FILE *f;

	(void)state;
	assert_int_equal(process_stats_read(&p), 0);
	assert_true(p.resident_bytes > 0 && p.virtual_bytes >= p.resident_bytes);
	assert_true(p.max_fds > 0);
	fds = p.open_fds;
	f = fopen("/dev/null", "re");
	assert_non_null(f);
	assert_int_equal(process_stats_read(&p), 0);
	assert_int_equal(p.open_fds, fds + 1);
	(void)fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_are_escaped_as_each_format_wants),
		cmocka_unit_test(the_accept_header_chooses_the_format),
		cmocka_unit_test(gzip_is_given_to_who_takes_it),
		cmocka_unit_test(basic_has_at_most_60_series_on_any_machine),
		cmocka_unit_test(the_numbers_are_those_of_the_snapshot),
		cmocka_unit_test(gauges_and_counters_of_the_kernel_are_told_apart),
		cmocka_unit_test(no_node_value_carries_a_zone),
		cmocka_unit_test(names_follow_the_conventions),
		cmocka_unit_test(without_a_daemon_only_the_machine_is_told),
		cmocka_unit_test(a_source_that_failed_is_down_and_its_values_are_gone),
		cmocka_unit_test(rendering_again_allocates_nothing),
		cmocka_unit_test(promtool_has_no_complaint),
		cmocka_unit_test(the_document_lists_every_metric),
		cmocka_unit_test(json_is_what_json_c_reads),
		cmocka_unit_test(what_the_daemon_says_of_itself_is_read_back),
		cmocka_unit_test(another_text_is_no_state),
		cmocka_unit_test(the_state_file_is_replaced_whole_and_readable),
		cmocka_unit_test(this_process_has_numbers),
	};

	return cmocka_run_group_tests_name("tell", tests, NULL, NULL);
}
