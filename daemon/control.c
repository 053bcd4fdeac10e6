/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control.h"

#include "base/format.h"
#include "base/nearest.h"
#include "manager-internal.h"
#include "message_ids.h"
#include "sense/signals.h"

#include <errno.h>

/* A write that hangs is told as such after this; the request itself stays in force. */
#define PIN_LIMIT_USEC (10 * USEC_PER_SEC)
/* As pcptunectl waits by itself: more than memory hotplug usually takes. */
#define ROLLBACK_LIMIT_USEC (75 * USEC_PER_SEC)
#define OPS_MAX             64U

struct control_op {
	struct control_op *next;
	enum control_kind kind;
	control_done done;
	void *user;
	struct knob_id knob;
	uint64_t value;
	uint64_t after;      /* ticks that had decided when it came */
	uint64_t limit_usec; /* CLOCK_MONOTONIC */
	struct control_reply reply;
	struct drain_report report;
	bool over; /* the reply is complete */
};

static int on_limit(sd_event_source *s, uint64_t scheduled, void *userdata)
{
	(void)s;
	(void)scheduled;
	control_dispatch(userdata);
	return 0;
}

static void _printf_(3, 4) fail(struct control_op *op, enum control_code code, const char *fmt, ...)
{
	va_list ap;

	op->reply.code = code;
	op->over = true;
	op->reply.why.code = -ECANCELED;
	va_start(ap, fmt);
	(void)vsnprintf(op->reply.why.text, sizeof(op->reply.why.text), fmt, ap);
	va_end(ap);
}

static void tell(const struct manager *m, const char *id, const struct control_request *request,
		 const char *fmt, ...) _printf_(4, 5);
static void tell(const struct manager *m, const char *id, const struct control_request *request,
		 const char *fmt, ...)
{
	char text[256], knob[64], by[64];
	const char *const fields[] = {id, by, request->knob ? knob : NULL, NULL};
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)snprintf(by, sizeof(by), "PCPTUNE_BY=%s", request->who);
	(void)snprintf(knob, sizeof(knob), "PCPTUNE_KNOB=%s", request->knob ? request->knob : "");
	log_fields(m->log, LOG_NOTICE, fields, "%s (by %s)", text, request->who);
}

/* The knob that is meant: one that the engine knows. */
static int find_knob(const struct manager *m, struct control_op *op, const char *name)
{
	struct nearest n = NEAREST(name);
	char known[KNOBS_MAX][KNOB_NAME_MAX];
	struct engine_knob_view view;

	if (knob_parse(name, m->snapshot->page_bytes, &op->knob) == 0 &&
	    engine_find_knob(m->engine, op->knob) >= 0)
		return 0;
	for (size_t i = 0; i < engine_nr_knobs(m->engine) && i < KNOBS_MAX; i++) {
		engine_knob_view(m->engine, i, &view);
		nearest_try(&n, knob_name(view.id, m->snapshot->page_bytes, known[i]));
	}
	fail(op, CONTROL_NO_SUCH_KNOB,
	     "there is no knob \"%s\" here%s%s%s; status names those there are", name,
	     n.best ? ", did you mean \"" : "", n.best ? n.best : "", n.best ? "\"?" : "");
	return -ENOENT;
}

static bool current_of(const struct manager *m, struct knob_id id, uint64_t *ret)
{
	const struct mthp_size *size;
	struct actor_knob k;

	if (m->acting.actor && actor_knob_get(m->acting.actor, id, &k)) {
		*ret = k.value;
		return true;
	}
	if (id.kind == KNOB_HIGH_FRACTION) {
		*ret = m->snapshot->high_fraction;
		return m->snapshot->has_high_fraction;
	}
	size = mthp_by_order(&m->snapshot->mthp, id.order);
	*ret = size && size->pcp_enabled > 0;
	return size && size->pcp_enabled >= 0;
}

