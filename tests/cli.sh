#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# pcptunectl as a user meets it: every verb, right and wrong, over a captured machine and on this
# one. Nothing is written to any kernel here; see cli-fake.sh for that.
set -u

src=${srcdir:-.}
data=$(cd "$src/tests/data" && pwd)
src=$(cd "$src" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/pcptune-cli-XXXXXX")
trap 'chmod -R u+rwX "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
# a copy that an ordinary user can reach
cp ./pcptunectl "$work/pcptunectl"
ctl=$work/pcptunectl
capture=$data/sysroot-6.18
checks=0 failures=0
unset NO_COLOR PAGER LESS
export LC_ALL=C

pass() { checks=$((checks + 1)); }

fail() {
	checks=$((checks + 1))
	failures=$((failures + 1))
	echo "FAIL: $*" >&2
}

# run ARGUMENT…: output in $work/out, messages in $work/err, the exit code in $code
run() {
	"$ctl" "$@" >"$work/out" 2>"$work/err" </dev/null
	code=$?
}

# expect CODE PATTERN WHY ARGUMENT…: the exit code, and a message that fits
expect() {
	local want=$1 pattern=$2 why=$3
	shift 3
	run "$@"
	if [ "$code" -ne "$want" ]; then
		fail "$why: pcptunectl $*: exit code $code, not $want: $(cat "$work/err")"
	elif [ -n "$pattern" ] && ! grep -Eq -- "$pattern" "$work/err"; then
		fail "$why: pcptunectl $*: the message does not say /$pattern/: $(cat "$work/err")"
	elif [ "$want" -ne 0 ] && [ ! -s "$work/err" ] && [ ! -s "$work/out" ]; then
		fail "$why: pcptunectl $*: not a word"
	else
		pass
	fi
}

verbs="status zones pcp orders doctor metrics policy_check policy_list"

# every verb that reads works on a captured machine and on this one, with and without --json
for verb in $verbs; do
	# shellcheck disable=SC2086 # two words
	set -- ${verb/_/ }
	for root in "$capture" /; do
		expect 0 "" "reading works" --root="$root" "$@"
		[ -s "$work/out" ] || fail "$* below $root prints nothing"
		[ -s "$work/err" ] && fail "$* below $root complains: $(cat "$work/err")"
		grep -q $'\033' "$work/out" && fail "$* prints colour into a file"
		grep -q '[[:blank:]]$' "$work/out" && fail "$* ends lines in blanks"
		expect 0 "" "JSON works" --root="$root" --json "$@"
		cp "$work/out" "$work/json.$verb"
		python3 -m json.tool <"$work/out" >/dev/null || fail "$* --json is no JSON"
		head -3 "$work/out" | tr -d ' \n' |
			grep -q "^{\"schema\":1,\"verb\":\"${verb/_/}\"" ||
			head -3 "$work/out" | grep -q "\"verb\": \"${verb/_/ }\"" ||
			fail "$* --json does not begin with schema and verb"
	done
done
expect 0 "" "a policy is shown" policy cat trim-under-pressure --policy-dir="$src/policies" --json
cp "$work/out" "$work/json.policy_cat"
expect 0 "" "the shipped policies are listed" policy list --policy-dir="$src/policies"
grep -q '^trim-under-pressure  *90  *enforce' "$work/out" ||
	fail "policy list does not show trim-under-pressure with its priority: $(cat "$work/out")"
expect 0 "" "drop-in files are told" policy cat trim-under-pressure --policy-dir="$src/policies"
grep -q '^\[Trim ' "$work/out" || fail "policy cat shows no rule"
expect 0 "" "nothing to undo" --root="$capture" rollback --dry-run --json
cp "$work/out" "$work/json.rollback"

# doc/json.md names every key, and every key stands in the order of its tables
python3 - "$src/doc/json.md" "$work" <<'PY' || fail "doc/json.md and the JSON differ"
import json, pathlib, re, sys

sections, name = {}, None
for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
    if line.startswith("## "):
        name = line[3:]
        sections[name] = []
    elif line.startswith("| `"):
        sections.setdefault(name, []).extend(re.findall(r"`(\w+)`", line.split("|")[1]))

FREE = {"stats", "labels"}  # their keys are the kernel's or the metric's
bad = []

def walk(value, verb):
    if isinstance(value, dict):
        known = sections[verb] + sections[None]
        for key in value:
            if key not in known:
                bad.append(f"{verb}: {key} is not described")
            if key not in FREE:
                walk(value[key], verb)
        places = [known.index(k) for k in value if known.count(k) == 1]
        if verb != "status" and places[2:] != sorted(places[2:]):
            bad.append(f"{verb}: keys are not in the order of the table: {list(value)}")
    elif isinstance(value, list):
        for v in value:
            walk(v, verb)

for path in sorted(pathlib.Path(sys.argv[2]).glob("json.*")):
    document = json.loads(path.read_text())
    walk(document, document["verb"])
print("\n".join(sorted(set(bad))), file=sys.stderr)
sys.exit(bool(bad))
PY
pass

# the numbers of pcp --json are those of zoneinfo, read by other means
"$ctl" --root="$capture" --json pcp >"$work/pcp.json"
python3 - "$capture/proc/zoneinfo" "$work/pcp.json" <<'PY' || fail "pcp --json differs from zoneinfo"
import json, re, sys

want, node, zone, managed, entry = [], None, None, {}, None
for line in open(sys.argv[1]):
    if m := re.match(r"Node (\d+), zone +(\S+)", line):
        node, zone = int(m[1]), m[2]
    elif m := re.match(r" +managed +(\d+)", line):
        managed[node, zone] = int(m[1])
    elif m := re.match(r" +cpu: (\d+)", line):
        entry = {"node": node, "zone": zone, "cpu": int(m[1])}
        want.append(entry)
    elif m := re.match(r" +(count|high|batch|high_min|high_max): +(\d+)", line):
        entry[m[1]] = int(m[2])
got = json.load(open(sys.argv[2]))
assert len(want) == len(got["pcp"]) > 0, "another number of lists"
for w, g in zip(want, got["pcp"]):
    for key, value in w.items():
        assert g[key] == value, f"{w}: {key} is {g[key]}"
    assert g["bytes"] == w["count"] * got["page_bytes"], g
    assert abs(g["share"] - w["count"] / managed[w["node"], w["zone"]]) < 1e-6, g
    assert g["computed"] is False, g
assert got["pages"] == sum(w["count"] for w in want)
PY
pass

# here, too: which lists there are does not change between two reads
"$ctl" --json pcp >"$work/pcp.json"
awk '/^Node/ { node = $2 + 0; zone = $4 } /^ +cpu:/ { print node, zone, $2 + 0 }' /proc/zoneinfo \
	>"$work/want"
python3 -c '
import json, sys
for p in json.load(sys.stdin)["pcp"]: print(p["node"], p["zone"], p["cpu"])
' <"$work/pcp.json" | cmp -s - "$work/want" || fail "pcp --json does not have the lists of this machine"
pass

# tables line up: each column has one left or one right edge
for verb in zones pcp orders "policy list"; do
	if [ "$verb" = "policy list" ]; then
		run --root="$capture" policy list --policy-dir="$src/policies"
	else
		run --root="$capture" "$verb"
	fi
	python3 - "$work/out" <<'PY' || fail "the table of $verb does not line up: $(cat "$work/out")"
import re, sys
table = open(sys.argv[1]).read().split("\n\n")[0].splitlines()
cells = [[(m.start(), m.end()) for m in re.finditer(r"\S+(?: \S+)*", line)] for line in table]
columns = len(cells[0])
assert columns > 3 and len(cells) > 1, "no table"
for row in cells:
    assert len(row) == columns, row
for c in range(columns):
    assert len({row[c][0] for row in cells}) == 1 or len({row[c][1] for row in cells}) == 1, c
PY
	pass
done
run --root="$capture" zones
grep -q 'MiB' "$work/out" || fail "zones does not speak in MiB"

# --help fits a screen, and the help of each verb does
expect 0 "" "help is no error" --help
lines=$(wc -l <"$work/out")
[ "$lines" -le 24 ] || fail "--help has $lines lines"
[ "$(wc -L <"$work/out")" -le 80 ] || fail "--help is wider than 80 columns"
# "pin KNOB VALUE | unpin KNOB   ..." are two verbs
sed -n 's/^  \([a-z].*[^ ]\)  *  .*/\1/p; s/^  \([a-z].\{38\}\) .*/\1/p' "$work/out" | tr '|' '\n' |
	sed 's/[A-Z[].*//; s/^ *//; s/ *$//; s/  .*//' | sort -u >"$work/verbs"
[ "$(wc -l <"$work/verbs")" -ge 12 ] || fail "--help lists only $(cat "$work/verbs")"
sed -n 's/^ .*--\([a-z-]*\).*/\1/p' "$work/out" | sort >"$work/options"
while read -r verb; do
	# shellcheck disable=SC2086
	expect 0 "" "each verb has help" help $verb
	[ "$(wc -l <"$work/out")" -le 24 ] || fail "the help of $verb is longer than a screen"
	[ "$(wc -L <"$work/out")" -le 80 ] || fail "the help of $verb is wider than 80 columns"
	cp "$work/out" "$work/help"
	# shellcheck disable=SC2086
	expect 0 "" "--help behind a verb" $verb --help
	cmp -s "$work/help" "$work/out" || fail "\"help $verb\" and \"$verb --help\" differ"
	sed -n "s/^ .*--\([a-z-]*\).*/$verb: \1/p" "$work/out" >>"$work/verb_options"
done <"$work/verbs"

# the manual page has the same verbs and options
awk '
	/^\.Sh/ { section = $2 }
	/^\.It Cm/ { verb = $3; if ($4 !~ /^(Op|Ar|Fl)?$/) verb = verb " " $4; print verb > verbs }
	/^\.It Fl/ && match($0, /Fl -[a-z-]+/) {
		name = substr($0, RSTART + 4, RLENGTH - 4)
		if (section == "OPTIONS") print name > options
		else print verb ": " name > verb_options
	}
' verbs="$work/man.verbs" options="$work/man.options" verb_options="$work/man.verb_options" \
	"$src/doc/pcptunectl.1"
for what in verbs options verb_options; do
	sort "$work/$what" >"$work/a"
	sort "$work/man.$what" >"$work/b"
	cmp -s "$work/a" "$work/b" ||
		fail "--help and pcptunectl(1) differ in $what: $(diff "$work/a" "$work/b")"
	pass
done
if command -v mandoc >/dev/null; then
	mandoc -Tlint -Wwarning "$src/doc/pcptunectl.1" >"$work/lint" 2>&1 ||
		fail "mandoc: $(cat "$work/lint")"
	pass
else
	echo "SKIP: mandoc is not installed: pcptunectl(1) is not linted"
fi

# slips of the fingers
expect 2 'did you mean "status"' "a verb misspelt" staus
expect 2 'did you mean "policy check"' "a second word misspelt" policy chekc
expect 2 'did you mean "policy list"' "a first word misspelt" polcy list
expect 2 'check, list or cat' "half a verb" policy
expect 2 'see pcptunectl --help' "no verb at all" xyzzy
expect 2 'pcptunectl status' "nothing given"
expect 2 'did you mean --json' "an option misspelt" status --jsno
expect 2 'unknown option -x' "an unknown letter" status -x
expect 2 'help drain' "an option of another verb" drain --dry-run
expect 2 'needs a value' "an option without its value" pcp --zone
expect 2 'takes no value' "a value that is not wanted" status --json=yes
expect 2 'does not know what to do with "x"' "an argument too many" status x
expect 2 'usage: pcptunectl policy cat' "an argument too few" policy cat
expect 2 'did you mean "Normal"' "a zone misspelt" --root="$capture" pcp --zone=Nromal
expect 2 'no node 9' "a node that is not there" --root="$capture" zones --node=9
expect 2 '0-3,8' "a CPU list" pcp --cpu=a-b
expect 2 'trim, squeeze or kernel' "a mode" drain --mode=all
expect 2 '30s' "a time" drain --max-time=soon
expect 2 'basic or full' "a set of series" metrics --series=all
expect 2 '4K' "a page size" --page-size=5000 status
expect 0 "" "options end with --" -- status
expect 0 "" "options stand anywhere" pcp --root "$capture" --zone=Normal --cpu=0
[ "$(grep -c '^ ' "$work/out")" -eq 1 ] || fail "--zone and --cpu do not select: $(cat "$work/out")"
expect 0 "" "version" --version
grep -Eq '^pcptunectl [0-9]' "$work/out" || fail "--version says $(cat "$work/out")"

# what is not there
expect 1 '/nonexistent.*No such file' "a root that is not there" --root=/nonexistent status
mkdir -p "$work/empty"
for verb in status zones pcp orders metrics drain; do
	expect 5 "$work/empty/proc/zoneinfo.*not there" "no zoneinfo" --root="$work/empty" "$verb"
done
expect 0 "" "doctor always has something to say" --root="$work/empty" doctor
grep -q 'zoneinfo is not there' "$work/out" || fail "doctor does not miss zoneinfo"
expect 5 'can only be read' "a capture is not written to" --root="$capture" drain
expect 5 'can only be read' "a capture is not written to" --root="$capture" rollback
expect 5 'can only be read' "a capture is not written to" --root="$capture" adopt high_fraction

cp -r "$capture" "$work/tree"
chmod -R u+w "$work/tree"
head -c 1500 "$capture/proc/zoneinfo" >"$work/tree/proc/zoneinfo"
expect 1 'zoneinfo.*(line|byte)' "a table that is cut off" --root="$work/tree" pcp
cp "$capture/proc/zoneinfo" "$work/tree/proc/zoneinfo"
rm -f "$work/tree/proc/sys/vm/percpu_pagelist_high_fraction"
expect 0 "" "a kernel without the knob" --root="$work/tree" doctor
grep -q 'no vm.percpu_pagelist_high_fraction' "$work/out" || fail "doctor does not miss the knob"
expect 0 "" "status without knobs" --root="$work/tree" status

# what gets in the way
mkdir -p "$work/tree/etc/sysctl.d" "$work/tree/etc/pcptune"
printf '# tuning\nvm.swappiness=1\n-vm.percpu_pagelist_high_fraction = 64\n' \
	>"$work/tree/etc/sysctl.d/60-lists.conf"
: >"$work/tree/etc/pcptune/disabled"
: >"$work/tree/.dockerenv"
run --root="$work/tree" doctor
for pattern in "sysctl.d/60-lists.conf:3 sets .* to 64" "etc/pcptune/disabled" "container"; do
	grep -q "$pattern" "$work/out" || fail "doctor does not say \"$pattern\": $(cat "$work/out")"
	pass
done

# policies
mkdir -p "$work/policies"
printf '[Policy]\nPriorty=3\n\n[Trim x]\nWhen=pcp.shae > 3%%\nFor=5s\n' >"$work/policies/bad.policy"
expect 1 "" "a bad policy" policy check "$work/policies/bad.policy"
for pattern in 'bad.policy:2:1: .*Priorty' 'bad.policy:5:6: .*pcp.share'; do
	grep -Eq "$pattern" "$work/out" || fail "policy check does not say /$pattern/: $(cat "$work/out")"
	pass
done
expect 1 "" "a bad policy in a directory" policy check --policy-dir="$work/policies"
expect 1 'no/such.policy: No such file' "a file that is not there" policy check no/such.policy
expect 1 'did you mean "trim-under-pressure"' "a policy's name misspelt" \
	policy cat trim-under-presure --policy-dir="$src/policies"
expect 1 'has errors' "a policy with errors is not shown" policy cat bad --policy-dir="$work/policies"
"$ctl" policy check - <"$work/policies/bad.policy" >/dev/null
[ $? -eq 1 ] || fail "policy check does not read standard input"
pass

# colour: on a terminal, and never with NO_COLOR
if command -v script >/dev/null; then
	tty() { script -qec "$*" /dev/null </dev/null 2>&1; }
	tty env TERM=xterm "$ctl" --root="$capture" --no-pager status | grep -q $'\033\[' ||
		fail "no colour on a terminal"
	tty env TERM=xterm NO_COLOR=1 "$ctl" --root="$capture" --no-pager status |
		grep -q $'\033\[' && fail "colour in spite of NO_COLOR"
	tty env TERM=dumb "$ctl" --root="$capture" --no-pager status | grep -q $'\033\[' &&
		fail "colour on a dumb terminal"
	tty env TERM=xterm PAGER="'sed s/^/PAGED:/'" "stty rows 5;" true >/dev/null
	tty "stty rows 5; TERM=xterm PAGER='sed s/^/PAGED:/' $ctl --root=$capture orders" |
		grep -q PAGED: || fail "long output is not paged"
	tty "stty rows 5; TERM=xterm PAGER='sed s/^/PAGED:/' $ctl --root=$capture --no-pager orders" |
		grep -q PAGED: && fail "--no-pager pages"
	tty "stty rows 5; TERM=xterm PAGER=/nonexistent $ctl --root=$capture orders" |
		grep -q ORDER || fail "without the pager there is no output"
	pass
else
	echo "SKIP: script (util-linux) is not installed: colour and pager are not looked at"
fi

# a reader that has seen enough
"$ctl" --root="$capture" metrics --series=full | head -1 >/dev/null
code=${PIPESTATUS[0]}
[ "$code" -eq 0 ] || [ "$code" -eq 141 ] || fail "a closed pipe is exit code $code"
if [ -w /dev/full ]; then
	"$ctl" --root="$capture" status >/dev/full 2>"$work/err"
	code=$?
	if [ "$code" -ne 1 ] || ! grep -q 'No space left' "$work/err"; then
		fail "a full disk is not told"
	fi
	pass
fi

# the exposition
if command -v promtool >/dev/null; then
	"$ctl" metrics --series=full --per-cpu | promtool check metrics >"$work/lint" 2>&1 ||
		fail "promtool: $(cat "$work/lint")"
	pass
else
	echo "SKIP: promtool is not installed: the metrics are not linted"
fi
[ "$("$ctl" metrics | grep -vc '^#')" -le 60 ] || fail "more than 60 basic series"
"$ctl" metrics --openmetrics | tail -1 | grep -qx '# EOF' || fail "OpenMetrics does not end in # EOF"

# as an ordinary user
user=none
if [ "$(id -u)" -ne 0 ]; then
	user=
elif command -v setpriv >/dev/null; then
	user="setpriv --reuid=65534 --regid=65534 --clear-groups"
else
	echo "SKIP: setpriv (util-linux) is not installed: not tried as an ordinary user"
fi
if [ "$user" != none ]; then
	for verb in status zones pcp orders doctor metrics; do
		$user "$ctl" "$verb" >/dev/null 2>"$work/err" ||
			fail "$verb does not work without root: $(cat "$work/err")"
		pass
	done
	for verb in drain rollback "adopt high_fraction"; do
		# shellcheck disable=SC2086
		$user "$ctl" $verb >/dev/null 2>"$work/err"
		code=$?
		# 5: a kernel that cannot do it says so first
		[ "$code" -eq 5 ] || grep -q 'run/pcptune.*run as root' "$work/err" ||
			fail "$verb without root: exit code $code: $(cat "$work/err")"
		pass
	done
fi

echo "$checks checks, $failures failures"
[ "$failures" -eq 0 ]
