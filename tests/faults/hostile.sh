#!/bin/sh
# hostile.sh PROGRAM COMPARE SUITE - a program built on gpubench.h, a suite, and the compare
# tool, on systems that refuse: a limit on the size of files, a folder that may not be written, links in the
# way, closed descriptors, no HOME, a clock that is set back, signals that somebody ignored, a
# process that is suspended. What was there before stays. As TAP lines.
set -u
program=$(realpath "$1") compare=$(realpath "$2") suite=$(realpath "$3")
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

quick='--quiet --max-time 0.02 --max-samples 20 --warmup 1'
cd "$work" || exit 2
mkdir tmp
export TMPDIR="$work/tmp"

explain() { ls -la "$work"; tail -n 5 "$log"; }

# The rows take the place of an earlier file, unless that fails.
measure() { "$program" $quick --csv rows.csv > "$log" 2>&1; }
is_earlier() { [ "$(cat rows.csv)" = "an earlier file" ]; }
is_whole() { "$compare" --check rows.csv > "$log" 2>&1; }
is_clean() { [ -z "$(find tmp -type f)$(find . -name '*.partial*' -o -name '*.tmp')" ]; }
begin() { rm -f rows.csv* samples.csv* && echo "an earlier file" > rows.csv; }

# ---- a limit on the size of files, as `ulimit -f` or a quota sets one ----

begin
(trap '' XFSZ && ulimit -f 0 && "$program" $quick --csv rows.csv 2>&1) | cat > "$log"
is_earlier && grep -q 'File too large' "$log" && is_clean
check $? "where no file may grow the earlier one stays, and it is told"

begin
(trap '' XFSZ && ulimit -f 4 && "$program" $quick --csv rows.csv --samples samples.csv 2>&1) | cat > "$log"
{ is_earlier || is_whole; } && grep -q 'File too large' "$log"
check $? "behind the limit rows are on standard error, and the earlier file or whole rows stay"

begin
(ulimit -f 0 && "$program" $quick --csv rows.csv) > /dev/null 2>&1
is_earlier
check $? "SIGXFSZ leaves the earlier file"

# The processes of the runs add the samples, and the one that waits for them must hear that
# they could not.
begin
mkdir here && echo "earlier samples" > here/samples.csv
VANISHING=here "$program" $quick --filter '^last' --runs 2 --csv rows.csv --samples here/samples.csv > "$log" 2>&1
[ $? -eq 2 ] && grep -q "here/samples.csv': No such file" "$log" &&
    [ "$(cat vanished/samples.csv)" = "earlier samples" ] && is_whole
check $? "samples that a run lost do not take the place of earlier ones under --runs, and it is told"
rm -rf here vanished began

# A list that is cut would look like a whole one.
if [ -w /dev/full ]; then
    for call in "$program --list" "$program --help" "$compare --help"; do
        $call > /dev/full 2> "$log"
        [ $? -eq 2 ] && grep -q 'No space left on device' "$log"
        check $? "a full disk does not get ${call##*/}, and it is told"
    done
fi

# ---- folders and links ----

begin
mkdir -p locked && cp rows.csv locked/rows.csv && chmod 555 locked && chmod 755 "$work"
as_other=
[ "$(id -u)" -ne 0 ] || as_other='setpriv --reuid 65534 --regid 65534 --clear-groups'
if $as_other true 2> /dev/null && $as_other test -x "$program"; then
    $as_other "$program" $quick --csv locked/rows.csv > "$work.log" 2>&1
    [ $? -eq 2 ] && grep -q "locked/rows.csv': Permission denied" "$work.log" &&
        [ "$(cat locked/rows.csv)" = "an earlier file" ]
    check $? "a folder that may not be written is told of before anything is measured"
    rm -f "$work.log"
fi
chmod 755 locked

for name in dangling loop; do
    rm -f "$name"
    ln -s "$([ $name = loop ] && echo loop || echo nowhere/at/all)" "$name"
    "$program" $quick --csv "$name" > "$log" 2>&1
    [ $? -eq 2 ] && [ -L "$name" ] && grep -q -e "--csv '$name': " "$log"
    check $? "a link that leads nowhere is refused and stays ($name)"
    "$program" $quick --csv rows.csv --samples "$name" > "$log" 2>&1
    [ $? -eq 2 ] && [ -L "$name" ] && grep -q -e "--samples '$name': " "$log"
    check $? "also as the samples' file ($name)"
done

# Somebody lays a link where the rows would gather: its target is none of ours.
begin
echo "of somebody else" > other
ln -s other rows.csv.partial
measure && is_whole && [ "$(cat other)" = "of somebody else" ] && [ -L rows.csv.partial ]
check $? "a link in the way of FILE.partial is gone around"
rm -f rows.csv.partial

# ---- descriptors, the environment ----

for closed in '0<&-' '1>&-' '2>&-' '0<&- 2>&-' '0<&- 1>&- 2>&-'; do
    begin
    eval "measured() { \"$program\" $quick --csv rows.csv; }"
    eval "measured $closed" > "$log"
    is_whole && is_clean
    check $? "rows are whole with descriptors closed ($closed)"
done

begin
env -u HOME -u TERM -u LANG "$program" $quick --csv rows.csv > "$log" 2>&1 && is_whole
check $? "neither HOME nor TERM nor LANG is needed"

begin
GPUBENCH_SIMD=avx17 "$suite" $quick --csv rows.csv > "$log" 2>&1
[ $? -eq 2 ] && grep -q "GPUBENCH_SIMD 'avx17': wants one of .*" "$log" && is_earlier
check $? "vectors that the processor does not have are told of, and nothing is measured"

begin
(trap '' CHLD && exec "$program" $quick --runs 2 --csv rows.csv) > "$log" 2>&1 && is_whole
check $? "--runs hears of its children although SIGCHLD was ignored"

begin
(trap '' HUP && exec "$program" $quick --csv rows.csv) > "$log" 2>&1 && is_whole
check $? "what nohup ignores stays ignored"
finish
