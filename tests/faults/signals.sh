#!/bin/sh
# signals.sh PROGRAMS COMPARE SUITE BRIEF [COUNT] [SEED] [KIND...] - sends signals at random
# moments to whatever writes results: a program built on gpubench.h, the suite SUITE, both
# plain and under --runs, a race, the compare tool that writes a report, and the scripts that
# record a baseline, compare with one, install, and draw plots and the page of results.
# After each, what is on disk is complete and true, no process goes on, nothing is left but
# what a kill leaves, and a second start works. BRIEF is what is raced and recorded, as that
# takes many processes; COUNT the moments of each kind, above ten of all kinds; PROGRAMS the
# folder of host_program and interrupt. As TAP lines.
set -u
programs=$(realpath "$1") compare=$(realpath "$2") suite=$(realpath "$3") brief=$(realpath "$4")
count=${5:-2} seed=${6:-18}
every=$((count > 10 ? 1 : count)) # so many moments are followed by a whole run
shift $(($# < 6 ? $# : 6))
kinds=${*:-program suite_runs baseline install}
[ $# -gt 0 ] || [ "$every" -gt 1 ] || kinds="$kinds program_runs suite race compare report plots verdict"
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
root=$PWD

# What the kinds measure: little, for long enough to be met at any stage.
quick='--quiet --max-time 0.02 --max-samples 20 --warmup 1'
small='--mode hot --quiet --max-time 0.01 --max-samples 30 --warmup 1'
few="$small --dtype f32 --filter ^layernorm[.]forward.[ns]"
# For what would go on where nobody ends it.
long='--mode hot --quiet --max-time 0.6 --min-samples 30 --precision 0.0001'
# Whatever a busy host does to the times, the fewest pairs are enough.
at_once='--margin 500'
ended=$work/ended # how, as interrupt says it

explain() { find . \( -name .git -o -name scripts -o -name compare \) -prune -o -type f -print; cat "$ended"; tail -n 8 "$log"; }

complain() { problem=${problem:-$*}; }

# are_rows FILE: a header and rows that the compare tool reads.
are_rows() { "$compare" --check "$1" > "$work/said" 2>&1; }

# What SIGKILL leaves of rows that gather: whole lines, which may be none yet.
are_whole_lines() {
    [ ! -s "$1" ] || { [ -z "$(tail -c 1 "$1")" ] && { [ "$(wc -l < "$1")" -eq 1 ] || are_rows "$1"; }; }
}

# look_at_rows FILE: it is the one that was there, or whole rows. Where none was there, rows
# go straight to it.
look_at_rows() {
    if [ -e earlier ] && cmp -s earlier "$1"; then
        return
    elif [ -e "$1" ] || [ -e earlier ]; then
        are_rows "$1" || { [ "$signal" = KILL ] && [ ! -e earlier ] && are_whole_lines "$1"; } ||
            complain "$1 is neither the earlier file nor whole rows"
    fi
}

# look_at_rest FOLDER PATTERN: nothing else is in the folder; names that match the pattern
# are left by SIGKILL only.
look_at_rest() {
    for left in "$1"/*; do
        left=${left##*/}
        [ -e "$1/$left" ] || continue
        case " $known " in *" $left "*) continue ;; esac
        [ "$signal" = KILL ] && echo "$left" | grep -qE "$2" || complain "$1/$left is left"
    done
}

# ---- the kinds: what begins one, in a folder of its own, and what is to be there then ----

# Every second turn there is no file yet.
before_program() {
    rm -f rows.csv earlier
    [ $((turn % 2)) -eq 0 ] || cp "$work/earlier.csv" rows.csv
    [ ! -e rows.csv ] || cp rows.csv earlier
}

after_program() {
    look_at_rows rows.csv
    known='begin tmp earlier rows.csv rows.json samples.csv'
    look_at_rest . '^rows\.csv\.(partial|[0-9]+\.tmp$)|^(rows\.json|samples\.csv)\.[0-9]+\..*tmp$'
    for left in rows.csv.[0-9]*.tmp tmp/gpubench.*; do
        [ ! -s "$left" ] || complain "$left holds something"
    done
    for left in rows.csv.partial*; do
        [ ! -e "$left" ] || are_whole_lines "$left" || complain "$left has half a row"
    done
    [ ! -e rows.json ] || ! command -v python3 > /dev/null || python3 -m json.tool rows.json > "$work/said" 2>&1 ||
        complain "rows.json is no JSON"
    known=
    look_at_rest tmp '^gpubench\.[A-Za-z0-9]+$'
}

again_program() {
    are_rows rows.csv || complain "rows.csv is not whole after a second start"
    rm -f rows.csv.partial* ./*.tmp tmp/gpubench.*
}

prepare_program() { echo "exec '$programs/host_program' $quick --csv rows.csv --json rows.json --samples samples.csv"; }
prepare_program_runs() { echo "exec '$programs/host_program' $quick --runs 2 --csv rows.csv --json rows.json --samples samples.csv"; }
prepare_suite() { echo "exec '$suite' $few --csv rows.csv --samples samples.csv"; }
prepare_suite_runs() { echo "exec '$suite' $few --runs 2 --csv rows.csv"; }
for kind in program_runs suite suite_runs; do
    eval "before_$kind() { before_program; }
        after_$kind() { after_program; }
        again_$kind() { again_program; }"
done

prepare_race() {
    cp "$brief" new
    echo "exec '$compare' $at_once --race '$brief' ./new --output kept -- $small"
}
before_race() { rm -rf kept; }
after_race() {
    known='old.csv new.csv'
    if [ -e kept ]; then look_at_rest kept '^none$'; fi
    for file in kept/*.csv; do
        [ ! -e "$file" ] || are_rows "$file" || complain "$file has half a row"
    done
    known=
    look_at_rest tmp '^gpubench-race\.'
    rm -rf kept
}
again_race() { are_rows kept/new.csv || complain "no rows of a second race"; }

# A repository in small, whose one suite is another name of BRIEF.
make_repository() {
    mkdir -p build/cpu scripts compare
    cp "$root"/scripts/*.sh "$root"/scripts/*.awk scripts/
    cp "$root"/compare/*.awk compare/
    cp "$root/.gitignore" .
    printf '/begin\n/tmp/\n/earlier\n' >> .gitignore
    cat > build/gpubench-compare <<TOOL
#!/bin/sh
[ "\$1" != --race ] || set -- $at_once "\$@"
exec '$compare' "\$@"
TOOL
    chmod +x build/gpubench-compare
    cp "$brief" build/cpu/toy
    printf 'build/cpu/toy:\n\tmkdir -p $(@D)\n\tsleep 1\n\tcp %s $@\n' "$brief" > Makefile
    git init -q . && git add . && git -c user.name=t -c user.email=t@t commit -q -m start
    FORCE=1 REASON=first sh scripts/baseline.sh build/cpu/toy toy 2 $small > "$log" 2>&1
    cp baselines/*/toy.csv earlier
}

prepare_baseline() {
    make_repository
    echo "FORCE=1 REASON=again exec sh scripts/baseline.sh build/cpu/toy toy 2 $long"
}
before_baseline() { for file in baselines/*/toy.csv; do cp earlier "$file"; done; }
after_baseline() {
    for file in baselines/*/toy.csv; do
        head -c "$(wc -c < earlier)" "$file" | cmp -s earlier - || complain "$file lacks what was there"
        are_rows "$file" || complain "$file has half a row"
        [ $((($(wc -l < "$file") - 1) % ($(wc -l < earlier) - 1))) -eq 0 ] || complain "$file has half a campaign"
    done
    known='toy.csv toy.reasons.txt'
    look_at_rest baselines/* '^toy\.csv\.new$'
    git status --porcelain | grep -v 'baselines/[^ ]*$' > "$work/said" &&
        complain "the tree is not what it was: $(cat "$work/said")"
    known=
    look_at_rest tmp '^none$'
}
again_baseline() { cmp -s earlier baselines/*/toy.csv && complain "a second start recorded nothing"; }

# All cases look slower than in the baseline, so that its revision is built and raced.
prepare_compare() {
    make_repository
    awk -F, -v OFS=, -v hash="$(git rev-parse --short HEAD)" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i }
        NR > 1 { $column["git"] = hash
            for (i = column["min_us"]; i <= column["max_us"]; i++) $i *= 0.1 }
        { print }' earlier > "$work/faster"
    mv "$work/faster" earlier
    cp earlier baselines/*/toy.csv
    echo "BACKEND=cpu exec sh scripts/compare.sh build/cpu/toy toy 2 $small"
}
before_compare() {
    [ $((turn % 2)) -eq 0 ] || rm -rf build/race
    mkdir -p results
    cp earlier results/toy.csv
}
after_compare() {
    cmp -s earlier baselines/*/toy.csv || complain "the baseline changed"
    known=owner
    for file in build/race/*; do
        [ ! -e "$file/owner" ] || [ "$signal" = KILL ] || complain "$file/owner is left"
    done
    cmp -s earlier results/toy.csv || are_rows results/toy.csv ||
        complain "results/toy.csv is neither the earlier file nor whole rows"
    [ ! -e results/toy.csv.new ] || [ "$signal" = KILL ] || complain "results/toy.csv.new is left"
    known=
    look_at_rest tmp '^gpubench-race\.'
}
again_compare() { are_rows results/toy.csv || complain "results/toy.csv is not whole after a second start"; }

# ---- files that are made of others: each is the earlier one or the new one, and whole ----

# prepare_made NAMES COMMAND: what the command makes in `made`, before and now, lies in `old`
# and `new`; NAMES is what a kill may leave there.
prepare_made() {
    leaves=$1
    mkdir -p made results
    make_rows 1 > results/base.csv
    for factor in 1.25 1.5; do
        make_rows $factor > results/toy.csv
        sh -c "$2" > "$log" 2>&1
        cp -R made "made $factor"
    done
    mv "made 1.25" old && mv "made 1.5" new
    echo "$2"
}

# make_rows FACTOR: rows as they were, with other times, of COPIES of each case.
make_rows() {
    awk -F, -v OFS=, -v factor="$1" -v copies="${copies:-1}" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; print; next }
        { name = $column["case"]
            for (i = column["min_us"]; i <= column["max_us"]; i++) $i *= factor
            for (i = 1; i <= copies; i++) { $column["case"] = name (i > 1 ? i : ""); print } }' "$work/earlier.csv"
}

before_made() {
    rm -rf made
    if [ $((turn % 2)) -eq 0 ]; then mkdir made; else cp -R old made; fi
}

after_made() {
    (cd made && find . -type f) > "$work/made"
    while read -r file; do
        cmp -s "made/$file" "new/$file" || cmp -s "made/$file" "old/$file" ||
            { [ "$signal" = KILL ] && echo "$file" | grep -qE "$leaves"; } ||
            complain "made/$file is neither what was there nor whole"
    done < "$work/made"
    known=
    look_at_rest tmp '^tmp\.'
}
again_made() {
    (cd new && find . -type f) > "$work/made"
    [ -s "$work/made" ] || complain "nothing is made"
    while read -r file; do
        cmp -s "made/$file" "new/$file" || complain "made/$file differs after a second start"
    done < "$work/made"
}

for kind in install report plots verdict; do
    eval "before_$kind() { before_made; }
        after_$kind() { after_made; }
        again_$kind() { again_made; }"
done

prepare_install() {
    mkdir build
    cp -R "$root/packaging" "$root/scripts" .
    cp "$root/gpubench_trace.h" .
    cp "$compare" build/gpubench-compare
    echo "a page" > build/gpubench-compare.1
    ln -s results/toy.csv gpubench.h # which it copies
    prepare_made '[.][A-Za-z0-9]{6}$' "PREFIX=\"\$PWD/made\" exec sh scripts/install.sh install 9.9"
}
prepare_report() {
    prepare_made '^./page[.]html[.][A-Za-z0-9]{6}$' \
        "COMPARE='$compare' exec sh '$root/scripts/report.sh' made/page.html results"
}
prepare_plots() {
    prepare_made '[.]...[.][A-Za-z0-9]{6}$' "COMPARE='$compare' exec sh '$root/scripts/plots.sh' made results toy"
}

# Of many cases, so that writing takes a while.
prepare_verdict() {
    copies=2000
    prepare_made '^./report[.].*tmp$' "exec '$compare' --all --limit 0 --format csv --output made/report.csv results/base.csv results/toy.csv"
    copies=1
}

# ---- the moments ----

# Signal, share of a whole run's time, and whether its process or its group gets it. Steps of
# the golden section spread over the whole run, however few they are.
moments() {
    awk -v count="$count" -v seed="$seed" 'BEGIN {
        srand(seed)
        split("TERM KILL INT HUP PIPE", signals)
        share = rand()
        for (i = 0; i < count; i++) {
            share += 0.6180339887 + 0.01 * rand()
            share -= int(share)
            print signals[1 + i % 5], share, rand() < 0.5 ? "process" : "group"
        } }'
}

# begin SIGNAL SECONDS TO
begin() { "$programs/interrupt" "$log" "$@" sh ./begin > "$ended" 2>&1; }

# From the start to the end, as whoever starts it again after a signal.
begin_again() {
    begin KILL 600 process || complain "a second start: $(cat "$ended")"
    grep -q '^before [01] ' "$ended" || complain "a second start ends badly: $(cat "$ended")"
    "again_$kind"
}

try_moment() { # try_moment SIGNAL SHARE TO
    signal=$1 problem=
    seconds=$(awk -v whole="$whole" -v share="$2" 'BEGIN { print 1.02 * whole * share }')
    "before_$kind"
    begin "$signal" "$seconds" "$3" || complain "$(sed 1d "$ended" | tr '\n' ' ')"
    "after_$kind"
    [ -n "$problem" ] || [ $((turn % every)) -gt 0 ] || begin_again
    rm -rf tmp && mkdir tmp
    [ -z "$problem" ] && return
    echo "# $kind, SIG$1 to the $3 after $seconds of $whole s: $problem"
    explain | sed 's/^/#   /'
    return 1
}

try_kind() {
    kind=$1 turn=0 failed=0
    mkdir -p "$work/$kind/tmp" && cd "$work/$kind" || exit 2
    export TMPDIR="$PWD/tmp"
    "prepare_$kind" > begin
    "before_$kind"
    begin KILL 600 process && grep -q '^before [01] ' "$ended"
    check $? "$kind: ends well when it is left alone"
    whole=$(sed -n 's/^before . //p' "$ended")
    moments > "$work/moments"
    while read -r signal share to; do
        turn=$((turn + 1))
        try_moment "$signal" "$share" "$to" || failed=$((failed + 1))
    done < "$work/moments"
    [ "$failed" -eq 0 ]
    check $? "$kind: $count signals at random moments (seed $seed) leave what is true and nothing else"
}

"$programs/host_program" $quick --csv "$work/earlier.csv" > "$log" 2>&1
check $? "a file of rows that is there before"
for each in $kinds; do try_kind "$each"; done
cd "$work" || exit 2
finish
