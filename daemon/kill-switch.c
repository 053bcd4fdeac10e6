/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kill-switch.h"

#define COMMAND_LINE_WORD "pcptune=off"

static bool has_word(const char *line, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = line; (at = strstr(at, word)); at += len)
		if ((at == line || at[-1] == ' ') && strchr(" \n", at[len]))
			return true;
	return false;
}

const char *kill_switch_thrown(const struct sysroot *root)
{
	_cleanup_(text_free) struct text line = {0};

	if (sysroot_exists(root, KILL_SWITCH_REL))
		return "/" KILL_SWITCH_REL " exists";
	if (sysroot_read(root, "proc/cmdline", &line) == 0 &&
	    has_word(text_str(&line), COMMAND_LINE_WORD))
		return COMMAND_LINE_WORD " is on the kernel command line";
	return NULL;
}
