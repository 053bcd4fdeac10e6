/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/actor.h"

#include "act/actor-priv.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/eventfd.h>

const char *knob_state_name(enum knob_state s)
{
	static const char *const names[] = {
		[KNOB_FREE] = "free",         [KNOB_OURS] = "ours",
		[KNOB_CHANGING] = "changing", [KNOB_BLOCKED] = "blocked",
		[KNOB_FAILED] = "failed",     [KNOB_FOREIGN] = "foreign",
		[KNOB_MOMENT] = "moment",     [KNOB_WAITING] = "waiting",
	};
	_Static_assert(ARRAY_SIZE(names) == _KNOB_STATE_MAX, "every state has a name");

	return names[s];
}

const char *actor_event_name(enum actor_event_kind k)
{
	static const char *const names[] = {
		[ACTOR_CHANGED] = "changed",         [ACTOR_RESTORED] = "restored",
		[ACTOR_REFUSED] = "refused",         [ACTOR_ACCEPTED] = "accepted",
		[ACTOR_BLOCKED] = "blocked",         [ACTOR_UNBLOCKED] = "unblocked",
		[ACTOR_FOREIGN] = "foreign",         [ACTOR_OURS_AGAIN] = "ours-again",
		[ACTOR_LIMITED] = "limited",         [ACTOR_UNLIMITED] = "unlimited",
		[ACTOR_RECOVERED] = "recovered",     [ACTOR_NOTE] = "note",
		[ACTOR_RECORD_LOST] = "record-lost",
	};
	_Static_assert(ARRAY_SIZE(names) == _ACTOR_EVENT_MAX, "every event has a name");

	return names[k];
}

static void copy_reason(char *to, const char *from)
{
	(void)snprintf(to, REASON_MAX, "%s", from ? from : "");
}

struct slot *slot_find(const struct actor *a, struct knob_id id)
{
	for (unsigned i = 0; i < a->nr_slots; i++)
		if (knob_id_eq(a->slot[i].id, id))
			return (struct slot *)&a->slot[i];
	return NULL;
}

struct slot *slot_get(struct actor *a, struct knob_id id)
{
	struct slot *s = slot_find(a, id);

	if (s)
		return s;
	if (a->nr_slots == RECORD_KNOBS_MAX)
		return NULL;
	s = &a->slot[a->nr_slots++];
	*s = (struct slot){.id = id, .yield_usec = USEC_INFINITY};
	return s;
}

void actor_tell(struct actor *a, enum actor_event_kind kind, const struct slot *s,
		uint64_t old_value, uint64_t new_value, const char *reason, const char *text,
		struct act_time now)
{
	struct actor_event *ev;

	if (a->nr_events == EVENTS_MAX) {
		a->first_event = (a->first_event + 1) % EVENTS_MAX;
		a->nr_events--;
	}
	ev = &a->event[(a->first_event + a->nr_events++) % EVENTS_MAX];
	*ev = (struct actor_event){
		.kind = kind,
		.id = s->id,
		.old_value = old_value,
		.new_value = new_value,
		.error = s->error,
		.transient = s->purpose == PURPOSE_MOMENT || s->purpose == PURPOSE_UNDO,
		.time = now,
	};
	copy_reason(ev->reason, reason);
	(void)snprintf(ev->text, sizeof(ev->text), "%s", text ? text : s->why.text);
}

bool actor_event_take(struct actor *a, struct actor_event *ret)
{
	if (a->nr_events == 0)
		return false;
	*ret = a->event[a->first_event];
	a->first_event = (a->first_event + 1) % EVENTS_MAX;
	a->nr_events--;
	return true;
}

int actor_store(struct actor *a, struct act_time now, struct error *e)
{
	struct slot nobody = {.id = {.kind = KNOB_HIGH_FRACTION}};
	struct error why = {0};
	int r = record_store(&a->record, a->o.env, &why);

	if (e)
		*e = why;
	if (r < 0 && !a->record_lost) {
		nobody.error = r;
		actor_tell(a, ACTOR_RECORD_LOST, &nobody, 0, 0, "", why.text, now);
	}
	a->record_lost = r < 0;
	a->record_retry_usec = now.mono_usec + PAUSE_MIN_USEC;
	return r;
}

/* The time runs on across restarts: it counts from when the record says. */
static uint64_t yield_until(const struct actor *a, const struct record_knob *k, struct act_time now)
{
	uint64_t passed = now.real_usec > k->since_usec ? now.real_usec - k->since_usec : 0;

	if (a->o.foreign_yield_usec == 0)
		return USEC_INFINITY;
	return now.mono_usec + a->o.foreign_yield_usec - MIN_OF(passed, a->o.foreign_yield_usec);
}

