/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/drain.h"

#include "act/pass.h"
#include "base/format.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/eventfd.h>

#define PACE           9U /* a pause lasts at least so many times what the pass took */
#define PAUSE_MIN_USEC (2 * USEC_PER_MSEC)
#define SETTLED_PASSES 2U /* … that leave a list within a refill of its floor: a busy CPU */
#define STALE_PASSES   3U
#define END_LIMIT_USEC USEC_PER_MINUTE
#define NEEDED_SOURCES \
	(SOURCE_BIT(SOURCE_ZONEINFO) | SOURCE_BIT(SOURCE_KNOBS) | SOURCE_BIT(SOURCE_MTHP))

/* One CPU's list of one zone, as the last count found it. */
struct list {
	int32_t node;
	char zone[ZONE_NAME_MAX];
	uint32_t cpu;
	uint64_t count, lowest;
	uint64_t lowest_high; /* passes first lower `high`; the list follows once it is above */
	uint64_t target, allowance;
	uint32_t stale; /* passes that lowered neither */
};

struct drain {
	struct act_env env;
	struct actor *actor;
	struct drain_options o;
	char reason[REASON_MAX];
	struct sensor *sensor;
	int fd;
	struct pass *pass;
	uint64_t pass_usec; /* when it began */
	uint64_t begin_usec, pause_usec, counted_usec;
	bool has_moment; /* the actor has a transient value in place for us, or was asked for one */
	struct knob_id knob;
	const struct snapshot *snapshot; /* the sensor's newest */
	struct list *list, *next;
	size_t nr_lists, lists_room;
	struct drain_report r;
};

const char *drain_mode_name(enum drain_mode m)
{
	static const char *const names[] = {
		[DRAIN_TRIM] = "trim", [DRAIN_SQUEEZE] = "squeeze", [DRAIN_KERNEL] = "kernel"};
	_Static_assert(ARRAY_SIZE(names) == _DRAIN_MODE_MAX, "every mode has a name");

	return names[m];
}

int drain_mode_parse(const char *name, enum drain_mode *ret)
{
	for (enum drain_mode m = 0; m < _DRAIN_MODE_MAX; m++)
		if (streq(name, drain_mode_name(m))) {
			*ret = m;
			return 0;
		}
	return -EINVAL;
}

const char *drain_state_name(enum drain_state s)
{
	static const char *const names[] = {
		[DRAIN_PREPARING] = "preparing", [DRAIN_PASSING] = "passing",
		[DRAIN_PAUSING] = "pausing",     [DRAIN_ENDING] = "ending",
		[DRAIN_DONE] = "done",           [DRAIN_HUNG] = "hung",
	};

	return names[s];
}

static const char *const end_names[] = {
	[DRAIN_END_NOT_YET] = "not-yet",         [DRAIN_END_FLOOR] = "floor",
	[DRAIN_END_NO_PROGRESS] = "no-progress", [DRAIN_END_TIME] = "max-time",
	[DRAIN_END_STOPPED] = "stopped",         [DRAIN_END_BLOCKED] = "blocked",
	[DRAIN_END_FAILED] = "failed",
};

const char *drain_end_name(enum drain_end e)
{
	return end_names[e];
}

int drain_end_parse(const char *name, enum drain_end *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(end_names); i++)
		if (streq(name, end_names[i])) {
			*ret = (enum drain_end)i;
			return 0;
		}
	return -EINVAL;
}

static const struct mthp_size *controllable_size(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->mthp.nr_sizes; i++)
		if (s->mthp.size[i].controllable && s->mthp.size[i].pcp_enabled >= 0)
			return &s->mthp.size[i];
	return NULL;
}

static int check_isolation(const struct snapshot *s, struct error *e)
{
	int first = cpuset_next(&s->topology.isolated, 0);

	if (first < 0)
		first = cpuset_next(&s->topology.nohz_full, 0);
	if (first < 0)
		return 0;
	return error_set(e, -EPERM,
			 "CPU %d is isolated (isolcpus=, nohz_full=), and every pass wakes every "
			 "CPU; by hand, --isolated-too does it all the same",
			 first);
}

