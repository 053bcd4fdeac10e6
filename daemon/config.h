/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pcptuned.conf(5): what the daemon is told, with where each key came from. */
#pragma once

#include "base/error.h"
#include "base/sysroot.h"

#define CONFIG_TEXT_MAX 256U

enum config_mode {
	CONFIG_OBSERVE,
	CONFIG_ENFORCE,
};

enum on_stop {
	ON_STOP_RESTORE,
	ON_STOP_KEEP,
};

enum config_series {
	CONFIG_SERIES_BASIC,
	CONFIG_SERIES_FULL,
};

enum per_cpu {
	PER_CPU_AUTO, /* up to 16 CPUs, with full series only */
	PER_CPU_YES,
	PER_CPU_NO,
};

struct config {
	/* [Daemon] */
	enum config_mode mode;
	uint64_t interval_usec, idle_interval_usec;
	enum on_stop on_stop;
	uint64_t stop_timeout_usec;
	uint64_t foreign_yield_usec; /* 0: hands off until adopted */
	uint64_t min_hold_usec;
	/* [Limits] */
	uint64_t high_fraction_min;
	double max_parked_share;
	uint64_t order_max; /* UINT64_MAX: the PMD order - 1 */
	uint64_t writes_per_minute, writes_per_day;
	/* [Metrics] */
	char listen[CONFIG_TEXT_MAX]; /* "none": no server */
	/* paths, "" where not asked for */
	char tls_certificate[CONFIG_TEXT_MAX], tls_key[CONFIG_TEXT_MAX];
	char tls_client_ca[CONFIG_TEXT_MAX], token_file[CONFIG_TEXT_MAX];
	enum config_series series;
	enum per_cpu per_cpu;
	/* [Events] */
	bool hotplug, links, processes, pressure;
};

/* What holds where no file says otherwise. */
void config_defaults(struct config *c);

/*
 * Reads pcptuned.conf (`file`, or the first of etc, run and usr/lib/pcptune that has it) and the
 * drop-ins of pcptuned.conf.d. All or nothing: on error *ret is untouched, every mistake is printed
 * to `out` with file, line and column, and the result is -EINVAL; -ENOENT where `file` was named
 * and is not there. No file at all: the defaults.
 */
int config_load(struct config *ret, const struct sysroot *root, const char *file, FILE *out,
		struct error *e) _must_check_;

/* The effective text with the file each line came from, on `out`: --print-config. */
int config_print(const struct sysroot *root, const char *file, FILE *out,
		 struct error *e) _must_check_;
