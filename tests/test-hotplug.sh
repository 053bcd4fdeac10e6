#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# CPUs that come while the daemon runs: the kernel's message makes it look, and policies see them. The
# message is a real one of this kernel, the CPUs are the fake kernel's.
set -eu

# shellcheck source=tests/fake.sh
. "${srcdir:-.}/tests/fake.sh"

pcptuned=${PCPTUNE_BUILD:-.}/pcptuned
uevent=/sys/devices/system/cpu/cpu0/uevent

fail() {
	echo "FAIL: $*" >&2
	cat "$FAKE_DIR/daemon.out" >&2
	[ -z "${daemon:-}" ] || kill "$daemon" 2>/dev/null || true
	fake_stop
	exit 1
}
says() { grep -q "$1" "$FAKE_DIR/daemon.out"; }

[ -w "$uevent" ] || skip "synthetic uevents need root"
fake_start --cpus=4
fake_control "cpu 2-3 offline"
mkdir -p "$FAKE_DIR/policies" "$FAKE_DIR/run"
cat >"$FAKE_DIR/policies/many.policy" <<'EOF'
[Policy]
Mode=observe
[HighFraction many]
When=machine.cpus >= 4
For=0s
Value=1000
EOF
cat >"$FAKE_DIR/conf" <<'EOF'
[Daemon]
Interval=1s
IdleInterval=1s
[Metrics]
Listen=none
EOF
"$pcptuned" --root="$FAKE_DIR" --observe --config="$FAKE_DIR/conf" --policy-dir="$FAKE_DIR/policies" \
	>"$FAKE_DIR/daemon.out" 2>&1 &
daemon=$!
wait_until 20 says '^pcptuned: observing' || fail "it does not start"
if says '^pcptuned: events: hotplug'; then
	kill "$daemon"
	skip "this kernel does not tell of hotplug here"
fi
fake_control "cpu 2-3 online"
printf change >"$uevent"
# without the message it would look after a minute
wait_until 30 says 'would change high_fraction: 0 -> 1000' || fail "it does not notice the CPUs"
kill "$daemon"
wait "$daemon" || fail "it ends badly"
daemon=