void slot_give_up(struct actor *a, struct slot *s, uint64_t theirs, struct act_time now)
{
	struct record_knob *k = record_find(&a->record, s->id);
	char name[KNOB_NAME_MAX];

	if (!k->foreign)
		k->since_usec = now.real_usec;
	k->foreign = true;
	k->transient = false;
	k->before = 0;
	s->value = theirs;
	s->has_value = true;
	s->has_wanted = s->restoring = s->refused_told = false;
	s->moment = MOMENT_NONE;
	s->error = 0;
	s->check_left = 0;
	s->yield_usec = yield_until(a, k, now);
	(void)error_set(&s->why, -EPERM,
			"%s: has %" PRIu64 " where pcptune had written %" PRIu64
			": somebody else's, left alone until \"pcptunectl adopt %s\"",
			knob_name(s->id, a->o.env->page_bytes, name), theirs, k->intended, name);
	actor_tell(a, ACTOR_FOREIGN, s, k->intended, theirs, k->reason, NULL, now);
	(void)actor_store(a, now, NULL);
}

static enum knob_state slot_state(const struct actor *a, const struct slot *s)
{
	const struct record_knob *k = record_find((struct record *)&a->record, s->id);

	if (a->waiting)
		return KNOB_WAITING;
	if (s->job)
		return s->blocked_told ? KNOB_BLOCKED : KNOB_CHANGING;
	if (s->error < 0)
		return KNOB_FAILED;
	if (s->moment == MOMENT_IN_PLACE)
		return KNOB_MOMENT;
	if (k && k->foreign)
		return KNOB_FOREIGN;
	return k ? KNOB_OURS : KNOB_FREE;
}

static void note_state(struct actor *a, struct slot *s, struct act_time now)
{
	enum knob_state state = slot_state(a, s);

	if (state != s->last_state || s->since_usec == 0)
		s->since_usec = now.mono_usec;
	s->last_state = state;
}

static void run_job(struct worker *w)
{
	struct job *j = (struct job *)w;
	uint64_t begin = act_time_now().mono_usec;

	(void)knob_apply(&j->w.env, j->id, j->wanted, &j->expected, j->flags, &j->report);
	j->took_usec = act_time_now().mono_usec - begin;
}

static bool putting_back(enum purpose p)
{
	return p == PURPOSE_UNDO || p == PURPOSE_RESTORE;
}

/* The kernel, or the record, said no. What the record says is settled by the caller. */
static void refuse(struct actor *a, struct slot *s, const struct knob_report *rep,
		   const struct error *record_why, const char *reason, struct act_time now)
{
	_cleanup_(text_free) struct text text = {0};
	bool back = putting_back(s->purpose), told = s->refused_told && s->error == rep->error;
	uint64_t least = back ? UNDO_PAUSE_MIN_USEC : PAUSE_MIN_USEC;
	uint64_t most = back ? UNDO_PAUSE_MAX_USEC : PAUSE_MAX_USEC;

	s->pause_usec = s->error < 0 ? MIN_OF(s->pause_usec * 2, most) : least;
	s->pause_usec = MAX_OF(s->pause_usec, least);
	s->retry_usec = now.mono_usec + s->pause_usec;
	s->error = rep->error;
	s->refusals++;
	s->refused_told = true;
	if (record_why)
		s->why = *record_why;
	else {
		knob_report_sentence(a->o.env, rep, &text);
		(void)error_set(&s->why, rep->error, "%s", text_str(&text));
	}
	if (!told)
		actor_tell(a, ACTOR_REFUSED, s, rep->before, rep->wanted, reason, NULL, now);
	if (s->purpose == PURPOSE_MOMENT) { /* is not tried again */
		s->moment = s->moment == MOMENT_BEGINNING ? MOMENT_REFUSED : MOMENT_NONE;
		s->refused_told = false;
		s->error = 0;
	}
}

/* The last try went well, or what was refused is not wanted any more. */
static void accepted(struct actor *a, struct slot *s, const char *how, struct act_time now)
{
	char name[KNOB_NAME_MAX], text[128];
	bool told = s->refused_told;

	s->error = 0;
	s->refused_told = false;
	s->pause_usec = 0;
	if (!told)
		return;
	(void)snprintf(text, sizeof(text), "%s: %s", knob_name(s->id, a->o.env->page_bytes, name),
		       how);
	actor_tell(a, ACTOR_ACCEPTED, s, s->value, s->value, s->reason, text, now);
}

static const char *slot_reason(const struct slot *s, enum purpose p, const struct record_knob *k)
{
	switch (p) {
	case PURPOSE_SET:
		return s->reason;
	case PURPOSE_MOMENT:
		return s->moment_reason;
	case PURPOSE_RESTORE: /* why it was changed is no reason for putting it back */
		return "back to what it was before pcptune";
	case PURPOSE_UNDO:
	case PURPOSE_NONE:
		break;
	}
	return k ? k->reason : "";
}

/* The fraction shows in the lists afterwards, and an order that went off is not on them any more.
 */
static void begin_check(struct slot *s, const struct knob_report *rep)
{
	bool shows = s->id.kind == KNOB_HIGH_FRACTION || rep->after == 0;

	if (s->purpose != PURPOSE_MOMENT && rep->written)
		s->check_left = shows ? CHECK_TICKS : 0;
	else if (s->id.kind == KNOB_HIGH_FRACTION)
		s->check_left = 0;
}

/* A value is where it should be: what the record and the slot say from now on. */
static void succeed(struct actor *a, struct slot *s, const struct knob_report *rep,
		    struct act_time now)
{
	struct record_knob *k = record_find(&a->record, s->id);
	enum actor_event_kind kind = ACTOR_CHANGED;
	_cleanup_(text_free) struct text text = {0};
	char reason[REASON_MAX];

