/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "telemetry.h"

#include <errno.h>

/* PerCPU=auto shows CPUs one by one up to this many. */
#define PER_CPU_AUTO_MAX 16U
/* The longest tick is that of the last minute or so: halved at each of as many ticks. */
#define TICK_MAX_DECAY 64U

void telemetry_start(struct telemetry *t, const struct sysroot *root, const struct config *config,
		     const struct snapshot *s, bool enforce, bool publish, const char *metrics_url,
		     struct act_time now)
{
	bool full = config->series == CONFIG_SERIES_FULL;
	bool few = cpuset_count(&s->topology.online) <= PER_CPU_AUTO_MAX;

	*t = (struct telemetry){
		.root = root,
		.publish = publish,
		.dirty = true,
		.page_bytes = s->page_bytes,
		.last_tick_usec = now.mono_usec,
		.options = {.full = full,
			    .percpu = config->per_cpu == PER_CPU_YES ||
				      (config->per_cpu == PER_CPU_AUTO && full && few)},
		.state = {.version = VERSION,
			  .pid = getpid(),
			  .enforce = enforce,
			  .started_usec = now.real_usec,
			  .interval_usec = config->interval_usec,
			  .page_bytes = s->page_bytes},
	};
	(void)snprintf(t->state.metrics, sizeof(t->state.metrics), "%s", metrics_url);
	process_stats_start(&t->self.process, now.real_usec);
}

void telemetry_stop(struct telemetry *t)
{
	if (t->publish)
		(void)state_remove(t->root);
	state_free(&t->state);
	text_free(&t->scratch);
	t->publish = false;
}

void telemetry_mode(struct telemetry *t, bool enforce, const char *why)
{
	if (t->state.enforce == enforce && streq(t->state.mode_reason, why))
		return;
	t->state.enforce = enforce;
	(void)snprintf(t->state.mode_reason, sizeof(t->state.mode_reason), "%s", why);
	t->dirty = true;
}

void telemetry_pause(struct telemetry *t, bool on, uint64_t until_usec)
{
	t->state.paused = on;
	t->state.paused_until_usec = until_usec;
	t->dirty = true;
}

void telemetry_event_source(struct telemetry *t, uint32_t i, const char *source, const char *state,
			    const char *why, uint64_t events, uint64_t overruns)
{
	struct state_event *shown = &t->state.events[i];

	t->self.events[i] = events;
	t->self.event_overruns[i] = overruns;
	t->state.nr_events = MAX_OF(t->state.nr_events, i + 1);
	if (streq(shown->source, source) && streq(shown->state, state))
		return;
	(void)snprintf(shown->source, sizeof(shown->source), "%s", source);
	(void)snprintf(shown->state, sizeof(shown->state), "%s", state);
	(void)snprintf(shown->reason, sizeof(shown->reason), "%.*s", (int)STATE_WHY - 1, why);
	t->dirty = true;
}

void telemetry_note_tick(struct telemetry *t, struct act_time start, struct act_time end)
{
	uint64_t took = end.mono_usec - start.mono_usec;

	t->self.ticks++;
	t->self.tick_usec += took;
	if (t->self.ticks % TICK_MAX_DECAY == 0)
		t->self.tick_max_usec /= 2;
	t->self.tick_max_usec = MAX_OF(t->self.tick_max_usec, took);
	t->last_tick_usec = end.mono_usec;
}

static void copy_word(char (*to)[STATE_WORD], const char *from)
{
	(void)snprintf(*to, sizeof(*to), "%.*s", (int)sizeof(*to) - 1, from);
}

static struct telemetry_author *author_of(struct telemetry *t, struct knob_id id)
{
	for (size_t i = 0; i < t->nr_authors; i++)
		if (knob_id_eq(t->author[i].id, id))
			return &t->author[i];
	if (t->nr_authors == KNOBS_MAX)
		return NULL;
	t->author[t->nr_authors] = (struct telemetry_author){.id = id};
	return &t->author[t->nr_authors++];
}

void telemetry_note_decision(struct telemetry *t, const struct decision *d, struct act_time now)
{
	struct telemetry_author *author;
	struct state_decision shown = {.time_usec = now.real_usec};

	t->self.decisions++;
	if (d->kind == DECISION_DRAIN)
		return;
	author = author_of(t, d->knob);
	if (author) {
		copy_word(&author->policy, d->policy);
		copy_word(&author->rule, d->rule);
	}
	if (d->write)
		return; /* shown with its outcome, see on_event() */
	knob_name(d->knob, t->page_bytes, shown.knob);
	shown.from = d->old_value;
	shown.to = d->value;
	copy_word(&shown.policy, d->policy);
	copy_word(&shown.rule, d->rule);
	copy_word(&shown.result, "observed");
	(void)snprintf(shown.reason, sizeof(shown.reason), "%s", d->reason);
	state_add_decision(&t->state, &shown);
	t->dirty = true;
}

static const char *result_of(enum actor_event_kind kind)
{
	switch (kind) {
	case ACTOR_CHANGED:
	case ACTOR_RESTORED:
	case ACTOR_RECOVERED:
		return "done";
	case ACTOR_REFUSED:
		return "refused";
	default:
		return NULL;
	}
}

