# shellcheck shell=sh
# ncu.sh - what the scripts that hold a program's numbers against Nsight Compute's begin
# with; they source it with their own arguments, PROGRAM first. Leaves $program, $ncu and
# the folder $work; the arguments of PROGRAM are what is left. Exit status 2 without any.
name=$(basename "$0" .sh)
give_up() { echo "$name: $1" >&2; exit 2; }

[ $# -ge 1 ] || give_up "usage: $name.sh PROGRAM [ARGUMENTS...]"
program=$1
shift
[ -x "$program" ] || give_up "no '$program': nvcc builds it, and here is no nvcc or no GPU"
ncu=${NCU:-}
for found in ncu "${CUDA_HOME:-/usr/local/cuda}/bin/ncu"; do
    [ -n "$ncu" ] || ncu=$(command -v "$found")
done
command -v "${ncu:-ncu}" > /dev/null ||
    give_up "no '${ncu:-ncu}': Nsight Compute is needed (NCU=/where/it/is)"
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
LC_ALL=C # ncu writes numbers as the locale does
export LC_ALL

# judge FILE...: what both sides wrote, by the script's own awk program.
judge() {
    here=$(dirname "$0")
    awk -f "$here/../../compare/csv.awk" -f "$here/../../compare/numbers.awk" -f "$here/ncu.awk" \
        -f "$here/$name.awk" "$@"
}