/* A kernel whose lists are too small for blocks of that order would never keep one. */
static bool fits(const struct manager *m, struct knob_id id)
{
	struct signal_ref ref;
	double v;

	return id.kind != KNOB_PCP_ENABLED ||
	       signal_resolve("pcp.fits", m->snapshot->page_bytes, &ref) < 0 ||
	       !signal_read(&ref, m->snapshot, (unsigned)id.order, &v, NULL) || v >= 1;
}

/* Why a value cannot be set by hand now; false: it can. */
static bool not_now(const struct manager *m, struct control_op *op, const char *knob)
{
	struct actor_knob k;

	if (m->stopping)
		fail(op, CONTROL_NOT_NOW, "pcptuned is stopping");
	else if (!m->enforce)
		fail(op, CONTROL_NOT_NOW,
		     "pcptuned only observes and sets nothing: set Mode=enforce in pcptuned.conf, and reload");
	else if (m->disabled)
		fail(op, CONTROL_NOT_NOW, "a kill switch is thrown (%s): remove it first",
		     m->disabled);
	else if (m->pause.on)
		fail(op, CONTROL_NOT_NOW, "pcptuned is paused: run pcptunectl resume first");
	else if (actor_knob_get(m->acting.actor, op->knob, &k) && k.state == KNOB_FOREIGN)
		fail(op, CONTROL_NOT_NOW,
		     "%s is foreign, somebody else wrote it: run pcptunectl adopt %s first", knob,
		     knob);
	return op->over;
}

static const char *until_text(char *buf, size_t size, uint64_t for_usec)
{
	char span[FORMAT_MAX];

	if (for_usec == USEC_INFINITY)
		(void)snprintf(buf, size, "until it is taken back");
	else
		(void)snprintf(buf, size, "for %s", format_usec(span, sizeof(span), for_usec));
	return buf;
}

static uint64_t end_of(uint64_t for_usec, struct act_time now)
{
	return for_usec >= USEC_INFINITY - now.mono_usec ? USEC_INFINITY : now.mono_usec + for_usec;
}

static void begin_pin(struct manager *m, struct control_op *op, const struct control_request *q)
{
	char until[64];
	int r;

	if (find_knob(m, op, q->knob) < 0 || not_now(m, op, q->knob))
		return;
	if (q->value > 0 && !fits(m, op->knob)) {
		fail(op, CONTROL_NO_SUCH_VALUE,
		     "%s does not fit: a block of that order is larger than a list may hold here",
		     q->knob);
		return;
	}
	r = engine_pin(m->engine, op->knob, q->value, end_of(q->for_usec, act_time_now()));
	if (r < 0) {
		fail(op, CONTROL_NO_SUCH_VALUE, "%s does not take %llu: it takes %s", q->knob,
		     (unsigned long long)q->value,
		     op->knob.kind == KNOB_HIGH_FRACTION
			     ? "0, for the kernel's own sizes, or 8 to 2147483647"
			     : "0 or 1");
		return;
	}
	op->value = q->value;
	op->limit_usec = act_time_now().mono_usec + PIN_LIMIT_USEC;
	tell(m, MSG_PINNED, q, "%s is pinned to %llu %s", q->knob, (unsigned long long)q->value,
	     until_text(until, sizeof(until), q->for_usec));
	(void)manager_tick_now(m);
}

static void begin_unpin(struct manager *m, struct control_op *op, const struct control_request *q)
{
	if (find_knob(m, op, q->knob) < 0)
		return;
	if (engine_unpin(m->engine, op->knob) < 0) {
		fail(op, CONTROL_NOT_NOW, "%s is not pinned", q->knob);
		return;
	}
	op->limit_usec = act_time_now().mono_usec + PIN_LIMIT_USEC;
	tell(m, MSG_UNPINNED, q, "%s is no longer pinned", q->knob);
	(void)manager_tick_now(m);
}

