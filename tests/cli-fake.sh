#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What pcptunectl writes, and what it says of a running daemon, on the fake kernel: drains of every
# mode, stopped and killed; rollback; the lock; status beside the daemon's own state.
set -u

src=$(cd "${srcdir:-.}" && pwd)
# shellcheck source=tests/fake.sh
. "$src/tests/fake.sh"

ctl=./pcptunectl
checks=0 failures=0 daemon=
fraction=proc/sys/vm/percpu_pagelist_high_fraction

pass() { checks=$((checks + 1)); }

fail() {
	checks=$((checks + 1))
	failures=$((failures + 1))
	echo "FAIL: $*" >&2
}

cleanup() {
	[ -n "$daemon" ] && kill "$daemon" 2>/dev/null && wait "$daemon"
	fake_stop
}

# run ARGUMENT…: output in $out, messages in $err, the exit code in $code
run() {
	out=$("$ctl" --root="$FAKE_DIR" "$@" 2>"$FAKE_DIR/err" </dev/null)
	code=$?
	err=$(cat "$FAKE_DIR/err")
}

# expect CODE PATTERN WHY ARGUMENT…: the pattern is looked for in output and messages
expect() {
	local want=$1 pattern=$2 why=$3
	shift 3
	run "$@"
	if [ "$code" -ne "$want" ]; then
		fail "$why: pcptunectl $*: exit code $code, not $want: $out $err"
	elif ! grep -Eq -- "$pattern" <<<"$out$err"; then
		fail "$why: pcptunectl $* does not say /$pattern/: $out $err"
	else
		pass
	fi
}

fraction_is() { [ "$(cat "$FAKE_DIR/$fraction")" = "$1" ]; }

parked() { fake_state parked_pages; }

parked_is() { [ "$(parked)" = "$1" ]; }

# drain_in_background ARGUMENT…: its process id in $drain
drain_in_background() {
	"$ctl" --root="$FAKE_DIR" drain "$@" >"$FAKE_DIR/drain.out" 2>&1 </dev/null &
	drain=$!
}

fake_start --cpus=4 --nodes=2 --orders=per-size --release=6.18
trap cleanup EXIT

# each mode, and the fraction as it was
fake_control "idle 0-3"
fake_control "park 0 0:Normal 30000"
fake_control "park 3 1:Normal 9000"
expect 0 'pass.*; ended' "trim" drain
expect 0 'node 1 Normal' "zones are reported one by one" drain --mode=squeeze
fraction_is 0 || fail "a squeeze leaves the fraction at $(cat "$FAKE_DIR/$fraction")"
[ "$(parked)" -le 1008 ] || fail "a squeeze of four lists leaves $(parked) pages"
fake_control "park 1 0:Normal 20000"
echo 100 >"$FAKE_DIR/$fraction"
expect 0 '"end": "floor"' "a report for programs" drain --mode=squeeze --json
fraction_is 100 || fail "a squeeze does not put a fraction of 100 back"
echo 0 >"$FAKE_DIR/$fraction"
fake_control "park 1 0:Normal 20000"
expect 0 'kernel:' "the kernel's own drain" drain --mode=kernel
parked_is 0 || fail "the kernel's drain leaves $(parked) pages"

# how far it is, where it takes long and somebody looks
if command -v script >/dev/null; then
	fake_control drain
	fake_control "park 0 0:Normal 300000"
	fake_control "fault proc/sys/vm/stat_refresh read block 0.05" # a fast machine is done in less than a second
	script -qec "$ctl --root=$FAKE_DIR drain --mode=squeeze --max-time=3s" /dev/null \
		</dev/null >"$FAKE_DIR/screen" 2>&1
	grep -q 'squeeze: pass [0-9]*, .*to go' "$FAKE_DIR/screen" ||
		fail "no progress on a terminal: $(cat "$FAKE_DIR/screen")"
	fake_control clear
	pass
else
	echo "SKIP: script (util-linux) is not installed: progress is not looked at"
fi
fake_control drain
fake_control "park 0 0:Normal 300000"
run drain --mode=squeeze --max-time=3s
grep -q 'to go' <<<"$err" && fail "progress where nobody looks: $err"

