#!/bin/sh
# self.sh FILE... - a markdown table of what `gpubench-compare --self` says
# of each baseline: how often runs of the same code raised an alarm against each
# other. COMPARE: the tool.
set -eu
export LC_ALL=C CDPATH=
tool=${COMPARE:-build/gpubench-compare}
echo '| baseline | runs | splits | with an alarm | verdicts in them | SLOWER | campaigns against the others | with an alarm |'
echo '|---|---:|---:|---:|---:|---:|---:|---:|'
left=
for file; do
    "$tool" --check "$file" > /dev/null
    # Status 1: too many alarms; 2: a file of too few runs, which is named below the table.
    said=$("$tool" --self "$file") || [ $? -le 2 ]
    [ -n "$said" ] || left="$left${left:+, }$(basename "$file" .csv)"
    printf '%s\n' "$said" | awk -v name="$(basename "$file" .csv)" '
        function alarms(after) { # "N (P %)" behind its last colon
            after = $0
            sub(/.*: /, "", after)
            return after
        }
        function count() { # the number behind its first colon
            match($0, /: [0-9]+;/)
            return substr($0, RSTART + 2, RLENGTH - 3)
        }
        / process runs/ { runs = $3 }
        /^balanced splits/ { splits = count(); split_alarms = alarms() }
        /^verdicts on single cases/ { verdicts = count(); verdict_alarms = alarms() }
        /^campaigns, each against the others/ { campaigns = count(); campaign_alarms = alarms() }
        END {
            if (splits) print "| " name " | " runs " | " splits " | " split_alarms " | " verdicts " | " \
                              verdict_alarms " | " campaigns + 0 " | " campaign_alarms + 0 " |"
        }'
done
[ -z "$left" ] || printf '\nNot split, for which some case needs four runs: %s.\n' "$left"