static int check_passes(const struct snapshot *s, const struct drain_options *o, struct error *e)
{
	const char *mode = drain_mode_name(o->mode);

	if (!s->has_stat_refresh)
		return error_set(e, -EOPNOTSUPP,
				 "%s: there is no /%s here, whose passes make CPUs give pages back",
				 mode, STAT_REFRESH_REL);
	if (s->pcp_autotune == 0)
		return error_set(e, -EOPNOTSUPP,
				 "%s: before Linux 6.7 a pass over /%s gives nothing of the local "
				 "node back; there a larger percpu_pagelist_high_fraction makes "
				 "each CPU's list shorter as that CPU frees memory",
				 mode, STAT_REFRESH_REL);
	if (o->mode == DRAIN_SQUEEZE && !s->has_high_fraction)
		return error_set(e, -EOPNOTSUPP, "%s: there is no /%s here to raise for a moment",
				 mode, HIGH_FRACTION_REL);
	return o->isolated_too ? 0 : check_isolation(s, e);
}

int drain_check(const struct snapshot *s, const struct drain_options *o, struct error *e)
{
	if (o->mode != DRAIN_KERNEL)
		return check_passes(s, o, e);
	if (s->mthp.orders == ORDERS_NONE || !controllable_size(s))
		return error_set(e, -EOPNOTSUPP,
				 "kernel: this kernel has no per-order control (pcp_enabled or "
				 "pcp_allow_high_order) whose switching off empties the lists; "
				 "--mode=squeeze brings them to their floor on 6.7 and later");
	return 0;
}

/* ---- counting ---- */

/*
 * What one refill may put on a list behind our back: of the largest order that it can hold,
 * nr_pcp_alloc() takes batch >> order blocks, but two at least.
 */
static uint64_t refill_pages(const struct snapshot *s, const struct pageset *p)
{
	uint64_t batch = p->value[PAGESET_BATCH], most = batch;
	unsigned pmd = s->mthp.pmd_order;

	for (unsigned o = 1; o < PCP_ORDERS_MAX && (o <= 3 || o <= pmd); o++) {
		bool cached = o <= 3 || o == pmd || s->mthp.orders != ORDERS_NONE;
		uint64_t blocks = MAX_OF(batch >> o, UINT64_C(2));

		if (cached)
			most = MAX_OF(most, blocks << o);
	}
	return most;
}

static uint64_t target_of(const struct drain *d, const struct pageset *p)
{
	if (d->r.mode == DRAIN_KERNEL)
		return 0;
	if (d->r.mode == DRAIN_TRIM)
		return pageset_has(p, PAGESET_HIGH_MIN) ? p->value[PAGESET_HIGH_MIN] : 0;
	return 4 * p->value[PAGESET_BATCH];
}

static bool same_list(const struct list *l, const struct zone *z, uint32_t cpu)
{
	return l->cpu == cpu && l->node == z->node && streq(l->zone, z->name);
}

/* Lists stand in the same order as last time unless CPUs or zones came or went. */
static const struct list *find_list(const struct drain *d, size_t guess, const struct zone *z,
				    uint32_t cpu)
{
	if (guess < d->nr_lists && same_list(&d->list[guess], z, cpu))
		return &d->list[guess];
	for (size_t i = 0; i < d->nr_lists; i++)
		if (same_list(&d->list[i], z, cpu))
			return &d->list[i];
	return NULL;
}

