/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "manager-internal.h"

#include "base/format.h"
#include "kill-switch.h"
#include "message_ids.h"
#include "report.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <systemd/sd-daemon.h>

/*
 * A read costs the machine zone locks: so at most a thousandth of its time. What it took is a
 * matter of the scheduler, too, and one read that was interrupted for 100 ms would stop everything
 * for minutes: of the last reads the quickest says what reading costs.
 */
#define READ_COST_FACTOR 1000U
/* Ticks in a row with nothing moving after which the idle interval begins. */
#define QUIET_TICKS 10U
/* A change of parked memory by more than this share of memory is something moving. */
#define QUIET_SHARE 0.0005
#define ALWAYS_READ (SOURCE_BIT(SOURCE_ZONEINFO) | SOURCE_BIT(SOURCE_KNOBS))

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_REFUSED = 4,
	EXIT_NOT_HERE = 5,
};

static int finish(struct manager *m);

static struct engine_limits limits_of(const struct manager *m)
{
	struct engine_limits limits = engine_limits_default(m->snapshot->mthp.pmd_order);

	limits.high_fraction_min = m->config.high_fraction_min;
	limits.max_parked_share = m->config.max_parked_share;
	if (m->config.order_max != UINT64_MAX)
		limits.order_max = (unsigned)m->config.order_max;
	limits.min_hold_usec = m->config.min_hold_usec;
	return limits;
}

/* A source that fails is told once, and once more when it works again. */
static void tell_sources(struct manager *m)
{
	for (enum source s = 0; s < _SOURCE_MAX; s++) {
		const struct source_state *state = sensor_source(m->sensor, s);
		bool failed = state->error != 0 && state->error != -ENOENT;
		const char *const fields[] = {failed ? MSG_SOURCE_FAILED : MSG_SOURCE_WORKS, NULL};

		if (failed == m->source_failed[s])
			continue;
		m->source_failed[s] = failed;
		if (failed)
			log_fields(m->log, LOG_WARNING, fields,
				   "%s; rules that need it wait until it can be read again",
				   state->why.text);
		else
			log_fields(m->log, LOG_NOTICE, fields, "%s can be read again",
				   source_rel(s));
	}
}

static void take_snapshot(struct manager *m, uint32_t more)
{
	uint64_t now = act_time_now().mono_usec;

	wake_prepare(&m->wake, m->sensor);
	m->snapshot = sensor_take(
		m->sensor, ALWAYS_READ | more | (m->engine ? engine_sources(m->engine) : 0), now);
}

/* One tick of the engine, carried out or told. Returns how many decisions there were. */
static size_t decide(struct manager *m, bool facts_changed, struct act_time now)
{
	struct engine_knob_input knobs[KNOBS_MAX];
	struct engine_input in = {
		.now_usec = now.mono_usec,
		.snapshot = m->snapshot,
		.mode = m->enforce && !m->disabled && !m->options->once ? ENGINE_ENFORCE
									: ENGINE_OBSERVE,
		.paused = m->pause.on,
		.facts_changed = facts_changed,
		.facts = policies_facts(m->policies),
		.interval_usec = m->next_interval_usec,
		.limits = limits_of(m),
		.knobs = knobs,
	};
	const struct decision *decisions;
	size_t n;

	in.nr_knobs = acting_engine_input(&m->acting, m->snapshot, knobs, &in.drain);
	decisions = engine_tick(m->engine, &in, &n);
	for (size_t i = 0; i < n; i++)
		telemetry_note_decision(&m->telemetry, &decisions[i], now);
	acting_apply(&m->acting, m->snapshot, decisions, n, now);
	m->decided++;
	return n;
}

/* Is anything going on that wants the shorter interval? */
static bool something_moves(struct manager *m)
{
	struct parked p = snapshot_parked(m->snapshot);
	uint64_t moved = p.pages > m->last_parked_pages ? p.pages - m->last_parked_pages
							: m->last_parked_pages - p.pages;
	bool quiet = (double)moved <= QUIET_SHARE * (double)p.managed &&
		     !engine_is_active(m->engine) && !m->acting.drain;

	m->last_parked_pages = p.pages;
	m->quiet_ticks = quiet ? m->quiet_ticks + 1 : 0;
	return m->quiet_ticks < QUIET_TICKS;
}