	copy_reason(reason, slot_reason(s, s->purpose, k));
	s->value = rep->after;
	s->has_value = true;
	k->now = k->intended = rep->after;
	switch (s->purpose) {
	case PURPOSE_MOMENT:
		if (s->moment == MOMENT_BEGINNING) /* else its end was asked for meanwhile */
			s->moment = MOMENT_IN_PLACE;
		break;
	case PURPOSE_UNDO:
		s->moment = MOMENT_NONE;
		k->transient = false;
		k->before = 0;
		break;
	case PURPOSE_RESTORE:
		s->moment = MOMENT_NONE;
		k->transient = false;
		s->restoring = false;
		kind = ACTOR_RESTORED;
		break;
	case PURPOSE_SET:
		if (s->wanted == rep->after)
			s->has_wanted = false;
		kind = rep->after == k->baseline ? ACTOR_RESTORED : ACTOR_CHANGED;
		break;
	case PURPOSE_NONE:
		break;
	}
	if (!k->transient && !k->foreign && k->now == k->baseline)
		record_drop(&a->record, s->id);
	if (rep->written)
		(void)actor_store(a, now, NULL);
	accepted(a, s, "the kernel takes it again", now);
	s->why = (struct error){0};
	knob_report_sentence(a->o.env, rep, &text);
	if (rep->written || kind == ACTOR_RESTORED) {
		struct actor_event *ev;

		actor_tell(a, kind, s, rep->before, rep->after, reason, text_str(&text), now);
		ev = &a->event[(a->first_event + a->nr_events - 1) % EVENTS_MAX];
		ev->ledger_seq = rep->written ? ledger_end(&a->ledger) - 1 : 0;
		ev->parked_known = rep->parked_known;
		ev->parked_before = rep->parked_before;
		ev->parked_after = rep->parked_after;
	}
	begin_check(s, rep);
}

static void fail(struct actor *a, struct slot *s, const struct knob_report *rep,
		 struct act_time now)
{
	struct record_knob *k = record_find(&a->record, s->id);
	bool back = putting_back(s->purpose);
	char reason[REASON_MAX];

	copy_reason(reason, slot_reason(s, s->purpose, k));
	if (rep->after_known) {
		s->value = k->now = rep->after;
		if (!back)
			k->intended = k->now;
		if (s->purpose == PURPOSE_MOMENT && rep->after == k->before) {
			k->transient = false;
			k->before = 0;
		}
		if (!k->transient && !k->foreign && k->now == k->baseline)
			record_drop(&a->record, s->id);
	}
	refuse(a, s, rep, NULL, reason, now);
	/* Taken in part, or nobody knows: then there is something to undo. */
	k = record_find(&a->record, s->id);
	if (s->purpose == PURPOSE_MOMENT && k && k->transient)
		s->moment = MOMENT_ENDING;
	(void)actor_store(a, now, NULL);
}

/* Somebody was quicker between our look and our write: nothing of ours is in there. */
static void overtaken(struct actor *a, struct slot *s, const struct knob_report *rep,
		      struct act_time now)
{
	struct record_knob *k = record_find(&a->record, s->id);

	if (k->now != k->baseline || k->foreign) {
		k->intended = k->now;
		slot_give_up(a, s, rep->before, now);
		return;
	}
	record_drop(&a->record, s->id);
	s->value = rep->before;
	if (s->purpose == PURPOSE_MOMENT && s->moment != MOMENT_BEGINNING)
		s->moment = MOMENT_NONE;
	(void)actor_store(a, now, NULL);
}

static void note_ledger(struct actor *a, const struct slot *s, const struct job *j,
			struct act_time now)
{
	struct ledger_entry entry = {
		.time = {.mono_usec = now.mono_usec, .real_usec = now.real_usec},
		.took_usec = j->took_usec,
		.id = s->id,
		.old_value = j->report.before,
		.new_value = j->report.wanted,
		.transient = s->purpose == PURPOSE_MOMENT || s->purpose == PURPOSE_UNDO,
		.restore = putting_back(s->purpose),
		.report = j->report,
	};

	copy_reason(entry.reason, slot_reason(s, s->purpose, record_find(&a->record, s->id)));
	ledger_add(&a->ledger, &entry);
}

static void finish(struct actor *a, struct slot *s, struct act_time now)
{
	struct knob_report rep = s->job->report;

	if (rep.written) {
		s->writes++;
		s->written_usec = now.mono_usec;
		note_ledger(a, s, s->job, now);
	}
	s->job = worker_unref(&s->job->w);
	if (s->blocked_told) {
		s->blocked_told = false;
		actor_tell(a, ACTOR_UNBLOCKED, s, rep.before, rep.after, s->reason,
			   "the write that hung has returned", now);
	}
	if (rep.error == -ESTALE)
		overtaken(a, s, &rep, now);
	else if (rep.error == 0 && rep.outcome != KNOB_ADJUSTED)
		succeed(a, s, &rep, now);
	else if (rep.error == 0 && rep.after != rep.before)
		slot_give_up(a, s, rep.after, now);
	else {
		rep.error = rep.error ? rep.error : -EIO;
		fail(a, s, &rep, now);
	}
	s->purpose = PURPOSE_NONE;
}

