/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tell/state.h"

#include "tell/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include <json-c/json.h>

#define STATE_DIR_REL "run/pcptune"
#define STATE_NAME    "state.json"
/* More policies than anybody has are surely no state of ours. */
#define STATE_POLICIES_MAX 10000U

static const char *const owner_names[] = {
	[OWNER_KERNEL] = "kernel",
	[OWNER_POLICY] = "policy",
	[OWNER_PIN] = "pin",
	[OWNER_FOREIGN] = "foreign",
};
_Static_assert(ARRAY_SIZE(owner_names) == _OWNER_MAX, "name every owner");

static const char *const state_names[] = {
	[SHOWN_OFF] = "off",       [SHOWN_ARMING] = "arming",
	[SHOWN_ON] = "on",         [SHOWN_RELEASING] = "releasing",
	[SHOWN_HELD] = "held",     [SHOWN_LOCKED_OUT] = "locked out",
	[SHOWN_BLIND] = "blind",   [SHOWN_PINNED] = "pinned",
	[SHOWN_PAUSED] = "paused", [SHOWN_FOREIGN] = "foreign",
	[SHOWN_FAILED] = "failed",
};
_Static_assert(ARRAY_SIZE(state_names) == _SHOWN_MAX, "name every state");

const char *shown_owner_name(enum shown_owner o)
{
	return owner_names[o];
}

const char *shown_state_name(enum shown_state s)
{
	return state_names[s];
}

void state_free(struct daemon_state *s)
{
	free(s->policies);
	*s = (struct daemon_state){0};
}

void state_add_decision(struct daemon_state *s, const struct state_decision *d)
{
	s->nr_decisions = MIN_OF(s->nr_decisions + 1, STATE_DECISIONS_MAX);
	memmove(s->decisions + 1, s->decisions, (s->nr_decisions - 1) * sizeof(*d));
	s->decisions[0] = *d;
}

void state_add_drain(struct daemon_state *s, const struct state_drain *d)
{
	s->nr_drains = MIN_OF(s->nr_drains + 1, STATE_DRAINS_MAX);
	memmove(s->drains + 1, s->drains, (s->nr_drains - 1) * sizeof(*d));
	s->drains[0] = *d;
}

/* writing */

static void put_known(struct json_out *j, const char *key, bool known, uint64_t value)
{
	if (known)
		json_put_u64(j, key, value);
	else
		json_put_null(j, key);
}

static void put_knob(struct json_out *j, const struct state_knob *k)
{
	json_begin_object(j, NULL);
	json_put_str(j, "knob", k->name);
	put_known(j, "value", k->has_value, k->value);
	put_known(j, "baseline", k->has_baseline, k->baseline);
	json_put_str(j, "owner", shown_owner_name(k->owner));
	json_put_str(j, "state", shown_state_name(k->state));
	json_put_str(j, "policy", k->policy);
	json_put_str(j, "rule", k->rule);
	json_put_str(j, "reason", k->reason);
	json_put_usec(j, "since", k->since_usec);
	json_end_object(j);
}

static void put_policy(struct json_out *j, const struct state_policy *p)
{
	json_begin_object(j, NULL);
	json_put_str(j, "policy", p->name);
	json_put_i64(j, "priority", p->priority);
	json_put_str(j, "mode", p->enforce ? "enforce" : "observe");
	json_put_str(j, "state", p->state);
	json_put_str(j, "reason", p->reason);
	json_end_object(j);
}

static void put_decision(struct json_out *j, const struct state_decision *d)
{
	json_begin_object(j, NULL);
	json_put_usec(j, "time", d->time_usec);
	json_put_str(j, "knob", d->knob);
	json_put_u64(j, "from", d->from);
	json_put_u64(j, "to", d->to);
	json_put_str(j, "policy", d->policy);
	json_put_str(j, "rule", d->rule);
	json_put_str(j, "result", d->result);
	json_put_str(j, "reason", d->reason);
	json_end_object(j);
}