static struct list list_now(const struct drain *d, const struct snapshot *s, const struct zone *z,
			    const struct pageset *p, const struct list *before)
{
	struct list l = {
		.node = z->node,
		.cpu = p->cpu,
		.count = p->value[PAGESET_COUNT],
		.target = target_of(d, p),
		.allowance = refill_pages(s, p),
	};

	memcpy(l.zone, z->name, sizeof(l.zone));
	l.lowest = l.count;
	l.lowest_high = p->value[PAGESET_HIGH];
	if (!before)
		return l;
	if (l.count >= before->lowest && l.lowest_high >= before->lowest_high)
		l.stale = before->stale + 1;
	l.lowest = MIN_OF(l.lowest, before->lowest);
	l.lowest_high = MIN_OF(l.lowest_high, before->lowest_high);
	return l;
}

static int lists_reserve(struct drain *d, size_t n)
{
	struct list *a, *b;

	if (n <= d->lists_room)
		return 0;
	a = realloc(d->list, n * sizeof(*a));
	if (a)
		d->list = a;
	b = a ? realloc(d->next, n * sizeof(*b)) : NULL;
	if (b)
		d->next = b;
	if (!a || !b)
		return -ENOMEM;
	d->lists_room = n;
	return 0;
}

static struct drain_zone *report_zone(struct drain *d, const struct zone *z)
{
	struct drain_zone *rz;

	for (uint32_t i = 0; i < d->r.nr_zones; i++) {
		rz = &d->r.zone[i];
		if (rz->node == z->node && streq(rz->name, z->name))
			return rz;
	}
	if (d->r.nr_zones == DRAIN_ZONES_MAX)
		return NULL;
	rz = &d->r.zone[d->r.nr_zones++];
	*rz = (struct drain_zone){.node = z->node,
				  .before = zone_parked(&d->snapshot->zoneinfo, z)};
	memcpy(rz->name, z->name, sizeof(rz->name));
	return rz;
}

/* Is it where this drain can bring it? A busy CPU may have refilled it since the pass. */
static bool list_settled(const struct list *l)
{
	return l->count <= l->target || (l->stale > 0 && l->count <= l->target + l->allowance);
}

/* Reads zoneinfo and brings lists and report up to date. */
static int count_lists(struct drain *d, uint32_t sources, struct act_time now)
{
	uint64_t begin = act_time_now().mono_usec;
	const struct snapshot *s = sensor_take(d->sensor, sources, now.mono_usec);
	const struct zoneinfo *zi = &s->zoneinfo;
	struct list *old;
	size_t n = 0;

	if (!snapshot_has(s, SOURCE_ZONEINFO))
		return MIN_OF(sensor_source(d->sensor, SOURCE_ZONEINFO)->error, -1);
	if (lists_reserve(d, zi->nr_pagesets + 1) < 0)
		return -ENOMEM;
	d->snapshot = s;
	d->r.pages_after = d->r.lists_above = 0;
	for (uint32_t i = 0; i < d->r.nr_zones; i++)
		d->r.zone[i].after = 0;
	for (uint32_t i = 0; i < zi->nr_zones; i++) {
		const struct zone *z = &zi->zones[i];
		struct drain_zone *rz = z->populated ? report_zone(d, z) : NULL;

		for (uint32_t j = 0; j < z->nr_pagesets; j++) {
			const struct pageset *p = &zi->pagesets[z->first_pageset + j];
			struct list *l = &d->next[n];

			*l = list_now(d, s, z, p, find_list(d, n, z, p->cpu));
			n++;
			d->r.pages_after += l->count;
			d->r.lists_above += l->count > l->target;
			if (rz)
				rz->after += l->count;
		}
	}
	old = d->list;
	d->list = d->next;
	d->next = old;
	d->nr_lists = n;
	d->counted_usec = act_time_now().mono_usec - begin;
	return 0;
}

static bool all_settled(const struct drain *d)
{
	for (size_t i = 0; i < d->nr_lists; i++)
		if (!list_settled(&d->list[i]))
			return false;
	return true;
}

static bool none_moves(const struct drain *d)
{
	for (size_t i = 0; i < d->nr_lists; i++)
		if (!list_settled(&d->list[i]) && d->list[i].stale < STALE_PASSES)
			return false;
	return true;
}