static bool over_limit(struct actor *a, struct slot *s, struct act_time now)
{
	const struct actor_limits *l = &a->o.limits;
	uint64_t t = now.mono_usec;
	uint64_t minute = t > USEC_PER_MINUTE ? t - USEC_PER_MINUTE : 0;
	uint64_t day = t > USEC_PER_DAY ? t - USEC_PER_DAY : 0;
	uint32_t in_minute = record_writes_since(&a->record, minute);
	uint32_t in_day = record_writes_since(&a->record, day);
	bool over_minute = l->writes_per_minute && in_minute >= l->writes_per_minute;
	bool over_day = l->writes_per_day && in_day >= MIN_OF(l->writes_per_day, RECORD_WRITES_MAX);

	if (!over_minute && !over_day) {
		if (a->limited_told)
			actor_tell(a, ACTOR_UNLIMITED, s, s->value, s->wanted, s->reason,
				   "writes are within the limits again", now);
		a->limited_told = false;
		return false;
	}
	(void)error_set(&s->why, -EDQUOT, "%s=%u is reached: no change until there is room again",
			over_minute ? "WritesPerMinute" : "WritesPerDay",
			over_minute ? l->writes_per_minute : l->writes_per_day);
	if (!a->limited_told)
		actor_tell(a, ACTOR_LIMITED, s, s->value, s->wanted, s->reason, NULL, now);
	a->limited_told = true;
	return true;
}

static bool value_is_ours(const struct record_knob *k, uint64_t v)
{
	return v == k->now || v == k->intended || (k->transient && v == k->before);
}

static int launch(struct actor *a, struct slot *s, uint64_t target, struct act_time now)
{
	struct job *j = calloc(1, sizeof(*j));
	int keep, r;

	if (!j)
		return -ENOMEM;
	j->id = s->id;
	j->wanted = target;
	j->expected = s->value;
	j->flags = s->purpose == PURPOSE_MOMENT && s->moment_force ? KNOB_FORCE : 0;
	keep = inflight_open(a->o.env, false);
	r = keep;
	if (keep >= 0)
		r = worker_start(&j->w, a->o.env, run_job, a->fd, keep);
	if (r < 0) {
		free(j);
		return r;
	}
	s->job = j;
	s->started = now;
	return 0;
}

static void refuse_unwritten(struct actor *a, struct slot *s, enum knob_stage stage, int error,
			     uint64_t target, const struct error *why, struct act_time now)
{
	struct record_knob *k = record_find(&a->record, s->id);
	struct knob_report rep = {
		.id = s->id,
		.outcome = KNOB_REFUSED,
		.stage = stage,
		.error = error,
		.before = s->value,
		.wanted = target,
		.after = s->value,
	};

	refuse(a, s, &rep, why, slot_reason(s, s->purpose, k), now);
	s->purpose = PURPOSE_NONE;
}

/* The record first. On failure it is as before, and so is the kernel. */
static int record_intent(struct actor *a, struct slot *s, uint64_t target, struct act_time now,
			 struct error *why)
{
	struct record_knob *k = record_find(&a->record, s->id), old = {0};
	bool fresh = !k;
	int r;

	if (fresh) {
		k = record_add(&a->record, s->id);
		if (!k)
			return error_set(why, -ENOSPC, "more knobs than the record has room for");
		k->baseline = s->value;
	}
	old = *k;
	k->now = s->value;
	k->intended = target;
	k->since_usec = now.real_usec;
	if (s->purpose == PURPOSE_MOMENT) {
		k->transient = true;
		k->before = s->value;
	}
	if (s->purpose == PURPOSE_RESTORE && k->transient)
		k->before = k->baseline;
	if (s->purpose == PURPOSE_SET || fresh)
		copy_reason(k->reason, slot_reason(s, s->purpose, k));
	record_note_write(&a->record, now.mono_usec);
	r = actor_store(a, now, why);
	if (r == 0 || putting_back(s->purpose))
		return 0; /* the old record leads back as well: better undone than recorded */
	a->record.nr_writes--;
	*k = old;
	if (fresh)
		record_drop(&a->record, s->id);
	return r;
}

static void start(struct actor *a, struct slot *s, enum purpose purpose, uint64_t target,
		  struct act_time now)
{
	struct record_knob *k = record_find(&a->record, s->id);
	struct error why = {0};
	uint64_t v;
	int r;

	s->purpose = purpose;
	r = knob_read(a->o.env, s->id, &v);
	if (r < 0) {
		refuse_unwritten(a, s, KNOB_STAGE_READ, r, target, NULL, now);
		return;
	}
	if (k && !(k->foreign && !k->transient) && !value_is_ours(k, v)) {
		s->purpose = PURPOSE_NONE;
		slot_give_up(a, s, v, now);
		return;
	}
	s->value = v;
	s->has_value = true;
	if (v == target && !(purpose == PURPOSE_MOMENT) && k) {
		struct knob_report rep = {.id = s->id, .before = v, .wanted = v, .after = v};

		succeed(a, s, &rep, now);
		(void)actor_store(a, now, NULL);
		s->purpose = PURPOSE_NONE;
		return;
	}
	if (v == target && purpose == PURPOSE_SET) { /* it has it of its own */
		s->has_wanted = false;
		s->purpose = PURPOSE_NONE;
		accepted(a, s, "has the value that was asked for", now);
		return;
	}
	r = record_intent(a, s, target, now, &why);
	if (r < 0) {
		refuse_unwritten(a, s, KNOB_STAGE_RECORD, r, target, &why, now);
		return;
	}
	r = launch(a, s, target, now);
	if (r < 0) {
		struct knob_report rep = {
			.id = s->id,
			.outcome = KNOB_REFUSED,
			.stage = KNOB_STAGE_WRITE,
			.error = r,
			.after_known = true,
			.before = v,
			.wanted = target,
			.after = v,
		};

		fail(a, s, &rep, now);
		s->purpose = PURPOSE_NONE;
	}
}

