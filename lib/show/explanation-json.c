/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "show/explanation-json.h"

#include <math.h>

static void put_number(struct json_out *j, const char *key, double v)
{
	if (isnan(v))
		json_put_null(j, key);
	else
		json_put_double(j, key, v);
}

static void put_condition(struct json_out *j, const char *key, const struct explain_condition *on)
{
	if (!on->text) {
		json_put_null(j, key);
		return;
	}
	json_begin_object(j, key);
	json_put_str(j, "key", on->key);
	json_put_str(j, "text", on->text);
	json_put_str(j, "holds", kleene_name(on->holds));
	json_put_usec(j, "needs_seconds", on->needs_usec);
	json_put_usec(j, "held_seconds", on->held_usec);
	json_put_usec(j, "missing_seconds", on->missing_usec);
	json_begin_array(j, "terms");
	for (size_t i = 0; i < on->nr_terms; i++) {
		json_begin_object(j, NULL);
		json_put_str(j, "text", on->terms[i].text);
		json_put_str(j, "holds", kleene_name(on->terms[i].holds));
		if (on->terms[i].comparison) {
			put_number(j, "left", on->terms[i].left);
			put_number(j, "right", on->terms[i].right);
		}
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static void put_rule(struct json_out *j, const struct explain_rule *r)
{
	json_begin_object(j, NULL);
	json_put_str(j, "policy", r->policy);
	json_put_str(j, "rule", r->rule);
	json_put_str(j, "file", r->file);
	json_put_u64(j, "line", r->line);
	json_put_i64(j, "priority", r->priority);
	json_put_str(j, "mode", r->observe ? "observe" : "enforce");
	json_put_bool(j, "asleep", r->asleep);
	json_put_str(j, "asleep_reason", r->asleep_why);
	json_put_str(j, "state", rule_state_name(r->state));
	json_put_str(j, "standing", explain_standing_name(r->standing));
	json_put_str(j, "waits_for", r->waits);
	if (r->value_known)
		json_put_u64(j, "value", r->value);
	else
		json_put_null(j, "value");
	put_condition(j, "on", &r->on);
	put_condition(j, "off", &r->off);
	put_condition(j, "guard", &r->guard);
	json_end_object(j);
}

void explanation_to_json(struct json_out *j, const struct explanation *x, const char *name)
{
	json_begin_object(j, NULL);
	json_put_str(j, "knob", name);
	if (!x->is_trims) {
		json_put_u64(j, "value", x->current);
		json_put_u64(j, "baseline", x->baseline);
		json_put_str(j, "state", rule_state_name(x->knob.state));
	}
	json_begin_array(j, "rules");
	for (size_t i = 0; i < x->nr_rules; i++)
		put_rule(j, &x->rules[i]);
	json_end_array(j);
	json_begin_array(j, "signals");
	for (size_t i = 0; i < x->nr_signals; i++) {
		json_begin_object(j, NULL);
		json_put_str(j, "signal", x->signals[i].name);
		put_number(j, "value", x->signals[i].value);
		json_put_str(j, "unknown_because", x->signals[i].why);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}
