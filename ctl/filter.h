/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --all, --node, --zone and --cpu of the tables. */
#pragma once

#include "ctl.h"

struct filter {
	bool all;
	bool has_node;
	uint64_t node;
	const char *zone; /* NULL: any */
	bool has_cpus;
	struct cpuset cpus;
};

/* Of the options; EXIT_DONE or EXIT_USAGE with a message. filter_free() afterwards. */
int filter_read(struct filter *f, const struct ctl *c);
void filter_free(struct filter *f);

/* By node and name only: whether it has pages is for the caller. */
bool filter_zone(const struct filter *f, const struct zone *z);

/* A pageset's number as a cell: "-" unknown, "~300" computed. */
const char *pageset_cell(const struct pageset *p, enum pageset_field field, char *buf, size_t size);

/* For a number in JSON that may be unknown: null. */
void put_pageset_field(struct json_out *j, const struct pageset *p, enum pageset_field field);