/* What is to be done about a knob without a write under way, and where to. */
static enum purpose next_purpose(const struct actor *a, const struct slot *s, uint64_t *ret_target)
{
	const struct record_knob *k = record_find((struct record *)&a->record, s->id);
	bool foreign = k && k->foreign;

	if (a->waiting || s->job)
		return PURPOSE_NONE;
	if (k && s->restoring && !foreign) {
		*ret_target = k->baseline;
		return PURPOSE_RESTORE;
	}
	if (k && k->transient && s->moment == MOMENT_ENDING) {
		*ret_target = k->before;
		return PURPOSE_UNDO;
	}
	if (s->moment == MOMENT_BEGINNING) {
		*ret_target = s->moment_value;
		return PURPOSE_MOMENT;
	}
	if (s->has_wanted && s->moment == MOMENT_NONE && !foreign && !a->restoring && !a->paused) {
		*ret_target = s->wanted;
		return PURPOSE_SET;
	}
	return PURPOSE_NONE;
}

void slot_step(struct actor *a, struct slot *s, struct act_time now)
{
	for (int turns = 0; turns < 4; turns++) {
		uint64_t target;
		enum purpose p = next_purpose(a, s, &target);

		if (p == PURPOSE_NONE || (s->error < 0 && now.mono_usec < s->retry_usec))
			break;
		if (p == PURPOSE_SET && over_limit(a, s, now)) {
			s->has_wanted = false; /* the next tick decides anew */
			break;
		}
		start(a, s, p, target, now);
		if (s->job)
			break;
	}
	note_state(a, s, now);
}

int actor_open(struct actor **ret, const struct actor_options *o, struct act_time now,
	       struct error *e)
{
	_cleanup_(actor_closep) struct actor *a = NULL;
	int r;

	r = act_env_check_live(o->env, e);
	if (r < 0)
		return r;
	a = calloc(1, sizeof(*a));
	if (!a)
		return error_set(e, -ENOMEM, "out of memory");
	a->o = *o;
	a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->fd < 0)
		return error_set(e, -errno, "cannot make an eventfd: %s", error_name(errno));
	r = record_load(&a->record, o->env, NULL, e);
	if (r < 0)
		return r;
	actor_recover(a, now);
	*ret = TAKE_PTR(a);
	return 0;
}

struct actor *actor_close(struct actor *a)
{
	if (!a)
		return NULL;
	if (a->record_lost)
		(void)actor_store(a, act_time_now(), NULL);
	for (unsigned i = 0; i < a->nr_slots; i++)
		if (a->slot[i].job)
			(void)worker_unref(&a->slot[i].job->w);
	closep(&a->fd);
	free(a);
	return NULL;
}

void actor_set_options(struct actor *a, const struct actor_options *o)
{
	a->o = *o;
}

int actor_fd(const struct actor *a)
{
	return a->fd;
}

static void check_blocked(struct actor *a, struct slot *s, struct act_time now)
{
	char name[KNOB_NAME_MAX];

	if (s->blocked_told || now.mono_usec - s->started.mono_usec < ACTOR_BLOCKED_USEC)
		return;
	s->blocked_told = true;
	(void)error_set(&s->why, -EINPROGRESS,
			"%s: writing %" PRIu64 " has not returned for %" PRIu64
			" s; the kernel holds it back (memory hotplug does), and other knobs go on",
			knob_name(s->id, a->o.env->page_bytes, name), s->job->wanted,
			(now.mono_usec - s->started.mono_usec) / USEC_PER_SEC);
	actor_tell(a, ACTOR_BLOCKED, s, s->value, s->job->wanted, s->reason, NULL, now);
}

static void take_back(struct actor *a, struct slot *s, const char *how, struct act_time now)
{
	char name[KNOB_NAME_MAX], text[200];

	record_drop(&a->record, s->id);
	s->yield_usec = USEC_INFINITY;
	s->why = (struct error){0};
	(void)snprintf(text, sizeof(text), "%s: %s; %" PRIu64 " is its baseline now",
		       knob_name(s->id, a->o.env->page_bytes, name), how, s->value);
	actor_tell(a, ACTOR_OURS_AGAIN, s, s->value, s->value, "", text, now);
	(void)actor_store(a, now, NULL);
}