static void put_drain(struct json_out *j, const struct state_drain *d)
{
	json_begin_object(j, NULL);
	json_put_usec(j, "time", d->time_usec);
	json_put_str(j, "mode", d->mode);
	json_put_str(j, "policy", d->policy);
	json_put_str(j, "rule", d->rule);
	json_put_str(j, "result", d->result);
	json_put_u64(j, "before_pages", d->before_pages);
	json_put_u64(j, "after_pages", d->after_pages);
	json_put_u64(j, "passes", d->passes);
	json_put_usec(j, "seconds", d->took_usec);
	json_put_str(j, "reason", d->reason);
	json_end_object(j);
}

static void put_event(struct json_out *j, const struct state_event *e)
{
	json_begin_object(j, NULL);
	json_put_str(j, "source", e->source);
	json_put_str(j, "state", e->state);
	json_put_str(j, "reason", e->reason);
	json_end_object(j);
}

void state_to_json(const struct daemon_state *s, struct text *out)
{
	struct json_out j = JSON_OUT(out);

	text_clear(out);
	json_begin_object(&j, NULL);
	json_put_u64(&j, "schema", STATE_SCHEMA);
	json_put_str(&j, "version", s->version);
	json_put_i64(&j, "pid", s->pid);
	json_put_str(&j, "mode", s->enforce ? "enforce" : "observe");
	json_put_str(&j, "mode_reason", s->mode_reason);
	json_put_usec(&j, "started", s->started_usec);
	json_put_usec(&j, "written", s->written_usec);
	json_put_usec(&j, "interval_seconds", s->interval_usec);
	json_put_u64(&j, "page_bytes", s->page_bytes);
	json_put_str(&j, "metrics", s->metrics);
	if (s->paused)
		json_put_usec(&j, "paused_until", s->paused_until_usec);
	else
		json_put_null(&j, "paused_until");
	json_begin_array(&j, "knobs");
	for (uint32_t i = 0; i < s->nr_knobs; i++)
		put_knob(&j, &s->knobs[i]);
	json_end_array(&j);
	json_begin_array(&j, "policies");
	for (uint32_t i = 0; i < s->nr_policies; i++)
		put_policy(&j, &s->policies[i]);
	json_end_array(&j);
	json_begin_array(&j, "decisions");
	for (uint32_t i = 0; i < s->nr_decisions; i++)
		put_decision(&j, &s->decisions[i]);
	json_end_array(&j);
	json_begin_array(&j, "drains");
	for (uint32_t i = 0; i < s->nr_drains; i++)
		put_drain(&j, &s->drains[i]);
	json_end_array(&j);
	json_put_bool(&j, "drain_blocked", s->drain_blocked);
	json_begin_array(&j, "events");
	for (uint32_t i = 0; i < s->nr_events; i++)
		put_event(&j, &s->events[i]);
	json_end_array(&j);
	json_end_object(&j);
}

/* renameat(2) within run/pcptune, which is opened below the root first. */
int state_write(struct daemon_state *s, const struct sysroot *root, uint64_t now_usec,
		struct text *scratch, struct error *e)
{
	int r = -ENOMEM;

	s->written_usec = now_usec;
	state_to_json(s, scratch);
	if (!scratch->failed)
		r = sysroot_replace(root, STATE_REL, scratch->data, scratch->len, 0644);
	if (r < 0)
		return error_set(
			e, r,
			"cannot write the state for pcptunectl to %s/%s: %s; it goes on without",
			root->path, STATE_REL, error_name(r));
	return 0;
}

int state_remove(const struct sysroot *root)
{
	_cleanup_(closep) int dir = sysroot_openat(root, STATE_DIR_REL, O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	if (unlinkat(dir, STATE_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* reading: what has another type counts as not there */

static void get_str(struct json_object *o, const char *key, char *into, size_t size)
{
	struct json_object *v = NULL;

	into[0] = '\0';
	if (json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_string))
		(void)snprintf(into, size, "%s", json_object_get_string(v));
}

static bool get_u64(struct json_object *o, const char *key, uint64_t *ret)
{
	struct json_object *v = NULL;

	*ret = 0;
	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_int))
		return false;
	*ret = json_object_get_uint64(v);
	return true;
}

static bool get_usec(struct json_object *o, const char *key, uint64_t *ret)
{
	struct json_object *v = NULL;
	double seconds;

	*ret = 0;
	if (!json_object_object_get_ex(o, key, &v) ||
	    !(json_object_is_type(v, json_type_double) || json_object_is_type(v, json_type_int)))
		return false;
	seconds = json_object_get_double(v);
	if (!(seconds >= 0 && seconds < 1e12))
		return false;
	*ret = (uint64_t)llround(seconds * 1e6);
	return true;
}

static bool get_bool(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_boolean) &&
	       json_object_get_boolean(v);
}

