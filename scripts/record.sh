# record.sh - what the scripts that record baselines share; they source it.

# refuse_changes NAME: ends with status 2 if the working tree has changes, whose
# revision would name other code, unless FORCE=1.
refuse_changes() {
    if [ "${FORCE:-0}" != 1 ] && [ -n "$(git status --porcelain 2>/dev/null)" ]; then
        echo "$1: the working tree has changes; commit them first (FORCE=1 overrides)" >&2
        exit 2
    fi
}

# prepare MEASURED: room for a file, and no old one there, which would be recorded
# again if the arguments (--help, --list) ask for no measuring.
prepare() {
    mkdir -p "$(dirname "$1")"
    rm -f "$1"
}

# refuse_other_columns MEASURED BASELINE: ends with status 2 if the baseline is
# there and its columns are others.
refuse_other_columns() {
    if [ -e "$2" ] && [ "$(head -1 "$2")" != "$(head -1 "$1")" ]; then
        echo "$2 has other columns than $1: move it away to start anew" >&2
        exit 2
    fi
}

# append MEASURED BASELINE: the rows of one file to the other, which need not be
# there yet.
append() {
    refuse_other_columns "$1" "$2"
    mkdir -p "$(dirname "$2")"
    if [ -e "$2" ]; then
        { cat "$2"; tail -n +2 "$1"; } > "$2.new"
    else
        cp "$1" "$2.new"
    fi
    mv "$2.new" "$2"
    echo "$2: $(($(wc -l < "$2") - 1)) rows"
}