static void note_read_cost(struct manager *m)
{
	uint64_t cost = 0;

	for (enum source s = 0; s < _SOURCE_MAX; s++)
		if (snapshot_has(m->snapshot, s))
			cost += sensor_source(m->sensor, s)->cost_usec;
	m->read_cost_usec[m->reads++ % READ_COSTS] = cost;
}

/* What reading asks for at least; nothing before there are reads to compare. */
static uint64_t reading_pause(const struct manager *m)
{
	uint64_t least = UINT64_MAX;

	if (m->reads < READ_COSTS)
		return 0;
	for (size_t i = 0; i < READ_COSTS; i++)
		least = MIN_OF(least, m->read_cost_usec[i]);
	return least * READ_COST_FACTOR;
}

static uint64_t next_interval(struct manager *m)
{
	uint64_t interval = something_moves(m) ? m->config.interval_usec
					       : m->config.idle_interval_usec;
	uint64_t now = act_time_now().mono_usec, ends = control_next_usec(m);

	if (ends != USEC_INFINITY)
		interval = MIN_OF(interval, ends > now ? ends - now : 0);
	return MAX_OF(interval, reading_pause(m));
}

/* An event makes the next tick due, though never sooner than reading is allowed. */
static void on_wake(void *userdata)
{
	struct manager *m = userdata;
	uint64_t soon =
		m->telemetry.last_tick_usec + MAX_OF(m->config.interval_usec, reading_pause(m));
	uint64_t due = soon;

	m->quiet_ticks = 0;
	(void)sd_event_source_get_time(m->tick, &due);
	(void)sd_event_source_set_time(m->tick, MIN_OF(due, soon));
}

static int rearm_acting(struct manager *m)
{
	uint64_t next = acting_next_usec(&m->acting);
	int r;

	if (next == USEC_INFINITY)
		return sd_event_source_set_enabled(m->acting_timer, SD_EVENT_OFF);
	r = sd_event_source_set_time(m->acting_timer, next);
	return r < 0 ? r : sd_event_source_set_enabled(m->acting_timer, SD_EVENT_ONESHOT);
}

static int on_drain_io(sd_event_source *s, int fd, uint32_t revents, void *userdata);

/* A drain comes and goes; its descriptor is watched while it is there. */
static int watch_drain(struct manager *m)
{
	if (!m->acting.drain || m->watched_drain != m->acting.drains_begun)
		m->drain_io = sd_event_source_disable_unref(m->drain_io);
	m->watched_drain = m->acting.drains_begun;
	if (!m->acting.drain || m->drain_io)
		return 0;
	return sd_event_add_io(m->event, &m->drain_io, drain_fd(m->acting.drain), EPOLLIN,
			       on_drain_io, m);
}

int manager_settle(struct manager *m)
{
	int r = watch_drain(m);

	if (r >= 0)
		r = rearm_acting(m);
	if (r < 0)
		return r;
	control_dispatch(m);
	telemetry_publish(&m->telemetry, m->snapshot, m->engine, &m->acting, m->log,
			  act_time_now());
	bus_refresh(m->bus);
	return m->stopping ? finish(m) : 0;
}

static int dispatch(struct manager *m)
{
	acting_dispatch(&m->acting, act_time_now());
	return manager_settle(m);
}

static int on_drain_io(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	(void)s;
	(void)fd;
	(void)revents;
	return dispatch(userdata);
}

static int on_actor_io(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	(void)s;
	(void)fd;
	(void)revents;
	return dispatch(userdata);
}

static int on_acting_timer(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	(void)s;
	(void)scheduled;
	return dispatch(userdata);
}

/* Lockouts, pins and a pause must outlive a restart. */
static void remember(struct manager *m)
{
	int r = m->acting.lock.fd >= 0
			? remembered_save(&m->remembered, m->engine, &m->pause, &m->root,
					  m->snapshot->page_bytes, act_time_now())
			: 0;

	if (r < 0)
		log_debug(m->log, "cannot write %s: %s", REMEMBERED_REL, error_name(r));
}