/* ---- one step after the other ---- */

static void say(struct drain *d, const char *text)
{
	(void)snprintf(d->r.text, sizeof(d->r.text), "%s", text);
}

static void end_with(struct drain *d, enum drain_end end, int error, const char *text,
		     struct act_time now)
{
	if (d->r.state >= DRAIN_ENDING)
		return;
	d->r.end = end;
	d->r.error = error;
	say(d, text);
	d->r.state = DRAIN_ENDING;
	if (d->has_moment)
		actor_moment_end(d->actor, d->knob, now);
}

static void fail_with(struct drain *d, int error, const char *what, struct act_time now)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "%s%s/%s: %s", what, d->env.root->path, STAT_REFRESH_REL,
		       error_name(error));
	end_with(d, DRAIN_END_FAILED, error, text, now);
}

static void begin_pass(struct drain *d, struct act_time now)
{
	int r;

	d->pass = pass_start(&d->env, d->o.fast && d->r.passes == 0, d->fd, &r);
	if (!d->pass) {
		fail_with(d, r, "cannot start a thread to read ", now);
		return;
	}
	d->pass_usec = now.mono_usec;
	d->r.state = DRAIN_PASSING;
}

static bool out_of_time(struct drain *d, struct act_time now)
{
	if (now.mono_usec - d->begin_usec < d->o.max_time_usec)
		return false;
	end_with(d, DRAIN_END_TIME, 0, "the time allowed for it is over (--max-time)", now);
	return true;
}

static void end_at_floor(struct drain *d, struct act_time now)
{
	const char *where = d->r.mode == DRAIN_TRIM ? "down to its high_min" : "at its floor";
	char text[160];

	if (d->r.lists_above == 0)
		(void)snprintf(text, sizeof(text), "every list is %s", where);
	else
		(void)snprintf(text, sizeof(text),
			       "every list is %s, but for %" PRIu64
			       " that busy CPUs refill as they work",
			       where, d->r.lists_above);
	end_with(d, DRAIN_END_FLOOR, 0, text, now);
}

static void after_pass(struct drain *d, struct act_time now)
{
	uint64_t took = d->pass->took_usec;
	int error = d->pass->error, r;

	d->pass = worker_unref(&d->pass->w);
	if (error == 0) {
		d->r.passes++;
		d->r.pass_max_usec = MAX_OF(d->r.pass_max_usec, took);
	}
	if (d->r.state != DRAIN_PASSING)
		return;
	if (error < 0) {
		fail_with(d, error, "cannot read ", now);
		return;
	}
	r = count_lists(d, SOURCE_BIT(SOURCE_ZONEINFO), now);
	if (r < 0) {
		end_with(d, DRAIN_END_FAILED, r,
			 sensor_source(d->sensor, SOURCE_ZONEINFO)->why.text, now);
		return;
	}
	if (all_settled(d))
		end_at_floor(d, now);
	else if (none_moves(d))
		end_with(d, DRAIN_END_NO_PROGRESS, 0,
			 "three passes lowered no list that is still above", now);
	else if (!out_of_time(d, now)) {
		d->pause_usec =
			now.mono_usec + MAX_OF(PACE * (took + d->counted_usec), PAUSE_MIN_USEC);
		d->r.state = DRAIN_PAUSING;
	}
}

static void check_pass(struct drain *d, struct act_time now)
{
	char text[200];

	if (!d->pass)
		return;
	if (worker_is_done(&d->pass->w)) {
		d->r.blocked = false;
		after_pass(d, now);
		return;
	}
	if (d->r.blocked || now.mono_usec - d->pass_usec < d->o.pass_limit_usec)
		return;
	d->r.blocked = true;
	(void)snprintf(text, sizeof(text),
		       "a pass has not returned for %" PRIu64
		       " ms: it waits for a CPU that does nothing but one real-time task",
		       (now.mono_usec - d->pass_usec) / USEC_PER_MSEC);
	end_with(d, DRAIN_END_BLOCKED, -ETIMEDOUT, text, now);
}

