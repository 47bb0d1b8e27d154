#!/bin/sh
# peers-model.sh BUILD FOLDER [SIZE:CONTEXT:DTYPES]... - the training step by the model suite,
# by PyTorch (compare/pytorch) and, at GPT-2's shape in bf16, by llm.c's trainer
# (tests/peers/llmc.sh), in turn on one card: a round is every item once, each by all
# three, and a sitting has PEERS_ROUNDS (2). What is first in the list is measured first, as
# time may run out: after PEERS_SECONDS (540) nothing is begun or goes on, and rows that are
# done stay. Writes FOLDER/model.csv, torch.csv and llmc.csv, a campaign a round, and
# peers.md, the suite's best variant beside each peer. BUILD is the folder of
# `make BACKEND=cuda build/cuda/model`.
# PEERS_CASES (forward|step) are the cases, PEERS_VARIANTS (best|graph) the suite's variants,
# PEERS_TIME (0.3) the most seconds of a case, PEERS_WITHOUT PyTorch's variants to leave out,
# PYTHON its Python. Without llm.c's trainer in build/llmc and LLMC_SOURCES it is left out.
# Exit status: 0; 1 if something was not measured or time ran out; 2 if nothing was measured.
set -u
export LC_ALL=C CDPATH=
[ $# -ge 2 ] || { echo 'usage: peers-model.sh BUILD FOLDER [SIZE:CONTEXT:DTYPES]...' >&2; exit 2; }
build=$1 folder=$2
shift 2
[ $# -gt 0 ] || set -- gpt2:1024:bf16 gpt2:128:bf16 small:128:f32,bf16 medium:128:bf16 \
    large:128:bf16 xl:128:bf16 2.7B:128:bf16 small:128:tf32 gpt2:1024:f32,tf32 \
    gpt2:128:f32,tf32 medium:128:f32 large:128:f32 xl:128:f32 2.7B:128:f32
here=$(dirname "$0")
. "$here/../scripts/orderly.sh"
ends=$(($(date +%s) + ${PEERS_SECONDS:-540}))
sitting=$(date -u +%Y%m%dT%H%M%SZ)
cases="model\\.(${PEERS_CASES:-forward|step})"
failed=0
mkdir -p "$folder/pieces" || exit 2
rm -f "$folder"/model.csv "$folder"/torch.csv "$folder"/llmc.csv "$folder/peers.md"

# limited COMMAND...: for as long as there is time; all that it started ends with it.
limited() {
    left=$((ends - $(date +%s)))
    [ $left -gt 0 ] || return 1
    watched timeout -k 20 $left "$@"
}

# keep WHOSE PIECE: the rows of a piece join those that are there.
keep() {
    [ -s "$2" ] || return 0
    first=1
    [ ! -s "$folder/$1.csv" ] || first=2
    tail -n +$first "$2" >>"$folder/$1.csv"
}

measure_item() { # measure_item ROUND SIZE CONTEXT DTYPES
    piece=$folder/pieces/$1-$2-$3-$4
    params="size=$2 b=[0-9]+ t=$3 "
    campaign=$sitting-$1
    limited "$build/model" --dtype "$4" --max-time "${PEERS_TIME:-0.3}" --min-samples 10 \
        --filter "^$cases (${PEERS_VARIANTS:-best|graph}) .*$params" --campaign "$campaign" \
        --quiet --csv "$piece-model.csv" >"$piece-model.log" 2>&1 || told "$piece-model.log"
    keep model "$piece-model.csv"
    case $2:$4 in
    gpt2:*bf16*) measure_llmc "$piece" "$3" ;;
    esac
    # shellcheck disable=SC2086 # words
    limited "${PYTHON:-python3}" "$here/pytorch" --suite model --suites "$build" --dtype "$4" \
        --max-time "${PEERS_TIME:-0.3}" --min-samples 10 --runs 1 --campaign "$campaign" \
        --filter "^$cases .*$params" ${PEERS_WITHOUT:+--without "$PEERS_WITHOUT"} \
        --quiet --csv "$piece-torch.csv" >"$piece-torch.log" 2>&1 || told "$piece-torch.log"
    keep torch "$piece-torch.csv"
}

measure_llmc() { # measure_llmc PIECE CONTEXT
    [ -x build/llmc/llmc ] || [ -n "${LLMC_SOURCES:-}" ] || return 0
    rm -f "$1-llmc.csv"
    limited "$here/../tests/peers/llmc.sh" "$(realpath "$1-model.csv")" \
        "$(realpath "$1")-llmc.csv" "$2" >"$1-llmc.log" 2>&1 || told "$1-llmc.log"
    keep llmc "$1-llmc.csv"
}

told() {
    failed=1
    echo "peers-model.sh: ${1##*/}:" >&2
    tail -n 3 "$1" >&2
}

show_peers() {
    set --
    for whose in torch llmc; do
        [ ! -s "$folder/$whose.csv" ] || set -- "$@" "$folder/$whose.csv"
    done
    [ -s "$folder/model.csv" ] || { echo 'peers-model.sh: nothing was measured' >&2; return 2; }
    tables=$here/../scripts/tables
    awk -v markdown=1 -f "$here/csv.awk" -f "$here/numbers.awk" -f "$tables/ratio.awk" \
        -f "$tables/peers.awk" "$folder/model.csv" "$@" >"$folder/peers.md" || failed=1
    cat "$folder/peers.md"
    return $failed
}
clean_up() { [ -z "$unfinished" ] || show_peers; }
unfinished=1

round=0
while [ $((round += 1)) -le "${PEERS_ROUNDS:-2}" ]; do
    for item; do
        size=${item%%:*} rest=${item#*:}
        [ "$(date +%s)" -lt "$ends" ] || { echo "no time for round $round: $item" >&2; failed=1; continue; }
        measure_item $round "$size" "${rest%%:*}" "${rest#*:}"
    done
done
unfinished=
show_peers