static void end_yielding(struct actor *a, struct slot *s, struct act_time now)
{
	const struct record_knob *k = record_find(&a->record, s->id);

	if (now.mono_usec < s->yield_usec)
		return;
	s->yield_usec = now.mono_usec + PAUSE_MIN_USEC; /* if it cannot be done now */
	if (!k || !k->foreign)
		s->yield_usec = USEC_INFINITY;
	else if (!k->transient && knob_read(a->o.env, s->id, &s->value) == 0)
		take_back(a, s, "the time to yield is over", now);
}

void actor_dispatch(struct actor *a, struct act_time now)
{
	uint64_t count;

	(void)!read(a->fd, &count, sizeof(count));
	if (a->waiting && now.mono_usec >= a->waiting_usec)
		actor_recover(a, now);
	for (unsigned i = 0; i < a->nr_slots; i++) {
		struct slot *s = &a->slot[i];

		if (s->job && worker_is_done(&s->job->w))
			finish(a, s, now);
		if (s->job)
			check_blocked(a, s, now);
		end_yielding(a, s, now);
		slot_step(a, s, now);
	}
	if (a->record_lost && now.mono_usec >= a->record_retry_usec)
		(void)actor_store(a, now, NULL);
}

uint64_t actor_next_usec(const struct actor *a)
{
	uint64_t next = a->waiting ? a->waiting_usec : USEC_INFINITY, target;

	if (a->record_lost)
		next = MIN_OF(next, a->record_retry_usec);
	for (unsigned i = 0; i < a->nr_slots; i++) {
		const struct slot *s = &a->slot[i];

		next = MIN_OF(next, s->yield_usec);
		if (s->job && !s->blocked_told)
			next = MIN_OF(next, s->started.mono_usec + ACTOR_BLOCKED_USEC);
		if (next_purpose(a, s, &target) != PURPOSE_NONE)
			next = MIN_OF(next, s->error < 0 ? s->retry_usec : 0);
	}
	return next;
}

static bool is_there(struct actor *a, const struct slot *s, uint64_t value)
{
	const struct record_knob *k = record_find(&a->record, s->id);
	uint64_t v;

	if (k)
		return !k->transient && k->now == k->intended && k->now == value;
	return knob_read(a->o.env, s->id, &v) == 0 && v == value;
}

int actor_set(struct actor *a, const struct actor_request *req, struct act_time now,
	      struct error *e)
{
	char name[KNOB_NAME_MAX];
	const struct record_knob *k;
	struct slot *s;

	(void)knob_name(req->id, a->o.env->page_bytes, name);
	if (!knob_value_valid(req->id, req->value))
		return error_set(e, -ERANGE, "%s: %" PRIu64 " is no value of it", name, req->value);
	if (a->restoring)
		return error_set(e, -ECANCELED, "%s: values are being put back", name);
	s = slot_get(a, req->id);
	if (!s)
		return error_set(e, -ENOSPC, "%s: more knobs than the record has room for", name);
	k = record_find(&a->record, req->id);
	if (k && k->foreign) {
		if (e)
			*e = s->why;
		return -EPERM;
	}
	if (s->why.code == -EDQUOT)
		s->why = (struct error){0};
	if (!s->job && is_there(a, s, req->value)) {
		s->has_wanted = false;
		accepted(a, s, "is not asked for any more", now);
		return 0;
	}
	s->wanted = req->value;
	s->has_wanted = true;
	copy_reason(s->reason, req->reason);
	slot_step(a, s, now);
	if (s->error < 0 || (!s->has_wanted && s->why.code == -EDQUOT && !s->job)) {
		if (e)
			*e = s->why;
		return s->error < 0 ? -EAGAIN : -EDQUOT;
	}
	return 0;
}

int actor_baseline(const struct actor *a, struct knob_id id, uint64_t *ret)
{
	const struct record_knob *k = record_find((struct record *)&a->record, id);

	if (!k || (k->foreign && !k->transient))
		return knob_read(a->o.env, id, ret);
	*ret = k->baseline;
	return 0;
}

static bool snapshot_value(const struct snapshot *snap, struct knob_id id, uint64_t *ret)
{
	if (id.kind == KNOB_HIGH_FRACTION) {
		*ret = snap->high_fraction;
		return snapshot_has(snap, SOURCE_KNOBS) && snap->has_high_fraction;
	}
	if (!snapshot_has(snap, SOURCE_KNOBS) && !snapshot_has(snap, SOURCE_MTHP))
		return false;
	for (uint32_t i = 0; i < snap->mthp.nr_sizes; i++) {
		const struct mthp_size *m = &snap->mthp.size[i];

		if (m->order != id.order || m->pcp_enabled < 0)
			continue;
		*ret = (uint64_t)m->pcp_enabled;
		return snap->mthp.orders == ORDERS_SINGLE || m->has_pcp_enabled;
	}
	return false;
}

/* What was freed between its drain and its store is on the lists again: the single file once more.
 */
static void drain_again(struct actor *a, struct slot *s, struct act_time now)
{
	const struct actor_request req = {
		.id = s->id, .value = 0, .reason = "blocks were freed while it was switched off"};

	if (a->restoring || s->has_wanted || s->value != 0 ||
	    actor_moment_begin(a, &req, true, now, NULL) < 0)
		return;
	actor_moment_end(a, s->id, now);
}