static void on_event(void *user, const struct actor_event *ev)
{
	const char *result = result_of(ev->kind);
	struct telemetry *t = user;
	const struct telemetry_author *author = author_of(t, ev->id);
	struct state_decision shown = {
		.time_usec = ev->time.real_usec,
		.from = ev->old_value,
		.to = ev->new_value,
	};

	t->dirty = true;
	t->self.foreign_writes += ev->kind == ACTOR_FOREIGN;
	if (!result)
		return;
	if (ev->kind != ACTOR_REFUSED) /* told once, counted each time: count_refusals() */
		t->self.writes[WRITE_DONE]++;
	if (ev->transient) /* a drain's moment: what came back is counted with the drain */
		return;
	if (ev->parked_known && ev->parked_before > ev->parked_after)
		t->self.drained_pages += ev->parked_before - ev->parked_after;
	knob_name(ev->id, t->page_bytes, shown.knob);
	copy_word(&shown.result, result);
	if (author) {
		copy_word(&shown.policy, author->policy);
		copy_word(&shown.rule, author->rule);
	}
	(void)snprintf(shown.reason, sizeof(shown.reason), "%s", ev->reason);
	state_add_decision(&t->state, &shown);
}

static enum drain_mode_metric metric_of(enum drain_mode mode)
{
	switch (mode) {
	case DRAIN_TRIM:
		return DRAIN_METRIC_TRIM;
	case DRAIN_SQUEEZE:
		return DRAIN_METRIC_SQUEEZE;
	case DRAIN_KERNEL:
	case _DRAIN_MODE_MAX:
		break;
	}
	return DRAIN_METRIC_KERNEL;
}

static void on_drain(void *user, const struct drain_report *r, const char *reason)
{
	struct telemetry *t = user;
	struct state_drain shown = {
		.time_usec = act_time_now().real_usec,
		.before_pages = r->pages_before,
		.after_pages = r->pages_after,
		.passes = r->passes,
		.took_usec = r->took_usec,
	};

	t->dirty = true;
	t->self.drains[metric_of(r->mode)]++;
	t->self.drain_usec += r->took_usec;
	if (r->pages_before > r->pages_after)
		t->self.drained_pages += r->pages_before - r->pages_after;
	(void)snprintf(shown.mode, sizeof(shown.mode), "%s", drain_mode_name(r->mode));
	copy_word(&shown.result, drain_end_name(r->end));
	(void)snprintf(shown.reason, sizeof(shown.reason), "%s", reason);
	state_add_drain(&t->state, &shown);
}

struct acting_listener telemetry_listener(struct telemetry *t)
{
	return (struct acting_listener){on_event, on_drain, t};
}

static enum shown_state shown_state_of(enum rule_state state)
{
	/* the same words in the same order; telling does not know of policies */
	_Static_assert((int)SHOWN_OFF == (int)RULE_OFF && (int)SHOWN_FAILED == (int)RULE_FAILED &&
			       (int)_SHOWN_MAX == (int)_RULE_STATE_MAX,
		       "the states of rules and those that are shown are one list");
	return (enum shown_state)state;
}

static enum shown_owner owner_of(const struct engine_knob_view *v, const struct actor_knob *k)
{
	if (v->state == RULE_FOREIGN)
		return OWNER_FOREIGN;
	if (v->state == RULE_PINNED)
		return OWNER_PIN;
	return k->owned || v->ours ? OWNER_POLICY : OWNER_KERNEL;
}

/* The time of day of a moment on the monotonic clock. */
static uint64_t real_of(const struct telemetry *t, uint64_t mono_usec, struct act_time now)
{
	uint64_t ago = now.mono_usec > mono_usec ? now.mono_usec - mono_usec : 0;

	if (mono_usec == 0)
		return t->state.started_usec; /* in this state since the engine is there */
	return now.real_usec > ago ? now.real_usec - ago : 0;
}

static bool read_current(const struct snapshot *s, struct knob_id id, uint64_t *ret)
{
	const struct mthp_size *size;

	if (id.kind == KNOB_HIGH_FRACTION) {
		*ret = s->high_fraction;
		return s->has_high_fraction && snapshot_has(s, SOURCE_KNOBS);
	}
	size = mthp_by_order(&s->mthp, id.order);
	if (!size || size->pcp_enabled < 0)
		return false;
	*ret = (uint64_t)size->pcp_enabled;
	return true;
}

static void show_knob(struct state_knob *shown, const struct telemetry *t, const struct snapshot *s,
		      const struct engine_knob_view *v, const struct acting *acting,
		      struct act_time now)
{
	struct actor_knob k = {0};
	bool known = acting->actor && actor_knob_get(acting->actor, v->id, &k);
	uint64_t since = real_of(t, v->since_usec, now);

