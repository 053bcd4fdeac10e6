/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "remembered.h"

#include "tell/json.h"

#include <errno.h>
#include <json-c/json.h>

#define SCHEMA       1
#define LOCKOUTS_MAX 256U
#define PINS_MAX     32U

static void put_lockout(struct json_out *j, const struct engine_saved_lockout *l,
			uint64_t page_bytes, bool times)
{
	char knob[KNOB_NAME_MAX];

	json_begin_object(j, NULL);
	json_put_str(j, "policy", l->policy);
	json_put_str(j, "knob", knob_name(l->knob, page_bytes, knob));
	json_put_u64(j, "level", l->level);
	if (times) {
		json_put_u64(j, "remaining_usec", l->remaining_usec);
		json_put_u64(j, "clean_usec", l->clean_usec);
	}
	json_end_object(j);
}

static void put_pin(struct json_out *j, const struct engine_saved_pin *p, uint64_t page_bytes,
		    bool times)
{
	char knob[KNOB_NAME_MAX];

	json_begin_object(j, NULL);
	json_put_str(j, "knob", knob_name(p->knob, page_bytes, knob));
	json_put_u64(j, "value", p->value);
	if (times && p->remaining_usec != USEC_INFINITY)
		json_put_u64(j, "remaining_usec", p->remaining_usec);
	json_end_object(j);
}

/* Without `times`: what must be saved anew when it differs. */
static void format(struct text *out, const struct engine *engine, const struct pause *pause,
		   uint64_t page_bytes, struct act_time now, bool times)
{
	struct engine_saved_lockout lockouts[LOCKOUTS_MAX];
	struct engine_saved_pin pins[PINS_MAX];
	struct json_out j = JSON_OUT(out);
	size_t n;

	text_clear(out);
	json_begin_object(&j, NULL);
	json_put_u64(&j, "schema", SCHEMA);
	if (times)
		json_put_u64(&j, "monotonic_usec", now.mono_usec);
	/* the end of a pause does not move: it is saved whenever another one is set */
	json_put_bool(&j, "paused", pause->on);
	if (pause->on && pause->until_usec != USEC_INFINITY)
		json_put_u64(&j, "paused_until_usec", pause->until_usec);
	json_begin_array(&j, "lockouts");
	n = engine_export_lockouts(engine, now.mono_usec, lockouts, LOCKOUTS_MAX);
	for (size_t i = 0; i < MIN_OF(n, (size_t)LOCKOUTS_MAX); i++)
		put_lockout(&j, &lockouts[i], page_bytes, times);
	json_end_array(&j);
	json_begin_array(&j, "pins");
	n = engine_export_pins(engine, now.mono_usec, pins, PINS_MAX);
	for (size_t i = 0; i < MIN_OF(n, (size_t)PINS_MAX); i++)
		put_pin(&j, &pins[i], page_bytes, times);
	json_end_array(&j);
	json_end_object(&j);
}

int remembered_save(struct remembered *r, const struct engine *engine, const struct pause *pause,
		    const struct sysroot *root, uint64_t page_bytes, struct act_time now)
{
	struct text spare;
	int result;

	format(&r->text, engine, pause, page_bytes, now, false);
	if (r->text.failed)
		return -ENOMEM;
	if (streq(text_str(&r->text), text_str(&r->saved)))
		return 0;
	spare = r->saved;
	r->saved = r->text;
	r->text = spare;
	format(&r->text, engine, pause, page_bytes, now, true);
	if (r->text.failed)
		return -ENOMEM;
	result = sysroot_replace(root, REMEMBERED_REL, r->text.data, r->text.len, 0644);
	if (result < 0)
		text_clear(&r->saved); /* try again next time */
	return result;
}

void remembered_free(struct remembered *r)
{
	text_free(&r->text);
	text_free(&r->saved);
}

static uint64_t get_u64(const struct json_object *o, const char *key, uint64_t otherwise)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_int))
		return otherwise;
	return json_object_get_uint64(v);
}

static bool get_bool(const struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) && json_object_get_boolean(v);
}

static const char *get_str(const struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_string)
		       ? json_object_get_string(v)
		       : "";
}

static struct json_object *get_array(const struct json_object *o, const char *key, size_t *n)
{
	struct json_object *v;

	*n = 0;
	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_array))
		return NULL;
	*n = json_object_array_length(v);
	return v;
}

/* What names no knob of this machine is passed over: its size may be gone. */
static size_t read_lockouts(const struct json_object *o, uint64_t page_bytes,
			    struct engine_saved_lockout *out)
{
	size_t n, taken = 0;
	struct json_object *list = get_array(o, "lockouts", &n);

	for (size_t i = 0; i < n && taken < LOCKOUTS_MAX; i++) {
		const struct json_object *from = json_object_array_get_idx(list, i);
		struct engine_saved_lockout l = {
			.level = (unsigned)MIN_OF(get_u64(from, "level", 0), UINT64_C(63)),
			.remaining_usec = get_u64(from, "remaining_usec", 0),
			.clean_usec = get_u64(from, "clean_usec", 0),
		};

		(void)snprintf(l.policy, sizeof(l.policy), "%s", get_str(from, "policy"));
		if (knob_parse(get_str(from, "knob"), page_bytes, &l.knob) == 0)
			out[taken++] = l;
	}
	return taken;
}

static size_t read_pins(const struct json_object *o, uint64_t page_bytes,
			struct engine_saved_pin *out)
{
	size_t n, taken = 0;
	struct json_object *list = get_array(o, "pins", &n);

	for (size_t i = 0; i < n && taken < PINS_MAX; i++) {
		const struct json_object *from = json_object_array_get_idx(list, i);
		struct engine_saved_pin p = {
			.value = get_u64(from, "value", 0),
			.remaining_usec = get_u64(from, "remaining_usec", USEC_INFINITY),
		};

		if (knob_parse(get_str(from, "knob"), page_bytes, &p.knob) == 0)
			out[taken++] = p;
	}
	return taken;
}

static void json_putp(struct json_object **o)
{
	(void)json_object_put(*o);
}

int remembered_load(struct engine *engine, struct pause *pause, const struct sysroot *root,
		    uint64_t page_bytes, struct act_time now, struct error *e)
{
	_cleanup_(json_putp) struct json_object *o = NULL;
	_cleanup_(text_free) struct text text = {0};
	struct engine_saved_lockout lockouts[LOCKOUTS_MAX];
	struct engine_saved_pin pins[PINS_MAX];
	uint64_t then, age;
	int r;

	r = sysroot_read(root, REMEMBERED_REL, &text);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return error_set(e, r, "cannot read %s/%s: %s; lockouts and pins start anew",
				 root->path, REMEMBERED_REL, error_name(r));
	o = json_tokener_parse(text_str(&text));
	if (!o || !json_object_is_type(o, json_type_object) || get_u64(o, "schema", 0) != SCHEMA)
		return error_set(
			e, -EBADMSG,
			"%s/%s is damaged or of another version: lockouts and pins start anew",
			root->path, REMEMBERED_REL);
	then = get_u64(o, "monotonic_usec", 0);
	age = now.mono_usec > then ? now.mono_usec - then : 0;
	engine_import_lockouts(engine, now.mono_usec, age, lockouts,
			       read_lockouts(o, page_bytes, lockouts));
	engine_import_pins(engine, now.mono_usec, age, pins, read_pins(o, page_bytes, pins));
	*pause = (struct pause){get_bool(o, "paused"),
				get_u64(o, "paused_until_usec", USEC_INFINITY)};
	return 0;
}
