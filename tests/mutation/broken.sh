#!/bin/sh
# broken.sh - does a test fail when what it guards is broken? For each line of broken.txt the
# program is built with that one line broken, and the test of that name has to fail. Status 1
# where one does not. Needs what `make broken` builds.
set -eu
export LC_ALL=C CDPATH=
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
mkdir -p build/mutants
asleep=0
while IFS='	' read -r test name path line broken; do
    case $test in '#'*) continue ;; esac
    number=$(LINE=$line awk '$0 == ENVIRON["LINE"] { print NR; exit }' "$path")
    if [ -z "$number" ]; then
        echo "$path has no such line any more: $line" >&2
        exit 2
    fi
    printf '%s\t0\t1\t%s\t%s\tbroken\t%s\t%s\n' "$path" "$path" "$number" "$line" "$broken" > "$work/mutant"
    outcome=$(TEST=$test NAME=$name KEPT=/dev/null CC=${CC:-cc} sh tests/mutation/mutant.sh "$work/mutant")
    case $outcome in
    killed*) echo "fails    $test: $name" ;;
    *)
        echo "ASLEEP   $test: $name ($outcome)"
        asleep=1
        ;;
    esac
done < tests/mutation/broken.txt
exit $asleep
