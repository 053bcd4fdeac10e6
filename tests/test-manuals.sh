#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the manual pages, the packaged configuration and the catalog say is what the programs know.
set -uo pipefail

top=${PCPTUNE_SOURCE:-.}
pcptuned=${PCPTUNE_BUILD:-.}/pcptuned
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# same NAME FILE FILE: the same lines
same() {
	if diff -u "$2" "$3" >"$work/diff"; then
		echo "ok: $1"
	else
		echo "FAILED: $1"
		cat "$work/diff"
		failed=1
	fi
}

mkdir -p "$work/tree"
"$pcptuned" --root="$work/tree" --print-config >"$work/config" || {
	echo "FAILED: $pcptuned --print-config"
	exit 1
}
# "# [Daemon] Mode=observe" for each key and its default
sed -n 's/^# \(\[[A-Za-z]*\]\) \([A-Za-z]*=.*\)$/\1 \2/p' "$work/config" >"$work/keys"
[ "$(wc -l <"$work/keys")" -gt 10 ] || {
	echo "FAILED: --print-config shows no defaults"
	exit 1
}

awk '/^\.Sh SECTION/ { section = $3 }
	/^\.Sh / && !/SECTION/ { section = "" }
	section != "" && /^\.It Sy [A-Za-z]*= Pq / {
		key = $3; sub(/^\.It Sy [A-Za-z]*= Pq /, "")
		if ($0 == "unset") $0 = ""
		if (key == "OrderMax=") $0 = "(" $0 ")"
		print section " " key $0
	}' "$top/doc/pcptuned.conf.5" >"$work/manual"
same 'pcptuned.conf(5) has each key with its default, in order' "$work/keys" "$work/manual"

# commented-out defaults, where 1min is 60s
awk '/^\[/ { section = $1 } /^#[A-Z][A-Za-z]*=/ { sub(/^#/, ""); print section " " $0 }' \
	"$top/units/pcptuned.conf" | sed 's/=1min$/=60s/; s/OrderMax=$/OrderMax=(the PMD order - 1)/' \
	>"$work/packaged"
same 'the packaged configuration shows each default' "$work/keys" "$work/packaged"
grep -vE '^(#|\[|$)' "$top/units/pcptuned.conf" >"$work/set"
same 'the packaged configuration sets nothing' /dev/null "$work/set"

"$pcptuned" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort >"$work/help"
sed -n 's/^\.It Fl .*Fl -\([a-z-]*\).*/--\1/p; s/^\.It Fl -\([a-z-]*\).*/--\1/p' "$top/doc/pcptuned.8" |
	sort >"$work/manual"
same 'pcptuned(8) and --help have the same options' "$work/help" "$work/manual"

grep -oE 'MESSAGE_ID=[0-9a-f]{32}' "$top/daemon/message_ids.h" | cut -d= -f2 | sort >"$work/ids"
sed -n 's/^-- \([0-9a-f]\{32\}\)$/\1/p' "$top/units/pcptune.catalog" | sort >"$work/catalog"
same 'the catalog has an entry for each message' "$work/ids" "$work/catalog"
[ -z "$(uniq -d "$work/ids")" ] || {
	echo 'FAILED: two messages have one id'
	failed=1
}
awk '/^-- / { id = $2; subject = text = 0 }
	/^Subject: ./ { subject = 1 }
	subject && /^[A-Z]/ && !/^(Subject|Defined-By|Documentation):/ { if (!text++) print id }' \
	"$top/units/pcptune.catalog" | sort >"$work/explained"
same 'each entry says what happened and what to do' "$work/ids" "$work/explained"

if command -v mandoc >/dev/null; then
	mandoc -T lint -W warning "$top/doc/pcptuned.8" "$top/doc/pcptuned.conf.5" >"$work/lint" 2>&1
	same 'mandoc has no complaint' /dev/null "$work/lint"
fi
exit "$failed"
