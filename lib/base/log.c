/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#define FIELDS_MAX 24U

/* systemd sets JOURNAL_STREAM to the device and inode of the stream it gave us (systemd.exec(5)).
 */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

struct log log_open(const char *program)
{
	const char *no_color = getenv("NO_COLOR");

	return (struct log){
		.journal = stderr_is_journal(),
		.colour = isatty(STDERR_FILENO) && !(no_color && *no_color),
		.max_level = LOG_INFO,
		.program = program,
	};
}

static void log_to_terminal(const struct log *log, int level, const char *message)
{
	const char *on = "", *off = "";

	if (log->colour && level <= LOG_NOTICE) {
		on = level <= LOG_ERR ? "\033[31m" : level == LOG_WARNING ? "\033[33m" : "\033[1m";
		off = "\033[0m";
	}
	(void)fprintf(stderr, "%s: %s%s%s\n", log->program, on, message, off);
}

static void log_to_journal(int level, const char *const *fields, const char *message)
{
	struct iovec iov[FIELDS_MAX + 2];
	_cleanup_(freep) char *text = NULL;
	char priority[16];
	int n = 0;

	if (asprintf(&text, "MESSAGE=%s", message) < 0)
		return;
	(void)snprintf(priority, sizeof(priority), "PRIORITY=%d", level);
	iov[n++] = (struct iovec){text, strlen(text)};
	iov[n++] = (struct iovec){priority, strlen(priority)};
	for (size_t i = 0; fields && fields[i] && i < FIELDS_MAX; i++)
		iov[n++] = (struct iovec){(void *)(uintptr_t)fields[i], strlen(fields[i])};
	(void)sd_journal_sendv(iov, n);
}

void log_fields(const struct log *log, int level, const char *const *fields, const char *fmt, ...)
{
	_cleanup_(freep) char *message = NULL;
	va_list ap;
	int n;

	if (level > log->max_level)
		return;
	va_start(ap, fmt);
	n = vasprintf(&message, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (log->journal)
		log_to_journal(level, fields, message);
	else
		log_to_terminal(log, level, message);
}