static void check_order(struct actor *a, struct slot *s, const struct snapshot *snap,
			struct act_time now)
{
	char name[KNOB_NAME_MAX], text[200];
	uint64_t blocks = 0;
	int r = s->value == 0 ? knob_blocks_parked(snap, s->id.order, &blocks) : 0;

	s->check_left--;
	if (s->value != 0 || (r == 0 && blocks == 0)) {
		s->check_left = 0;
		return;
	}
	/* known or not: once it is off, one more drain takes what came in between */
	if (snap->mthp.orders == ORDERS_SINGLE &&
	    (r == 0 ? s->check_left > 0 : s->check_left == CHECK_TICKS - 1))
		drain_again(a, s, now);
	if (r < 0 || s->check_left > 0)
		return;
	(void)snprintf(text, sizeof(text),
		       "%s: is 0, and %" PRIu64
		       " blocks of order %u are on the lists all the same, three ticks later",
		       knob_name(s->id, a->o.env->page_bytes, name), blocks, s->id.order);
	actor_tell(a, ACTOR_NOTE, s, s->value, s->value, s->reason, text, now);
}

static void check_lists(struct actor *a, struct slot *s, const struct snapshot *snap,
			struct act_time now)
{
	struct error why = {0};

	if (s->check_left == 0 || s->moment != MOMENT_NONE || s->job ||
	    !snapshot_has(snap, SOURCE_ZONEINFO))
		return;
	if (s->id.kind == KNOB_PCP_ENABLED) {
		check_order(a, s, snap, now);
		return;
	}
	if (knob_check_zoneinfo(&snap->zoneinfo, s->value, &why) == KNOB_CHECK_AGREES) {
		s->check_left = 0;
		return;
	}
	if (--s->check_left == 0 && why.code < 0)
		actor_tell(a, ACTOR_NOTE, s, s->value, s->value, s->reason, why.text, now);
}

static void observe_slot(struct actor *a, struct slot *s, uint64_t v, struct act_time now)
{
	struct record_knob *k = record_find(&a->record, s->id);

	s->value = v;
	s->has_value = true;
	if (!k || (k->foreign && !k->transient) || v == k->now || v == k->intended)
		return;
	/* The snapshot may be a moment old: look once more before saying so. */
	if (knob_read(a->o.env, s->id, &v) < 0 || v == k->now || v == k->intended)
		return;
	s->value = v;
	if (k->transient && v == k->before) {
		/* Somebody ended our moment for us, with the very value that was to come back. */
		k->transient = false;
		k->now = k->intended = v;
		s->moment = MOMENT_NONE;
		if (v == k->baseline && !k->foreign)
			record_drop(&a->record, s->id);
		(void)actor_store(a, now, NULL);
		return;
	}
	slot_give_up(a, s, v, now);
}

void actor_observe(struct actor *a, const struct snapshot *snap, struct act_time now)
{
	for (unsigned i = 0; i < a->nr_slots && !a->waiting; i++) {
		struct slot *s = &a->slot[i];
		uint64_t v;

		if (s->job || snap->taken_usec < s->written_usec)
			continue;
		if (snapshot_value(snap, s->id, &v))
			observe_slot(a, s, v, now);
		check_lists(a, s, snap, now);
		note_state(a, s, now);
	}
}

int actor_adopt(struct actor *a, struct knob_id id, struct act_time now, struct error *e)
{
	const struct record_knob *k = record_find(&a->record, id);
	struct slot *s = slot_find(a, id);
	char name[KNOB_NAME_MAX];
	int r;

	(void)knob_name(id, a->o.env->page_bytes, name);
	if (!k || !s)
		return error_set(e, -ENOENT,
				 "%s: pcptune has not set it, so there is nothing to adopt", name);
	if (!k->foreign)
		return error_set(e, -EALREADY, "%s: is not somebody else's", name);
	if (s->job || k->transient)
		return error_set(e, -EBUSY, "%s: a drain is under way; try again", name);
	r = knob_read(a->o.env, id, &s->value);
	if (r < 0)
		return error_set(e, r, "%s: cannot be read: %s", name, error_name(r));
	take_back(a, s, "adopted", now);
	note_state(a, s, now);
	return 0;
}

void actor_restore_all(struct actor *a, struct act_time now)
{
	a->restoring = true;
	for (unsigned i = 0; i < a->nr_slots; i++) {
		struct slot *s = &a->slot[i];

		s->has_wanted = false;
		s->restoring = true;
		if (s->moment == MOMENT_BEGINNING && !s->job)
			s->moment = MOMENT_NONE;
		if (s->moment != MOMENT_NONE)
			s->moment = MOMENT_ENDING;
		if (s->error < 0)
			s->retry_usec = now.mono_usec;
		s->pause_usec = 0;
		slot_step(a, s, now);
	}
}

void actor_pause(struct actor *a, bool paused, struct act_time now)
{
	a->paused = paused;
	for (unsigned i = 0; i < a->nr_slots; i++)
		slot_step(a, &a->slot[i], now);
}

void actor_resume(struct actor *a)
{
	a->restoring = false;
	for (unsigned i = 0; i < a->nr_slots; i++)
		a->slot[i].restoring = false;
}

