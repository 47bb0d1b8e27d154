#!/bin/sh
# test_reader.sh - compare/csv.awk, through which every script reads CSV: quotes, commas and
# line ends inside them, columns that are not there, and files that are no CSV. As TAP
# lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh

# reads NAME NEEDS EXPECTED FILE...: what a script sees of the columns a and b, a line for
# each record; the bytes of the files are printf's.
reads() {
    name=$1 needs=$2 expected=$3
    shift 3
    set_files "$@"
    awk -v needs="$needs" -f compare/csv.awk -f "$work/show.awk" $files > "$log" 2>&1 &&
        printf '%b' "$expected" | cmp -s - "$log"
    check $? "$name"
}

# refuses NAME NEEDS MESSAGE FILE...: status 2, the message, and nothing after it.
refuses() {
    name=$1 needs=$2 message=$3
    shift 3
    set_files "$@"
    awk -v needs="$needs" -f compare/csv.awk -f "$work/show.awk" $files > "$log" 2>&1
    [ $? -eq 2 ] && grep -q "$message" "$log" && ! grep -q 'the end' "$log"
    check $? "$name"
}

# Of the awks that there are, each takes its own part of what is allowed: mawk is Debian's and
# Ubuntu's, gawk Fedora's and Arch's, original-awk macOS's and the BSDs'.
for awk in mawk gawk original-awk 'busybox awk'; do
    if ! $awk 'BEGIN { exit }' 2> /dev/null; then
        check 0 "$awk reads every script" "no $awk here"
        continue
    fi
    for file in scripts/*.awk scripts/tables/*.awk compare/*.awk compare/plots/*.awk; do
        # What calls another file's function is complained of too, and is no matter here.
        $awk -f "$file" < /dev/null 2>&1 | grep -i 'syntax\|illegal\|unexpected\|bad regex' | sed "s|^|$file: |"
    done > "$log"
    [ ! -s "$log" ]
    check $? "$awk reads every script"
done

set_files() {
    files='' number=0
    for bytes; do
        number=$((number + 1))
        printf '%b' "$bytes" > "$work/$number.csv"
        files="$files $work/$number.csv"
    done
}

cat > "$work/show.awk" <<'AWK'
{ print "[" value("a") "][" value("b") "]" }
END { if (failed) exit 2; print "the end" }
AWK

reads "plain fields, columns in any order" 'a b' '[2][1]\n[4][3]\nthe end\n' 'b,a\n1,2\n3,4\n'
reads "a comma inside quotes" 'a b' '[x, y][1]\nthe end\n' 'a,b\n"x, y",1\n'
reads "quotes inside quotes" 'a b' '[say "no", twice][""]\nthe end\n' 'a,b\n"say ""no"", twice",""""""\n'
reads "a line end inside quotes is a blank, and the record goes on" 'a b' \
    '[one two][3]\n[4][5]\nthe end\n' 'a,b\n"one\ntwo",3\n4,5\n'
reads "an empty line inside quotes" 'a b' '[one  two][3]\nthe end\n' 'a,b\n"one\n\ntwo",3\n'
reads "a quoted name of a column" 'a b' '[1][2]\nthe end\n' '"a",c,"b"\n1,x,2\n'
reads "lines that end as those of DOS" 'a b' '[1][2]\n[x, y][3]\nthe end\n' 'a,b\r\n1,2\r\n"x, y",3\r\n'
reads "a mark of byte order before the header" 'a b' '[1][2]\nthe end\n' '\357\273\277a,b\n1,2\n'
reads "a last line without its end" 'a b' '[1][2]\nthe end\n' 'a,b\n1,2'
reads "empty fields, also the last" 'a b' '[][]\n[][2]\nthe end\n' 'a,b\n,\n"",2\n'
reads "a column that is not there is empty" 'a' '[1][]\nthe end\n' 'a,c\n1,2\n'
reads "and stays so in the next file, that has it" 'a' '[1][]\n[3][4]\nthe end\n' 'a,c\n1,2\n' 'a,b\n3,4\n'
reads "each file has its own order of columns" 'a b' '[1][2]\n[3][4]\nthe end\n' 'a,b\n1,2\n' 'b,a\n4,3\n'
reads "lines without anything" 'a b' '[1][2]\n[3][4]\nthe end\n' 'a,b\n\n1,2\r\n\r\n3,4\n\n'
reads "names of the tool's own files, which have no apostrophe in front of a formula" 'a b' \
    "[+x][-1]\n['+x]['x]\nthe end\n" "a,metric,b\n'+x,m,'-1\n''+x,m,'x\n"
reads "and of others as they are" 'a b' "['+x][2]\nthe end\n" "a,b\n'+x,2\n"
reads "a file of a header only" 'a b' 'the end\n' 'a,b\n'

refuses "a column that is needed" 'a b' '1.csv: line 1: no column b' 'a,c\n1,2\n'
refuses "of the second file, by its name" 'a b' '2.csv: line 1: no column b' 'a,b\n1,2\n' 'a,c\n1,2\n'
refuses "a record with too few fields" 'a b' 'line 3: 1 fields, where the header has 2' 'a,b\n1,2\n3\n'
refuses "a record with too many" 'a b' 'line 2: 3 fields, where the header has 2' 'a,b\n1,2,3\n'
refuses "a quote inside a field that is not quoted" 'a b' 'line 2: a quote inside' 'a,b\nx"y"z,2\n'
refuses "text behind a closing quote" 'a b' 'line 2: a quote inside' 'a,b\n"x"y,2\n'
refuses "quotes that never close" 'a b' '1.csv: ends inside quotes' 'a,b\n"x,2\n'
refuses "quotes that never close, in the first of two files" 'a b' '1.csv: ends inside quotes' \
    'a,b\n"x,2\n' 'a,b\n1,2\n'

# Asking for a column does not make it be there.
printf 'a\n1\n' > "$work/1.csv"
echo '{ value("b"); exit "b" in column }' > "$work/ask.awk"
awk -f compare/csv.awk -f "$work/ask.awk" "$work/1.csv" > "$log" 2>&1
check $? "a column that was asked for is still not there"

# What is printed of a row again is what it was.
set_files 'suite,note\nx,"one\n\n""two"", three"\ny,4\nx,5\n'
mkdir "$work/rows"
sh scripts/csv.sh by_suite folder="$work/rows" "$work/1.csv" > "$log" 2>&1 &&
    printf 'suite,note\nx,"one\n\n""two"", three"\nx,5\n' | cmp - "$work/rows/x.csv" &&
    printf 'suite,note\ny,4\n' | cmp - "$work/rows/y.csv"
check $? "rows that are kept by suite keep their quotes and line ends"

finish
