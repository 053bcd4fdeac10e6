/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The objects of org.pcptune1(5): what they show and what they can be asked. */
#include "bus-internal.h"

#include "policy/explain.h"

#include <errno.h>

#define ACTION_SET    "org.pcptune1.set"
#define ACTION_DRAIN  "org.pcptune1.drain"
#define ACTION_RELOAD "org.pcptune1.reload"

/* Requests */

struct caller {
	sd_bus_message *message;
	enum control_kind kind;
	uint64_t page_bytes;
};

static const char *error_of(enum control_code code)
{
	static const char *const names[] = {
		[CONTROL_DONE] = "",
		[CONTROL_NO_SUCH_KNOB] = BUS_ERROR "NoSuchKnob",
		[CONTROL_NO_SUCH_VALUE] = BUS_ERROR "NoSuchValue",
		[CONTROL_NOT_NOW] = BUS_ERROR "NotNow",
		[CONTROL_REFUSED] = BUS_ERROR "KernelRefused",
		[CONTROL_NOT_HERE] = BUS_ERROR "NotHere",
		[CONTROL_FAILED] = BUS_ERROR "Failed",
	};
	_Static_assert(ARRAY_SIZE(names) == _CONTROL_CODE_MAX, "a name for every error");

	return names[code];
}

static int append_drain(sd_bus_message *m, const struct drain_report *d)
{
	int r = sd_bus_message_append(m, "sssibtttutt", drain_mode_name(d->mode),
				      drain_end_name(d->end), d->text, -d->error, (int)d->blocked,
				      d->pages_before, d->pages_after, d->lists_above, d->passes,
				      d->took_usec, d->pass_max_usec);

	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "(istt)");
	for (uint32_t i = 0; i < d->nr_zones && r >= 0; i++)
		r = sd_bus_message_append(m, "(istt)", (int)d->zone[i].node, d->zone[i].name,
					  d->zone[i].before, d->zone[i].after);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_restored(sd_bus_message *m, const struct control_reply *r, uint64_t page_bytes)
{
	char name[KNOB_NAME_MAX];
	int result = sd_bus_message_open_container(m, 'a', "(stt)");

	for (unsigned i = 0; i < r->nr_restored && result >= 0; i++)
		result = sd_bus_message_append(m, "(stt)",
					       knob_name(r->restored[i].id, page_bytes, name),
					       r->restored[i].from, r->restored[i].to);
	return result < 0 ? result : sd_bus_message_close_container(m);
}

static int append_reply(sd_bus_message *m, enum control_kind kind, const struct control_reply *r,
			uint64_t page_bytes)
{
	switch (kind) {
	case CONTROL_PIN:
	case CONTROL_UNPIN:
		return sd_bus_message_append(m, "t", r->value);
	case CONTROL_ADOPT:
		return sd_bus_message_append(m, "t", r->baseline);
	case CONTROL_ROLLBACK:
		return append_restored(m, r, page_bytes);
	case CONTROL_DRAIN:
		return append_drain(m, r->drain);
	case CONTROL_PAUSE:
	case CONTROL_RESUME:
	case CONTROL_RELOAD:
	case _CONTROL_KIND_MAX:
		break;
	}
	return 0;
}

/* Who asked may be gone: then the answer goes nowhere, and what was done stays done. */
static void on_done(void *user, const struct control_reply *reply)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
	struct caller *c = user;
	int r = 0;

	/* a drain that ended badly has a report, too: the caller shows how far it came */
	if (reply->code == CONTROL_DONE || reply->drain) {
		r = sd_bus_message_new_method_return(c->message, &answer);
		if (r >= 0)
			r = append_reply(answer, c->kind, reply, c->page_bytes);
		if (r >= 0)
			r = sd_bus_send(NULL, answer, NULL);
	} else {
		r = sd_bus_reply_method_errorf(c->message, error_of(reply->code), "%s",
					       reply->why.text);
	}
	(void)r;
	sd_bus_message_unref(c->message);
	free(c);
}

static int ask(struct bus *b, sd_bus_message *message, struct control_request *request)
{
	struct caller *c = calloc(1, sizeof(*c));
	char who[64];
	uid_t uid;

	if (!c)
		return -ENOMEM;
	*c = (struct caller){sd_bus_message_ref(message), request->kind,
			     b->m->snapshot->page_bytes};
	if (bus_private_uid(b, sd_bus_message_get_bus(message), &uid))
		(void)snprintf(who, sizeof(who), "uid %u", (unsigned)uid);
	else
		(void)snprintf(who, sizeof(who), "bus client %s",
			       sd_bus_message_get_sender(message));
	request->who = who;
	control_begin(b->m, request, on_done, c);
	return 1;
}

