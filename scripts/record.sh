# shellcheck shell=sh
# record.sh - what the scripts that record baselines share; they source it, and
# orderly.sh and followed.sh before.

# refuse_changes NAME: ends with status 2 if the working tree has changes, whose
# revision would name other code, unless FORCE=1; or if git cannot tell. A tree
# without a repository of its own has no revision to be wrong about.
refuse_changes() {
    [ "${FORCE:-0}" != 1 ] && [ -e .git ] || return 0
    if ! changes=$(git status --porcelain 2>&1); then
        printf '%s: git cannot tell whether the tree has changes:\n%s\n' "$1" "$changes" >&2
        exit 2
    fi
    [ -n "$changes" ] || return 0
    echo "$1: the working tree has changes; commit them first (FORCE=1 overrides)" >&2
    exit 2
}

# prepare MEASURED: room for a file, which no other process writes, and no old one there,
# which would be recorded again if the arguments (--help, --list) ask for no measuring.
prepare() {
    mkdir -p "$(dirname "$1")"
    alone "${1%.csv}.lock" "$1"
    rm -f "$1"
}

# added_columns MEASURED BASELINE: those that a newer version of gpubench.h writes
# behind the baseline's, each with a comma in front. Status 1 if they differ otherwise.
added_columns() {
    measured_header=$(head -1 "$1") baseline_header=$(head -1 "$2")
    case $measured_header, in
    "$baseline_header",*) printf '%s' "${measured_header#"$baseline_header"}" ;;
    *) return 1 ;;
    esac
}

# refuse_other_columns MEASURED BASELINE: ends with status 2 if the baseline is
# there and its columns are others.
refuse_other_columns() {
    if [ -e "$2" ] && ! added_columns "$1" "$2" > /dev/null; then
        echo "$2 has other columns than $1: move it away to start anew" >&2
        exit 2
    fi
}

# widened FILE COLUMNS: prints the file with these columns more, empty. A line whose
# quotes are not closed goes on in the next one.
widened() {
    awk -v columns="$2" '
        BEGIN { empty = columns; gsub(/[^,]/, "", empty) }
        { end = sub(/\r$/, "") ? "\r" : ""; quotes += gsub(/"/, "\"") }
        { print $0 (quotes % 2 ? "" : NR == 1 ? columns : empty) end }' "$1"
}

# refuse_unreadable FILE: ends with status 2 if rows behind the file's last line
# would be glued to it or stand behind rows that nobody can read.
refuse_unreadable() {
    if [ -n "$(tail -c 1 "$1")" ]; then
        echo "$1: the last line has no line end: was the file cut? Nothing is appended" >&2
        exit 2
    fi
    if grep -n '^<<<<<<< \|^=======$\|^>>>>>>> ' "$1" >&2; then
        echo "$1: conflict markers; nothing is appended" >&2
        exit 2
    fi
    [ ! -x build/gpubench-compare ] || build/gpubench-compare --check "$1" >&2 || exit 2
}

# refuse_unwritable FILE: ends with status 2 where the file was made read-only, which the
# folder alone would not show.
refuse_unwritable() {
    [ ! -w "$1" ] || return 0
    echo "$1: may not be written; nothing is appended" >&2
    exit 2
}

# refuse_unverified MEASURED: ends with status 2 if nobody looked at what a row of it
# computed (--no-verify): how fast a wrong result comes is nothing to compare with.
refuse_unverified() {
    if sh scripts/csv.sh values name=flags "$1" | grep -qw unverified; then
        echo "$1: rows that nobody verified (--no-verify) are no baseline; nothing is appended" >&2
        exit 2
    fi
}

# append MEASURED BASELINE: the rows of one file to the other, which need not be
# there yet; for two processes one after the other.
append() {
    mkdir -p results
    in_turn results/append.lock
    refuse_unverified "$1"
    refuse_other_columns "$1" "$2"
    mkdir -p "$(dirname "$2")"
    into=$(followed "$2")
    new=$into.new
    rm -f "$new" # whatever lies there, a link to another file too
    if [ -e "$into" ]; then
        refuse_unreadable "$2"
        refuse_unwritable "$2"
        added=$(added_columns "$1" "$2")
        { widened "$into" "$added" && tail -n +2 "$1"; } > "$new" || exit 2
    else
        cp "$1" "$new" || exit 2
    fi
    mv -f "$new" "$into"
    new=
    exec 8>&-
    echo "$2: $(($(wc -l < "$2") - 1)) rows"
}

# What append was writing when it was ended.
new=
clean_up() { [ -z "$new" ] || rm -f "$new"; }