/* Which orders this kernel can switch, a bit each. */
static uint64_t controllable_orders(const struct snapshot *s)
{
	uint64_t orders = 0;

	for (unsigned i = 0; i < s->mthp.nr_sizes; i++)
		if (s->mthp.size[i].controllable)
			orders |= UINT64_C(1) << s->mthp.size[i].order;
	return orders;
}

/* [Order *] means other knobs now: the rules keep their states in an engine for these. */
static void follow_orders(struct manager *m)
{
	struct engine *engine = NULL;
	struct error e = {0};

	if (engine_reload(&engine, m->engine, policies_set(m->policies),
			  policies_facts(m->policies), m->snapshot, &e) < 0) {
		log_warning(m->log, "orders came or went, and the policies cannot follow: %s",
			    e.text);
		return;
	}
	engine_free(m->engine);
	m->engine = engine;
	telemetry_policies(&m->telemetry, m->policies, m->engine);
}

/* Restores, then observes, as long as a kill switch is thrown. */
static void obey_kill_switch(struct manager *m, struct act_time now)
{
	const char *thrown = kill_switch_thrown(&m->root);
	const char *const fields[] = {thrown ? MSG_DISABLED : MSG_ENABLED, NULL};

	if (!m->enforce || !thrown == !m->disabled)
		return;
	m->disabled = thrown;
	engine_reset(m->engine);
	if (thrown) {
		log_fields(m->log, LOG_WARNING, fields,
			   "%s: every setting is put back, and decisions are only told", thrown);
		acting_take_hands_off(&m->acting, now);
	} else {
		log_fields(m->log, LOG_NOTICE, fields,
			   "no kill switch is thrown any more: "
			   "enforcing again");
		acting_resume(&m->acting);
	}
	telemetry_mode(&m->telemetry, !thrown, thrown ? thrown : "");
}

/* One sentence for the service manager, when it is another one. */
static void tell_status(struct manager *m)
{
	char status[sizeof(m->status)], parked[96];

	(void)snprintf(status, sizeof(status), "%s; parked: %s",
		       !m->enforce   ? "Observing"
		       : m->disabled ? "Disabled: settings are put back, observing"
		       : m->pause.on ? "Paused: settings stay as they are"
				     : "Enforcing",
		       report_parked(m->snapshot, parked, sizeof(parked)));
	if (streq(status, m->status))
		return;
	memcpy(m->status, status, sizeof(status));
	(void)sd_notifyf(0, "STATUS=%s", status);
}

static int on_tick(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	struct manager *m = userdata;
	struct act_time start = act_time_now();
	uint64_t orders = controllable_orders(m->snapshot);
	bool changed;
	int r;

	(void)scheduled;
	take_snapshot(m, 0);
	note_read_cost(m);
	tell_sources(m);
	changed = wake_take_changes(&m->wake);
	m->facts_changed |= changed;
	if (changed)
		policies_refresh_facts(m->policies, &m->root, m->snapshot);
	if (controllable_orders(m->snapshot) != orders)
		follow_orders(m);
	acting_observe(&m->acting, m->snapshot, start);
	if (!m->stopping) {
		obey_kill_switch(m, start);
		control_expire(m);
		/* restore, then observe: a value that is on its way back is nobody's decision */
		if (!m->disabled || acting_stopped(&m->acting, true)) {
			decide(m, m->facts_changed, start);
			m->facts_changed = false;
		}
		tell_status(m);
	}
	remember(m);
	wake_show(&m->wake, &m->telemetry);
	telemetry_note_tick(&m->telemetry, start, act_time_now());
	m->next_interval_usec = next_interval(m);
	r = sd_event_source_set_time_relative(s, m->next_interval_usec);
	if (r >= 0)
		r = sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	return r < 0 ? r : manager_settle(m);
}

