/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

void tree_write(const struct tree *t, const char *rel, const char *text)
{
	char path[256];
	int fd;

	for (const char *p = strchr(rel, '/'); p; p = strchr(p + 1, '/')) {
		(void)snprintf(path, sizeof(path), "%s/%.*s", t->dir, (int)(p - rel), rel);
		(void)mkdir(path, 0755);
	}
	(void)snprintf(path, sizeof(path), "%s/%s", t->dir, rel);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		(void)fprintf(stderr, "cannot write %s\n", path);
	closep(&fd);
}

/* Called from threads, too, where a test cannot be failed: what is not there reads as -1. */
uint64_t tree_read(const struct tree *t, const char *rel)
{
	uint64_t v = UINT64_MAX;

	(void)sysroot_read_u64(&t->root, rel, &v);
	return v;
}

uint64_t tree_fraction(const struct tree *t)
{
	return tree_read(t, HIGH_FRACTION_REL);
}

uint64_t tree_parked(const struct tree *t)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < t->nr_cpus; i++)
		sum += t->cpu[i].offline ? 0 : t->cpu[i].count;
	return sum;
}

static uint64_t highsize(const struct tree *t, uint64_t fraction)
{
	return MAX_OF(TREE_MANAGED / fraction / t->nr_cpus, TREE_FLOOR);
}

static uint64_t high_min(const struct tree *t, uint64_t fraction)
{
	return fraction == 0 ? TREE_HIGH_MIN : highsize(t, fraction);
}

void tree_write_zoneinfo(struct tree *t)
{
	uint64_t fraction = tree_fraction(t), high_max = highsize(t, fraction ? fraction : 8);
	_cleanup_(text_free) struct text text = {0};

	text_addf(&text,
		  "Node 0, zone   Normal\n  pages free     100000\n        min      1000\n"
		  "        low      2000\n        high     3000\n        spanned  1048576\n"
		  "        present  1048576\n        managed  %" PRIu64
		  "\n        protection: (0, 0)\n      nr_free_pages 100000\n  pagesets\n",
		  TREE_MANAGED);
	for (unsigned i = 0; i < t->nr_cpus; i++) {
		const struct tree_cpu *c = &t->cpu[i];

		if (c->offline)
			continue;
		text_addf(&text,
			  "    cpu: %u\n              count:    %" PRIu64
			  "\n              high:     %" PRIu64 "\n              batch:    %" PRIu64
			  "\n",
			  i, c->count, c->high, TREE_BATCH);
		if (!t->old_kernel)
			text_addf(&text,
				  "              high_min: %" PRIu64
				  "\n              high_max: %" PRIu64 "\n",
				  high_min(t, fraction), high_max);
		if (t->prints_orders)
			text_addf(&text, "              order4: %" PRIu64 "\n",
				  i == 0 ? t->blocks4 : 0);
		text_add(&text, "  vm stats threshold: 28\n");
	}
	text_add(&text, "  node_unreclaimable:  0\n  start_pfn:           1048576\n");
	tree_write(t, "proc/zoneinfo", text_str(&text));
}

/* decay_pcp_high() on every CPU. */
static void decay(struct tree *t)
{
	uint64_t least = high_min(t, tree_fraction(t));

	for (unsigned i = 0; i < t->nr_cpus && !t->old_kernel; i++) {
		struct tree_cpu *c = &t->cpu[i];

		if (c->offline || c->stuck)
			continue;
		if (c->high > least) {
			uint64_t step = TREE_BATCH << 5;
			uint64_t by_step = c->count > step ? c->count - step : 0;

			c->high = MAX_OF(by_step, c->high - c->high / 8);
			c->high = MAX_OF(c->high, least);
		}
		c->count = MIN_OF(c->count, c->high);
		c->count = MAX_OF(c->count, c->refill);
	}
	tree_write_zoneinfo(t);
}

/* Blocks where tree_block() asked for it, once; tree_unblock() takes that back, too. */
static void block_at(struct tree *t, enum act_point point)
{
	(void)pthread_mutex_lock(&t->mutex);
	if (atomic_load(&t->block_point) == (int)point) {
		atomic_store(&t->block_point, -1);
		atomic_store(&t->is_blocked, true);
		(void)pthread_cond_broadcast(&t->cond);
		while (atomic_load(&t->is_blocked))
			(void)pthread_cond_wait(&t->cond, &t->mutex);
	}
	(void)pthread_mutex_unlock(&t->mutex);
}

/* A kernel prints a whole line, however few digits of it were written. */
static void complete_line(const struct tree *t, const char *rel)
{
	_cleanup_(text_free) struct text text = {0};

	if (sysroot_read(&t->root, rel, &text) < 0 || text.len == 0 ||
	    text.data[text.len - 1] == '\n')
		return;
	text_add(&text, "\n");
	tree_write(t, rel, text_str(&text));
}

static int at_point(void *user, enum act_point point, const char *rel)
{
	struct tree *t = user;

	if (atomic_fetch_add(&t->calls, 1) + 1 == atomic_load(&t->kill_at))
		(void)kill(getpid(), SIGKILL);
	if (t->at_point)
		t->at_point(t, point);
	if (atomic_load(&t->block_point) == (int)point)
		block_at(t, point);
	if (atomic_load(&t->fail_point) == (int)point &&
	    (!t->fail_rel || streq(t->fail_rel, rel)) && atomic_fetch_sub(&t->fail_left, 1) > 0)
		return atomic_load(&t->fail_with);
	if (point == ACT_KNOB_VERIFY)
		complete_line(t, rel);
	if (point == ACT_PASS)
		decay(t);
	if (point == ACT_PASS_DONE)
		(void)atomic_fetch_add(&t->passes, 1);
	return 0;
}

