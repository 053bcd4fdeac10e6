/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inodes.h"

static size_t hash(const char *s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32);
}

/* The slot that holds `path`, or the free one where it belongs. */
static size_t slot_of(const struct inodes *t, const char *path)
{
	size_t i = hash(path) & (t->nr_slots - 1);

	while (t->slots[i] && !streq(t->paths[t->slots[i] - 1], path))
		i = (i + 1) & (t->nr_slots - 1);
	return i;
}

static int grow(struct inodes *t)
{
	struct inodes made = {.room = t->room ? t->room * 2 : 1024};
	void *paths;

	made.nr_slots = made.room * 2;
	made.slots = calloc(made.nr_slots, sizeof(*made.slots));
	paths = made.slots ? realloc(t->paths, made.room * sizeof(*t->paths)) : NULL;
	if (!paths) {
		free(made.slots);
		return -1;
	}
	made.paths = paths;
	made.nr = t->nr;
	for (size_t i = 0; i < made.nr; i++)
		made.slots[slot_of(&made, made.paths[i])] = (uint32_t)i + 1;
	free(t->slots);
	*t = made;
	return 0;
}

uint64_t inode_of(struct inodes *t, const char *path)
{
	size_t slot;

	if (t->nr == t->room && grow(t) < 0)
		return 0;
	slot = slot_of(t, path);
	if (t->slots[slot])
		return t->slots[slot];
	t->paths[t->nr] = strdup(path);
	if (!t->paths[t->nr])
		return 0;
	t->slots[slot] = (uint32_t)++t->nr;
	return t->nr;
}

const char *inode_path(const struct inodes *t, uint64_t number)
{
	return number >= 1 && number <= t->nr ? t->paths[number - 1] : "";
}

void inodes_free(struct inodes *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free(t->paths[i]);
	free(t->paths);
	free(t->slots);
	*t = (struct inodes){0};
}
