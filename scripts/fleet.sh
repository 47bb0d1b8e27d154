#!/bin/sh
# fleet.sh PROGRAM SUITE [ARGUMENTS...] - runs a suite on every node, and gathers the rows
# into results/fleet/SUITE.csv, with a column `node` behind those of the program.
#
# Nodes are those of HOSTS, by ssh, each in the folder that this one is (or DIR); the name
# localhost stands for a plain process here. Without HOSTS, inside an allocation of Slurm,
# they are those that srun starts a task on. LABELS, one for each node in their order, go
# into the column `node`, which is empty without: no host's name gets into a file.
#
# All nodes measure at the same time, each with a campaign's name of its own. One that has no end
# after FLEET_SECONDS is given up; of one that fails the rows that it finished are kept,
# and it is named. Exit status: 0 every node ended well, 1 a node failed or a case did,
# 2 no row, or bad usage. What nodes said stays in build/fleet/SUITE/.
set -u
export LC_ALL=C CDPATH=
here=$(dirname "$0")
. "$here/followed.sh"
program=$1 suite=$2
shift 2
seconds=${FLEET_SECONDS:-3600}
labels=${LABELS:-}
folder=build/fleet/$suite
out=results/fleet/$suite.csv
at_once=256 # ssh takes some MB of memory for each node
child=

say() { echo "fleet-$suite: $*" >&2; }

refuse() {
    say "$*"
    exit 2
}

# What a node said, as text: escapes and a CI's commands are none here.
plainly() { tr -c '\040-\176\n' '?' | sed 's/^[[:space:]]*/    /; s/^    ::/    ?:/; s/##\[/#?[/g'; }

quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

case $seconds in '' | *[!0-9]* | 0*) refuse "FLEET_SECONDS '$seconds': wants a number of seconds" ;; esac
for label in $labels; do
    case $label in *[!A-Za-z0-9._:/+-]*) refuse "label '$label': wants letters, digits and ._:/+-" ;; esac
done
for host in ${HOSTS:-}; do
    case $host in -*) refuse "'$host' is no host" ;; esac
done

# Those that fleet_node.sh reads: the folder's files are what is told to it.
tell_nodes() {
    rm -rf "$folder"
    mkdir -p "$folder" results/fleet
    date -u +%Y%m%dT%H%M%SZ > "$folder/campaign"
    echo "$seconds" > "$folder/seconds"
    quoted "${DIR:-$PWD}" > "$folder/directory"
    for word in "$program" --csv - --quiet "$@"; do
        quoted "$word"
        printf ' '
    done > "$folder/command"
}

# start INPUT COMMAND...: in the background, so that a signal is heard at once.
start() {
    input=$1
    shift
    "$@" < "$input" &
    child=$!
    wait "$child"
    child=
}

by_hosts() {
    seq 1 "$count" > "$folder/numbers"
    for host in $HOSTS; do echo "$host"; done > "$folder/hosts"
    start "$folder/numbers" xargs -n 1 -P "$at_once" sh "$here/fleet_node.sh" "$folder"
}

# A node that dies must not end the others, and srun not wait for it for ever.
by_srun() {
    start /dev/null timeout -k 10 $((seconds + 60)) srun --nodes="$count" --ntasks="$count" \
        --ntasks-per-node=1 --kill-on-bad-exit=0 --no-kill --wait=0 \
        sh "$here/fleet_node.sh" "$folder" 2> "$folder/srun.log"
    [ ! -s "$folder/srun.log" ] || plainly < "$folder/srun.log" | sed "s/^ */fleet-$suite: /" >&2
}

# label_rows LABEL: a node's rows into the file labelled, how many they are into the file
# count. False if they are no CSV.
label_rows() {
    sh "$here/csv.sh" fleet -v label="$1" -v follows="$([ ! -s "$folder/all" ] || echo 1)" \
        -v counts="$folder/count" "$folder/rows" > "$folder/labelled" 2> "$folder/complaint"
}

