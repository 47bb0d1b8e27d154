#!/bin/sh
# hostile_places.sh PROGRAM COMPARE SUITE - what is written to a full file system, behind a quota,
# to other users' files or to links, where the temporary folder is none or may not be written, by
# two scripts at once, and while the system's clock is set back. What was there before stays. As
# TAP lines.
set -u
program=$(realpath "$1") compare=$(realpath "$2") suite=$(realpath "$3")
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
root=$PWD
quick='--quiet --max-time 0.02 --max-samples 20 --warmup 1 --filter ^first'
cd "$work" || exit 2
mkdir tmp place
export TMPDIR="$work/tmp"
explain() { ls -la "$work/place"; tail -n 5 "$log"; }

"$program" $quick --runs 4 --csv rows.csv > "$log" 2>&1 && "$compare" rows.csv rows.csv > "$log" 2>&1
check $? "rows to make a report of"

outputs='csv json samples kernels-csv memory-csv trace output'
begin() { for file in $outputs; do echo "an earlier $file" > place/"$file"; done; }

# write_each: one after the other, to files that were there; its lines say how each ended.
cat > write_each <<WRITE
for option in $outputs; do
    case \$option in
    output) "$compare" rows.csv rows.csv --output place/output ;;
    *) "$program" $quick --\$option place/\$option ;;
    esac > said 2>&1
    echo "\$option status \$?: \$(grep -ac "\$1" said) \$(cat place/\$option)"
done
WRITE
expect_each() {
    for option in $outputs; do
        grep -q "^$option status 2: [1-9][0-9]* an earlier $option\$" "$log"
        check $? "$1: --$option is told of, the earlier file stays"
    done
}

# ---- a full file system ----

: > said
# write_full WHAT: into what is then filled up.
cat > write_full <<WRITE
for file in $outputs; do echo "an earlier \$file" > place/\$file; done
head -c 1000000 /dev/urandom > place/fill 2> /dev/null
sh write_each "\$1"
WRITE
if unshare -rm true 2> /dev/null; then
    unshare -rm sh -c '
        mount -t tmpfs -o size=64k none place || exit 3
        sh write_full "No space left on device"' > "$log" 2>&1
    expect_each "a full file system"
else
    check 0 "a full file system" "no file system may be mounted here"
fi

# ---- a quota ----

# Of btrfs, for which the kernel needs no format of quotas. The space is there, and may not be
# used.
if unshare -m true 2> /dev/null && command -v mkfs.btrfs > /dev/null && truncate -s 128M disk &&
    mkfs.btrfs -q disk > "$log" 2>&1 && unshare -m mount -o loop disk place > "$log" 2>&1; then
    unshare -m sh -c '
        mount -o loop disk place && btrfs quota enable place && btrfs subvolume create place/home &&
            btrfs qgroup limit 256K place/home && mount --bind place/home place || exit 3
        sh write_full "Disk quota exceeded"' > "$log" 2>&1
    expect_each "a quota"
else
    check 0 "a quota" "no file system with quotas may be mounted here"
fi
rm -f disk

# ---- other users' files ----