static uint64_t time_or_endless(uint64_t usec)
{
	return usec == 0 ? USEC_INFINITY : usec;
}

static int run_pin(struct bus *b, sd_bus_message *m)
{
	struct control_request q = {.kind = CONTROL_PIN};
	int r = sd_bus_message_read(m, "stt", &q.knob, &q.value, &q.for_usec);

	q.for_usec = time_or_endless(q.for_usec);
	return r < 0 ? r : ask(b, m, &q);
}

static int run_unpin(struct bus *b, sd_bus_message *m)
{
	struct control_request q = {.kind = CONTROL_UNPIN};
	int r = sd_bus_message_read(m, "s", &q.knob);

	return r < 0 ? r : ask(b, m, &q);
}

static int run_adopt(struct bus *b, sd_bus_message *m)
{
	struct control_request q = {.kind = CONTROL_ADOPT};
	int r = sd_bus_message_read(m, "s", &q.knob);

	return r < 0 ? r : ask(b, m, &q);
}

static int run_pause(struct bus *b, sd_bus_message *m)
{
	struct control_request q = {.kind = CONTROL_PAUSE};
	int r = sd_bus_message_read(m, "t", &q.for_usec);

	q.for_usec = time_or_endless(q.for_usec);
	return r < 0 ? r : ask(b, m, &q);
}

static int run_resume(struct bus *b, sd_bus_message *m)
{
	return ask(b, m, &(struct control_request){.kind = CONTROL_RESUME});
}

static int run_rollback(struct bus *b, sd_bus_message *m)
{
	return ask(b, m, &(struct control_request){.kind = CONTROL_ROLLBACK});
}

static int run_reload(struct bus *b, sd_bus_message *m)
{
	return ask(b, m, &(struct control_request){.kind = CONTROL_RELOAD});
}

static int run_drain(struct bus *b, sd_bus_message *m)
{
	struct control_request q = {.kind = CONTROL_DRAIN, .drain = {.reason = "by hand"}};
	int fast = 0, isolated_too = 0, r;
	const char *mode;

	r = sd_bus_message_read(m, "sbbt", &mode, &fast, &isolated_too, &q.drain.max_time_usec);
	if (r < 0)
		return r;
	if (drain_mode_parse(mode, &q.drain.mode) < 0)
		return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_INVALID_ARGS,
						  "a mode is trim, squeeze or kernel, not \"%s\"",
						  mode);
	q.drain.fast = fast;
	q.drain.isolated_too = isolated_too;
	return ask(b, m, &q);
}

static const struct change {
	const char *member, *action;
	int (*run)(struct bus *b, sd_bus_message *m);
} changes[] = {
	{"Pin", ACTION_SET, run_pin},          {"Unpin", ACTION_SET, run_unpin},
	{"Adopt", ACTION_SET, run_adopt},      {"Pause", ACTION_SET, run_pause},
	{"Resume", ACTION_SET, run_resume},    {"Rollback", ACTION_SET, run_rollback},
	{"Reload", ACTION_RELOAD, run_reload}, {"Drain", ACTION_DRAIN, run_drain},
};

static int on_change(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const char *member = sd_bus_message_get_member(m);

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		if (streq(changes[i].member, member))
			return bus_authorize(userdata, m, changes[i].action, changes[i].run, error);
	return -EBADR;
}

/* What is for everyone */

static int on_status(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(text_free) struct text json = {0};
	const struct bus *b = userdata;

	(void)error;
	state_to_json(&b->m->telemetry.state, &json);
	return json.failed ? -ENOMEM : sd_bus_reply_method_return(m, "s", text_str(&json));
}

static int append_decision(sd_bus_message *m, const struct state_decision *d)
{
	return sd_bus_message_append(m, "(tsttssss)", d->time_usec, d->knob, d->from, d->to,
				     d->policy, d->rule, d->result, d->reason);
}

static int on_history(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
	const struct bus *b = userdata;
	const struct daemon_state *s = &b->m->telemetry.state;
	uint32_t limit;
	int r = sd_bus_message_read(m, "u", &limit);

	(void)error;
	if (r >= 0)
		r = sd_bus_message_new_method_return(m, &answer);
	if (r >= 0)
		r = sd_bus_message_open_container(answer, 'a', "(tsttssss)");
	for (uint32_t i = 0; i < MIN_OF(limit, s->nr_decisions) && r >= 0; i++)
		r = append_decision(answer, &s->decisions[i]);
	if (r >= 0)
		r = sd_bus_message_close_container(answer);
	return r < 0 ? r : sd_bus_send(NULL, answer, NULL);
}