same_columns() {
    [ ! -s "$folder/all" ] || [ "$(sed -n 1p "$folder/all")" = "$(sed -n 1p "$folder/rows"),node" ] && return
    echo 'other columns than the nodes before it: another build?' > "$folder/complaint"
    return 1
}

drop_last_line() {
    cut=' (half a row left out)'
    sed '$d' "$folder/rows" > "$folder/whole"
    mv "$folder/whole" "$folder/rows"
}

# take_rows NUMBER LABEL: the rows that are whole, behind what the node's shell may have
# said first. A last one without a line end was cut, and so was one without all its fields.
take_rows() {
    [ -e "$folder/$1.csv" ] || return 0
    sed -n '/^schema,/,$p' "$folder/$1.csv" > "$folder/rows"
    [ -s "$folder/rows" ] || return 0
    [ -z "$(tail -c 1 "$folder/rows")" ] || drop_last_line
    same_columns || return 1
    if ! label_rows "$2"; then
        drop_last_line
        label_rows "$2" || return 1
    fi
    cat "$folder/labelled" >> "$folder/all"
    taken=$(cat "$folder/count")
}

# Why a node's status is no good.
reason() {
    case $1 in
    '') echo "said nothing: it did not start, or died" ;;
    124) echo "given up after $seconds s" ;;
    137) echo "killed, as by too little memory or with no end after $seconds s" ;;
    *) echo "ended with status $1" ;;
    esac
}

# take NUMBER: adds the node's rows to those of all, and says what was wrong.
take() {
    status=$(cat "$folder/$1.status" 2> /dev/null)
    name=$(cat "$folder/$1.name" 2> /dev/null)
    why='' cut='' taken=0
    if ! take_rows "$1" "$(echo "$labels" | awk -v n="$1" '{ print $n }')"; then
        why="its rows are no good ($(sed -n 1p "$folder/complaint" | plainly | sed 's/^ *//')) and stay in $folder/$1.csv"
    elif [ "$status" = 1 ] && [ -z "$cut" ]; then
        why='a case failed'
    elif [ "$status" != 0 ] || [ -n "$cut" ]; then
        why=$(reason "$status")
    fi
    rows=$((rows + taken))
    [ -n "$why" ] || return 0
    result=1
    [ "$why" = 'a case failed' ] || failed=$((failed + 1))
    say "node $1 ($name): $why; $taken rows kept$cut, see $folder/$1.log"
    tail -n 1 "$folder/$1.log" 2> /dev/null | cut -c 1-200 | plainly >&2
}

stop() {
    [ -z "$child" ] || kill "$child" 2> /dev/null
    for file in "$folder"/*.pid; do
        [ ! -e "$file" ] || kill "$(cat "$file")" 2> /dev/null
    done
    say "stopped; what nodes wrote is in $folder/"
    exit "$1"
}
trap 'stop 129' HUP
trap 'stop 130' INT
trap 'stop 143' TERM

if [ -n "${HOSTS:-}" ]; then
    count=$(echo "$HOSTS" | wc -w)
elif [ -n "${SLURM_JOB_ID:-}" ] && command -v srun > /dev/null; then
    count=${SLURM_JOB_NUM_NODES:-1}
else
    refuse "HOSTS=\"a b\" names the nodes (localhost: this one), or run it inside a Slurm allocation"
fi
named=$(echo "$labels" | wc -w)
[ "$named" -eq 0 ] || [ "$named" -eq "$count" ] || refuse "$named labels for $count nodes"

target=$(followed "$out") || exit 2
tell_nodes "$@"
if [ -n "${HOSTS:-}" ]; then by_hosts; else by_srun; fi
rows=0 failed=0 result=0
: > "$folder/all"
number=0
while [ "$number" -lt "$count" ]; do
    number=$((number + 1))
    take "$number"
done
[ "$rows" -gt 0 ] || refuse "no row from $count nodes; nothing is written"
mv "$folder/all" "$target"
cards=$(sh "$here/csv.sh" values name=uuid "$out" | grep -c .)
say "$rows rows of $cards cards from $count nodes, of which $failed failed, in $out"
say "which card is odd: build/gpubench-compare --cards $out"
exit "$result"