static void when_prepared(struct drain *d, struct act_time now)
{
	struct error why = {0};

	switch (actor_moment(d->actor, d->knob, &why)) {
	case MOMENT_BEGINNING:
		(void)out_of_time(d, now);
		return;
	case MOMENT_IN_PLACE:
		if (d->r.mode == DRAIN_KERNEL)
			end_with(d, DRAIN_END_FLOOR, 0, "the kernel has emptied its lists", now);
		else
			begin_pass(d, now);
		return;
	case MOMENT_NONE:
	case MOMENT_ENDING:
	case MOMENT_REFUSED:
		end_with(d, DRAIN_END_FAILED, why.code < 0 ? why.code : -ECANCELED,
			 why.code < 0 ? why.text : "something else ended it before it began", now);
		return;
	}
}

/* The value that we rely on may have been taken away: by a restore, or by somebody else. */
static bool moment_lost(struct drain *d, struct act_time now)
{
	struct error why = {0};

	if (!d->has_moment || actor_moment(d->actor, d->knob, &why) == MOMENT_IN_PLACE)
		return false;
	end_with(d, DRAIN_END_FAILED, -ECANCELED,
		 why.code < 0 ? why.text : "the fraction was put back by something else", now);
	return true;
}

static void when_ending(struct drain *d, struct act_time now)
{
	if (d->has_moment) {
		enum actor_moment m = actor_moment(d->actor, d->knob, NULL);

		if (m == MOMENT_REFUSED)
			actor_moment_end(d->actor, d->knob, now);
		else if (m != MOMENT_NONE)
			return;
		d->has_moment = false;
	}
	if (d->pass && !d->r.blocked)
		return;
	(void)count_lists(d, SOURCE_BIT(SOURCE_ZONEINFO), now);
	d->r.state = d->pass ? DRAIN_HUNG : DRAIN_DONE;
}

void drain_dispatch(struct drain *d, struct act_time now)
{
	uint64_t count;

	(void)!read(d->fd, &count, sizeof(count));
	if (d->r.state == DRAIN_PREPARING)
		when_prepared(d, now);
	check_pass(d, now);
	if ((d->r.state == DRAIN_PASSING || d->r.state == DRAIN_PAUSING) && !moment_lost(d, now) &&
	    !out_of_time(d, now) && d->r.state == DRAIN_PAUSING && now.mono_usec >= d->pause_usec)
		begin_pass(d, now);
	if (d->r.state < DRAIN_DONE)
		d->r.took_usec = now.mono_usec - d->begin_usec;
	if (d->r.state == DRAIN_ENDING)
		when_ending(d, now);
	if (d->r.state == DRAIN_HUNG && !d->pass)
		d->r.state = DRAIN_DONE;
}

uint64_t drain_next_usec(const struct drain *d)
{
	uint64_t next = USEC_INFINITY;

	if (d->r.state == DRAIN_PAUSING)
		next = d->pause_usec;
	if (d->pass && !d->r.blocked)
		next = MIN_OF(next, d->pass_usec + d->o.pass_limit_usec);
	if (d->r.state < DRAIN_ENDING)
		next = MIN_OF(next, d->begin_usec + d->o.max_time_usec);
	if (d->r.state == DRAIN_ENDING && !d->has_moment && (!d->pass || d->r.blocked))
		next = 0; /* nothing more to wait for */
	return next;
}

void drain_stop(struct drain *d, struct act_time now)
{
	end_with(d, DRAIN_END_STOPPED, -EINTR, "stopped before its end", now);
}

int drain_fd(const struct drain *d)
{
	return d->fd;
}

const struct drain_report *drain_report(const struct drain *d)
{
	return &d->r;
}