/* Where only decisions are told there is no actor: one for the time of a request by hand. */
static bool have_actor(struct manager *m, struct control_op *op)
{
	const struct actor_options options = {.env = &m->acting.env};

	if (m->acting.actor)
		return true;
	if (m->acting.lock.fd < 0) {
		fail(op, CONTROL_NOT_HERE,
		     "this daemon runs on captured files or without root: it writes nothing");
		return false;
	}
	if (acting_open_for_a_while(&m->acting, &options, act_time_now(), &op->reply.why) < 0 ||
	    manager_watch_actor(m) < 0) {
		op->reply.code = CONTROL_FAILED;
		op->over = true;
		return false;
	}
	return true;
}

static void begin_adopt(struct manager *m, struct control_op *op, const struct control_request *q)
{
	int r;

	if (find_knob(m, op, q->knob) < 0 || !have_actor(m, op))
		return;
	r = actor_adopt(m->acting.actor, op->knob, act_time_now(), &op->reply.why);
	if (r == -ENOENT || r == -EALREADY) {
		fail(op, CONTROL_NOT_NOW,
		     "%s is not foreign: nobody else has written it since pcptune did", q->knob);
		return;
	}
	if (r < 0) {
		op->reply.code = CONTROL_FAILED;
		op->over = true;
		return;
	}
	tell(m, MSG_ADOPTED, q, "%s was adopted", q->knob);
	(void)manager_tick_now(m);
}

static void set_pause(struct manager *m, bool on, uint64_t until_usec)
{
	struct act_time now = act_time_now();

	m->pause = (struct pause){on, until_usec};
	acting_pause(&m->acting, on, now);
	telemetry_pause(&m->telemetry, on,
			!on || until_usec == USEC_INFINITY
				? 0
				: now.real_usec + (until_usec - now.mono_usec));
}

static void begin_pause(struct manager *m, struct control_op *op, const struct control_request *q)
{
	char until[64];

	set_pause(m, true, end_of(q->for_usec, act_time_now()));
	tell(m, MSG_PAUSED, q, "paused %s: values stay as they are",
	     until_text(until, sizeof(until), q->for_usec));
	(void)manager_tick_now(m);
	op->over = true;
}

static void begin_resume(struct manager *m, struct control_op *op, const struct control_request *q)
{
	op->over = true;
	if (!m->pause.on)
		return;
	set_pause(m, false, 0);
	tell(m, MSG_RESUMED, q, "resumed: policies decide again");
	(void)manager_tick_now(m);
}

static void note_owned(const struct actor *a, struct control_reply *r)
{
	struct actor_knob k;

	for (unsigned i = 0; actor_knob_at(a, i, &k) && r->nr_restored < RECORD_KNOBS_MAX; i++)
		if (k.owned)
			r->restored[r->nr_restored++] =
				(struct control_restored){k.id, k.value, k.baseline};
}

static void begin_rollback(struct manager *m, struct control_op *op,
			   const struct control_request *q)
{
	struct act_time now = act_time_now();

	if (!have_actor(m, op))
		return;
	set_pause(m, true, USEC_INFINITY);
	engine_reset(m->engine);
	note_owned(m->acting.actor, &op->reply);
	op->limit_usec = now.mono_usec + ROLLBACK_LIMIT_USEC;
	tell(m, MSG_ROLLED_BACK, q, "every setting is put back, and pcptuned pauses");
	acting_take_hands_off(&m->acting, now);
}

static void begin_reload(struct manager *m, struct control_op *op)
{
	op->over = true;
	if (manager_reload(m, &op->reply.why) < 0)
		op->reply.code = CONTROL_FAILED;
}

static void on_drain_over(void *user, const struct drain_report *report)
{
	struct control_op *op = user;

	op->report = *report;
	op->reply.drain = &op->report;
	op->over = true;
	if (report->error == 0)
		return;
	op->reply.why.code = report->error;
	(void)snprintf(op->reply.why.text, sizeof(op->reply.why.text), "%s", report->text);
	op->reply.code = report->end == DRAIN_END_FAILED ? CONTROL_REFUSED : CONTROL_FAILED;
}

