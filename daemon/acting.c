/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "acting.h"

#include "base/format.h"
#include "message_ids.h"

#include <errno.h>
#include <inttypes.h>

#define FIELD_MAX 256U

/* The fields of one journal entry, in memory of the caller's. */
struct fields {
	char text[10][FIELD_MAX];
	const char *list[12];
	size_t n;
};

static void fields_start(struct fields *f, const char *message_id)
{
	f->n = 0;
	f->list[f->n++] = message_id;
	f->list[f->n] = NULL;
}

static void _printf_(2, 3) field(struct fields *f, const char *fmt, ...)
{
	char *text = f->text[f->n - 1];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, FIELD_MAX, fmt, ap);
	va_end(ap);
	f->list[f->n++] = text;
	f->list[f->n] = NULL;
}

static struct actor_options actor_options_of(const struct acting *a, const struct config *config)
{
	return (struct actor_options){
		.env = &a->env,
		.limits = {(uint32_t)config->writes_per_minute, (uint32_t)config->writes_per_day},
		.foreign_yield_usec = config->foreign_yield_usec,
	};
}

int acting_open(struct acting *a, const struct sysroot *root, const struct snapshot *s,
		const struct config *config, const struct log *log, struct act_time now,
		struct error *e)
{
	struct actor_options options;
	int r;

	acting_observe_only(a, root, s, log);
	r = act_env_check_live(&a->env, e);
	if (r < 0)
		return r;
	r = lock_take(&a->lock, &a->env, "pcptuned", now, NULL, e);
	if (r < 0)
		return r;
	options = actor_options_of(a, config);
	r = actor_open(&a->actor, &options, now, e);
	if (r < 0)
		lock_release(&a->lock);
	return r;
}

void acting_observe_only(struct acting *a, const struct sysroot *root, const struct snapshot *s,
			 const struct log *log)
{
	*a = (struct acting){
		.log = log,
		.env = act_env_from(root, s),
		.lock = INSTANCE_LOCK_NONE,
	};
}

void acting_configure(struct acting *a, const struct config *config)
{
	const struct actor_options options = actor_options_of(a, config);

	if (a->actor)
		actor_set_options(a->actor, &options);
}

void acting_close(struct acting *a, struct act_time now)
{
	a->drain = drain_free(a->drain, now);
	a->actor = actor_close(a->actor);
	lock_release(&a->lock);
}

static enum engine_report report_of(enum knob_state state)
{
	switch (state) {
	case KNOB_FREE:
	case KNOB_OURS:
		return ENGINE_REPORT_NONE;
	case KNOB_CHANGING:
	case KNOB_BLOCKED:
	case KNOB_MOMENT:
	case KNOB_WAITING:
		return ENGINE_REPORT_PENDING;
	case KNOB_FAILED:
		return ENGINE_REPORT_FAILED;
	case KNOB_FOREIGN:
		return ENGINE_REPORT_FOREIGN;
	case _KNOB_STATE_MAX:
		break;
	}
	return ENGINE_REPORT_NONE;
}

static void knob_input(const struct acting *a, struct engine_knob_input *in)
{
	struct actor_knob k;

	in->baseline = in->current;
	if (!a->actor || !actor_knob_get(a->actor, in->id, &k))
		return;
	in->baseline = k.baseline;
	in->report = report_of(k.state);
	in->why = k.state == KNOB_FOREIGN  ? "another program wrote it"
		  : k.state == KNOB_FAILED ? error_name(k.error)
					   : NULL;
}

size_t acting_engine_input(const struct acting *a, const struct snapshot *s,
			   struct engine_knob_input *knobs, struct engine_drain_input *drain)
{
	const struct drain_options trim = {.mode = DRAIN_TRIM};
	struct error why = {0};
	size_t n = 0;

	if (s->has_high_fraction || !snapshot_has(s, SOURCE_KNOBS))
		knobs[n++] = (struct engine_knob_input){
			.id = {.kind = KNOB_HIGH_FRACTION},
			.known = s->has_high_fraction && snapshot_has(s, SOURCE_KNOBS),
			.current = s->high_fraction,
			.controllable = true,
		};
	for (unsigned i = 0; i < s->mthp.nr_sizes && n < KNOBS_MAX; i++) {
		const struct mthp_size *size = &s->mthp.size[i];

		if (!mthp_has_switch(size))
			continue;
		knobs[n++] = (struct engine_knob_input){
			.id = {.kind = KNOB_PCP_ENABLED, .order = size->order},
			.known = size->pcp_enabled >= 0,
			.current = size->pcp_enabled > 0,
			.controllable = size->controllable,
		};
	}
	for (size_t i = 0; i < n; i++)
		knob_input(a, &knobs[i]);