	/* two clocks never agree to the microsecond: the same moment keeps its time of day */
	if (shown->state == shown_state_of(v->state) &&
	    since - shown->since_usec + USEC_PER_SEC < 2 * USEC_PER_SEC)
		since = shown->since_usec;
	memset(shown, 0, sizeof(*shown));
	knob_name(v->id, t->page_bytes, shown->name);
	shown->has_value = read_current(s, v->id, &shown->value);
	shown->has_baseline = known;
	shown->baseline = k.baseline;
	shown->owner = owner_of(v, &k);
	shown->state = shown_state_of(v->state);
	shown->since_usec = since;
	copy_word(&shown->policy, v->policy);
	copy_word(&shown->rule, v->rule);
	(void)snprintf(shown->reason, sizeof(shown->reason), "%.*s", (int)STATE_WHY - 1,
		       k.state == KNOB_BLOCKED ? k.text
		       : v->why[0]             ? v->why
		       : k.owned               ? k.reason
		       : k.text[0]             ? k.text
					       : "");
}

static void refresh_knobs(struct telemetry *t, const struct snapshot *s,
			  const struct engine *engine, const struct acting *acting,
			  struct act_time now)
{
	struct engine_knob_view view;
	struct state_knob shown;
	uint32_t n = 0;

	for (size_t i = 0; i < engine_nr_knobs(engine) && n < STATE_KNOBS_MAX; i++, n++) {
		engine_knob_view(engine, i, &view);
		shown = t->state.knobs[n];
		show_knob(&shown, t, s, &view, acting, now);
		if (memcmp(&shown, &t->state.knobs[n], sizeof(shown)) != 0) {
			t->state.knobs[n] = shown;
			t->dirty = true;
		}
	}
	t->dirty = t->dirty || n != t->state.nr_knobs ||
		   t->state.drain_blocked != acting->drain_blocked;
	t->state.nr_knobs = n;
	t->state.drain_blocked = acting->drain_blocked;
}

static void count_refusals(struct telemetry *t, const struct actor *a)
{
	struct actor_knob k;
	uint64_t n = 0;

	for (unsigned i = 0; a && actor_knob_at(a, i, &k); i++)
		n += k.refusals;
	t->self.writes[WRITE_REFUSED] = n;
}

void telemetry_publish(struct telemetry *t, const struct snapshot *s, const struct engine *engine,
		       const struct acting *acting, const struct log *log, struct act_time now)
{
	struct error e = {0};

	refresh_knobs(t, s, engine, acting, now);
	count_refusals(t, acting->actor);
	if (!t->publish || !t->dirty)
		return;
	if (state_write(&t->state, t->root, now.real_usec, &t->scratch, &e) < 0) {
		if (!t->told)
			log_warning(log,
				    "%s; pcptunectl status cannot show this daemon's decisions",
				    e.text);
		t->told = true;
		return;
	}
	t->told = false;
	t->dirty = false;
}

void telemetry_policies(struct telemetry *t, const struct policies *p, const struct engine *engine)
{
	static const char *const words[] = {
		[POLICY_AWAKE] = "active",
		[POLICY_ASLEEP] = "sleeping",
		[POLICY_INVALID] = "invalid",
		[POLICY_MASKED] = "masked",
	};
	struct state_policy *list;
	struct policies_view v;
	uint32_t n = 0;

	for (size_t i = 0; policies_view(p, i, engine, &v); i++)
		n++;
	list = calloc(n ? n : 1, sizeof(*list));
	if (!list)
		return; /* the old list stays: it is only shown */
	t->self.policies_active = t->self.policies_sleeping = t->self.policies_invalid = 0;
	for (uint32_t i = 0; i < n && policies_view(p, i, engine, &v); i++) {
		copy_word(&list[i].name, v.name);
		copy_word(&list[i].state, words[v.state]);
		list[i].priority = v.priority;
		list[i].enforce = v.enforce;
		(void)snprintf(list[i].reason, sizeof(list[i].reason), "%s", v.why);
		t->self.policies_active += v.state == POLICY_AWAKE;
		t->self.policies_sleeping += v.state == POLICY_ASLEEP;
		t->self.policies_invalid += v.state == POLICY_INVALID;
	}
	free(t->state.policies);
	t->state.policies = list;
	t->state.nr_policies = n;
	t->dirty = true;
}

uint32_t telemetry_sources(const struct telemetry *t)
{
	return metrics_sources(&t->options);
}

int telemetry_render(struct telemetry *t, const struct snapshot *s, const struct sensor *sensor,
		     const struct engine *engine, enum exposition_format format,
		     struct act_time now, struct text *into)
{
	struct metrics_options options = t->options;
	struct metrics_input in = {
		.snapshot = s,
		.snapshot_age_seconds = (double)(now.mono_usec - s->taken_usec) / 1e6,
		.self = &t->self,
		.state = &t->state,
	};
	struct engine_rule_view rule;

	t->self.guard_trips = 0;
	for (size_t i = 0; i < engine_nr_rules(engine); i++) {
		engine_rule_view(engine, i, &rule);
		t->self.guard_trips += rule.trips;
	}
	(void)process_stats_read(&t->self.process);
	metrics_input_sources(&in, sensor);
	options.format = format;
	return metrics_render(&in, &options, into, NULL);
}
