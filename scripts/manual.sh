#!/bin/sh
# manual.sh PROGRAM VERSION  writes the manual page of gpubench-compare from its
# --help, so that the two say the same.
set -eu
export LC_ALL=C CDPATH=
help=$("$1" --help)
printf '%s\n' "$help" | awk -v version="$2" '
    # What roff would take for its own.
    function text(line) {
        gsub(/\\/, "\\e", line)
        gsub(/-/, "\\-", line)
        return (line ~ /^[.\x27]/ ? "\\&" : "") line
    }
    BEGIN {
        print ".TH GPUBENCH\\-COMPARE 1 \"\" \"gpubench " version "\""
        print ".SH NAME\ngpubench\\-compare \\- judge benchmark results against a baseline"
        print ".SH SYNOPSIS\n.nf"
        part = "synopsis"
    }
    part == "synopsis" && /^(usage:|      ) / { print text(substr($0, 8)); next }
    part == "synopsis" { print ".fi\n.SH DESCRIPTION"; part = "description"; next }
    /^  --/ {
        if (part != "options")
            print ".SH OPTIONS"
        part = "options"
        $0 = substr($0, 3)
        match($0, /  +/)
        print ".TP\n.B " text(substr($0, 1, RSTART - 1)) "\n" text(substr($0, RSTART + RLENGTH))
        next
    }
    sub(/^Exit status: /, "") { print ".SH EXIT STATUS\n" text($0); part = "status"; next }
    /^$/ { blank = part; next }
    blank == part { print ".PP" }
    { blank = ""; sub(/^ +/, ""); print text($0) }
'
