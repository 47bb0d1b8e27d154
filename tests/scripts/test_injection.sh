#!/bin/sh
# test_injection.sh - rows, kernels and timelines whose fields are commands, formulas, tags and
# escapes go through every report, plot and script that takes them: nothing of them runs, and
# nothing is written outside the folder that was asked for. As TAP lines.
# Argument: the compare tool (build/gpubench-compare).
set -u
compare=$(realpath "${1:-build/gpubench-compare}")
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
export COMPARE="$compare"
plots=compare/plots
esc=$(printf '\033')
csi=$(printf '\302\233')
run="touch $work/RAN"

# What each field becomes in turn, one a line: \e stands for an escape, \a for a bell.
cat > "$work/texts" <<TEXTS
=cmd|'/C $run'!A0
+1+cmd()
@SUM(1)
-2+3
<script>$run</script><img src=x onerror=alert(1)>
"><svg onload=alert(1)>
'; system("$run"); print '
"; system("$run"); print "
\`$run\`
\$($run)
\\\\"\\\\' \\\\074script\\\\076 & \\\\0 %s %n %d
::error title=x::injected
  ::add-mask::injected
##[error]injected
\\e[31mred\\e]0;title\\a${csi}2J
../../../../$work/outside
/$work/outside
|table|[link](http://x)![i](http://x) **b** @octocat
; $run
& $run &
a = system("$run")
set output '$work/outside'
@target
]]>--><!--
TEXTS

# rows SUITE CASE SLOWER [DEVICE]: a file of rows with the texts in every column of text.
cat > "$work/rows.awk" <<'AWK'
function cell(text) {
    gsub(/"/, "\"\"", text)
    return "\"" text "\""
}
{
    gsub(/\\e/, "\033"); gsub(/\\a/, "\007"); gsub(/\\\\/, "\\")
    texts[++n] = $0
}
END {
    print "schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,flags,median_us,bytes,flops," \
          "overhead_us,device,uuid,pci,node,driver,cpu,git,timestamp"
    for (i = 1; i <= n; i++)
        for (part = 1; part <= 4; part++)
            for (size = 1; size <= 2; size++)
                for (campaign = 1; campaign <= 4; campaign++)
                    for (run = 1; run <= 2; run++) {
                        text = cell(texts[i])
                        printf "2,%s,%s,%s,cuda,f32,%s,cold,%s,%d,ok,%s,%g,%d,%d,2,%s,%s,%s,%s,%s,%s,%s,2026-0%d-01T00:00:00Z\n",
                            (part == 1 ? text : suite), (part == 2 ? text : name), (part == 3 ? text : "v" i),
                            (part == 4 ? cell(texts[i] " " size) : "n=" size * 1000), cell(texts[1 + campaign % n] campaign), run, (part == 4 ? text : ""),
                            10 * i * (1 + slower) * (1 + (campaign > 2) * 0.2) * (1 + run / 1000), size * 1000, size * 500,
                            (device == "" ? text : cell(device)), cell(texts[1 + campaign % n] "u"), text, text, text, text, text, campaign
                    }
}
AWK
rows() {
    awk -v suite="$1" -v name="$2" -v slower="$3" -v device="${4:-}" -f "$work/rows.awk" \
        "$work/texts"
}

mkdir "$work/in" "$work/new" "$work/out" "$work/tmp"
export TMPDIR="$work/tmp"
rows toy toy.forward 0 > "$work/in/toy.csv"
rows toy toy.forward 0.5 > "$work/new/toy.csv"
# A plot is of one device.
device='<script>x</script>"; system("x") # `x`'
mkdir "$work/drawn"
rows toy toy.forward 0 "$device" > "$work/drawn/toy.csv"
rows block block.part 0 "$device" > "$work/drawn/block.csv"
rows memcpy memcpy.peer 0 "$device" > "$work/drawn/memcpy.csv"
rows collective all_reduce 0 "$device" > "$work/drawn/collective.csv"
rows model model.step 0 "$device" > "$work/drawn/model.csv"
rows ceilings bandwidth.triad 0 "$device" > "$work/drawn/ceilings.csv"
awk 'NR == FNR { gsub(/\\[nea]/, ""); gsub(/"/, "\"\""); text[++n] = "\"" $0 "\""; next }
    END { print "kernels_schema,suite,case,variant,backend,dtype,params,kind,name,launches,total_us," \
            "share,grid,block,registers,occupancy,limit,waves,busy_us,span_us,case_us"
        for (i = 1; i <= n; i++) printf "1,%s,%s,v,cuda,f32,n=1,kernel,%s,1,%d,0.5,%s,%s,8,0.5,%s,1,9,10,11\n", text[i],
            text[1 + i % n], text[1 + (i + 1) % n], 10 * i, text[i], text[i], text[i] }' \
    "$work/texts" > "$work/kernels.csv"
sed 's/0,0\.5,/5,0.5,/' "$work/kernels.csv" > "$work/kernels-new.csv"

explain() { head -n 30 "$log"; }

# Nothing ran, and nothing is new outside of out/ and the temporary folder.
find "$work" -path "$work/out" -prune -o -path "$work/tmp" -prune -o -print | sort > "$work/tmp/before"
contained() {
    find "$work" -path "$work/out" -prune -o -path "$work/tmp" -prune -o -print | sort > "$work/tmp/after"
    [ ! -e "$work/RAN" ] && diff "$work/tmp/before" "$work/tmp/after" >> "$log" &&
        [ ! -e /outside ]
}

# What a terminal or a CI's log would obey: escapes, and commands at a line's beginning.
quiet() {
    ! LC_ALL=C grep -n "$esc\|$csi\|^[[:space:]]*::\|##\[" "$@" > "$log"
}

for mode in "" "--variants" "--self" "--cards" "--history"; do
    for format in text csv json; do
        case $mode in
        "") set -- "$work/in/toy.csv" "$work/new/toy.csv" ;;
        *) set -- "$mode" "$work/in/toy.csv" ;;
        esac
        "$compare" --ignore-device --all --limit 0 --format $format "$@" > "$work/out/report.$format" 2> "$work/out/said"
        [ $? -lt 2 ] || [ "$mode" = --self ] || [ "$mode" = --cards ]
        well=$?
        cp "$work/out/said" "$log"
        if [ $format = csv ]; then
            # Read as CSV: quoted line ends are data.
            awk -f compare/csv.awk -f /dev/stdin "$work/out/report.csv" > "$log" 2>&1 << 'AWK'
            FNR > 1 { for (i = 1; i <= count_of_fields; i++)
                if (fields[i] ~ /^[=+@\t\r]/ || (fields[i] ~ /^-/ && !is_number(fields[i]))) print fields[i] }
AWK
            [ $well -eq 0 ] && [ ! -s "$log" ] && quiet "$work/out/said" && contained
        else
            [ $well -eq 0 ] && quiet "$work/out/report.$format" "$work/out/said" && contained
        fi
        check $? "${mode:-two sides} as $format"
    done
done

"$compare" --kernels "$work/kernels.csv" "$work/kernels-new.csv" > "$work/out/kernels" 2> "$log" &&
    quiet "$work/out/kernels" && contained
check $? "kernels"

"$compare" --ignore-device --format github "$work/in/toy.csv" "$work/new/toy.csv" > "$work/out/github" 2> "$log"
[ -s "$work/out/github" ] && ! grep -v '^::\(error\|notice\) title=gpubench' "$work/out/github" > "$log" &&
    [ "$(grep -c '^::notice' "$work/out/github")" -eq 1 ] && ! LC_ALL=C grep "$esc\|##\[" "$work/out/github" > "$log"
check $? "github: only annotations of its own"

# What HTML runs, and whom GitHub would tell.
"$compare" --ignore-device --all --limit 0 --format markdown "$work/in/toy.csv" "$work/new/toy.csv" > "$work/out/markdown" 2> "$log"
sed 's/<details>\|<\/details>\|<summary>\|<\/summary>\|@<!-- -->//g' "$work/out/markdown" |
    LC_ALL=C grep "[<@$esc]\|[^\\\\]\`\|[^\\\\]\\$\|!\[\|##\[" > "$log"
[ $? -ne 0 ] && [ -s "$work/out/markdown" ] && contained
check $? "markdown: no tags, code, links or names"

# draws NAME COMMAND...: ends with a picture or a message; a picture has no tags but gnuplot's.
draws() {
    name=$1
    shift
    "$@" > "$log" 2>&1
    status=$?
    [ $status -eq 0 ] || [ $status -eq 2 ]
    well=$?
    { cat "$work"/out/*.svg | grep -i '<script\|<img\|<svg onload'; } 2> /dev/null >> "$log" && well=1
    [ $well -eq 0 ] && contained
    check $? "$name (status $status)"
}

if command -v gnuplot > /dev/null; then
    "$compare" --ignore-device --format csv "$work/in/toy.csv" "$work/new/toy.csv" > "$work/out/verdicts.csv" 2> "$log"
    "$compare" --ignore-device --format csv --history "$work/in/toy.csv" > "$work/out/history.csv" 2> "$log"
    draws size $plots/size.sh -s "$work/out/size" "$work/drawn/toy.csv"
    draws "size, a picture each" $plots/size.sh -e -s "$work/out/each" "$work/drawn/toy.csv"
    draws roofline $plots/roofline.sh -e -s -c "$work/drawn/ceilings.csv" "$work/out/roofline" "$work/drawn/toy.csv"
    draws parts $plots/parts.sh -s "$work/out/parts" "$work/drawn/block.csv"
    draws pairs $plots/pairs.sh "$work/out/pairs" "$work/drawn/memcpy.csv"
    draws collective $plots/collective.sh "$work/out/bus" "$work/drawn/collective.csv"
    draws efficiency $plots/efficiency.sh "$work/out/efficiency" "$work/drawn/model.csv"
    draws forest $plots/forest.sh -s -t "$(head -n 9 "$work/texts" | tail -n 1)" "$work/out/forest" "$work/out/verdicts.csv"
    draws history $plots/history.sh -e -s "$work/out/history" "$work/out/history.csv"
    mkdir "$work/out/folder" "$work/out/folder/kernels" "$work/out/base"
    cp "$work/drawn/toy.csv" "$work/out/base/"
    cp "$work/drawn/toy.csv" "$work/drawn/ceilings.csv" "$work/out/folder/"
    cp "$work/kernels.csv" "$work/out/folder/kernels/toy.csv"
    scripts/report.sh "$work/out/page.html" "$work/out/folder" "$work/out/base" > "$log" 2>&1
    status=$?
    [ $status -eq 0 ] && ! grep -io '<script[^<]*\|<img[^<]*\|<svg onload[^<]*' "$work/out/page.html" >> "$log" && contained
    check $? "the page (status $status)"
fi

# Tables for documents, of peers that failed with the texts as their reasons.
awk 'NR == 1 { print $0 ",ci95_low_us,ci95_high_us,sm_mhz"; next } { print $0 ",1,2,1980" }' "$work/drawn/model.csv" > "$work/out/own.csv"
sed "s/,v\([0-9]*\),cuda/,torch-v\1,cuda/; s/,ok,,/,failed,reason=$esc|<script>,/" "$work/out/own.csv" > "$work/out/peers.csv"
for program in scripts/tables/peers.awk compare/peers-cpu.awk; do
    awk -v markdown=1 -f compare/csv.awk -f compare/numbers.awk -f scripts/tables/ratio.awk -f $program \
        "$work/out/own.csv" threads=1 "$work/out/peers.csv" \
        > "$work/out/table" 2> "$log"
    grep -q failed "$work/out/table" && quiet "$work/out/table" && ! grep -i '<script\|<img\|<svg' "$work/out/table" > "$log" &&
        contained
    check $? "$program: cells of text"
done
[ "$(grep -l 'tables/peers.awk\|peers-cpu.awk' scripts/*.sh compare/*.sh | xargs grep -L -e '-v markdown=1')" = '' ]
check $? "which the scripts ask for"

# What a node of a fleet says before it fails.
cat > "$work/out/node" <<'NODE'
#!/bin/sh
printf 'x\n  ::error title=x::\033[31mred\007\n' >&2
exit 3
NODE
chmod +x "$work/out/node"
(HOSTS=localhost sh scripts/fleet.sh "$work/out/node" injected > "$work/out/said" 2>&1)
[ $? -eq 2 ] && grep -q '[?]:error' "$work/out/said" && quiet "$work/out/said"
check $? "a fleet: what a node said is text"
rm -rf build/fleet/injected

# ---- names of files and folders ----

# A file whose name sets a variable of awk's is a file.
mkdir "$work/out/folder=x" "$work/out/named"
cp "$work/drawn/toy.csv" "$work/out/folder=x/toy.csv"
named=$(cd "$work/out" && sh "$OLDPWD/scripts/device-folder.sh" folder=x/toy.csv 2> "$log")
[ "$named" = "$(sh scripts/device-folder.sh "$work/drawn/toy.csv")" ]
check $? "a file's name is no assignment"

# The texts as names of the temporary folder, and of what is drawn.
if command -v gnuplot > /dev/null; then
    for text in "it's; \$($run)" "';system(\"$run\");#" 'a\nb'; do
        room=$work/out/named/$text # the slashes of a path split it
        mkdir -p "$room"
        env TMPDIR="$room" $plots/size.sh -s "$room/plot" "$work/drawn/toy.csv" > "$log" 2>&1
        status=$?
        case $text in
        *\\*) [ $status -eq 2 ] && grep -q "^size.sh: TMPDIR '" "$log" ;;
        *) [ $status -eq 0 ] && [ -s "$room/plot.svg" ] ;;
        esac && contained
        check $? "a temporary folder is told of or drawn in (status $status)"
    done
fi

# A suite is named by rows; what belongs to it lies in the folder.
mkdir -p "$work/out/leak/kernels"
sed "s/,toy,/,..\/..\/secret,/;s/^2,toy/2,..\/..\/secret/" "$work/drawn/toy.csv" > "$work/out/leak/toy.csv"
sed 's/text/secret text/;2,$s/kernel,[^,]*/kernel,a-secret/' "$work/kernels.csv" > "$work/out/secret.csv"
if command -v gnuplot > /dev/null; then
    scripts/report.sh "$work/out/leak.html" "$work/out/leak" > "$log" 2>&1 && grep -q secret "$work/out/leak.html" &&
        ! grep -q a-secret "$work/out/leak.html"
    check $? "a suite's name shows no file of another folder"
fi
mkdir "$work/out/suites"
sh scripts/csv.sh by_suite folder="$work/out/suites" "$work/out/leak/toy.csv" > "$log" 2>&1
[ $? -eq 2 ] && grep -q "wants letters" "$log" && contained
check $? "a suite's name is no path to write to"

# What else reads rows: names of folders, and values for other scripts.
sh scripts/device-folder.sh "$work/in/toy.csv" > "$work/out/folder-name" 2> "$log"
[ $? -eq 2 ] && contained
check $? "many devices have no folder"
head -n 1 "$work/in/toy.csv" > "$work/out/one.csv"
awk -F, 'NR > 1 && /outside/' "$work/in/toy.csv" | head -n 1 >> "$work/out/one.csv"
folder=$(sh scripts/device-folder.sh "$work/out/one.csv" 2> "$log")
case ${folder#baselines/} in
'' | */* | .*) false ;;
esac
check $? "a device's folder lies in baselines/"

finish
