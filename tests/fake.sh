# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The fake kernel for tests in shell: read this file with ".", then
#
#   fake_start [OPTION...]   starts it on $FAKE_DIR (made if empty); skips the test where it cannot
#   fake_control COMMAND     one command of its control file; fails where it refuses it
#   fake_state [KEY]         all it tells, or the values of the lines that start with KEY
#   fake_stop                ends it; fails where it did not end well
#   wait_until SECONDS COMMAND...   until the command succeeds; fails after that time
#   skip REASON              ends the test as skipped
#
# $FAKEKERNEL is the program, ./tests/fakekernel/fakekernel where unset. What is still running when
# the shell ends is stopped: a test with a trap of its own calls fake_stop in it.

skip() {
	echo "SKIP: ${0##*/}: $*"
	exit 77
}

wait_until() {
	wait_left=$(($1 * 20))
	shift
	until "$@"; do
		wait_left=$((wait_left - 1))
		[ "$wait_left" -gt 0 ] || return 1
		sleep 0.05
	done
}

fake_ready() {
	grep -q '^ready$' "$FAKE_DIR/fake.out" 2>/dev/null || ! kill -0 "$FAKE_PID" 2>/dev/null
}

fake_start() {
	: "${FAKEKERNEL:=./tests/fakekernel/fakekernel}"
	[ -x "$FAKEKERNEL" ] || skip "the fake kernel is not built (fuse3 is missing)"
	# a subshell: a redirection that fails ends some shells
	(: <>/dev/fuse) 2>/dev/null || skip "/dev/fuse cannot be opened"
	[ -n "${FAKE_DIR:-}" ] || FAKE_DIR=$(mktemp -d "${TMPDIR:-/tmp}/pcptune-fake.XXXXXX")
	mkdir -p "$FAKE_DIR/etc" "$FAKE_DIR/run" "$FAKE_DIR/usr/lib"
	"$FAKEKERNEL" "$FAKE_DIR" "$@" >"$FAKE_DIR/fake.out" 2>&1 &
	FAKE_PID=$!
	trap fake_stop EXIT
	wait_until 20 fake_ready
	if ! grep -q '^ready$' "$FAKE_DIR/fake.out"; then
		cat "$FAKE_DIR/fake.out" >&2
		fake_status=0
		wait "$FAKE_PID" || fake_status=$?
		FAKE_PID=
		rm -rf --one-file-system "$FAKE_DIR"
		[ "$fake_status" -ne 77 ] || skip "no FUSE can be mounted here"
		return 1
	fi
}

fake_control() {
	printf '%s\n' "$*" >"$FAKE_DIR/control" 2>/dev/null || {
		echo "the fake kernel refuses \"$*\": $(fake_state last_error)" >&2
		return 1
	}
}

fake_state() {
	if [ $# -eq 0 ]; then
		cat "$FAKE_DIR/control"
	else
		sed -n "s/^$1 //p" "$FAKE_DIR/control"
	fi
}

# May be called twice. Removes $FAKE_DIR unless $FAKE_KEEP is set.
fake_stop() {
	trap - EXIT
	[ -n "${FAKE_PID:-}" ] || return 0
	kill "$FAKE_PID" 2>/dev/null
	fake_status=0
	wait "$FAKE_PID" || fake_status=$?
	FAKE_PID=
	[ "$fake_status" -eq 0 ] || cat "$FAKE_DIR/fake.out" >&2
	if [ -z "${FAKE_KEEP:-}" ]; then
		rm -rf --one-file-system "$FAKE_DIR"
		FAKE_DIR=
	fi
	return "$fake_status"
}