static bool is_word(struct json_object *o, const char *key, const char *word)
{
	char text[STATE_WORD];

	get_str(o, key, text, sizeof(text));
	return streq(text, word);
}

static int find_name(struct json_object *o, const char *key, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (is_word(o, key, names[i]))
			return (int)i;
	return 0;
}

static size_t get_array(struct json_object *o, const char *key, struct json_object **ret)
{
	*ret = NULL;
	if (!json_object_object_get_ex(o, key, ret) || !json_object_is_type(*ret, json_type_array))
		return 0;
	return json_object_array_length(*ret);
}

static void read_knob(struct json_object *o, struct state_knob *k)
{
	get_str(o, "knob", k->name, sizeof(k->name));
	k->has_value = get_u64(o, "value", &k->value);
	k->has_baseline = get_u64(o, "baseline", &k->baseline);
	k->owner = (enum shown_owner)find_name(o, "owner", owner_names, ARRAY_SIZE(owner_names));
	k->state = (enum shown_state)find_name(o, "state", state_names, ARRAY_SIZE(state_names));
	get_str(o, "policy", k->policy, sizeof(k->policy));
	get_str(o, "rule", k->rule, sizeof(k->rule));
	get_str(o, "reason", k->reason, sizeof(k->reason));
	(void)get_usec(o, "since", &k->since_usec);
}

static void read_policy(struct json_object *o, struct state_policy *p)
{
	uint64_t priority;

	get_str(o, "policy", p->name, sizeof(p->name));
	(void)get_u64(o, "priority", &priority);
	p->priority = (int)MIN_OF(priority, UINT64_C(1000));
	p->enforce = is_word(o, "mode", "enforce");
	get_str(o, "state", p->state, sizeof(p->state));
	get_str(o, "reason", p->reason, sizeof(p->reason));
}

static void read_decision(struct json_object *o, struct state_decision *d)
{
	(void)get_usec(o, "time", &d->time_usec);
	get_str(o, "knob", d->knob, sizeof(d->knob));
	(void)get_u64(o, "from", &d->from);
	(void)get_u64(o, "to", &d->to);
	get_str(o, "policy", d->policy, sizeof(d->policy));
	get_str(o, "rule", d->rule, sizeof(d->rule));
	get_str(o, "result", d->result, sizeof(d->result));
	get_str(o, "reason", d->reason, sizeof(d->reason));
}

static void read_drain(struct json_object *o, struct state_drain *d)
{
	(void)get_usec(o, "time", &d->time_usec);
	get_str(o, "mode", d->mode, sizeof(d->mode));
	get_str(o, "policy", d->policy, sizeof(d->policy));
	get_str(o, "rule", d->rule, sizeof(d->rule));
	get_str(o, "result", d->result, sizeof(d->result));
	(void)get_u64(o, "before_pages", &d->before_pages);
	(void)get_u64(o, "after_pages", &d->after_pages);
	(void)get_u64(o, "passes", &d->passes);
	(void)get_usec(o, "seconds", &d->took_usec);
	get_str(o, "reason", d->reason, sizeof(d->reason));
}

static void read_event(struct json_object *o, struct state_event *e)
{
	get_str(o, "source", e->source, sizeof(e->source));
	get_str(o, "state", e->state, sizeof(e->state));
	get_str(o, "reason", e->reason, sizeof(e->reason));
}

