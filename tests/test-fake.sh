#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The shell library of the fake kernel does what its head says.
set -eu

# shellcheck source=tests/fake.sh
. "${srcdir:-.}/tests/fake.sh"

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

parked_is() {
	[ "$(fake_state parked_pages)" = "$1" ]
}

fake_start --cpus=8 --nodes=2 --orders=per-size --isolated=7 --clock=manual
[ "$(cat "$FAKE_DIR/sys/devices/system/cpu/isolated")" = 7 ] || fail "CPU 7 is not isolated"
fake_control "park 3 0:Normal 500"
parked_is 500 || fail "not 500 pages are parked but $(fake_state parked_pages)"
if fake_control "make coffee" 2>/dev/null; then
	fail "a command that does not exist is accepted"
fi
fake_state last_error | grep -q make || fail "the state does not tell what was refused"
echo 100 >"$FAKE_DIR/proc/sys/vm/percpu_pagelist_high_fraction"
[ "$(fake_state fraction)" = 100 ] || fail "the fraction did not change"
if (echo 5 >"$FAKE_DIR/proc/sys/vm/percpu_pagelist_high_fraction") 2>/dev/null; then
	fail "a fraction of 5 is accepted"
fi
fake_control "after 1 drain"
(sleep 0.2 && fake_control "advance 2") &
wait_until 20 parked_is 0 || fail "the drain of the timer did not come"
wait $!
if wait_until 1 false; then
	fail "wait_until does not give up"
fi
dir=$FAKE_DIR
fake_stop || fail "the fake kernel ended badly"
[ ! -e "$dir" ] || fail "$dir is still there"
fake_stop || fail "a second stop fails"
