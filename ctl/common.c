/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ctl.h"

#include "base/format.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>

int ctl_fail(const struct ctl *c, int code, const struct error *e)
{
	(void)c;
	(void)fprintf(stderr, "pcptunectl: %s\n", e->text);
	return code;
}

int ctl_failf(const struct ctl *c, int code, const char *fmt, ...)
{
	va_list ap;

	(void)c;
	(void)fputs("pcptunectl: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	return code;
}

static uint64_t now_usec(void)
{
	return act_time_now().mono_usec;
}

int ctl_take(struct ctl *c, uint32_t wanted, uint32_t needed)
{
	struct error e = {0};

	if (sensor_new(&c->sensor, &c->root, c->page_bytes, &e) < 0)
		return ctl_fail(c, EXIT_FAILED, &e);
	c->snapshot = sensor_take(c->sensor, wanted, now_usec());
	for (enum source s = 0; s < _SOURCE_MAX; s++) {
		const struct source_state *st = sensor_source(c->sensor, s);

		if (!(needed & SOURCE_BIT(s)) || snapshot_has(c->snapshot, s))
			continue;
		if (st->error == -ENOENT)
			return ctl_failf(c, EXIT_NOT_HERE,
					 "cannot read %s/%s: it is not there; is %s the root of a "
					 "Linux system with /proc and /sys?",
					 c->root.path, source_rel(s),
					 c->root.host ? "/" : c->root.path);
		return ctl_fail(c, EXIT_FAILED, &st->why);
	}
	return EXIT_DONE;
}

void ctl_take_again(struct ctl *c, uint32_t wanted)
{
	c->snapshot = sensor_take(c->sensor, wanted, now_usec());
}

int ctl_exit_code(int error)
{
	switch (error) {
	case 0:
		return EXIT_DONE;
	case -EOPNOTSUPP:
	case -ENOENT:
		return EXIT_NOT_HERE;
	case -EINVAL:
	case -EROFS:
	case -EIO:
		return EXIT_REFUSED;
	default:
		return EXIT_FAILED;
	}
}

struct json_out *ctl_json_begin(struct ctl *c)
{
	c->json = JSON_OUT(&c->json_text);
	json_begin_object(&c->json, NULL);
	json_put_u64(&c->json, "schema", JSON_SCHEMA);
	json_put_str(&c->json, "verb", c->verb->name);
	return &c->json;
}

int ctl_json_end(struct ctl *c)
{
	json_end_object(&c->json);
	if (c->json_text.failed)
		return ctl_failf(c, EXIT_FAILED, "out of memory");
	(void)fwrite(c->json_text.data, 1, c->json_text.len, c->screen.out);
	return EXIT_DONE;
}

/* For those who may not look at the lock: a process of that name and number. */
static bool daemon_is_alive(const struct sysroot *root, pid_t pid)
{
	_cleanup_(text_free) struct text comm = {0};
	char rel[48];

	if (pid <= 0)
		return false;
	(void)snprintf(rel, sizeof(rel), "proc/%d/comm", (int)pid);
	return sysroot_read(root, rel, &comm) == 0 && strncmp(comm.data, "pcptune", 7) == 0;
}

void holder_find(struct ctl *c, struct holder *ret)
{
	struct act_env env = {.root = &c->root};
	int r = lock_query(&env, &ret->lock);
	int state = state_read(&ret->state, &c->root, &ret->why);

	ret->is = r > 0 ? HOLDER_RUNS : HOLDER_NONE;
	if (state == -ENOENT)
		ret->why = (struct error){0};
	ret->has_state = state == 0;
	if (r < 0 && r != -ENOENT) {
		bool alive = ret->has_state && daemon_is_alive(&c->root, ret->state.pid);

		ret->is = alive ? HOLDER_RUNS : ret->has_state ? HOLDER_NONE : HOLDER_UNKNOWN;
	}
	/* a pcptunectl that drains holds the lock, too, and has no state */
	if (ret->is == HOLDER_RUNS && ret->has_state && ret->lock.pid > 0 &&
	    ret->lock.pid != ret->state.pid)
		ret->has_state = false;
	ret->stale_state = ret->is != HOLDER_RUNS && ret->has_state;
	if (ret->is != HOLDER_RUNS)
		ret->has_state = false;
}

void holder_free(struct holder *h)
{
	state_free(&h->state);
}

const char *format_when(char *buf, size_t size, uint64_t when_usec, uint64_t now)
{
	char span[FORMAT_MAX];
	uint64_t distance = when_usec > now ? when_usec - now : now - when_usec;

	/* to the second: finer is noise on a screen */
	distance -= distance >= USEC_PER_SEC ? distance % USEC_PER_SEC : 0;
	if (distance < USEC_PER_SEC)
		(void)snprintf(buf, size, "now");
	else if (when_usec > now)
		(void)snprintf(buf, size, "in %s", format_usec(span, sizeof(span), distance));
	else
		(void)snprintf(buf, size, "%s ago", format_usec(span, sizeof(span), distance));
	return buf;
}