bool drain_over(const struct drain *d)
{
	return d->r.state >= DRAIN_DONE;
}

struct drain *drain_free(struct drain *d, struct act_time now)
{
	if (!d)
		return NULL;
	if (d->has_moment)
		actor_moment_end(d->actor, d->knob, now);
	if (d->pass)
		(void)worker_unref(&d->pass->w);
	closep(&d->fd);
	d->sensor = sensor_free(d->sensor);
	free(d->list);
	free(d->next);
	free(d);
	return NULL;
}

static void drain_discard(struct drain **d)
{
	if (*d)
		(*d)->has_moment = false;
	*d = drain_free(*d, (struct act_time){0});
}

/* The transient value of this mode: the largest fraction, or an order switched over. */
static int begin_moment(struct drain *d, const struct snapshot *s, struct act_time now,
			struct error *e)
{
	struct actor_request req = {.reason = d->reason};
	bool force = false;
	int r;

	d->knob = (struct knob_id){.kind = KNOB_HIGH_FRACTION};
	req.value = HIGH_FRACTION_MAX;
	if (d->r.mode == DRAIN_KERNEL) {
		const struct mthp_size *size = controllable_size(s);

		d->knob = (struct knob_id){.kind = KNOB_PCP_ENABLED, .order = size->order};
		/* the single file drains at every 0, the others when 1 becomes 0 */
		force = s->mthp.orders == ORDERS_SINGLE;
		req.value = force ? 0 : size->pcp_enabled == 0;
	}
	req.id = d->knob;
	r = actor_moment_begin(d->actor, &req, force, now, e);
	d->has_moment = r == 0;
	return r;
}

static int open_drain(struct drain *d, struct act_time now, struct error *e)
{
	const struct snapshot *s;
	int r;

	d->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->fd < 0)
		return error_set(e, -errno, "cannot make an eventfd: %s", error_name(errno));
	r = sensor_new(&d->sensor, d->env.root, d->env.page_bytes, e);
	if (r < 0)
		return r;
	s = sensor_take(d->sensor, NEEDED_SOURCES, now.mono_usec);
	r = drain_check(s, &d->o, e);
	if (r < 0)
		return r;
	r = count_lists(d, SOURCE_BIT(SOURCE_ZONEINFO), now);
	if (r < 0) {
		*e = sensor_source(d->sensor, SOURCE_ZONEINFO)->why;
		return r;
	}
	d->r.pages_before = d->r.pages_after;
	for (size_t i = 0; i < d->nr_lists; i++)
		d->list[i].stale = 0;
	if (d->r.mode == DRAIN_TRIM && d->r.lists_above == 0) {
		end_with(d, DRAIN_END_FLOOR, 0, "no list is above its high_min", now);
		return 0;
	}
	if (d->r.mode == DRAIN_SQUEEZE && d->r.lists_above == 0) {
		end_with(d, DRAIN_END_FLOOR, 0, "no list is above its floor", now);
		return 0;
	}
	return d->r.mode == DRAIN_TRIM ? 0 : begin_moment(d, d->snapshot, now, e);
}

int drain_start(struct drain **ret, const struct act_env *env, struct actor *a,
		const struct drain_options *o, struct act_time now, struct error *e)
{
	_cleanup_(drain_discard) struct drain *d = calloc(1, sizeof(*d));
	struct error why = {0};
	int r;

	if (!d)
		return error_set(e, -ENOMEM, "out of memory");
	d->env = *env;
	d->actor = a;
	d->o = *o;
	d->fd = -1;
	d->o.max_time_usec = o->max_time_usec ? o->max_time_usec : DRAIN_MAX_TIME_USEC;
	d->o.pass_limit_usec = o->pass_limit_usec ? o->pass_limit_usec : DRAIN_PASS_LIMIT_USEC;
	d->begin_usec = now.mono_usec;
	d->r.mode = o->mode;
	(void)snprintf(d->reason, sizeof(d->reason), "%s", o->reason ? o->reason : "drain");
	r = act_env_check_live(env, e);
	if (r < 0)
		return r;
	r = open_drain(d, now, &why);
	if (r < 0) {
		if (e)
			*e = why;
		return r;
	}
	if (d->r.mode == DRAIN_TRIM && d->r.state == DRAIN_PREPARING)
		begin_pass(d, now);
	*ret = TAKE_PTR(d);
	return 0;
}

