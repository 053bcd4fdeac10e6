/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where messages go: readable lines on a terminal, structured entries where the journal listens
 * (JOURNAL_STREAM says that stderr is the journal's). Only programs log; the library returns
 * errors and leaves it to its caller whether they matter.
 */
#pragma once

#include "base/util.h"

#include <stdbool.h>
#include <syslog.h>

struct log {
	bool journal;  /* stderr is connected to the journal: send entries with fields */
	bool colour;   /* stderr is a terminal and NO_COLOR is not set */
	int max_level; /* LOG_INFO: LOG_DEBUG messages are dropped */
	const char *program;
};

struct log log_open(const char *program);

/*
 * One entry. `fields` is a NULL-terminated list of "PCPTUNE_KNOB=high_fraction" strings for the
 * journal (NULL: none); MESSAGE_ID is one of them. On a terminal only the message is printed.
 */
void log_fields(const struct log *log, int level, const char *const *fields, const char *fmt, ...)
	_printf_(4, 5);

#define log_error(log, ...)   log_fields(log, LOG_ERR, NULL, __VA_ARGS__)
#define log_warning(log, ...) log_fields(log, LOG_WARNING, NULL, __VA_ARGS__)
#define log_notice(log, ...)  log_fields(log, LOG_NOTICE, NULL, __VA_ARGS__)
#define log_info(log, ...)    log_fields(log, LOG_INFO, NULL, __VA_ARGS__)
#define log_debug(log, ...)   log_fields(log, LOG_DEBUG, NULL, __VA_ARGS__)