static int exit_code_of(struct manager *m)
{
	struct error why = {0};
	unsigned left = m->config.on_stop == ON_STOP_RESTORE && m->acting.actor
				? actor_unrestored(m->acting.actor, &why)
				: 0;
	const char *const fields[] = {MSG_NOT_RESTORED, NULL};

	if (left == 0)
		return EXIT_DONE;
	log_fields(
		m->log, LOG_ERR, fields,
		"%u %s could not be put back: %s. The record keeps what they were: run pcptunectl "
		"rollback, or start pcptuned again",
		left, left == 1 ? "setting" : "settings", why.text);
	return EXIT_REFUSED;
}

static int finish(struct manager *m)
{
	if (!m->stop_timed_out && !acting_stopped(&m->acting, m->config.on_stop == ON_STOP_RESTORE))
		return 0;
	return sd_event_exit(m->event, exit_code_of(m));
}

static int on_stop_timeout(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	struct manager *m = userdata;

	(void)s;
	(void)scheduled;
	m->stop_timed_out = true;
	return finish(m);
}

static int begin_stop(struct manager *m, const char *why)
{
	int r;

	if (m->stopping)
		return 0;
	m->stopping = true;
	(void)sd_notify(0, "STOPPING=1");
	log_info(m->log, "stopping: %s", why);
	control_end(m);
	acting_stop(&m->acting, m->config.on_stop == ON_STOP_RESTORE, act_time_now());
	r = sd_event_add_time_relative(m->event, &m->stop_timer, CLOCK_MONOTONIC,
				       m->config.stop_timeout_usec, 0, on_stop_timeout, m);
	return r < 0 ? r : manager_settle(m);
}

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata)
{
	(void)s;
	return begin_stop(userdata, si->ssi_signo == SIGINT ? "interrupted" : "told to terminate");
}

static struct scrape_files scrape_files(const struct config *c)
{
	return (struct scrape_files){c->tls_certificate, c->tls_key, c->tls_client_ca,
				     c->token_file};
}

/*
 * All or nothing for the configuration and for each policy: what has an error stays as it was. What
 * needs a new start (where the metrics are) keeps its old value.
 */
static int reload(struct manager *m, struct error *e)
{
	_cleanup_(credentials_clear) struct credentials credentials = {0};
	_cleanup_(policies_freep) struct policies *policies = NULL;
	struct scrape_files files;
	struct engine *engine = NULL;
	struct config config;
	int r;

	r = config_load(&config, &m->root, m->options->config_file, stderr, e);
	if (r < 0)
		return r;
	files = scrape_files(&config);
	r = m->scrape ? credentials_load(&credentials, &files, e) : 0;
	if (r < 0)
		return r;
	r = policies_load(&policies, &m->root, m->options->policy_dirs, m->snapshot, m->policies,
			  stderr, e);
	if (r < 0)
		return r;
	r = engine_reload(&engine, m->engine, policies_set(policies), policies_facts(policies),
			  m->snapshot, e);
	if (r < 0)
		return r;
	engine_free(m->engine);
	m->engine = engine;
	policies_free(m->policies);
	m->policies = TAKE_PTR(policies);
	/* wanted names are of the policies that were just freed */
	if (wake_policies(&m->wake, m->policies) < 0)
		log_warning(m->log, "out of memory: rules with process.running() wait");
	memcpy(config.listen, m->config.listen, sizeof(config.listen));
	m->config = config;
	acting_configure(&m->acting, &m->config);
	telemetry_policies(&m->telemetry, m->policies, m->engine);
	return m->scrape ? scrape_take_credentials(m->scrape, &credentials, e) : 0;
}

int manager_tick_now(struct manager *m)
{
	m->quiet_ticks = 0;
	return sd_event_source_set_time_relative(m->tick, 0);
}

int manager_reload(struct manager *m, struct error *e)
{
	const char *const fields[] = {MSG_RELOADED, NULL};
	int r;

	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
			 (unsigned long long)act_time_now().mono_usec);
	r = reload(m, e);
	if (r < 0) {
		log_fields(m->log, LOG_ERR, fields, "reload: %s; what ran goes on", e->text);
	} else {
		log_fields(m->log, LOG_NOTICE, fields, "reloaded: %zu policies",
			   policies_count(m->policies));
		policies_report(m->policies, m->log, m->engine);
	}
	(void)sd_notify(0, "READY=1");
	(void)manager_tick_now(m);
	return r;
}