chmod 755 "$work"
begin
chmod 444 place/*
chmod 777 place
chmod 666 said
as_other=
[ "$(id -u)" -ne 0 ] || as_other='setpriv --reuid 65534 --regid 65534 --clear-groups'
if $as_other test -x "$program" 2> /dev/null; then
    $as_other sh write_each "Permission denied" > "$log" 2>&1
    expect_each "a file that may not be written"
    chmod 000 rows.csv
    $as_other "$compare" --variants rows.csv > "$log" 2>&1
    [ $? -eq 2 ] && grep -q "rows.csv.*Permission denied" "$log"
    check $? "a file that may not be read is told of"
    chmod 644 rows.csv
else
    check 0 "other users' files" "nobody else can be here"
fi

# ---- the temporary folder ----

# in_folder FOLDER COMMAND...: with it as the temporary one; as root may write anywhere, by
# somebody else where it may not be written.
in_folder() {
    as_whom=
    [ "$1" != locked ] || as_whom=$as_other
    in=$work/$1
    shift
    $as_whom env TMPDIR="$in" "$@" > "$log" 2>&1
}

folders='there-is-none rows.csv'
if $as_other test -x "$program" 2> /dev/null; then folders="$folders locked"; fi
mkdir -p locked && chmod 555 locked
for folder in $folders; do
    begin
    chmod 666 place/*
    in_folder "$folder" "$program" $quick --csv place/csv && "$compare" --check place/csv
    check $? "a program needs no temporary folder ($folder)"
    begin
    in_folder "$folder" "$program" $quick --runs 2 --csv place/csv
    status=$?
    { [ $status -eq 0 ] && "$compare" --check place/csv; } ||
        { [ $status -eq 2 ] && [ "$(cat place/csv)" = "an earlier csv" ]; }
    check $? "--runs without a temporary folder: rows, or the earlier file ($folder, status $status)"
    if command -v gnuplot > /dev/null; then
        in_folder "$folder" "$root/compare/plots/size.sh" place/plot rows.csv
        [ $? -eq 2 ] && grep -q "$folder" "$log" && [ ! -e place/plot.svg ]
        check $? "plots without one: told, status 2 ($folder)"
    else
        check 0 "plots without one" "no gnuplot here"
    fi
    in_folder "$folder" "$compare" --race "$program" "$program"
    [ $? -eq 2 ] && grep -q "temporary folder in '.*$folder'" "$log"
    check $? "a race without one: told, status 2 ($folder)"
done
[ -z "$(ls locked)" ]
check $? "nothing is in a folder that may not be written"

# ---- two scripts at once ----

mkdir -p tree/scripts tree/compare tree/build && cd tree || exit 2
cp "$root"/scripts/*.sh "$root"/scripts/*.awk scripts/
cp "$root"/compare/*.awk compare/
ln -s "$compare" build/gpubench-compare
cat > toy <<'TOY'
#!/bin/sh
while [ $# -gt 1 ] && [ "$1" != --csv ]; do shift; done
[ "$2" != - ] || exec cat ../rows.csv
: > began
while [ ! -e go ]; do sleep 0.05; done
sed "s/,cold,[^,]*,/,cold,c$$,/" ../rows.csv > "$2"
TOY
chmod +x toy
: > go
sh scripts/baseline.sh ./toy toy 4 > "$log" 2>&1
baseline=$(sh scripts/device-folder.sh ../rows.csv)/toy.csv
"$compare" --check "$baseline" > "$log" 2>&1
check $? "a baseline of the toy"
if command -v flock > /dev/null; then
    for script in baseline compare; do
        rm -f go began
        export REASON=again
        sh scripts/$script.sh ./toy toy 4 > first 2>&1 &
        first=$!
        while [ ! -e began ] && kill -0 $first 2> /dev/null; do sleep 0.05; done
        cp "$baseline" before
        sh scripts/$script.sh ./toy toy 4 > "$log" 2>&1
        [ $? -eq 2 ] && grep -q 'another process' "$log" && cmp -s before "$baseline"
        check $? "a second $script.sh on one path is refused"
        : > go
        wait $first && "$compare" --check "$baseline" > "$log" 2>&1
        check $? "and the first $script.sh ends well"
    done
else
    check 0 "two scripts at once" "no flock"
fi

# ---- links where scripts write ----

# linked FILE: what was there lies in far/, and a link to it is in its place.
mkdir far results/fleet
linked() {
    mv "$1" far/file
    cp far/file before
    ln -s "$PWD/far/file" "$1"
}
is_replaced() { [ -L "$1" ] && [ ! -L far/file ] && ! cmp -s before far/file; }
is_as_before() { [ -L "$1" ] && cmp -s before far/file; }

# keeps WHAT FILE COMMAND...: which replaces the file that a link leads to, and where it leads
# nowhere says so and leaves it.
keeps() {
    what=$1 file=$2
    shift 2
    linked "$file"
    "$@" > "$log" 2>&1
    [ $? -lt 2 ] && is_replaced "$file"
    check $? "a link stays one, its target is replaced: $what"
    cp far/file before
    rm "$file" && ln -s nowhere/at/all "$file"
    "$@" > "$log" 2>&1
    [ $? -eq 2 ] && grep -q "nowhere\|${file##*/}" "$log" && [ -L "$file" ] && [ ! -e nowhere ] && is_as_before "$file"
    check $? "one that leads nowhere is refused and stays: $what"
    rm "$file" && mv far/file "$file"
}

for lock in baseline-toy append toy; do
    echo "of somebody else" > $lock.other
    ln -sf ../$lock.other results/$lock.lock
done
REASON=again
keeps "scripts/baseline.sh" "$baseline" sh scripts/baseline.sh ./toy toy 4
keeps "scripts/compare.sh" results/toy.csv sh scripts/compare.sh ./toy toy 4
[ "$(cat baseline-toy.other append.other toy.other | grep -c "of somebody else")" -eq 3 ]
check $? "a link where scripts lock leads to what stays as it was"
: > results/fleet/toy.csv
keeps "scripts/fleet.sh" results/fleet/toy.csv env HOSTS=localhost sh scripts/fleet.sh ./toy toy
: > history
keeps "--history --output" history "$compare" --output history --history "$baseline"
if command -v gnuplot > /dev/null; then
    : > page.html
    keeps "scripts/report.sh" page.html "$root/scripts/report.sh" page.html results
    : > plot.svg
    keeps "a plot" plot.svg "$root/compare/plots/size.sh" -s plot results/toy.csv
else
    check 0 "links at pictures" "no gnuplot here"
fi

# What asks for no rows takes none away.
cp results/toy.csv before
printf '#!/bin/sh\nexit 0\n' > quiet && chmod +x quiet
sh scripts/compare.sh ./quiet toy 4 --list > "$log" 2>&1
cmp -s before results/toy.csv
check $? "what measures nothing leaves what scripts/compare.sh had measured"
cd "$work" || exit 2

# ---- the system's clock ----

if ${CC:-cc} -shared -fPIC -o back.so "$root/tests/faults/back.c" -ldl 2> "$log"; then
    few='--mode hot --quiet --max-time 0.02 --max-samples 20 --warmup 1 --filter ^layernorm.forward.n --dtype f32'
    LD_PRELOAD="$work/back.so" "$suite" $few --runs 2 --csv back.csv > "$log" 2>&1 &&
        "$compare" --check back.csv >> "$log" 2>&1 &&
        sh -c "cd '$root' && sh scripts/csv.sh values name=status '$work/back.csv'" | grep -qx ok &&
        [ "$(cd "$root" && sh scripts/csv.sh values name=median_us "$work/back.csv" | grep -c '^0*[1-9.][0-9.]*$')" -gt 0 ] &&
        ! grep -q ',-[0-9.]*,' back.csv
    check $? "a clock that is set back at each look changes no row"
    LD_PRELOAD="$work/back.so" "$compare" --margin 500 --race "$suite" "$suite" -- $few > "$log" 2>&1
    [ $? -eq 0 ] && grep -q ' [0-9][0-9]* processes, [0-9][0-9]* s$' "$log"
    check $? "nor how long a race took"
else
    check 0 "a clock that is set back" "no compiler"
fi
finish