static int explain_one(const struct manager *m, const char *name, struct text *into)
{
	_cleanup_(explanation_freep) struct explanation *x = NULL;
	const bool trims = streq(name, "trim");
	struct knob_id id = {0};
	int r = trims ? 0 : knob_parse(name, m->snapshot->page_bytes, &id);

	if (r == 0)
		r = engine_explain(m->engine, m->snapshot, trims ? NULL : &id, &x);
	if (r == 0)
		explain_render(x, m->snapshot->page_bytes, into);
	return r < 0 ? r : into->failed ? -ENOMEM : 0;
}

static int on_explain(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(text_free) struct text text = {0};
	const struct bus *b = userdata;
	const char *name;
	int r = sd_bus_message_read(m, "s", &name);

	if (r < 0)
		return r;
	r = explain_one(b->m, name, &text);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return sd_bus_error_setf(
			error, BUS_ERROR "NoSuchKnob",
			"there is no knob \"%s\" here; Status() names those there are", name);
	return sd_bus_reply_method_return(m, "s", text_str(&text));
}

/* Properties */

static int get_manager(sd_bus *connection, const char *path, const char *interface,
		       const char *property, sd_bus_message *reply, void *userdata,
		       sd_bus_error *error)
{
	const struct bus *b = userdata;
	const struct manager *m = b->m;
	const struct daemon_state *s = &m->telemetry.state;

	(void)connection;
	(void)path;
	(void)interface;
	(void)error;
	if (streq(property, "Version"))
		return sd_bus_message_append(reply, "s", s->version);
	if (streq(property, "Mode"))
		return sd_bus_message_append(reply, "s", s->enforce ? "enforce" : "observe");
	if (streq(property, "ModeReason"))
		return sd_bus_message_append(reply, "s", s->mode_reason);
	if (streq(property, "Paused"))
		return sd_bus_message_append(reply, "b", (int)s->paused);
	if (streq(property, "PausedUntil"))
		return sd_bus_message_append(reply, "t", s->paused ? s->paused_until_usec : 0);
	if (streq(property, "DrainBlocked"))
		return sd_bus_message_append(reply, "b", (int)s->drain_blocked);
	if (streq(property, "ParkedBytes"))
		return sd_bus_message_append(
			reply, "t", snapshot_parked(m->snapshot).pages * m->snapshot->page_bytes);
	return -EBADR;
}

static int get_knob(sd_bus *connection, const char *path, const char *interface,
		    const char *property, sd_bus_message *reply, void *userdata,
		    sd_bus_error *error)
{
	const struct state_knob *k = userdata;

	(void)connection;
	(void)path;
	(void)interface;
	(void)error;
	if (streq(property, "Name"))
		return sd_bus_message_append(reply, "s", k->name);
	if (streq(property, "Value"))
		return sd_bus_message_append(reply, "t", k->has_value ? k->value : UINT64_MAX);
	if (streq(property, "Baseline"))
		return sd_bus_message_append(reply, "t",
					     k->has_baseline ? k->baseline
					     : k->has_value  ? k->value
							     : UINT64_MAX);
	if (streq(property, "Owner"))
		return sd_bus_message_append(reply, "s", shown_owner_name(k->owner));
	if (streq(property, "State"))
		return sd_bus_message_append(reply, "s", shown_state_name(k->state));
	if (streq(property, "Reason"))
		return sd_bus_message_append(reply, "s", k->reason);
	if (streq(property, "Policy"))
		return sd_bus_message_append(reply, "s", k->policy);
	if (streq(property, "Since"))
		return sd_bus_message_append(reply, "t", k->since_usec);
	return -EBADR;
}

#define ANYONE SD_BUS_VTABLE_UNPRIVILEGED /* those that change something ask for themselves */
#define EMITS  SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