unsigned actor_unrestored(const struct actor *a, struct error *why)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < a->record.nr_knobs; i++) {
		const struct record_knob *k = &a->record.knob[i];
		const struct slot *s = slot_find(a, k->id);
		char name[KNOB_NAME_MAX];

		if (k->foreign && !k->transient)
			continue;
		if (n++ > 0 || !why)
			continue;
		if (s && s->why.code < 0)
			*why = s->why;
		else
			(void)error_set(why, -EINPROGRESS, "%s: %s",
					knob_name(k->id, a->o.env->page_bytes, name),
					a->waiting ? "waits for a write of a killed pcptune that "
						     "still hangs in the kernel"
						   : "is being put back");
	}
	return n;
}

bool actor_busy(const struct actor *a)
{
	uint64_t target;

	if (a->waiting)
		return true;
	for (unsigned i = 0; i < a->nr_slots; i++) {
		enum purpose p = next_purpose(a, &a->slot[i], &target);

		if (a->slot[i].job || putting_back(p) || p == PURPOSE_MOMENT)
			return true;
	}
	return false;
}

int actor_moment_begin(struct actor *a, const struct actor_request *req, bool force,
		       struct act_time now, struct error *e)
{
	char name[KNOB_NAME_MAX];
	struct slot *s = slot_get(a, req->id);

	(void)knob_name(req->id, a->o.env->page_bytes, name);
	if (!s)
		return error_set(e, -ENOSPC, "%s: more knobs than the record has room for", name);
	if (a->restoring)
		return error_set(e, -ECANCELED, "%s: values are being put back", name);
	if (a->waiting || s->job || s->moment != MOMENT_NONE)
		return error_set(e, -EBUSY, "%s: a write or a drain is under way; try again", name);
	s->moment = MOMENT_BEGINNING;
	s->moment_value = req->value;
	s->moment_force = force;
	s->error = 0;
	copy_reason(s->moment_reason, req->reason);
	slot_step(a, s, now);
	return 0;
}

void actor_moment_end(struct actor *a, struct knob_id id, struct act_time now)
{
	struct slot *s = slot_find(a, id);

	if (!s || s->moment == MOMENT_NONE)
		return;
	if (s->moment == MOMENT_REFUSED || (s->moment == MOMENT_BEGINNING && !s->job))
		s->moment = MOMENT_NONE;
	else
		s->moment = MOMENT_ENDING;
	slot_step(a, s, now);
}

enum actor_moment actor_moment(const struct actor *a, struct knob_id id, struct error *why)
{
	const struct slot *s = slot_find(a, id);

	if (!s)
		return MOMENT_NONE;
	if (why && s->why.code < 0)
		*why = s->why;
	return s->moment;
}

static void fill_knob(const struct actor *a, const struct slot *s, struct actor_knob *ret)
{
	const struct record_knob *k = record_find((struct record *)&a->record, s->id);

	*ret = (struct actor_knob){
		.id = s->id,
		.state = slot_state(a, s),
		.owned = k && (!k->foreign || k->transient),
		.transient = k && k->transient,
		.value = s->value,
		.baseline = k ? k->baseline : s->value,
		.wanted = s->has_wanted ? s->wanted
			  : k           ? k->intended
					: s->value,
		.error = s->error,
		.retry_usec = s->retry_usec,
		.since_usec = s->since_usec,
		.writes = s->writes,
		.refusals = s->refusals,
	};
	copy_reason(ret->reason, s->has_wanted ? s->reason : k ? k->reason : "");
	(void)snprintf(ret->text, sizeof(ret->text), "%s", s->why.text);
}

bool actor_knob_at(const struct actor *a, unsigned i, struct actor_knob *ret)
{
	if (i >= a->nr_slots)
		return false;
	fill_knob(a, &a->slot[i], ret);
	return true;
}

bool actor_knob_get(const struct actor *a, struct knob_id id, struct actor_knob *ret)
{
	const struct slot *s = slot_find(a, id);

	if (!s)
		return false;
	fill_knob(a, s, ret);
	return true;
}

const struct ledger *actor_ledger(const struct actor *a)
{
	return &a->ledger;
}

int actor_wait(struct actor *a, bool restore, int stop_fd, uint64_t timeout_usec,
	       void (*on_event)(void *user, const struct actor_event *ev), void *user)
{
	uint64_t begin = act_time_now().mono_usec;

	for (;;) {
		struct pollfd p[2] = {{.fd = a->fd, .events = POLLIN},
				      {.fd = stop_fd, .events = POLLIN}};
		struct act_time now = act_time_now();
		struct actor_event ev;
		uint64_t until, pause;

		actor_dispatch(a, now);
		while (actor_event_take(a, &ev))
			if (on_event)
				on_event(user, &ev);
		if (restore ? actor_unrestored(a, NULL) == 0 : !actor_busy(a))
			return 0;
		if (now.mono_usec - begin >= timeout_usec)
			return -ETIMEDOUT;
		until = MIN_OF(actor_next_usec(a), begin + timeout_usec);
		pause = until > now.mono_usec ? until - now.mono_usec : 0;
		(void)poll(p, 2, (int)MIN_OF(pause / 1000 + 1, UINT64_C(60000)));
		if (stop_fd >= 0 && p[1].revents)
			return -EINTR;
	}
}