	*drain = (struct engine_drain_input){
		.trim = drain_check(s, &trim, &why) == 0,
		.squeeze = s->has_high_fraction,
		.running = a->drain != NULL || a->after_change != ENGINE_DRAIN_NONE,
		.not_before_usec = a->no_drain_before_usec,
	};
	drain->squeeze = drain->squeeze && drain->trim;
	if (!drain->trim)
		drain->why_not = why.code == -EPERM
					 ? "CPUs are isolated, and a drain would wake them"
					 : "this kernel has no drain that works by itself";
	return n;
}

void acting_observe(struct acting *a, const struct snapshot *s, struct act_time now)
{
	if (a->actor)
		actor_observe(a->actor, s, now);
}

static void tell_decision(const struct acting *a, const struct decision *d)
{
	char name[KNOB_NAME_MAX];
	struct fields f;

	fields_start(&f, MSG_DECISION);
	field(&f, "PCPTUNE_POLICY=%s", d->policy);
	field(&f, "PCPTUNE_RULE=%s", d->rule);
	field(&f, "PCPTUNE_REASON=%s", d->reason);
	if (d->kind == DECISION_DRAIN) {
		field(&f, "PCPTUNE_DRAIN=%s", engine_drain_name(d->drain));
		log_fields(a->log, LOG_NOTICE, f.list, "would %s the lists now (%s)",
			   engine_drain_name(d->drain), d->reason);
		return;
	}
	knob_name(d->knob, a->env.page_bytes, name);
	field(&f, "PCPTUNE_KNOB=%s", name);
	field(&f, "PCPTUNE_OLD=%" PRIu64, d->old_value);
	field(&f, "PCPTUNE_NEW=%" PRIu64, d->value);
	log_fields(a->log, LOG_NOTICE, f.list, "would change %s: %" PRIu64 " -> %" PRIu64 " (%s)",
		   name, d->old_value, d->value, d->reason);
}

/* Begins it, and tells so. */
static int start_drain(struct acting *a, const struct drain_options *o, struct act_time now,
		       struct error *e)
{
	struct fields f;
	int r;

	fields_start(&f, MSG_DRAIN_STARTED);
	field(&f, "PCPTUNE_DRAIN=%s", drain_mode_name(o->mode));
	field(&f, "PCPTUNE_REASON=%s", o->reason);
	r = drain_start(&a->drain, &a->env, a->actor, o, now, e);
	if (r < 0) {
		log_fields(a->log, LOG_WARNING, f.list, "cannot %s the lists (%s): %s",
			   drain_mode_name(o->mode), o->reason, e->text);
		return r;
	}
	a->drain_told = false;
	a->drains_begun++;
	(void)snprintf(a->drain_reason, sizeof(a->drain_reason), "%s", o->reason);
	log_fields(a->log, LOG_NOTICE, f.list, "%s: giving parked pages back (%s)",
		   drain_mode_name(o->mode), o->reason);
	return 0;
}

static void drain_begin(struct acting *a, enum engine_drain what, const char *reason,
			struct act_time now)
{
	const struct drain_options o = {
		.mode = what == ENGINE_DRAIN_SQUEEZE ? DRAIN_SQUEEZE : DRAIN_TRIM,
		.reason = reason,
	};
	struct error e = {0};

	if (a->drain || what == ENGINE_DRAIN_NONE)
		return;
	a->no_drain_before_usec = now.mono_usec + AUTOMATIC_DRAIN_PAUSE_USEC;
	(void)start_drain(a, &o, now, &e);
}

int acting_drain(struct acting *a, const struct drain_options *o, struct act_time now,
		 acting_drain_over over, void *user, struct error *e)
{
	int r;

	if (a->drain)
		return error_set(e, -EBUSY, "a drain is under way: try again when it has ended");
	r = start_drain(a, o, now, e);
	if (r < 0)
		return r;
	a->drain_over = over;
	a->drain_user = user;
	return 0;
}

int acting_open_for_a_while(struct acting *a, const struct actor_options *o, struct act_time now,
			    struct error *e)
{
	int r = actor_open(&a->actor, o, now, e);

