#!/bin/sh
# race.sh PROGRAM SUITE [--rev REV] [--only FILE] [--verdicts FILE] [--seconds N] [--build-only]
# [-- ARGUMENTS...] - races PROGRAM, the suite as this tree builds it, against the same suite of an
# older revision: REV, or the one that the newest campaign of this device's baseline
# names. Exit status: gpubench-compare's; 2 too where there is no such revision.
#
# The revision is built in a worktree, build/race/HASH/tree, with the same BACKEND,
# ARCH, CFLAGS, CC, NVCC, CUDA_HOME and JOBS (from the environment); what is there already
# is used again. Nothing else of the repository is touched; `make clean` removes it.
#
# --build-only prints the path of the old program and races nothing. --only FILE races
# the cases of the file, one line of --list each; --verdicts FILE is gpubench-compare's, and
# --seconds its --race-seconds.
# So compare.sh, having screened:
#
#   if sh scripts/race.sh "$program" "$suite" --build-only > /dev/null; then
#       exec sh scripts/race.sh "$program" "$suite" --only "$keys" -- "$@"
#   fi    # else there is nothing to race against, which race.sh has said
set -eu
export LC_ALL=C CDPATH=
. "${0%/*}/orderly.sh" # without dirname: PATH may lack everything
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL GIT # of a make that runs this
program=$1 suite=$2
shift 2
[ -n "${BACKEND:-}" ] || { echo "race-$suite: BACKEND says nothing: make calls this" >&2; exit 2; }
rev='' only='' verdicts='' seconds='' build_only=''
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case $1 in
    --rev) rev=$2; shift ;;
    --only) only=$2; shift ;;
    --verdicts) verdicts=$2; shift ;;
    --seconds) seconds=$2; shift ;;
    --build-only) build_only=1 ;;
    *) echo "race-$suite: unknown option '$1'" >&2; exit 2 ;;
    esac
    shift
done
[ $# -eq 0 ] || shift
quiet='-c core.hooksPath=/dev/null -c advice.detachedHead=false'
work='' probe=''

refuse() {
    echo "race-$suite: $*" >&2
    exit 2
}

clean_up() {
    [ -z "$work" ] || rm -f "$work/owner" "$work/building"
    [ -z "$probe" ] || rm -rf "$probe"
}

run() { watched "$@" >> "$work/log" 2>&1; }

# A hook of git's, or what else it runs, is told by variables which repository it is in.
unset GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_PREFIX
command -v git > /dev/null || refuse "there is no git here, so no older revision to build"
top=$(git rev-parse --show-toplevel 2> /dev/null) || top=
[ -n "$top" ] && [ "$(cd "$top" && pwd -P)" = "$(pwd -P)" ] ||
    refuse "this folder is no git repository, so there is no older revision to build"

# The git column of the campaign with the latest row; the device is found by
# measuring one case as briefly as can be.
baseline_revision() {
    mkdir -p build/race
    probe=$(mktemp -d build/race/probe.XXXXXX) # where `make clean` finds it after a kill
    key=$("$program" --list | sed -n 1p | sed 's/[.[\()*+?{|^$]/\\&/g')
    watched env TMPDIR="$probe" "$program" --quiet --filter "^$key\$" --min-samples 1 --max-time 0.01 \
        --csv "$probe/csv" > /dev/null || true
    folder=$(sh scripts/device-folder.sh "$probe/csv") || folder=
    rm -rf "$probe"
    probe=
    instead='REV=... names a revision'
    [ -n "$folder" ] || refuse "$program does not measure, so its baseline is not known; $instead"
    baseline=$folder/$suite.csv
    [ -e "$baseline" ] || refuse "no baseline of this device: $baseline is missing; $instead"
    rev=$(sh scripts/csv.sh newest-revision "$baseline")
    case $rev in
    '') refuse "$baseline names no revision; $instead" ;;
    *-dirty) refuse "$baseline was measured on ${rev%-dirty} with changes," \
        "which cannot be built again; $instead" ;;
    esac
}

resolve() {
    case $rev in -*) refuse "'$rev' is no revision" ;; esac
    if hash=$(git rev-parse --verify --quiet "$rev^{commit}"); then
        return
    fi
    if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
        refuse "revision '$rev' is not here: this is a shallow clone;" \
            "git fetch --unshallow brings the rest (fetch-depth: 0 of the checkout action)"
    fi
    refuse "there is no revision '$rev' in this repository"
}

# Takes the folder of the revision; one whose owner is gone is taken over.
own() {
    work=build/race/$hash
    if [ -e "$work" ] && [ ! -e "$work/made-by-race" ]; then
        taken=$work work=
        refuse "$taken is not from here; move it away"
    fi
    mkdir -p "$work"
    : > "$work/made-by-race"
    if ! (set -C; echo $$ > "$work/owner") 2> /dev/null; then
        owner=$(cat "$work/owner" 2> /dev/null) || owner=
        if [ -n "$owner" ] && kill -0 "$owner" 2> /dev/null; then
            taken=$work work=
            refuse "process $owner is building there (else remove $taken/owner)"
        fi
        echo $$ > "$work/owner"
    fi
    : > "$work/log"
}

# A checkout that was cut short is made anew.
check_out() {
    tree=$work/tree
    head=$(git -C "$tree" rev-parse HEAD 2> /dev/null) || head=
    if [ -e "$work/complete" ] && [ "$head" = "$hash" ]; then
        git -C "$tree" diff --quiet HEAD || refuse "$tree has changes; remove it"
        return
    fi
    rm -rf "$tree" "$work/complete"
    # shellcheck disable=SC2086
    run git $quiet worktree add -q -f -f --detach "$tree" "$hash" ||
        fail "revision $rev cannot be checked out"
    if [ -e "$tree/.gitmodules" ]; then
        # shellcheck disable=SC2086
        run git $quiet -C "$tree" submodule update -q --init --recursive ||
            fail "a submodule of revision $rev is not to be had: $(git -C "$tree" submodule status |
                sed -n 's/^-[0-9a-f]* //p' | tr '\n' ' ')"
    fi
    : > "$work/complete"
}

fail() {
    tail -20 "$work/log" | sed 's/^/    /' >&2
    refuse "$*"
}

build() {
    old=$tree/build/$BACKEND/$suite
    set --
    for name in ARCH CFLAGS CC NVCC CUDA_HOME; do
        eval "value=\${$name-}"
        [ -z "$value" ] || set -- "$@" "$name=$value"
    done
    # A make that was killed leaves targets that are half written and look new.
    [ ! -e "$work/building" ] || rm -rf "$tree/build"
    : > "$work/building"
    run make -C "$tree" -j"${JOBS:-1}" "BACKEND=$BACKEND" "$@" "build/$BACKEND/$suite" ||
        fail "revision $rev does not build"
}

[ -n "$rev" ] || baseline_revision
resolve
own
check_out
build
rm -f "$work/owner" "$work/building"
if [ -n "$build_only" ]; then
    echo "$old"
    exit
fi
changes=
[ -z "$(git status --porcelain)" ] || changes=' with changes'
echo "race-$suite: NEW is $(git rev-parse --short HEAD)$changes," \
    "OLD is $(git rev-parse --short "$hash")"
exec build/gpubench-compare --race "$old" "$program" ${only:+--only "$only"} \
    ${verdicts:+--verdicts "$verdicts"} ${seconds:+--race-seconds "$seconds"} -- "$@"
