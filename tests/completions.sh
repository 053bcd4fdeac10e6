#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The completions of bash, zsh and fish, run by the shells themselves: they complete what pcptunectl
# has, and all of it.
# shellcheck disable=SC2016,SC2317 # what the other shells run; functions that are called by their names
set -u

top=$(cd "${PCPTUNE_SOURCE:-.}" && pwd)
build=$(cd "${PCPTUNE_BUILD:-.}" && pwd)
dir=$top/contrib/completions
PATH=$build:$PATH
export capture=$top/tests/data/sysroot-6.18
failed=0 checks=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAILED: $*"
	failed=1
}


# bash_completes LINE: what bash offers at the end of the line
bash_completes() {
	bash --norc -c '
		. "$1"
		line=$2
		read -ra COMP_WORDS <<<"${line//=/ = }"
		[[ $line != *" " ]] || COMP_WORDS+=("")
		[[ $line != *= ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_pcptunectl
		printf "%s\n" "${COMPREPLY[@]}"' bash "$dir/pcptunectl" "$1" | sort
}
fish_completes() {
	fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$dir/pcptunectl.fish" "$1" | cut -f1 | sort
}
# offers SHELL LINE WORD…: each of them is among what the shell offers
offers() {
	local shell=$1 line=$2 word
	shift 2
	"${shell}_completes" "$line" >"$work/offered"
	for word in "$@"; do
		checks=$((checks + 1))
		grep -qxF -- "$word" "$work/offered" ||
			fail "$shell does not offer $word after \"$line\": $(tr '\n' ' ' <"$work/offered")"
	done
}

# every verb and option there is, as --help and the help of the verbs say
pcptunectl --help | sed -n 's/^  \([a-z].*[^ ]\)  *  .*/\1/p; s/^  \([a-z].\{38\}\) .*/\1/p' | tr '|' '\n' |
	sed 's/[A-Z[].*//; s/^ *//; s/ *$//; s/  .*//' | sort -u >"$work/verbs"
[ "$(wc -l <"$work/verbs")" -ge 18 ] || fail "--help lists only $(tr '\n' ',' <"$work/verbs")"

shells=(bash)
if command -v fish >/dev/null; then shells+=(fish); else echo 'skipped: fish is not installed'; fi
for shell in "${shells[@]}"; do
	cut -d ' ' -f 1 "$work/verbs" | sort -u >"$work/first"
	mapfile -t first <"$work/first"
	offers "$shell" 'pcptunectl ' "${first[@]}"
	offers "$shell" 'pcptunectl policy ' list cat check
	while read -r verb; do
		# shellcheck disable=SC2086 # a verb can be two words
		mapfile -t options < <(pcptunectl help $verb | sed -n 's/^ .*--\([a-z-]*\).*/--\1/p')
		[ ${#options[@]} = 0 ] || offers "$shell" "pcptunectl $verb --" "${options[@]}"
	done <"$work/verbs"
	offers "$shell" 'pcptunectl drain --mode=' "$([ "$shell" = fish ] && echo --mode=)squeeze"
done
offers bash "pcptunectl --root=$capture pin " high_fraction
offers bash "pcptunectl --root=$capture explain " high_fraction trim
offers bash "pcptunectl --root=$capture zones --zone=" Normal
mapfile -t policies < <(cd "$top/policies" && printf '%s\n' *.policy | sed 's/\.policy$//')
mkdir -p "$work/tree/proc" "$work/tree/usr/lib/pcptune/policies.d"
cp "$capture/proc/zoneinfo" "$work/tree/proc/"
cp "$top"/policies/*.policy "$work/tree/usr/lib/pcptune/policies.d/"
offers bash "pcptunectl --root=$work/tree policy cat " "${policies[@]}"

# zsh's completion needs a terminal: a pseudo-terminal of its own
if command -v zsh >/dev/null; then
	cat >"$work/zsh" <<'EOF'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-separator ' '; LISTMAX=0; stty columns 200; echo re''ady"
zpty -r -m shell line '*ready*'
zpty -w -n shell "pcptunectl "$'\t\t'
sleep 2
while zpty -r -t shell line; do print -rn -- "$line"; done
zpty -d shell
EOF
	zsh -f "$work/zsh" "$dir" >"$work/offered" 2>&1
	while read -r verb; do
		checks=$((checks + 1))
		grep -qw -- "${verb%% *}" "$work/offered" || fail "zsh does not offer ${verb%% *}"
	done <"$work/verbs"
	for option in $(while read -r verb; do
		# shellcheck disable=SC2086
		pcptunectl help $verb | sed -n 's/^ .*--\([a-z-]*\).*/\1/p'
	done <"$work/verbs" | sort -u); do
		checks=$((checks + 1))
		grep -q -- "--$option" "$dir/_pcptunectl" || fail "zsh does not know --$option"
	done
else
	echo 'skipped: zsh is not installed'
fi
echo "$checks checks"
exit $failed
