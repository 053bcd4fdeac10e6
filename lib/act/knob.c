/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/knob.h"

#include "act/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#define EINTR_TRIES 100

int knob_read(const struct act_env *env, struct knob_id id, uint64_t *ret)
{
	char rel[KNOB_REL_MAX];
	uint64_t text;
	int r;

	(void)knob_rel(id, env->orders, env->page_bytes, rel, sizeof(rel));
	r = act_pass_point(env, ACT_KNOB_READ, rel);
	if (r == 0)
		r = sysroot_read_u64(env->root, rel, &text);
	if (r < 0)
		return r;
	return knob_from_file(id, env->orders, text, ret) < 0 ? -EBADMSG : 0;
}

/* One write(2): a number in two pieces would be two numbers. */
static int write_once(const struct act_env *env, const char *rel, uint64_t value, bool *written)
{
	_cleanup_(closep) int fd = -1;
	char text[24];
	ssize_t n = -1;
	size_t len;
	int r;

	len = (size_t)snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	fd = sysroot_openat(env->root, rel, O_WRONLY, 0);
	if (fd < 0)
		return fd;
	for (int tries = 0; tries < EINTR_TRIES; tries++) {
		r = act_pass_point(env, ACT_KNOB_WRITE, rel);
		if (r == -EINTR)
			continue;
		if (r < 0)
			return r;
		if (env->plain && ftruncate(fd, 0) < 0)
			return -errno;
		*written = true;
		n = write(fd, text, r > 0 ? MIN_OF((size_t)r, len) : len);
		if (n >= 0 || errno != EINTR)
			break;
	}
	if (!*written)
		return -EINTR;
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

static int fail(struct knob_report *rep, enum knob_stage stage, int error)
{
	rep->outcome = KNOB_REFUSED;
	rep->stage = stage;
	rep->error = error;
	return error;
}

/* Pages of this order on the lists; of all orders where the kernel does not count one by one. */
static bool read_parked(const struct act_env *env, unsigned order, uint64_t *ret)
{
	_cleanup_(zoneinfo_free) struct zoneinfo zi = {0};
	_cleanup_(text_free) struct text text = {0};
	uint64_t blocks = 0, pages = 0, counted;
	char rel[KNOB_REL_MAX * 2];

	if (order >= PCP_ORDERS_MAX || sysroot_read(env->root, "proc/zoneinfo", &text) < 0 ||
	    zoneinfo_parse(&zi, text_str(&text), text.len, 0, NULL) < 0)
		return false;
	for (uint32_t i = 0; i < zi.nr_pagesets; i++) {
		pages += zi.pagesets[i].value[PAGESET_COUNT];
		blocks += zi.pagesets[i].order[order];
	}
	(void)snprintf(rel, sizeof(rel), THP_REL "/hugepages-%" PRIu64 "kB/stats/pcp_order_stat",
		       (env->page_bytes << order) / 1024);
	if (zi.prints_orders)
		*ret = blocks << order;
	else if (sysroot_read_u64(env->root, rel, &counted) == 0)
		*ret = counted << order;
	else
		*ret = pages;
	return true;
}

int knob_apply(const struct act_env *env, struct knob_id id, uint64_t wanted,
	       const uint64_t *expected, unsigned flags, struct knob_report *rep)
{
	bool drains = id.kind == KNOB_PCP_ENABLED && wanted == 0;
	char rel[KNOB_REL_MAX];
	int r, verify;

	*rep = (struct knob_report){.id = id, .wanted = wanted};
	if (!knob_value_valid(id, wanted))
		return fail(rep, KNOB_STAGE_CHECK, -ERANGE);
	r = knob_read(env, id, &rep->before);
	if (r < 0)
		return fail(rep, KNOB_STAGE_READ, r);
	rep->after = rep->before;
	rep->after_known = true;
	if (expected && rep->before != *expected && rep->before != wanted)
		return fail(rep, KNOB_STAGE_READ, -ESTALE);
	if (rep->before == wanted && !(flags & KNOB_FORCE))
		return 0;

	rep->parked_known = drains && read_parked(env, id.order, &rep->parked_before);
	(void)knob_rel(id, env->orders, env->page_bytes, rel, sizeof(rel));
	r = write_once(env, rel, knob_to_file(id, env->orders, wanted), &rep->written);
	if (r == 0)
		r = act_pass_point(env, ACT_KNOB_WRITTEN, rel);
	verify = act_pass_point(env, ACT_KNOB_VERIFY, rel);
	if (verify == 0)
		verify = knob_read(env, id, &rep->after);
	rep->after_known = verify == 0;
	rep->parked_known = rep->parked_known && read_parked(env, id.order, &rep->parked_after);
	if (r < 0)
		return fail(rep, KNOB_STAGE_WRITE, r);
	if (verify < 0)
		return fail(rep, KNOB_STAGE_VERIFY, verify);
	rep->stage = KNOB_STAGE_VERIFY;
	rep->outcome = rep->after == wanted ? KNOB_APPLIED : KNOB_ADJUSTED;
	return 0;
}

static const char *advice(int error, const struct knob_id *id)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
		return "run as root, and let the unit write to it (ReadWritePaths=)";
	case -EROFS:
		return "it is mounted read-only here: run on the host, or remount it writable";
	case -ENOENT:
		return id->kind == KNOB_HIGH_FRACTION
			       ? "this kernel does not have it (5.14 and later do)"
			       : "this kernel does not have it (it comes with a patch)";
	case -EINVAL:
		return "the kernel does not take this value";
	default:
		return "the value stays as it was";
	}
}