static int on_reload(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata)
{
	struct manager *m = userdata;
	struct error e = {0};

	(void)s;
	(void)si;
	if (!m->stopping)
		(void)manager_reload(m, &e);
	return 0;
}

static int on_for_over(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	(void)s;
	(void)scheduled;
	return begin_stop(userdata, "the time given with --for is over");
}

/* A scrape shows the present, but may not make the machine pay more than ticks do. */
static uint64_t refresh_metrics(void *userdata)
{
	struct manager *m = userdata;
	uint64_t age = act_time_now().mono_usec - m->snapshot->taken_usec;

	if (age > USEC_PER_SEC &&
	    age > sensor_source(m->sensor, SOURCE_ZONEINFO)->cost_usec * READ_COST_FACTOR) {
		take_snapshot(m, telemetry_sources(&m->telemetry));
		age = 0;
	}
	/* one text a snapshot; one a second while it may not be replaced, for its age goes on */
	return m->snapshot->taken_usec + age / USEC_PER_SEC;
}

static int render_metrics(void *userdata, enum exposition_format format, struct text *into)
{
	struct manager *m = userdata;

	return telemetry_render(&m->telemetry, m->snapshot, m->sensor, m->engine, format,
				act_time_now(), into);
}

static const char *unhealthy(void *userdata)
{
	const struct manager *m = userdata;
	uint64_t age = act_time_now().mono_usec - m->telemetry.last_tick_usec;

	if (age > 3 * m->config.idle_interval_usec + 10 * USEC_PER_SEC)
		return "ticks have stalled";
	return snapshot_has(m->snapshot, SOURCE_ZONEINFO) ? NULL : "proc/zoneinfo cannot be read";
}

static int start_scrape(struct manager *m, struct error *e)
{
	const struct scrape_ops ops = {refresh_metrics, render_metrics, unhealthy, m};
	const struct scrape_files files = scrape_files(&m->config);

	if (streq(m->config.listen, "none") || m->options->once)
		return 0;
	return scrape_new(&m->scrape, m->event, m->config.listen, &files, &ops, e);
}

int manager_watch_actor(struct manager *m)
{
	return sd_event_add_io(m->event, &m->actor_io, actor_fd(m->acting.actor), EPOLLIN,
			       on_actor_io, m);
}

static int add_sources(struct manager *m)
{
	sigset_t mask;
	int r;

	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGINT);
	(void)sigaddset(&mask, SIGTERM);
	(void)sigaddset(&mask, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &mask, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	r = sd_event_add_signal(m->event, NULL, SIGINT, on_signal, m);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGTERM, on_signal, m);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGHUP, on_reload, m);
	if (r >= 0)
		r = sd_event_add_time_relative(m->event, &m->tick, CLOCK_MONOTONIC, 0,
					       10 * USEC_PER_MSEC, on_tick, m);
	if (r >= 0)
		r = sd_event_add_time(m->event, &m->acting_timer, CLOCK_MONOTONIC, USEC_INFINITY,
				      USEC_PER_MSEC, on_acting_timer, m);
	if (r >= 0 && m->acting.actor)
		r = manager_watch_actor(m);
	if (r >= 0 && m->options->for_usec != USEC_INFINITY)
		r = sd_event_add_time_relative(m->event, NULL, CLOCK_MONOTONIC,
					       m->options->for_usec, 0, on_for_over, m);
	return r;
}

/* What an earlier run left is undone by an enforcing start; one that only observes says so. */
static void tell_leftovers(const struct manager *m)
{
	_cleanup_(text_free) struct text commands = {0};
	struct error e = {0};
	unsigned n = 0;

	if (rollback_commands(&m->acting.env, &commands, &n, &e) == 0 && n > 0)
		log_warning(m->log,
			    "an earlier run left %u changed %s behind: pcptunectl rollback puts "
			    "them back",
			    n, n == 1 ? "setting" : "settings");
}

