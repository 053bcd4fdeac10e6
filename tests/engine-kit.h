/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine made of numbers, a clock made of nothing, and an engine between them: what the tests of
 * the decision engine share. The machine's writes succeed at once unless a test says otherwise.
 */
#pragma once

#include "policy/engine.h"
#include "policy/policy.h"

#define KIT_CPUS_MAX  64U
#define KIT_KNOBS_MAX 16U
#define KIT_LOG_MAX   4096U
#define KIT_VMSTATS   8U
#define KIT_PAGE      4096U

/* One zone, its CPUs' lists, and the counters that the shipped policies look at. */
struct kit_machine {
	unsigned cpus;
	uint64_t managed, low; /* pages */
	double free_ratio;
	uint64_t parked, high_min, high_max; /* pages on each CPU's list */
	int autotune;
	bool has_high_fraction, has_orders, has_stats, has_zoneinfo, has_vmstat;
	double unusable; /* of every order above 0 */
	uint64_t l2_bytes, llc_bytes;
	unsigned l2_cpus, llc_cpus;
	/* a second */
	double allocstall, compact_stall, pgalloc, pgfault, thp_fault_alloc;
	double alloc_bytes;    /* of 64 KiB folios */
	double fallback_share; /* of their attempts */
};

struct kit {
	struct policy_set set;
	struct engine *engine;
	struct kit_machine m;
	struct machine_facts facts;
	struct snapshot s;
	uint64_t now_usec, step_usec;
	bool paused, facts_changed;
	enum engine_mode mode;
	struct engine_limits limits;
	struct engine_drain_input drain;
	struct engine_knob_input knobs[KIT_KNOBS_MAX];
	size_t nr_knobs;
	bool refuse_writes; /* act cannot write: the knobs report FAILED */

	/* every decision since the start */
	struct kit_entry {
		uint64_t at_usec;
		struct decision d;
	} log[KIT_LOG_MAX];
	size_t nr_log;

	/* what the snapshot points into */
	struct zone zone;
	struct pageset pagesets[KIT_CPUS_MAX];
	struct named_value vmstats[KIT_VMSTATS];
	struct buddy_zone buddy;
	double counters[KIT_VMSTATS], alloc_count, fallback_count;
	int32_t node_of_cpu[KIT_CPUS_MAX];
};

/* A calm machine of 16 CPUs and 64 GiB, per-size control of orders 4 to 8, a 6.18 kernel. */
struct kit *kit_new(void);
struct kit *kit_free(struct kit *k);

static inline void kit_freep(struct kit **k)
{
	*k = kit_free(*k);
}

/* Adds a policy from text; fails the test with every message when it has errors. */
void kit_policy(struct kit *k, const char *name, const char *text);
/* From a shipped file. */
void kit_policy_file(struct kit *k, const char *path);

/* Makes the engine; called by the first kit_run() otherwise. */
void kit_start(struct kit *k);

/* Ticks for so long (each k->step_usec); the last decision of this run, or NULL. */
const struct decision *kit_run(struct kit *k, uint64_t usec);

/* One tick, without moving the clock first. */
void kit_tick(struct kit *k);

/* Fills k->s from k->m. */
void kit_snapshot(struct kit *k);

struct engine_knob_input *kit_knob(struct kit *k, struct knob_id id);
uint64_t kit_value(struct kit *k, struct knob_id id);
struct engine_knob_view kit_view(struct kit *k, struct knob_id id);
struct engine_rule_view kit_rule(struct kit *k, const char *policy, const char *rule);

/* Fails with the whole log unless the knob shows this state. */
void kit_expect_state(struct kit *k, struct knob_id id, enum rule_state state);
void kit_dump(const struct kit *k);

#define KIT_FRACTION ((struct knob_id){.kind = KNOB_HIGH_FRACTION})
#define KIT_64K      ((struct knob_id){.kind = KNOB_PCP_ENABLED, .order = 4})
#define KIT_128K     ((struct knob_id){.kind = KNOB_PCP_ENABLED, .order = 5})