	a->for_a_while = r == 0;
	return r;
}

void acting_close_for_a_while(struct acting *a)
{
	if (!a->for_a_while)
		return;
	a->actor = actor_close(a->actor);
	a->for_a_while = false;
}

static void apply_value(struct acting *a, const struct decision *d, struct act_time now)
{
	const struct actor_request req = {.id = d->knob, .value = d->value, .reason = d->reason};
	struct error e = {0};

	/* a refusal is an event of the actor's; a limit or a pause makes the engine ask again */
	if (actor_set(a->actor, &req, now, &e) < 0)
		log_debug(a->log, "%s", e.text);
	if (d->drain == ENGINE_DRAIN_NONE)
		return;
	a->after_change = d->drain;
	a->after_knob = d->knob;
	(void)snprintf(a->after_reason, sizeof(a->after_reason), "%s", d->reason);
}

void acting_apply(struct acting *a, const struct snapshot *s, const struct decision *decisions,
		  size_t n, struct act_time now)
{
	(void)s;
	for (size_t i = 0; i < n; i++) {
		const struct decision *d = &decisions[i];

		if (!d->write || !a->actor)
			tell_decision(a, d);
		else if (d->kind == DECISION_DRAIN)
			drain_begin(a, d->drain, d->reason, now);
		else
			apply_value(a, d, now);
	}
	acting_dispatch(a, now);
}

static const char *message_id_of(enum actor_event_kind kind)
{
	static const char *const ids[] = {
		[ACTOR_CHANGED] = MSG_CHANGED,         [ACTOR_RESTORED] = MSG_RESTORED,
		[ACTOR_REFUSED] = MSG_REFUSED,         [ACTOR_ACCEPTED] = MSG_ACCEPTED,
		[ACTOR_BLOCKED] = MSG_BLOCKED,         [ACTOR_UNBLOCKED] = MSG_UNBLOCKED,
		[ACTOR_FOREIGN] = MSG_FOREIGN,         [ACTOR_OURS_AGAIN] = MSG_OURS_AGAIN,
		[ACTOR_LIMITED] = MSG_LIMITED,         [ACTOR_UNLIMITED] = MSG_UNLIMITED,
		[ACTOR_RECOVERED] = MSG_RECOVERED,     [ACTOR_NOTE] = MSG_NOTE,
		[ACTOR_RECORD_LOST] = MSG_RECORD_LOST,
	};
	_Static_assert(ARRAY_SIZE(ids) == _ACTOR_EVENT_MAX, "an id for every event");

	return ids[kind];
}

static int level_of(enum actor_event_kind kind)
{
	switch (kind) {
	case ACTOR_REFUSED:
	case ACTOR_BLOCKED:
	case ACTOR_FOREIGN:
	case ACTOR_LIMITED:
	case ACTOR_NOTE:
		return LOG_WARNING;
	case ACTOR_RECORD_LOST:
		return LOG_ERR;
	default:
		return LOG_NOTICE;
	}
}

static void tell_event(const struct acting *a, const struct actor_event *ev)
{
	char name[KNOB_NAME_MAX];
	struct fields f;
	int level = ev->transient && level_of(ev->kind) == LOG_NOTICE ? LOG_DEBUG
								      : level_of(ev->kind);

	knob_name(ev->id, a->env.page_bytes, name);
	fields_start(&f, message_id_of(ev->kind));
	field(&f, "PCPTUNE_KNOB=%s", name);
	field(&f, "PCPTUNE_OLD=%" PRIu64, ev->old_value);
	field(&f, "PCPTUNE_NEW=%" PRIu64, ev->new_value);
	field(&f, "PCPTUNE_RESULT=%s", actor_event_name(ev->kind));
	field(&f, "PCPTUNE_REASON=%s", ev->reason);
	if (ev->parked_known) {
		field(&f, "PCPTUNE_PAGES_BEFORE=%" PRIu64, ev->parked_before);
		field(&f, "PCPTUNE_PAGES_AFTER=%" PRIu64, ev->parked_after);
	}
	if (ev->error)
		field(&f, "ERRNO=%d", -ev->error);
	if (ev->reason[0])
		log_fields(a->log, level, f.list, "%s (%s)", ev->text, ev->reason);
	else
		log_fields(a->log, level, f.list, "%s", ev->text);
}