static int open_acting(struct manager *m, struct error *e)
{
	if (m->enforce && !m->options->once)
		return acting_open(&m->acting, &m->root, m->snapshot, &m->config, m->log,
				   act_time_now(), e);
	acting_observe_only(&m->acting, &m->root, m->snapshot, m->log);
	tell_leftovers(m);
	/* two daemons would serve two truths; a capture and somebody without root disturb nobody */
	if (m->options->once || !sysroot_is_live(&m->root) || geteuid() != 0)
		return 0;
	return lock_take(&m->acting.lock, &m->acting.env, "pcptuned", act_time_now(), NULL, e);
}

static void choose_mode(struct manager *m)
{
	m->enforce = m->options->mode == MODE_ENFORCE ||
		     (m->options->mode == MODE_AS_CONFIGURED && m->config.mode == CONFIG_ENFORCE);
	if (m->enforce && !m->options->once && !sysroot_is_live(&m->root)) {
		log_info(m->log, "%s holds captured files, not a kernel: only observing",
			 m->root.path);
		m->enforce = false;
	}
}

/* CLOCK_REALTIME; 0: without end */
static uint64_t pause_end(const struct manager *m)
{
	struct act_time now = act_time_now();

	return m->pause.until_usec == USEC_INFINITY
		       ? 0
		       : now.real_usec + m->pause.until_usec - now.mono_usec;
}

/* It answers what is asked; without it everything else works. */
static void start_bus(struct manager *m)
{
	struct error e = {0};

	if (m->options->once || m->acting.lock.fd < 0)
		return;
	if (bus_new(&m->bus, m, &e) < 0)
		log_warning(m->log, "%s", e.text);
}

static void start_telemetry(struct manager *m)
{
	telemetry_start(&m->telemetry, &m->root, &m->config, m->snapshot, m->enforce,
			m->acting.lock.fd >= 0, m->scrape ? scrape_url(m->scrape) : "",
			act_time_now());
	telemetry_policies(&m->telemetry, m->policies, m->engine);
	if (m->pause.on) {
		telemetry_pause(&m->telemetry, true, pause_end(m));
		acting_pause(&m->acting, true, act_time_now());
	}
	m->acting.listener = telemetry_listener(&m->telemetry);
}

static int start(struct manager *m, struct error *e)
{
	int r;

	r = sysroot_open(&m->root, m->options->root, e);
	if (r < 0)
		return r;
	r = config_load(&m->config, &m->root, m->options->config_file, stderr, e);
	if (r < 0)
		return r;
	choose_mode(m);
	r = sensor_new(&m->sensor, &m->root, m->options->page_bytes, e);
	if (r < 0)
		return r;
	take_snapshot(m, SOURCES_ALL);
	if (!snapshot_has(m->snapshot, SOURCE_ZONEINFO)) {
		*e = sensor_source(m->sensor, SOURCE_ZONEINFO)->why;
		return e->code ? e->code : error_set(e, -ENOENT, "proc/zoneinfo cannot be read");
	}
	/* first of all what may refuse: nothing is printed that does not come true */
	r = open_acting(m, e);
	if (r < 0)
		return r;
	r = policies_load(&m->policies, &m->root, m->options->policy_dirs, m->snapshot, NULL,
			  stderr, e);
	if (r < 0)
		return r;
	r = engine_new(&m->engine, policies_set(m->policies), policies_facts(m->policies),
		       m->snapshot, e);
	if (r < 0)
		return r;
	if (m->acting.lock.fd >= 0 &&
	    remembered_load(m->engine, &m->pause, &m->root, m->snapshot->page_bytes, act_time_now(),
			    e) < 0)
		log_warning(m->log, "%s", e->text);
	r = sd_event_default(&m->event);
	if (r < 0)
		return error_set(e, r, "cannot make an event loop: %s", error_name(r));
	r = start_scrape(m, e);
	if (r < 0)
		return r;
	start_telemetry(m);
	start_bus(m);
	r = add_sources(m);
	if (r >= 0 && !m->options->once)
		r = wake_open(&m->wake, m->event, &m->root, m->log, &m->config, on_wake, m);
	if (r >= 0)
		r = wake_policies(&m->wake, m->policies);
	return r < 0 ? error_set(e, r, "cannot set up the event loop: %s", error_name(r)) : 0;
}

