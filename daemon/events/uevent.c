/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "uevent.h"

#include <errno.h>

/* The value of a "KEY=value" string, or NULL. */
static const char *value_of(const char *line, const char *key)
{
	size_t n = strlen(key);

	return strncmp(line, key, n) == 0 && line[n] == '=' ? line + n + 1 : NULL;
}

int uevent_parse(const char *message, size_t len, struct uevent *ret)
{
	struct uevent u = {0};
	const char *value, *end = message + len;

	/* the last string's NUL closes every string before it */
	if (len < 4 || len > UEVENT_MAX || end[-1] != '\0')
		return -EBADMSG;
	value = strchr(message, '@');
	if (!value || value == message || value[1] != '/')
		return -EBADMSG;
	for (const char *line = message + strlen(message) + 1; line < end;
	     line += strlen(line) + 1) {
		if (!u.action && (value = value_of(line, "ACTION")))
			u.action = value;
		else if (!u.devpath && (value = value_of(line, "DEVPATH")))
			u.devpath = value;
		else if (!u.subsystem && (value = value_of(line, "SUBSYSTEM")))
			u.subsystem = value;
	}
	if (!u.action || !u.devpath || !u.subsystem)
		return -EBADMSG;
	*ret = u;
	return 0;
}

bool uevent_is_topology(const struct uevent *u)
{
	return streq(u->subsystem, "cpu") || streq(u->subsystem, "memory") ||
	       streq(u->subsystem, "node");
}
