#!/bin/sh
# study-attention.sh PROGRAM FOLDER [ARGUMENT...] - attention's share of a transformer block
# over the context: the block suite's parts by `best`, each context in a process of its own,
# beside what the count of operations says. TOKENS (16384) is a batch times a context,
# CONTEXTS (128 to 16384) which, WIDTH (768) the block's, with heads of 64. Writes
# FOLDER/attention-CONTEXT.csv, attention.md and attention.svg; what other contexts left in
# the folder before is in them too. ARGUMENTs go to the program (default: --dtype bf16).
# Exit status: 2 if a process failed; what was measured stays.
set -u
export LC_ALL=C CDPATH=
[ $# -ge 2 ] || { echo "usage: study-attention.sh PROGRAM FOLDER [ARGUMENT...]" >&2; exit 2; }
program=$1 folder=$2
shift 2
[ $# -gt 0 ] || set -- --dtype bf16
here=$(dirname "$0")
. "$here/orderly.sh"
width=${WIDTH:-768}
status=0
mkdir -p "$folder" || exit 2

table() { # table [VARIABLE=VALUE]: of all contexts that are there
    awk "$@" -f "$here/../compare/csv.awk" -f "$here/../compare/numbers.awk" \
        -f "$here/study_attention.awk" "$folder"/attention-*.csv || status=2
}

for context in ${CONTEXTS:-128 256 512 1024 2048 4096 8192 16384}; do
    batch=$((${TOKENS:-16384} / context))
    [ $batch -gt 0 ] || batch=1
    heads=$((width / 64))
    [ $heads -gt 0 ] || heads=1
    watched "$program" "$@" --shape "b=$batch t=$context d=$width h=$heads ff=$((4 * width))" \
        --filter '^block\.part best ' --quiet --csv "$folder/attention-$context.csv" || status=2
done
[ -n "$(ls "$folder"/attention-*.csv 2>/dev/null)" ] ||
    { echo 'study-attention.sh: nothing was measured' >&2; exit 2; }
table -v svg=0 > "$folder/attention.md"
table -v svg=1 > "$folder/attention.svg"
cat "$folder/attention.md"
exit $status