void tree_make(struct tree *t, bool single)
{
	*t = (struct tree){.dir = "/tmp/pcptune-act-XXXXXX", .nr_cpus = 2};
	assert_non_null(mkdtemp(t->dir));
	assert_int_equal(chmod(t->dir, 0755), 0);
	assert_int_equal(sysroot_open(&t->root, t->dir, NULL), 0);
	atomic_store(&t->fail_point, -1);
	atomic_store(&t->block_point, -1);
	(void)pthread_mutex_init(&t->mutex, NULL);
	(void)pthread_cond_init(&t->cond, NULL);
	t->env = (struct act_env){
		.root = &t->root,
		.page_bytes = 4096,
		.orders = single ? ORDERS_SINGLE : ORDERS_PER_SIZE,
		.plain = true,
		.hook = {.call = at_point, .user = t},
	};
	tree_write(t, HIGH_FRACTION_REL, "0\n");
	tree_write(t, STAT_REFRESH_REL, "");
	tree_write(t, "proc/sys/kernel/random/boot_id", "6f9a0e1c-0000-4000-8000-000000000001\n");
	tree_write(t, "sys/devices/system/cpu/online", "0-1\n");
	tree_write(t, "sys/devices/system/cpu/possible", "0-1\n");
	tree_write(t, THP_REL "/hpage_pmd_size", "2097152\n");
	tree_write(t, THP_REL "/hugepages-64kB/enabled", "always inherit [madvise] never\n");
	tree_write(t, THP_REL "/hugepages-2048kB/enabled", "always inherit [madvise] never\n");
	if (single)
		tree_write(t, THP_REL "/pcp_allow_high_order", "0\n");
	else
		tree_write(t, THP_REL "/hugepages-64kB/pcp_enabled", "0\n");
	for (unsigned i = 0; i < t->nr_cpus; i++)
		t->cpu[i] = (struct tree_cpu){.count = 8000, .high = 8000};
	tree_write_zoneinfo(t);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void tree_remove(struct tree *t)
{
	tree_unblock(t); /* where a failed test left a thread behind */
	sysroot_close(&t->root);
	(void)nftw(t->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	(void)pthread_mutex_destroy(&t->mutex);
	(void)pthread_cond_destroy(&t->cond);
}

void tree_fail(struct tree *t, enum act_point point, int error, int times)
{
	atomic_store(&t->fail_with, error);
	atomic_store(&t->fail_left, times);
	atomic_store(&t->fail_point, (int)point);
}

void tree_block(struct tree *t, enum act_point point)
{
	atomic_store(&t->block_point, (int)point);
}

void tree_wait_blocked(struct tree *t)
{
	(void)pthread_mutex_lock(&t->mutex);
	while (!atomic_load(&t->is_blocked))
		(void)pthread_cond_wait(&t->cond, &t->mutex);
	(void)pthread_mutex_unlock(&t->mutex);
}

void tree_unblock(struct tree *t)
{
	(void)pthread_mutex_lock(&t->mutex);
	atomic_store(&t->block_point, -1); /* who has not come there yet need not stop */
	atomic_store(&t->is_blocked, false);
	(void)pthread_cond_broadcast(&t->cond);
	(void)pthread_mutex_unlock(&t->mutex);
}

struct actor *tree_actor(struct tree *t, struct actor_options o)
{
	struct actor *a = NULL;
	struct error e = {0};

	o.env = &t->env;
	if (actor_open(&a, &o, act_time_now(), &e) < 0)
		fail_msg("%s", e.text);
	return a;
}

void tree_settle(struct actor *a)
{
	assert_int_equal(actor_wait(a, false, -1, 10 * USEC_PER_SEC, NULL, NULL), 0);
}

static bool writes(const struct actor *a)
{
	struct actor_knob k;

	for (unsigned i = 0; actor_knob_at(a, i, &k); i++)
		if (k.state == KNOB_CHANGING || k.state == KNOB_BLOCKED)
			return true;
	return false;
}

void tree_settle_at(struct actor *a, struct act_time now)
{
	struct pollfd p = {.fd = actor_fd(a), .events = POLLIN};

	actor_dispatch(a, now);
	while (writes(a)) {
		assert_int_equal(poll(&p, 1, 10000), 1);
		actor_dispatch(a, now);
	}
}

struct act_time tree_time(uint64_t sec)
{
	return (struct act_time){
		.mono_usec = (1000000 + sec) * USEC_PER_SEC,
		.real_usec = (1700000000 + sec) * USEC_PER_SEC,
	};
}

struct actor_event tree_event(struct actor *a, enum actor_event_kind kind)
{
	struct actor_event ev = {0};

	while (actor_event_take(a, &ev))
		if (ev.kind == kind)
			return ev;
	fail_msg("no event \"%s\" came", actor_event_name(kind));
	return ev;
}

unsigned tree_count_events(struct actor *a, enum actor_event_kind kind)
{
	struct actor_event ev;
	unsigned n = 0;

	while (actor_event_take(a, &ev))
		n += ev.kind == kind;
	return n;
}
