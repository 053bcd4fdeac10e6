/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words for what can be set: knob names, their files, and what this kernel offers. */
#pragma once

#include "base/sysroot.h"

#define KNOB_NAME_MAX            32U
#define HIGH_FRACTION_MIN        UINT64_C(8)
#define HIGH_FRACTION_MAX        UINT64_C(2147483647)
#define HIGH_FRACTION_REL        "proc/sys/vm/percpu_pagelist_high_fraction"
#define STAT_REFRESH_REL         "proc/sys/vm/stat_refresh"
#define THP_REL                  "sys/kernel/mm/transparent_hugepage"
#define PCP_ALLOW_HIGH_ORDER_REL THP_REL "/pcp_allow_high_order"

enum knob_kind {
	KNOB_HIGH_FRACTION,
	KNOB_PCP_ENABLED,
	_KNOB_KIND_MAX,
};

struct knob_id {
	enum knob_kind kind;
	unsigned order; /* KNOB_PCP_ENABLED: the folio order; otherwise 0 */
};

static inline bool knob_id_eq(struct knob_id a, struct knob_id b)
{
	return a.kind == b.kind && a.order == b.order;
}

/* How this kernel lets orders be controlled; found by looking. */
enum order_interface {
	ORDERS_NONE,
	ORDERS_PER_SIZE, /* hugepages-<size>kB/pcp_enabled */
	ORDERS_SINGLE,   /* pcp_allow_high_order: order 4 only, reads and takes 0 or 4 */
};

/* "high_fraction" or "pcp_enabled/64kB" into `buf` (KNOB_NAME_MAX bytes); returns it. */
const char *knob_name(struct knob_id id, uint64_t page_bytes, char *buf);

/* The other way; -EINVAL, -ENOENT for a size that is no power-of-two multiple of the page. */
int knob_parse(const char *name, uint64_t page_bytes, struct knob_id *ret);

/* The file a knob lives in, relative to the root, into `buf`; returns it. */
const char *knob_rel(struct knob_id id, enum order_interface orders, uint64_t page_bytes, char *buf,
		     size_t size);
#define KNOB_REL_MAX 96U

/* The accepted values: 0 or HIGH_FRACTION_MIN to _MAX; 0 or 1. */
bool knob_value_valid(struct knob_id id, uint64_t value);

/*
 * What the file says for a value and back: pcp_allow_high_order says 4 where the knob is 1,
 * everything else as it is.
 */
uint64_t knob_to_file(struct knob_id id, enum order_interface orders, uint64_t value);
/* -EBADMSG for what the kernel never says. */
int knob_from_file(struct knob_id id, enum order_interface orders, uint64_t text, uint64_t *ret);