static void begin_drain(struct manager *m, struct control_op *op, const struct control_request *q)
{
	int r = 0;

	if (m->acting.drain)
		fail(op, CONTROL_NOT_NOW, "a drain is under way: try again when it has ended");
	if (op->over || !have_actor(m, op))
		return;
	r = acting_drain(&m->acting, &q->drain, act_time_now(), on_drain_over, op, &op->reply.why);
	if (r == 0)
		return;
	op->over = true;
	op->reply.code = r == -EBUSY                       ? CONTROL_NOT_NOW
			 : r == -EOPNOTSUPP || r == -EPERM ? CONTROL_NOT_HERE
							   : CONTROL_FAILED;
}

static void begin(struct manager *m, struct control_op *op, const struct control_request *q)
{
	switch (q->kind) {
	case CONTROL_PIN:
		begin_pin(m, op, q);
		break;
	case CONTROL_UNPIN:
		begin_unpin(m, op, q);
		break;
	case CONTROL_ADOPT:
		begin_adopt(m, op, q);
		break;
	case CONTROL_PAUSE:
		begin_pause(m, op, q);
		break;
	case CONTROL_RESUME:
		begin_resume(m, op, q);
		break;
	case CONTROL_ROLLBACK:
		begin_rollback(m, op, q);
		break;
	case CONTROL_RELOAD:
		begin_reload(m, op);
		break;
	case CONTROL_DRAIN:
		begin_drain(m, op, q);
		break;
	case _CONTROL_KIND_MAX:
		op->over = true;
		break;
	}
}

void control_begin(struct manager *m, const struct control_request *request, control_done done,
		   void *user)
{
	struct control_reply full = {.code = CONTROL_NOT_NOW};
	struct control_op *op = NULL;
	size_t n = 0;

	for (const struct control_op *o = m->ops; o; o = o->next)
		n++;
	if (n < OPS_MAX && !m->stopping)
		op = calloc(1, sizeof(*op));
	if (!op) {
		(void)error_set(&full.why, -EBUSY,
				m->stopping ? "pcptuned is stopping"
					    : "too much is asked at once: try again");
		done(user, &full);
		return;
	}
	*op = (struct control_op){
		.next = m->ops,
		.kind = request->kind,
		.done = done,
		.user = user,
		.after = m->decided,
		.limit_usec = USEC_INFINITY,
	};
	m->ops = op;
	begin(m, op, request);
	(void)manager_settle(m);
}

/* After a tick that knows of the pin: is it in place, or why not? */
static void judge_pin(const struct manager *m, struct control_op *op)
{
	struct engine_knob_view view;
	struct actor_knob k = {0};
	int i = engine_find_knob(m->engine, op->knob);

	if (m->decided <= op->after || i < 0)
		return;
	engine_knob_view(m->engine, (size_t)i, &view);
	(void)current_of(m, op->knob, &op->reply.value);
	(void)actor_knob_get(m->acting.actor, op->knob, &k);
	op->reply.baseline = k.baseline;
	if (k.state == KNOB_FAILED)
		fail(op, CONTROL_REFUSED, "%s; it stays pinned and is tried again", k.text);
	else if (k.state == KNOB_FOREIGN)
		fail(op, CONTROL_NOT_NOW, "somebody else wrote it meanwhile");
	else if ((k.state == KNOB_FREE || k.state == KNOB_OURS) && view.wanted == op->reply.value)
		op->over = true;
	else if (act_time_now().mono_usec >= op->limit_usec)
		fail(op, CONTROL_NOT_NOW, "it is decided but not in place yet: %s",
		     view.why[0] ? view.why
		     : k.text[0] ? k.text
				 : "the write has not come back from the kernel");
}