static void report_start(const struct manager *m)
{
	const char *const fields[] = {MSG_STARTED, NULL};
	char path[64];

	report_machine(m->log, &m->root, m->snapshot);
	policies_report(m->policies, m->log, m->engine);
	if (m->scrape)
		log_info(m->log, "metrics: %s", scrape_url(m->scrape));
	(void)snprintf(path, sizeof(path), "%s",
		       m->config.on_stop == ON_STOP_RESTORE
			       ? "every setting is put back at the end"
			       : "settings stay as they are at the end");
	if (m->enforce && !m->options->once)
		log_fields(m->log, LOG_NOTICE, fields, "enforcing: %s", path);
	else
		log_fields(m->log, LOG_NOTICE, fields,
			   "observing: decisions are told, nothing is written");
}

static int run_once(struct manager *m)
{
	struct act_time now = act_time_now();

	report_start(m);
	if (decide(m, false, now) == 0)
		log_notice(m->log,
			   "no decision: at one look no rule asks for a change; rules that must "
			   "hold for a while cannot, and pcptunectl explain shows what each sees");
	return EXIT_DONE;
}

/*
 * What was touched once stays in memory: who is to help when it is short must not wait for its own
 * pages. Only where the limit allows any amount, as the unit does: with another one, allocations
 * would fail later.
 */
static void stay_in_memory(const struct manager *m)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur != RLIM_INFINITY)
		return;
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0)
		log_debug(m->log, "cannot keep the daemon's pages in memory: %s",
			  error_name(errno));
}

static int run(struct manager *m)
{
	const char *const fields[] = {MSG_STOPPED, NULL};
	int r;

	stay_in_memory(m);
	telemetry_publish(&m->telemetry, m->snapshot, m->engine, &m->acting, m->log,
			  act_time_now());
	report_start(m);
	(void)sd_notify(0, "READY=1");
	tell_status(m);
	/* pings only while the loop turns, and only where the unit asks for it */
	(void)sd_event_set_watchdog(m->event, true);
	r = sd_event_loop(m->event);
	if (r < 0) {
		log_error(m->log, "the event loop failed: %s", error_name(r));
		return EXIT_FAILED;
	}
	if (r == EXIT_DONE)
		log_fields(m->log, LOG_NOTICE, fields, "stopped%s",
			   m->enforce && m->config.on_stop == ON_STOP_RESTORE
				   ? ": every setting is as it was before"
				   : "");
	return r;
}

static void clean_up(struct manager *m)
{
	control_end(m);
	m->bus = bus_free(m->bus);
	wake_close(&m->wake);
	telemetry_stop(&m->telemetry);
	remembered_free(&m->remembered);
	m->scrape = scrape_free(m->scrape);
	sd_event_source_disable_unref(m->tick);
	sd_event_source_disable_unref(m->acting_timer);
	sd_event_source_disable_unref(m->actor_io);
	sd_event_source_disable_unref(m->drain_io);
	sd_event_source_disable_unref(m->stop_timer);
	acting_close(&m->acting, act_time_now());
	m->engine = engine_free(m->engine);
	m->policies = policies_free(m->policies);
	m->sensor = sensor_free(m->sensor);
	sd_event_unref(m->event);
	sysroot_close(&m->root);
}

int manager_run(const struct manager_options *options, const struct log *log)
{
	struct manager m = {
		.options = options,
		.log = log,
		.root = {.dirfd = -1},
		.acting = {.lock = INSTANCE_LOCK_NONE},
	};
	struct error e = {0};
	int r;

	r = start(&m, &e);
	if (r < 0) {
		log_error(log, "%s", e.text);
		r = r == -EOPNOTSUPP ? EXIT_NOT_HERE : EXIT_FAILED;
	} else {
		r = options->once ? run_once(&m) : run(&m);
	}
	clean_up(&m);
	return r;
}
