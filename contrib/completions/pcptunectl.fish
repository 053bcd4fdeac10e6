# SPDX-License-Identifier: GPL-2.0-or-later
function __pcptunectl_column
    pcptunectl --json (string split " " -- $argv[1]) 2>/dev/null | string replace -rf "^ *\"$argv[2]\": \"([^\"]*)\".*" '$1' | sort -u
end
function __pcptunectl_verb
    __fish_seen_subcommand_from $argv
end
set -l verbs status zones pcp orders explain history policy pin unpin adopt pause resume rollback reload drain doctor metrics help
complete -c pcptunectl -f
complete -c pcptunectl -l root -r -a '(__fish_complete_directories)' -d 'look at a captured machine'
complete -c pcptunectl -l page-size -x -a '4K 16K 64K' -d 'of the captured machine'
complete -c pcptunectl -l json -d 'print JSON'
complete -c pcptunectl -l no-pager -d 'no pager'
complete -c pcptunectl -s h -l help -d help
complete -c pcptunectl -s V -l version -d version
complete -c pcptunectl -n "not __fish_seen_subcommand_from $verbs" -a "$verbs"
complete -c pcptunectl -n '__pcptunectl_verb help' -a "$verbs"
complete -c pcptunectl -n '__pcptunectl_verb policy' -a 'list cat check'
complete -c pcptunectl -n '__pcptunectl_verb zones pcp' -s a -l all -d 'also what is empty'
complete -c pcptunectl -n '__pcptunectl_verb zones pcp' -l node -x -d 'only of this node'
complete -c pcptunectl -n '__pcptunectl_verb zones pcp' -l zone -x -a '(__pcptunectl_column zones zone)' -d 'only of these zones'
complete -c pcptunectl -n '__pcptunectl_verb pcp' -l cpu -x -d 'only of these CPUs'
complete -c pcptunectl -n '__pcptunectl_verb pin unpin adopt explain' -a '(__pcptunectl_column status knob)'
complete -c pcptunectl -n '__pcptunectl_verb cat' -a '(__pcptunectl_column "policy list" policy)'
complete -c pcptunectl -n '__pcptunectl_verb check' -F
complete -c pcptunectl -n '__pcptunectl_verb explain policy' -l policy-dir -r -a '(__fish_complete_directories)'
complete -c pcptunectl -n '__pcptunectl_verb pin pause' -l for -x -a '10min 1h 8h' -d 'until then only'
complete -c pcptunectl -n '__pcptunectl_verb rollback' -l dry-run -d 'print the commands'
complete -c pcptunectl -n '__pcptunectl_verb drain' -l mode -x -a 'trim squeeze kernel' -d mode
complete -c pcptunectl -n '__pcptunectl_verb drain' -l fast -d 'fewer passes'
complete -c pcptunectl -n '__pcptunectl_verb drain' -l max-time -x -a '30s 2min' -d 'stop after this long'
complete -c pcptunectl -n '__pcptunectl_verb drain' -l isolated-too -d 'also isolated CPUs'
complete -c pcptunectl -n '__pcptunectl_verb history' -s n -l lines -x -d 'only the last N'
complete -c pcptunectl -n '__pcptunectl_verb history' -s f -l follow -d 'go on'
complete -c pcptunectl -n '__pcptunectl_verb history' -l since -x -a '1h 8h today yesterday' -d 'only what is younger'
complete -c pcptunectl -n '__pcptunectl_verb metrics' -l openmetrics -d 'OpenMetrics 1.0'
complete -c pcptunectl -n '__pcptunectl_verb metrics' -l series -x -a 'basic full' -d 'which series'
complete -c pcptunectl -n '__pcptunectl_verb metrics' -l per-cpu -d 'each CPU, too'
