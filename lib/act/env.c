/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/env.h"

#include <errno.h>
#include <time.h>

struct act_env act_env_from(const struct sysroot *root, const struct snapshot *s)
{
	return (struct act_env){
		.root = root,
		.page_bytes = s->page_bytes,
		.orders = s->mthp.orders,
	};
}

int act_env_check_live(const struct act_env *env, struct error *e)
{
	if (env->plain || sysroot_is_live(env->root))
		return 0;
	return error_set(e, -EOPNOTSUPP,
			 "%s holds no kernel to write to: proc and sys below it are plain "
			 "directories, not mounts; it can only be read",
			 env->root->host ? "/" : env->root->path);
}

int act_pass_point(const struct act_env *env, enum act_point point, const char *rel)
{
	return env->hook.call ? env->hook.call(env->hook.user, point, rel) : 0;
}

static uint64_t clock_usec(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

struct act_time act_time_now(void)
{
	return (struct act_time){
		.mono_usec = clock_usec(CLOCK_MONOTONIC),
		.real_usec = clock_usec(CLOCK_REALTIME),
	};
}
