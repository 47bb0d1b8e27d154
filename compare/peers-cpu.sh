#!/bin/sh
# peers-cpu.sh BUILD FOLDER THREADS... - the CPU's cases by the suites, by PyTorch and by
# numpy (compare/pytorch), in turn on one machine: for each number of threads rounds of every
# suite and then its peers, all at the same shapes. Writes FOLDER/own-THREADS.csv and
# peers-THREADS.csv, a campaign a round, and peers.md: for each case and number of threads the
# fastest variant beside each peer, products beside numpy's BLAS, and what is bound by memory
# beside the measured ceilings. BUILD is the folder of `make BACKEND=cpu`.
# PEERS_SUITES (all of them) are the suites, PEERS_FILTER a regular expression for the
# cases, PEERS_DTYPE (f32,bf16) the dtypes, PEERS_WITHOUT (torch-compile,torch-sdpa-math) the
# peers' variants that are left out, PEERS_ROUNDS (2) the rounds, PEERS_TIME (0.2) the most
# seconds of a case's samples; after PEERS_SECONDS (1200) nothing is begun or goes on, and rows
# that are done stay. PYTHON is its Python. Without GPUBENCH_BLAS the variant `blas` takes
# what the loader finds, and numpy's own library where PEERS_BLAS=numpy.
# Exit status: 0; 1 if something was not measured or time ran out; 2 if nothing was measured.
set -u
export LC_ALL=C CDPATH=
[ $# -ge 3 ] || { echo 'usage: peers-cpu.sh BUILD FOLDER THREADS...' >&2; exit 2; }
build=$1 folder=$2
shift 2
for threads; do
    case $threads in
    '' | 0* | *[!0-9]*) echo "peers-cpu.sh: '$threads' is no number of threads" >&2; exit 2 ;;
    esac
done
here=$(dirname "$0")
. "$here/../scripts/orderly.sh"
python=${PYTHON:-python3}
sitting=$(date -u +%Y%m%dT%H%M%SZ)
dtypes=${PEERS_DTYPE:-f32,bf16}
filter=${PEERS_FILTER:-.}
failed=0
export THP_MEM_ALLOC_ENABLE=1 # PyTorch's memory is of large pages too, as the suites' and numpy's
mkdir -p "$folder/pieces" || exit 2
rm -f "$folder"/own-*.csv "$folder"/peers-*.csv "$folder/peers.md" "$folder"/pieces/*

# Large enough that what starting threads takes is no part of it, and that what is bound by
# memory is not in a cache.
shapes_of() {
    case $1 in
    attention)
        for context in 512 2048; do
            for width in 64 128; do echo "b=1 h=4 t=$context d=$width causal=1;"; done
        done ;;
    block) echo 'b=1 t=512 d=768 h=12 ff=3072' ;;
    ceilings) echo 'words=33554432 m=512 n=3072 k=768' ;;
    embedding) echo 'n=32768 v=10000 c=768 t=1024 zipf=0' ;;
    ffn) echo 'n=512 d=768 ff=3072' ;;
    loss) echo 'n=512 v=50257' ;;
    norm) echo 'n=32768 c=768' ;;
    optimizer) echo 'd=512 ff=2048 l=2 v=5000 t=128' ;;
    *) echo "peers-cpu.sh: there is no suite '$1' with peers" >&2; return 1 ;;
    esac
}
suites=$(echo "${PEERS_SUITES:-attention block ceilings embedding ffn loss norm optimizer}" | tr ',' ' ')

# The library inside numpy's package, whose folder has another name in each version.
numpy_blas() {
    "$python" -c 'import glob, os, numpy
home = os.path.dirname(numpy.__file__)
print(*sorted(glob.glob(os.path.join(home + ".libs", "*openblas*"))), sep="\n")' 2>/dev/null | head -n 1
}
if [ "${PEERS_BLAS:-}" = numpy ] && [ -n "$(numpy_blas)" ]; then
    GPUBENCH_BLAS=$(numpy_blas)
    export GPUBENCH_BLAS
fi

# limited COMMAND...: for as long as there is time; all that it started ends with it.
limited() {
    left=$((ends - $(date +%s)))
    [ $left -gt 0 ] || return 1
    watched timeout -k 20 $left "$@"
}

told() {
    failed=1
    echo "peers-cpu.sh: ${1##*/}:" >&2
    tail -n 3 "$1" >&2
}

