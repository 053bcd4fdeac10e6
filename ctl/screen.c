/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>

static bool is_set(const char *name)
{
	const char *v = getenv(name);

	return v && *v;
}

static bool terminal_is_dumb(void)
{
	const char *term = getenv("TERM");

	return !term || !*term || streq(term, "dumb");
}

int screen_open(struct screen *s, bool no_pager)
{
	*s = (struct screen){.terminal = isatty(STDOUT_FILENO)};
	s->colour = s->terminal && !is_set("NO_COLOR") && !terminal_is_dumb();
	s->pager = s->terminal && !no_pager && !terminal_is_dumb();
	s->out = open_memstream(&s->text, &s->len);
	return s->out ? 0 : -ENOMEM;
}

static struct winsize terminal_size(void)
{
	struct winsize w = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0)
		w = (struct winsize){0};
	return w;
}

unsigned screen_columns(void)
{
	struct winsize w = terminal_size();

	return w.ws_col ? w.ws_col : 80;
}

static bool is_long(const struct screen *s)
{
	struct winsize w = terminal_size();
	unsigned lines = 0;

	for (size_t i = 0; i < s->len; i++)
		lines += s->text[i] == '\n';
	return w.ws_row > 0 && lines >= w.ws_row;
}

/* 0: it was shown; otherwise no pager could be started and nothing was. */
static int show_in_pager(const struct screen *s)
{
	const char *pager = is_set("PAGER") ? getenv("PAGER") : "less";
	void (*old)(int);
	FILE *p;
	int status;

	/* quit at the end of a short text, keep colours, chop no lines, leave the screen as is */
	(void)setenv("LESS", "FRXM", 0);
	(void)setenv("LESSCHARSET", "utf-8", 0);
	p = popen(pager, "we");
	if (!p)
		return -errno;
	old = signal(SIGPIPE, SIG_IGN); /* the reader may quit early */
	(void)fwrite(s->text, 1, s->len, p);
	status = pclose(p);
	(void)signal(SIGPIPE, old);
	/* 127: the shell did not find it */
	return status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 127) ? -ENOENT : 0;
}

int screen_show(struct screen *s)
{
	_cleanup_(freep) char *text = NULL;
	int r = 0;

	if (!s->out)
		return 0;
	r = fclose(s->out) == 0 ? 0 : -ENOMEM;
	s->out = NULL;
	text = TAKE_PTR(s->text);
	if (r < 0)
		return r;
	s->text = text;
	if (!(s->pager && is_long(s) && show_in_pager(s) == 0) &&
	    (fwrite(text, 1, s->len, stdout) != s->len || fflush(stdout) != 0))
		r = -errno;
	s->text = NULL;
	return r;
}

const char *shade(const struct screen *s, enum shade sh)
{
	static const char *const codes[] = {
		[SHADE_PLAIN] = "\033[0m",  [SHADE_HEADING] = "\033[1m",
		[SHADE_GOOD] = "\033[32m",  [SHADE_WARNING] = "\033[33m",
		[SHADE_BAD] = "\033[1;31m", [SHADE_FAINT] = "\033[2m",
	};

	return s->colour ? codes[sh] : "";
}
