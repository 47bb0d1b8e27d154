#!/bin/sh
# summary.sh SUITE... - one line over what compare.sh found in these suites; those without a
# summary it could not judge.
set -eu
export LC_ALL=C CDPATH=
suites=$*
unjudged=
set --
for suite in $suites; do
    file=results/$suite-summary.txt
    if [ -e "$file" ]; then set -- "$@" "$file"; else unjudged="$unjudged $suite"; fi
done
exec sh scripts/csv.sh summary all=1 unjudged="$unjudged" /dev/null "$@"