static void read_head(struct json_object *o, struct daemon_state *s)
{
	uint64_t pid;

	get_str(o, "version", s->version, sizeof(s->version));
	(void)get_u64(o, "pid", &pid);
	s->pid = pid <= INT32_MAX ? (pid_t)pid : 0;
	s->enforce = is_word(o, "mode", "enforce");
	get_str(o, "mode_reason", s->mode_reason, sizeof(s->mode_reason));
	(void)get_usec(o, "started", &s->started_usec);
	(void)get_usec(o, "written", &s->written_usec);
	(void)get_usec(o, "interval_seconds", &s->interval_usec);
	(void)get_u64(o, "page_bytes", &s->page_bytes);
	get_str(o, "metrics", s->metrics, sizeof(s->metrics));
	s->paused = get_usec(o, "paused_until", &s->paused_until_usec);
	s->drain_blocked = get_bool(o, "drain_blocked");
}

static int read_lists(struct json_object *o, struct daemon_state *s)
{
	struct json_object *a;
	size_t nr;

	nr = MIN_OF(get_array(o, "events", &a), (size_t)STATE_EVENTS_MAX);
	for (size_t i = 0; i < nr; i++)
		read_event(json_object_array_get_idx(a, i), &s->events[i]);
	s->nr_events = (uint32_t)nr;
	nr = MIN_OF(get_array(o, "knobs", &a), (size_t)STATE_KNOBS_MAX);
	for (; s->nr_knobs < nr; s->nr_knobs++)
		read_knob(json_object_array_get_idx(a, s->nr_knobs), &s->knobs[s->nr_knobs]);
	nr = MIN_OF(get_array(o, "decisions", &a), (size_t)STATE_DECISIONS_MAX);
	for (; s->nr_decisions < nr; s->nr_decisions++)
		read_decision(json_object_array_get_idx(a, s->nr_decisions),
			      &s->decisions[s->nr_decisions]);
	nr = MIN_OF(get_array(o, "drains", &a), (size_t)STATE_DRAINS_MAX);
	for (; s->nr_drains < nr; s->nr_drains++)
		read_drain(json_object_array_get_idx(a, s->nr_drains), &s->drains[s->nr_drains]);
	nr = MIN_OF(get_array(o, "policies", &a), (size_t)STATE_POLICIES_MAX);
	if (nr == 0)
		return 0;
	s->policies = calloc(nr, sizeof(*s->policies));
	if (!s->policies)
		return -ENOMEM;
	for (; s->nr_policies < nr; s->nr_policies++)
		read_policy(json_object_array_get_idx(a, s->nr_policies),
			    &s->policies[s->nr_policies]);
	return 0;
}

static void json_putp(struct json_object **o)
{
	(void)json_object_put(*o);
}

int state_from_json(struct daemon_state *ret, const char *json, struct error *e)
{
	_cleanup_(json_putp) struct json_object *o = json_tokener_parse(json);
	_cleanup_(state_free) struct daemon_state s = {0};
	uint64_t schema;
	int r;

	if (!json_object_is_type(o, json_type_object) || !get_u64(o, "schema", &schema))
		return error_set(e, -EBADMSG,
				 "the daemon's state is no JSON object with a \"schema\" number");
	if (schema > STATE_SCHEMA)
		return error_set(e, -EPROTONOSUPPORT,
				 "the daemon's state has schema %llu and this pcptunectl knows %d; "
				 "use the pcptunectl that came with the running daemon",
				 (unsigned long long)schema, STATE_SCHEMA);
	read_head(o, &s);
	r = read_lists(o, &s);
	if (r < 0)
		return error_set(e, r, "out of memory while reading the daemon's state");
	*ret = s;
	s.policies = NULL;
	return 0;
}

int state_read(struct daemon_state *ret, const struct sysroot *root, struct error *e)
{
	_cleanup_(text_free) struct text text = {0};
	int r = sysroot_read(root, STATE_REL, &text);

	if (r < 0)
		return error_set(e, r, "cannot read %s/%s: %s", root->path, STATE_REL,
				 error_name(r));
	r = state_from_json(ret, text_str(&text), e);
	if (r < 0)
		(void)error_prefix(e, "%s/%s", root->path, STATE_REL);
	return r;
}