/* Why nothing came of it; `path` is the knob's file. */
static void refusal_sentence(const struct act_env *env, const struct knob_report *rep,
			     const char *path, struct text *into)
{
	const char *why = error_name(rep->error);

	switch (rep->stage) {
	case KNOB_STAGE_CHECK:
		text_addf(into, "%" PRIu64 " is no value of it; it takes %s", rep->wanted,
			  rep->id.kind == KNOB_HIGH_FRACTION ? "0, and 8 to 2147483647"
							     : "0 and 1");
		return;
	case KNOB_STAGE_RECORD:
		text_addf(into,
			  "%" PRIu64 " was not written, because %s/%s could not be replaced first: "
			  "%s",
			  rep->wanted, env->root->path, RECORD_REL, why);
		return;
	case KNOB_STAGE_READ:
		if (rep->error == -ESTALE) {
			text_addf(into,
				  "%" PRIu64 " was not written: %s has %" PRIu64
				  ", which somebody else wrote",
				  rep->wanted, path, rep->before);
			return;
		}
		text_addf(into, "cannot read %s: %s; ", path, why);
		break;
	case KNOB_STAGE_WRITE:
		text_addf(into, "cannot write %" PRIu64 " to %s: %s; ", rep->wanted, path, why);
		break;
	case KNOB_STAGE_VERIFY:
		text_addf(into, "wrote %" PRIu64 " to %s, but cannot read it back: %s; ",
			  rep->wanted, path, why);
		break;
	}
	text_add(into, advice(rep->error, &rep->id));
}

void knob_report_sentence(const struct act_env *env, const struct knob_report *rep,
			  struct text *into)
{
	char name[KNOB_NAME_MAX], rel[KNOB_REL_MAX], path[256];

	(void)knob_name(rep->id, env->page_bytes, name);
	(void)knob_rel(rep->id, env->orders, env->page_bytes, rel, sizeof(rel));
	(void)snprintf(path, sizeof(path), "%s/%s", env->root->path, rel);
	text_addf(into, "%s: ", name);
	switch (rep->outcome) {
	case KNOB_UNCHANGED:
		text_addf(into, "is %" PRIu64 " already", rep->wanted);
		return;
	case KNOB_APPLIED:
		text_addf(into, "%" PRIu64 " -> %" PRIu64, rep->before, rep->after);
		if (rep->parked_known)
			text_addf(into, ", %" PRIu64 " pages came back from the lists",
				  knob_report_returned(rep));
		return;
	case KNOB_ADJUSTED:
		text_addf(into,
			  "wrote %" PRIu64 " to %s and the kernel took it, but it reads %" PRIu64
			  " afterwards",
			  rep->wanted, path, rep->after);
		return;
	case KNOB_REFUSED:
		refusal_sentence(env, rep, path, into);
		return;
	}
}

static bool pageset_differs(const struct pageset *p, uint64_t fraction)
{
	uint64_t min = p->value[PAGESET_HIGH_MIN], max = p->value[PAGESET_HIGH_MAX];
	uint64_t floor = 4 * p->value[PAGESET_BATCH];

	if (fraction > 0)
		return min != max;
	return min >= max && !(min == max && min == floor);
}

enum knob_check knob_check_zoneinfo(const struct zoneinfo *zi, uint64_t fraction, struct error *e)
{
	const uint32_t printed = 1U << PAGESET_HIGH_MIN | 1U << PAGESET_HIGH_MAX;
	enum knob_check result = KNOB_CHECK_UNKNOWN;

	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];

		for (uint32_t j = 0; j < z->nr_pagesets; j++) {
			const struct pageset *p = &zi->pagesets[z->first_pageset + j];

			if ((p->has & printed) != printed)
				continue;
			result = KNOB_CHECK_AGREES;
			if (!pageset_differs(p, fraction))
				continue;
			(void)error_set(
				e, -EBADMSG,
				"with high_fraction %" PRIu64
				" the list of CPU %u in node %d zone %s has high_min %" PRIu64
				" and high_max %" PRIu64,
				fraction, p->cpu, z->node, z->name, p->value[PAGESET_HIGH_MIN],
				p->value[PAGESET_HIGH_MAX]);
			return KNOB_CHECK_DIFFERS;
		}
	}
	return result;
}

int knob_blocks_parked(const struct snapshot *s, unsigned order, uint64_t *ret)
{
	const struct zoneinfo *zi = &s->zoneinfo;
	const struct mthp_size *size = snapshot_has(s, SOURCE_MTHP) ? mthp_by_order(&s->mthp, order)
								    : NULL;
	uint64_t blocks = 0, pages = 0;

	if (!snapshot_has(s, SOURCE_ZONEINFO) || order >= PCP_ORDERS_MAX)
		return -ENODATA;
	for (uint32_t i = 0; i < zi->nr_pagesets; i++) {
		pages += zi->pagesets[i].value[PAGESET_COUNT];
		blocks += zi->pagesets[i].order[order];
	}
	*ret = blocks;
	if (zi->prints_orders)
		return 0;
	for (uint32_t i = 0; size && i < size->nr_stats; i++)
		if (size->stat[i].valid && streq(size->stat[i].name, "pcp_order_stat")) {
			*ret = size->stat[i].value;
			return 0;
		}
	return pages >> order == 0 ? 0 : -ENODATA;
}
