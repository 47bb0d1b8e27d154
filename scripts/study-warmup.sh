#!/bin/sh
# study-warmup.sh PROGRAM FOLDER [ARGUMENT...] - what a first step costs, and what leaving
# out the warm-up does to a mean: the model suite's step by `best` in fresh processes with
# 0, 1, 2, 5 and 10 steps before ten that are timed by the host's clock, PROCESSES (3) of
# each. Writes FOLDER/warmup.csv process by process, warmup.md and warmup.svg; those of a
# study before are kept as warmup.before.csv. ARGUMENTs choose the shape (default: the
# suite's smallest, in bf16).
# Exit status: 2 if a process failed; what was measured stays and has its table, also when a
# signal ends the study.
set -u
export LC_ALL=C CDPATH=
[ $# -ge 2 ] || { echo "usage: study-warmup.sh PROGRAM FOLDER [ARGUMENT...]" >&2; exit 2; }
program=$1 folder=$2
shift 2
[ $# -gt 0 ] || set -- --dtype bf16 --filter 'model.step best bf16 size=(small|tiny) '
here=$(dirname "$0")
. "$here/orderly.sh"
mkdir -p "$folder" || exit 2
rows=$folder/warmup.csv
status=0

table() {
    awk -f "$here/study_warmup.awk" "$rows" > "$folder/warmup.md" || status=2
    awk -v svg=1 -f "$here/study_warmup.awk" "$rows" > "$folder/warmup.svg" || status=2
}
unfinished=
clean_up() { [ -z "$unfinished" ] || table; }

[ ! -s "$rows" ] || mv "$rows" "$folder/warmup.before.csv" || exit 2
echo steps_before,step,us > "$rows" || exit 2
unfinished=1
for _ in $(seq "${PROCESSES:-3}"); do
    for before in 0 1 2 5 10; do
        watched "$program" "$@" --first-steps "$rows" --steps-before $before --no-verify --warmup 0 \
            --max-samples 1 --max-time 0.01 --quiet || status=2
    done
done
unfinished=
table
cat "$folder/warmup.md"
exit $status