# keep WHOSE PIECE: the rows of a piece join those that are there.
keep() {
    [ -s "$2" ] || return 0
    first=1
    [ ! -s "$folder/$1.csv" ] || first=2
    tail -n +$first "$2" >>"$folder/$1.csv"
}

# measure_suite THREADS ROUND SUITE: then, of the same cases, the peers.
measure_suite() {
    piece=$folder/pieces/$3-$1-$2
    shapes=$(shapes_of "$3" | tr -d '\n') || { failed=1; return; }
    set -- "$1" "$3" --threads "$1" --shape "${shapes%;}" --dtype "$dtypes,u8" --max-time \
        "${PEERS_TIME:-0.2}" --min-samples 5 --campaign "$sitting-$2"
    own_threads=$1 suite=$2
    shift 2
    limited "$build/$suite" "$@" --filter "^($filter).* (simd|threads|blas) " --quiet \
        --csv "$piece-own.csv" >"$piece-own.log" 2>&1 || told "$piece-own.log"
    keep "own-$own_threads" "$piece-own.csv"
}

measure_peers() { # measure_peers THREADS ROUND
    piece=$folder/pieces/all-$1-$2
    # shellcheck disable=SC2086 # words
    limited "$python" "$here/pytorch" --device cpu --threads "$1" --suites "$folder/lists" \
        --suite "$(echo $suites | tr ' ' ',')" --dtype "$dtypes,u8" --filter "^($filter)" \
        --without "${PEERS_WITHOUT:-torch-compile,torch-sdpa-math}" --max-time "${PEERS_TIME:-0.2}" --min-samples 5 \
        --runs 1 --campaign "$sitting-$2" --quiet --csv "$piece-peers.csv" \
        >"$piece-peers.log" 2>&1 || told "$piece-peers.log"
    keep "peers-$1" "$piece-peers.csv"
}

# What the suites say of their cases, for the peers to measure the same.
list_cases() {
    mkdir -p "$folder/lists" || return 1
    for suite in $suites; do
        shapes=$(shapes_of "$suite" | tr -d '\n') || return 1
        "$build/$suite" --list --json - --quiet --shape "${shapes%;}" --dtype "$dtypes,u8" \
            >"$folder/lists/$suite.json" 2>"$folder/lists/log" || { told "$folder/lists/log"; return 1; }
    done
}

show_peers() {
    for threads; do
        shift
        for whose in own peers; do
            [ ! -s "$folder/$whose-$threads.csv" ] ||
                set -- "$@" "threads=$threads" "$folder/$whose-$threads.csv"
        done
    done
    [ $# -gt 0 ] || { echo 'peers-cpu.sh: nothing was measured' >&2; return 2; }
    awk -v markdown=1 -f "$here/csv.awk" -f "$here/numbers.awk" -f "$here/peers-cpu.awk" "$@" \
        >"$folder/peers.md" || failed=1
    cat "$folder/peers.md"
    return $failed
}
counts=$*
# shellcheck disable=SC2086 # words
clean_up() { [ -z "$unfinished" ] || show_peers $counts; }
unfinished=
list_cases || exit 2
ends=$(($(date +%s) + ${PEERS_SECONDS:-1200}))
unfinished=1

round=0
while [ $((round += 1)) -le "${PEERS_ROUNDS:-2}" ]; do
    for threads; do
        [ "$(date +%s)" -lt "$ends" ] || { echo "no time for round $round: $threads threads" >&2; failed=1; continue; }
        for suite in $suites; do measure_suite "$threads" $round "$suite"; done
        measure_peers "$threads" $round
    done
done
unfinished=
show_peers "$@"
