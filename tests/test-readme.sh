#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the README shows is what the programs print: its --help, its policy, the files it names.
set -u
build=${PCPTUNE_BUILD:-.} source=${PCPTUNE_SOURCE:-.}
readme=$source/README.md
failed=0

fail() {
	printf 'FAILED: %s\n' "$*"
	failed=1
}

# the block behind a line that matches $1, without its fences
block_after() {
	awk -v mark="$1" '
		index($0, mark) { found = 1; next }
		found && /^```/ { if (inside) exit; inside = 1; next }
		inside' "$readme"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/pcptunectl" --help >"$work/help"
block_after '<!-- pcptunectl --help -->' >"$work/readme"
diff "$work/readme" "$work/help" || fail 'the README shows another --help than pcptunectl prints'

block_after '## A policy' >"$work/example.policy"
"$build/pcptunectl" policy check "$work/example.policy" >"$work/check" 2>&1 ||
	fail "the README's policy has errors: $(cat "$work/check")"

while IFS= read -r file; do
	[ -e "$source/$file" ] || fail "the README links to $file, which is not there"
done < <(grep -o '](\([^)h][^)]*\))' "$readme" | tr -d '()]')

for option in --observe --for --enforce; do
	"$build/pcptuned" --help | grep -q -- "$option" || fail "pcptuned --help has no $option"
done
exit $failed