/* clang-format off */
static const sd_bus_vtable manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Version", "s", get_manager, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("Mode", "s", get_manager, 0, EMITS),
	SD_BUS_PROPERTY("ModeReason", "s", get_manager, 0, EMITS),
	SD_BUS_PROPERTY("Paused", "b", get_manager, 0, EMITS),
	SD_BUS_PROPERTY("PausedUntil", "t", get_manager, 0, EMITS),
	SD_BUS_PROPERTY("DrainBlocked", "b", get_manager, 0, EMITS),
	SD_BUS_PROPERTY("ParkedBytes", "t", get_manager, 0, 0),
	SD_BUS_METHOD_WITH_ARGS("Status", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), on_status, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("History", SD_BUS_ARGS("u", limit), SD_BUS_RESULT("a(tsttssss)", decisions), on_history, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("s", knob), SD_BUS_RESULT("s", text), on_explain, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("Pin", SD_BUS_ARGS("s", knob, "t", value, "t", for_usec), SD_BUS_RESULT("t", value), on_change, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("Unpin", SD_BUS_ARGS("s", knob), SD_BUS_RESULT("t", value), on_change, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("Adopt", SD_BUS_ARGS("s", knob), SD_BUS_RESULT("t", baseline), on_change, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_ARGS("t", for_usec), SD_BUS_NO_RESULT, on_change, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_change, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("Rollback", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(stt)", restored), on_change, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_change, ANYONE),
	SD_BUS_METHOD_WITH_ARGS("Drain",
	       SD_BUS_ARGS("s", mode, "b", fast, "b", isolated_too, "t", max_time_usec),
	       SD_BUS_RESULT("s", mode, "s", end, "s", text, "i", error, "b", blocked, "t", before, "t", after,
			     "t", lists_above, "u", passes, "t", took_usec, "t", longest_pass_usec,
			     "a(istt)", zones), on_change, ANYONE),
	SD_BUS_VTABLE_END,
};

static const sd_bus_vtable knob_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Name", "s", get_knob, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("Value", "t", get_knob, 0, EMITS),
	SD_BUS_PROPERTY("Baseline", "t", get_knob, 0, EMITS),
	SD_BUS_PROPERTY("Owner", "s", get_knob, 0, EMITS),
	SD_BUS_PROPERTY("State", "s", get_knob, 0, EMITS),
	SD_BUS_PROPERTY("Reason", "s", get_knob, 0, EMITS),
	SD_BUS_PROPERTY("Policy", "s", get_knob, 0, EMITS),
	SD_BUS_PROPERTY("Since", "t", get_knob, 0, EMITS),
	SD_BUS_VTABLE_END,
};
/* clang-format on */

static int find_knob(sd_bus *connection, const char *path, const char *interface, void *userdata,
		     void **ret_found, sd_bus_error *error)
{
	struct bus *b = userdata;
	struct daemon_state *s = &b->m->telemetry.state;
	char *name = NULL;
	int r = sd_bus_path_decode(path, BUS_KNOB_PATH, &name);

	(void)connection;
	(void)interface;
	(void)error;
	*ret_found = NULL;
	for (uint32_t i = 0; r > 0 && i < s->nr_knobs; i++)
		if (streq(s->knobs[i].name, name))
			*ret_found = &s->knobs[i];
	free(name);
	return r < 0 ? r : *ret_found != NULL;
}

static int list_knobs(sd_bus *connection, const char *prefix, void *userdata, char ***ret_nodes,
		      sd_bus_error *error)
{
	const struct bus *b = userdata;
	const struct daemon_state *s = &b->m->telemetry.state;
	char **nodes = calloc(s->nr_knobs + 1U, sizeof(*nodes));
	int r = nodes ? 0 : -ENOMEM;

	(void)connection;
	(void)prefix;
	(void)error;
	for (uint32_t i = 0; i < s->nr_knobs && r >= 0; i++)
		r = sd_bus_path_encode(BUS_KNOB_PATH, s->knobs[i].name, &nodes[i]);
	if (r < 0) {
		for (char **n = nodes; n && *n; n++)
			free(*n);
		free(nodes);
		return r;
	}
	*ret_nodes = nodes;
	return 1;
}

int bus_objects_add(struct bus *b, sd_bus *connection)
{
	int r = sd_bus_add_object_vtable(connection, NULL, BUS_PATH, BUS_MANAGER, manager_vtable,
					 b);

	if (r >= 0)
		r = sd_bus_add_fallback_vtable(connection, NULL, BUS_KNOB_PATH, BUS_KNOB,
					       knob_vtable, find_knob, b);
	if (r >= 0)
		r = sd_bus_add_node_enumerator(connection, NULL, BUS_KNOB_PATH, list_knobs, b);
	return r;
}

void bus_objects_emit(struct bus *b, sd_bus *connection, const char *knob_path)
{
	(void)b;
	(void)sd_bus_emit_properties_changed(connection, knob_path, BUS_KNOB, "Value", "Baseline",
					     "Owner", "State", "Reason", "Policy", "Since", NULL);
}

void bus_objects_emit_manager(struct bus *b, sd_bus *connection)
{
	(void)b;
	(void)sd_bus_emit_properties_changed(connection, BUS_PATH, BUS_MANAGER, "Mode",
					     "ModeReason", "Paused", "PausedUntil", "DrainBlocked",
					     NULL);
}
