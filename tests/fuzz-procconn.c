/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bytes of the proc connector, and the table that they are fed to. */
#include "events/procconn.h"
#include "events/process-table.h"

#include "tests/fuzz.h"

static void take(struct process_table *t, const struct proc_event *ev)
{
	pid_t pids[16];

	if (ev->change == PROC_EXEC)
		(void)!process_table_exec(t, ev->pid);
	else if (ev->change == PROC_COMM)
		(void)!process_table_named(t, ev->pid, ev->comm);
	else if (ev->change == PROC_EXIT)
		process_table_exit(t, ev->pid);
	else
		(void)process_table_unnamed(t, pids, ARRAY_SIZE(pids));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"a", "renamed process"};
	struct process_table *t = NULL;
	struct proc_event ev;
	uint32_t n;

	if (process_table_new(&t) < 0)
		return 0;
	if (process_table_want(t, names, ARRAY_SIZE(names)) == 0)
		while (procconn_next(&data, &size, &ev) > 0)
			take(t, &ev);
	(void)process_table_running(t, &n);
	process_table_scan_begin(t);
	process_table_scan_end(t, true);
	(void)process_table_running(t, &n);
	if (n > 0)
		abort(); /* an empty /proc, and somebody runs */
	process_table_free(t);
	return 0;
}
