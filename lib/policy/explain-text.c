/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/explain.h"

#include "base/format.h"

#include <inttypes.h>
#include <math.h>

static const char *usec_text(char *buf, uint64_t usec)
{
	return format_usec(buf, FORMAT_MAX, usec);
}

static void render_term(const struct explain_term *term, struct text *t)
{
	char left[VALUE_TEXT_MAX], right[VALUE_TEXT_MAX];

	text_addf(t, "      %-8s %s", kleene_name(term->holds), term->text);
	if (term->comparison)
		text_addf(t, "   (%s, %s)",
			  value_format(left, sizeof(left), term->left_dimension, term->left),
			  value_format(right, sizeof(right), term->right_dimension, term->right));
	text_add(t, "\n");
}

static void render_condition(const struct explain_condition *c, struct text *t)
{
	char held[FORMAT_MAX], missing[FORMAT_MAX];

	if (!c->text)
		return;
	text_addf(t, "    %s= is %s", c->key, kleene_name(c->holds));
	if (c->holds == KLEENE_TRUE && c->needs_usec && c->missing_usec)
		text_addf(t, " for %s, %s to go", usec_text(held, c->held_usec),
			  usec_text(missing, c->missing_usec));
	else if (c->holds == KLEENE_TRUE && c->held_usec)
		text_addf(t, " for %s", usec_text(held, c->held_usec));
	else if (c->holds != KLEENE_TRUE && c->needs_usec)
		text_addf(t, " (must hold for %s)", usec_text(held, c->needs_usec));
	text_add(t, "\n");
	for (size_t i = 0; i < c->nr_terms; i++)
		render_term(&c->terms[i], t);
}

static void render_guard(const struct explain_rule *r, struct text *t)
{
	char buf[FORMAT_MAX];

	render_condition(&r->guard, t);
	if (r->guard_watching)
		text_add(t, "    the guard is watching a change of this knob\n");
	if (r->lockout_usec)
		text_addf(t, "    locked out for another %s\n", usec_text(buf, r->lockout_usec));
	if (r->lockout_level)
		text_addf(t, "    the next lockout is doubled %u time%s\n", r->lockout_level,
			  r->lockout_level == 1 ? "" : "s");
}

static void render_rule(const struct explain_rule *r, bool trim, struct text *t)
{
	char buf[FORMAT_MAX];

	text_addf(t, "\n  %s/%s, priority %d%s: %s", r->policy, r->rule, r->priority,
		  r->observe ? ", only observes" : "", rule_state_name(r->state));
	if (r->in_state_usec != USEC_INFINITY)
		text_addf(t, " for %s", usec_text(buf, r->in_state_usec));
	if (!trim)
		text_addf(t, ", %s", explain_standing_name(r->standing));
	if (r->value_known)
		text_addf(t, ", value %" PRIu64, r->value);
	text_add(t, "\n");
	if (r->asleep)
		text_addf(t, "    sleeps: %s\n", r->asleep_why);
	if (r->waits[0])
		text_addf(t, "    waits: %s\n", r->waits);
	render_condition(&r->on, t);
	render_condition(&r->off, t);
	render_guard(r, t);
}

static void render_knob(const struct explanation *x, uint64_t page_bytes, struct text *t)
{
	const struct engine_knob_view *k = &x->knob;
	char name[KNOB_NAME_MAX], buf[FORMAT_MAX];

	text_addf(t, "%s: %s", knob_name(k->id, page_bytes, name), rule_state_name(k->state));
	if (k->since_usec)
		text_addf(t, " for %s",
			  usec_text(buf, x->now_usec - MIN_OF(k->since_usec, x->now_usec)));
	if (x->current_known)
		text_addf(t, ", %" PRIu64 " (baseline %" PRIu64 ")", x->current, x->baseline);
	if (k->policy[0])
		text_addf(t, ", by %s/%s", k->policy, k->rule);
	if (k->state == RULE_PINNED)
		text_addf(t, ", pinned to %" PRIu64, x->pin_value);
	text_add(t, "\n");
	if (k->why[0])
		text_addf(t, "  %s\n", k->why);
	if (k->wait_until_usec != USEC_INFINITY && k->wait_until_usec > x->now_usec)
		text_addf(t, "  for another %s\n",
			  usec_text(buf, k->wait_until_usec - x->now_usec));
	if (k->observed)
		text_addf(t, "  observed: %s/%s would set %" PRIu64 "\n", k->observed_policy,
			  k->observed_rule, k->observed_value);
}

void explain_render(const struct explanation *x, uint64_t page_bytes, struct text *t)
{
	char value[VALUE_TEXT_MAX];

	if (x->is_trims)
		text_add(t, "drains by policy:\n");
	else
		render_knob(x, page_bytes, t);
	if (x->nr_rules == 0)
		text_add(t, "  no rule is about it\n");
	for (size_t i = 0; i < x->nr_rules; i++)
		render_rule(&x->rules[i], x->is_trims, t);
	if (x->nr_signals)
		text_add(t, "\n  signals\n");
	for (size_t i = 0; i < x->nr_signals; i++) {
		const struct explain_signal *s = &x->signals[i];

		text_addf(t, "    %s  %s", s->name,
			  value_format(value, sizeof(value), s->dimension, s->value));
		text_addf(t, "%s%s\n", s->why[0] ? ": " : "", s->why);
	}
}