# signals
for signal in INT TERM HUP; do
	fake_control drain
	fake_control "park 0 0:Normal 300000"
	drain_in_background --mode=squeeze
	wait_until 10 fraction_is 2147483647 || fail "no squeeze begins"
	kill -s "$signal" "$drain"
	wait "$drain"
	code=$?
	[ "$code" -eq 1 ] || fail "a drain stopped by SIG$signal ends with $code"
	fraction_is 0 || fail "after SIG$signal the fraction is $(cat "$FAKE_DIR/$fraction")"
	grep -q 'stopped' "$FAKE_DIR/drain.out" ||
		fail "a drain stopped by SIG$signal does not say so: $(cat "$FAKE_DIR/drain.out")"
	pass
done

# killed: the next one puts it back
fake_control drain
fake_control "park 0 0:Normal 300000"
drain_in_background --mode=squeeze
wait_until 10 fraction_is 2147483647 || fail "no squeeze begins"
kill -KILL "$drain"
wait "$drain" 2>/dev/null
expect 0 'high_fraction' "status after a kill" status
expect 0 'echo 0 >.*percpu_pagelist_high_fraction' "what would be written" rollback --dry-run
fraction_is 2147483647 || fail "--dry-run writes"
expect 0 'high_fraction: 2147483647 -> 0' "rollback after a kill" rollback
fraction_is 0 || fail "rollback leaves the fraction at $(cat "$FAKE_DIR/$fraction")"
expect 0 'Nothing to put back' "a second rollback" rollback

# refusals
fake_control "fault $fraction write EINVAL"
expect 4 'percpu_pagelist_high_fraction.*Invalid argument' "the kernel refuses" drain --mode=squeeze
fake_control clear
mkdir -p "$FAKE_DIR/run/pcptune"
printf '4242\tpcptuned\t1760000000000000\n' >"$FAKE_DIR/run/pcptune/lock"
exec 9<>"$FAKE_DIR/run/pcptune/lock"
flock 9
for verb in drain rollback "adopt high_fraction"; do
	# shellcheck disable=SC2086
	expect 1 'pcptuned \(pid 4242\).*systemctl stop pcptuned' "while a daemon runs" $verb
done
exec 9>&-

# the daemon, and what status says of it
mkdir -p "$FAKE_DIR/etc/pcptune/policies.d"
printf '[Limits]\nWritesPerMinute=1000\n[Metrics]\nListen=%s/run/metrics\n' "$FAKE_DIR" \
	>"$FAKE_DIR/etc/pcptune/pcptuned.conf"
cat >"$FAKE_DIR/etc/pcptune/policies.d/small.policy" <<'POLICY'
[Policy]
Description=For this test
Priority=50

[HighFraction small]
When=pcp.bytes > 1M
For=0s
Value=100
Until=pcp.bytes < 4k
POLICY
fake_control drain
fake_control "park 0 0:Normal 30000"
./pcptuned --root="$FAKE_DIR" --enforce >"$FAKE_DIR/daemon.out" 2>&1 &
daemon=$!
if wait_until 20 fraction_is 100; then
	wait_until 5 grep -q '"value": 100' "$FAKE_DIR/run/pcptune/state.json" || :
	expect 0 'pcptuned runs \(pid [0-9]+\).*enforcing' "the daemon is named" status
	expect 0 'high_fraction +100 +0 +policy +[a-z]+ .*small/' "value, baseline, owner, why" status
	expect 0 'Policies 1 active' "its policies" status
	expect 0 'high_fraction 0 -> 100, done' "its last decision" status
	expect 0 '"owner": "policy"' "the same for programs" status --json
	expect 0 'pcptune_knob_owner\{knob="high_fraction",owner="policy"\} 1' "and in metrics" metrics
	expect 0 '^echo 0 >' "what would undo it" rollback --dry-run
	echo 50 >"$FAKE_DIR/$fraction"
	foreign() { "$ctl" --root="$FAKE_DIR" status | grep -q 'Wrong: high_fraction is foreign'; }
	wait_until 10 foreign || fail "status does not tell a foreign write: $("$ctl" --root="$FAKE_DIR" status)"
	pass
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null
	daemon=
	expect 0 'not running' "after a kill" status
	expect 0 'gone without a word' "after a kill, what is wrong" status
	expect 0 'Wrong: high_fraction is foreign' "the record is asked where no daemon runs" status
	expect 0 'high_fraction: 50 is the baseline' "adopting it" adopt high_fraction
	expect 2 'did you mean "high_fraction"' "a knob misspelt" adopt high_fractoin
	expect 1 'is not foreign' "adopting twice" adopt high_fraction
else
	fail "the daemon does not set the fraction: $(cat "$FAKE_DIR/daemon.out")"
fi

echo "$checks checks, $failures failures"
[ "$failures" -eq 0 ]