static void judge_adopt(const struct manager *m, struct control_op *op)
{
	op->over = true;
	(void)current_of(m, op->knob, &op->reply.value);
	(void)actor_baseline(m->acting.actor, op->knob, &op->reply.baseline);
}

static void judge_rollback(struct manager *m, struct control_op *op)
{
	struct error why = {0};

	if (acting_stopped(&m->acting, true)) {
		op->over = true;
		acting_resume(&m->acting);
		return;
	}
	if (act_time_now().mono_usec < op->limit_usec)
		return;
	(void)actor_unrestored(m->acting.actor, &why);
	fail(op, CONTROL_REFUSED,
	     "not everything is back: %s; pcptuned goes on trying, status shows how it stands",
	     why.text[0] ? why.text : "a write has not come back from the kernel");
}

static void judge(struct manager *m, struct control_op *op)
{
	if (op->over)
		return;
	if (op->kind == CONTROL_PIN || op->kind == CONTROL_UNPIN)
		judge_pin(m, op);
	else if (op->kind == CONTROL_ADOPT)
		judge_adopt(m, op);
	else if (op->kind == CONTROL_ROLLBACK)
		judge_rollback(m, op);
}

static void answer_those_over(struct manager *m)
{
	struct control_op **at = &m->ops;

	while (*at) {
		struct control_op *op = *at;

		if (!op->over) {
			at = &op->next;
			continue;
		}
		*at = op->next;
		op->done(op->user, &op->reply);
		free(op);
	}
}

static void rearm(struct manager *m)
{
	uint64_t next = USEC_INFINITY;

	for (const struct control_op *op = m->ops; op; op = op->next)
		next = MIN_OF(next, op->limit_usec);
	if (next == USEC_INFINITY) {
		m->ops_timer = sd_event_source_disable_unref(m->ops_timer);
		return;
	}
	if (!m->ops_timer)
		(void)sd_event_add_time(m->event, &m->ops_timer, CLOCK_MONOTONIC, next, 0, on_limit,
					m);
	(void)sd_event_source_set_time(m->ops_timer, next);
	(void)sd_event_source_set_enabled(m->ops_timer, SD_EVENT_ONESHOT);
}

void control_dispatch(struct manager *m)
{
	if (!m->ops)
		return;
	for (struct control_op *op = m->ops; op; op = op->next)
		judge(m, op);
	answer_those_over(m);
	rearm(m);
	if (!m->ops && m->acting.for_a_while && acting_stopped(&m->acting, false)) {
		m->actor_io = sd_event_source_disable_unref(m->actor_io);
		acting_close_for_a_while(&m->acting);
	}
}

uint64_t control_next_usec(const struct manager *m)
{
	uint64_t next = m->pause.on ? m->pause.until_usec : USEC_INFINITY;
	struct engine_knob_view view;

	for (size_t i = 0; i < engine_nr_knobs(m->engine); i++) {
		engine_knob_view(m->engine, i, &view);
		if (view.state == RULE_PINNED)
			next = MIN_OF(next, view.wait_until_usec);
	}
	return next;
}

void control_expire(struct manager *m)
{
	const struct control_request q = {.kind = CONTROL_RESUME, .who = "its time being over"};

	if (!m->pause.on || act_time_now().mono_usec < m->pause.until_usec)
		return;
	set_pause(m, false, 0);
	tell(m, MSG_RESUMED, &q, "resumed: policies decide again");
}

void control_end(struct manager *m)
{
	m->acting.drain_over = NULL; /* a drain ends later than who asked for it is answered */
	for (struct control_op *op = m->ops; op; op = op->next)
		if (!op->over)
			fail(op, CONTROL_NOT_NOW, "pcptuned is stopping");
	answer_those_over(m);
	m->ops_timer = sd_event_source_disable_unref(m->ops_timer);
}