/* The change that a drain waits for is in place, or will not come. */
static void after_event(struct acting *a, const struct actor_event *ev, struct act_time now)
{
	enum engine_drain what = a->after_change;

	if (what == ENGINE_DRAIN_NONE || !knob_id_eq(ev->id, a->after_knob))
		return;
	if (ev->kind == ACTOR_CHANGED || ev->kind == ACTOR_RESTORED) {
		a->after_change = ENGINE_DRAIN_NONE;
		drain_begin(a, what, a->after_reason, now);
	} else if (ev->kind == ACTOR_REFUSED || ev->kind == ACTOR_FOREIGN) {
		a->after_change = ENGINE_DRAIN_NONE;
	}
}

static void tell_drain_end(struct acting *a, const struct drain_report *r)
{
	_cleanup_(text_free) struct text text = {0};
	char *line, *rest = NULL;
	struct fields f;

	if (a->listener.on_drain)
		a->listener.on_drain(a->listener.user, r, a->drain_reason);
	if (a->drain_over)
		a->drain_over(a->drain_user, r);
	a->drain_over = NULL;
	fields_start(&f, MSG_DRAIN_ENDED);
	field(&f, "PCPTUNE_DRAIN=%s", drain_mode_name(r->mode));
	field(&f, "PCPTUNE_PAGES_BEFORE=%" PRIu64, r->pages_before);
	field(&f, "PCPTUNE_PAGES_AFTER=%" PRIu64, r->pages_after);
	field(&f, "PCPTUNE_PASSES=%" PRIu32, r->passes);
	field(&f, "PCPTUNE_RESULT=%s", drain_end_name(r->end));
	drain_report_print(r, a->env.page_bytes, &text);
	if (text.failed || !text.data)
		return;
	for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		log_fields(a->log, r->error ? LOG_WARNING : LOG_NOTICE, f.list, "%s", line);
}

static void dispatch_drain(struct acting *a, struct act_time now)
{
	const struct drain_report *r;
	const char *const id[] = {MSG_DRAIN_BLOCKED, NULL};

	if (!a->drain)
		return;
	drain_dispatch(a->drain, now);
	r = drain_report(a->drain);
	if (r->blocked && !a->drain_blocked)
		log_fields(
			a->log, LOG_WARNING, id,
			"drain blocked: a pass over all CPUs has not come back, so some CPU runs a task "
			"that nothing interrupts (a real-time loop?); everything else goes on");
	a->drain_blocked = r->blocked;
	if (!drain_over(a->drain))
		return;
	if (!a->drain_told) {
		a->drain_told = true;
		a->no_drain_before_usec = now.mono_usec + AUTOMATIC_DRAIN_PAUSE_USEC;
		tell_drain_end(a, r);
	}
	/* one that hangs is kept, so that no other begins until its pass has come back */
	if (r->state == DRAIN_DONE)
		a->drain = drain_free(a->drain, now);
}

void acting_dispatch(struct acting *a, struct act_time now)
{
	struct actor_event ev;

	if (!a->actor)
		return;
	actor_dispatch(a->actor, now);
	dispatch_drain(a, now);
	while (actor_event_take(a->actor, &ev)) {
		if (a->listener.on_event)
			a->listener.on_event(a->listener.user, &ev);
		tell_event(a, &ev);
		after_event(a, &ev, now);
	}
}

uint64_t acting_next_usec(const struct acting *a)
{
	uint64_t next = a->actor ? actor_next_usec(a->actor) : USEC_INFINITY;

	return a->drain ? MIN_OF(next, drain_next_usec(a->drain)) : next;
}

void acting_take_hands_off(struct acting *a, struct act_time now)
{
	acting_stop(a, true, now);
}

void acting_resume(struct acting *a)
{
	if (a->actor)
		actor_resume(a->actor);
}

void acting_pause(struct acting *a, bool paused, struct act_time now)
{
	if (a->actor)
		actor_pause(a->actor, paused, now);
}

void acting_stop(struct acting *a, bool restore, struct act_time now)
{
	a->after_change = ENGINE_DRAIN_NONE;
	if (a->drain)
		drain_stop(a->drain, now);
	if (a->actor && restore)
		actor_restore_all(a->actor, now);
	acting_dispatch(a, now);
}

bool acting_stopped(const struct acting *a, bool restore)
{
	if (!a->actor)
		return true;
	if (a->drain && !drain_over(a->drain))
		return false;
	return restore ? actor_unrestored(a->actor, NULL) == 0 : !actor_busy(a->actor);
}