int drain_run(struct drain *d, int stop_fd,
	      void (*progress)(void *user, const struct drain_report *r), void *user)
{
	uint64_t ending_since = 0;
	uint32_t told = 0;

	for (;;) {
		struct pollfd p[3] = {
			{.fd = d->fd, .events = POLLIN},
			{.fd = d->actor ? actor_fd(d->actor) : -1, .events = POLLIN},
			{.fd = d->r.state < DRAIN_ENDING ? stop_fd : -1, .events = POLLIN},
		};
		struct act_time now = act_time_now();
		uint64_t until, pause;

		if (d->actor)
			actor_dispatch(d->actor, now);
		drain_dispatch(d, now);
		if (progress && d->r.passes != told)
			progress(user, &d->r);
		told = d->r.passes;
		if (drain_over(d))
			return d->r.error;
		if (d->r.state == DRAIN_ENDING && ending_since == 0)
			ending_since = now.mono_usec;
		if (ending_since && now.mono_usec - ending_since > END_LIMIT_USEC) {
			say(d,
			    "the fraction could not be put back yet: \"pcptunectl rollback\", or "
			    "the next start of pcptuned, does it");
			return d->r.error = -ETIMEDOUT;
		}
		until = drain_next_usec(d);
		if (d->actor)
			until = MIN_OF(until, actor_next_usec(d->actor));
		pause = until > now.mono_usec ? until - now.mono_usec : 0;
		(void)poll(p, 3, (int)MIN_OF((pause + 999) / 1000, UINT64_C(1000)));
		if (p[2].fd >= 0 && p[2].revents)
			drain_stop(d, act_time_now());
	}
}

void drain_report_print(const struct drain_report *r, uint64_t page_bytes, struct text *into)
{
	char before[FORMAT_MAX], after[FORMAT_MAX], time[FORMAT_MAX], longest[FORMAT_MAX];

	text_addf(into, "%s: parked before %" PRIu64 " pages (%s), after %" PRIu64 " pages (%s)\n",
		  drain_mode_name(r->mode), r->pages_before,
		  format_bytes(before, sizeof(before), r->pages_before * page_bytes),
		  r->pages_after, format_bytes(after, sizeof(after), r->pages_after * page_bytes));
	for (uint32_t i = 0; i < r->nr_zones; i++) {
		const struct drain_zone *z = &r->zone[i];
		uint64_t more = z->after > z->before ? z->after - z->before : 0;
		uint64_t less = z->before > z->after ? z->before - z->after : 0;

		if (z->before == 0 && z->after == 0)
			continue;
		text_addf(into,
			  "  node %d %-8s %10" PRIu64 " -> %-10" PRIu64 " %s %" PRIu64
			  " pages (%s)\n",
			  z->node, z->name, z->before, z->after, more ? "grew by" : "returned",
			  more ? more : less,
			  format_bytes(before, sizeof(before), (more ? more : less) * page_bytes));
	}
	text_addf(into, "%" PRIu32 " pass%s in %s", r->passes, r->passes == 1 ? "" : "es",
		  format_usec(time, sizeof(time), r->took_usec));
	if (r->passes > 0)
		text_addf(into, ", the longest %s",
			  format_usec(longest, sizeof(longest), r->pass_max_usec));
	text_addf(into, "; ended: %s\n", r->text);
	if (r->blocked)
		text_add(into,
			 "drain blocked: the fraction is as it was, but the last pass still "
			 "waits in the kernel; look for a real-time task that never sleeps\n");
}
