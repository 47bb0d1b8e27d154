#!/bin/sh
# hostile_places.sh PROGRAM COMPARE SUITE - what is written to a full file system or to other
# users' files, where the temporary folder is none, by two scripts at once, and while the
# system's clock is set back. What was there before stays. As TAP lines.
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

begin() { for file in csv json samples kernels-csv memory-csv trace output; do echo "an earlier $file" > place/$file; done; }

# write_each: one after the other, to files that were there; its lines say how each ended.
cat > write_each <<WRITE
for option in csv json samples kernels-csv memory-csv trace output; do
    case \$option in
    output) "$compare" rows.csv rows.csv --output place/output ;;
    *) "$program" $quick --\$option place/\$option ;;
    esac > said 2>&1
    echo "\$option status \$?: \$(grep -ac "\$1" said) \$(cat place/\$option)"
done
WRITE
expect_each() {
    for option in csv json samples kernels-csv memory-csv trace output; do
        grep -q "^$option status 2: [1-9][0-9]* an earlier $option\$" "$log"
        check $? "$1: --$option is told of, the earlier file stays"
    done
}

# ---- a full file system ----

: > said
if unshare -rm true 2> /dev/null; then
    unshare -rm sh -c '
        mount -t tmpfs -o size=64k none place || exit 3
        for file in csv json samples kernels-csv memory-csv trace output; do echo "an earlier $file" > place/$file; done
        head -c 100000 /dev/zero > place/fill 2> /dev/null
        sh write_each "No space left on device"' > "$log" 2>&1
    expect_each "a full file system"
else
    check 0 "a full file system" "no file system may be mounted here"
fi

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

for folder in there-is-none rows.csv; do
    begin
    TMPDIR="$work/$folder" "$program" $quick --runs 2 --csv place/csv > "$log" 2>&1
    status=$?
    { [ $status -eq 0 ] && "$compare" --check place/csv; } ||
        { [ $status -eq 2 ] && [ "$(cat place/csv)" = "an earlier csv" ]; }
    check $? "--runs without a temporary folder: rows, or the earlier file ($folder, status $status)"
    mkdir -p results
    if command -v gnuplot > /dev/null; then
        TMPDIR="$work/$folder" "$root/compare/plots/size.sh" place/plot rows.csv > "$log" 2>&1
        [ $? -eq 2 ] && grep -q "$folder" "$log" && [ ! -e place/plot.svg ]
        check $? "plots without one: told, status 2 ($folder)"
    else
        check 0 "plots without one" "no gnuplot here"
    fi
    TMPDIR="$work/$folder" "$compare" --race "$program" "$program" > "$log" 2>&1
    [ $? -eq 2 ] && grep -q "temporary folder in '.*$folder'" "$log"
    check $? "a race without one: told, status 2 ($folder)"
done

# ---- two scripts at once ----

mkdir -p tree/scripts tree/compare tree/build && cd tree || exit 2
cp "$root"/scripts/*.sh "$root"/scripts/*.awk scripts/
cp "$root"/compare/*.awk compare/
ln -s "$compare" build/gpubench-compare
cat > toy <<'TOY'
#!/bin/sh
while [ $# -gt 1 ] && [ "$1" != --csv ]; do shift; done
: > began
while [ ! -e go ]; do sleep 0.05; done
sed "s/,cold,[^,]*,/,cold,c$$,/" ../rows.csv > "$2"
TOY
chmod +x toy
: > go
sh scripts/baseline.sh ./toy toy 4 > "$log" 2>&1
folder=$(sh scripts/device-folder.sh ../rows.csv)
"$compare" --check "$folder/toy.csv" > "$log" 2>&1
check $? "a baseline of the toy"
if command -v flock > /dev/null; then
    for script in baseline compare; do
        rm -f go began
        export REASON=again
        sh scripts/$script.sh ./toy toy 4 > first 2>&1 &
        first=$!
        while [ ! -e began ] && kill -0 $first 2> /dev/null; do sleep 0.05; done
        cp "$folder/toy.csv" before
        sh scripts/$script.sh ./toy toy 4 > "$log" 2>&1
        [ $? -eq 2 ] && grep -q 'another process' "$log" && cmp -s before "$folder/toy.csv"
        check $? "a second $script.sh on one path is refused"
        : > go
        wait $first && "$compare" --check "$folder/toy.csv" > "$log" 2>&1
        check $? "and the first $script.sh ends well"
    done
else
    check 0 "two scripts at once" "no flock"
fi
cd "$work" || exit 2

# ---- the system's clock ----

if ${CC:-cc} -shared -fPIC -o back.so "$root/tests/faults/back.c" -ldl 2> "$log"; then
    few='--quiet --max-time 0.02 --max-samples 20 --warmup 1 --filter ^layernorm.forward.n --dtype f32'
    LD_PRELOAD="$work/back.so" "$suite" $few --runs 2 --csv back.csv > "$log" 2>&1 &&
        "$compare" --check back.csv >> "$log" 2>&1 &&
        sh -c "cd '$root' && sh scripts/csv.sh values name=status '$work/back.csv'" | grep -qx ok &&
        [ "$(cd "$root" && sh scripts/csv.sh values name=median_us "$work/back.csv" | grep -c '^0*[1-9.][0-9.]*$')" -gt 0 ] &&
        ! grep -q ',-[0-9.]*,' back.csv
    check $? "a clock that is set back at each look changes no row"
else
    check 0 "a clock that is set back" "no compiler"
fi
finish
