# sizes.awk - names each file of more than 800 lines and each function of more than
# 50 (signature and braces counted); status 1 if there is one. Files of C, CUDA and
# shell, in which a function's closing brace begins a line, and of Python, in which
# its lines are indented. gpubench.h and gpubench_trace.h are one file each whatever their
# length: people copy them.

function too_long(what, lines, most) {
    printf "%s: %d lines, where %d are enough\n", what, lines, most
    found = 1
}

function end_function(lines) {
    if (begun && lines > 50) too_long(file ":" begun ": " name, lines, 50)
    begun = 0
}

function end_file() {
    if (python) end_function(last - begun + 1)
    if (count > 800 && file !~ /(^|\/)gpubench(_trace)?\.h$/) too_long(file, count, 800)
}

# The first word before a parenthesis.
function name_of(text) {
    sub(/\(.*/, "", text)
    sub(/.*[ *]/, "", text)
    return text
}

FNR == 1 {
    if (file != "") end_file()
    file = FILENAME
    python = file ~ /\.py$/
    begun = signature = 0
}

{ count = FNR }

python {
    match($0, /^ */)
    if ($0 ~ /^ *(async )?def / && (!begun || RLENGTH <= indent)) {
        end_function(last - begun + 1)
        begun = FNR
        match($0, /^ */)
        indent = RLENGTH
        name = name_of(substr($0, indent + 5))
    } else if (begun && $0 !~ /^ *$/ && $0 !~ /^ *\)/) {
        match($0, /^ */)
        if (RLENGTH <= indent) end_function(last - begun + 1)
    }
    if ($0 !~ /^ *$/) last = FNR
    next
}

# Of C a signature begins at a line's begin and may go on for some lines.
/^[A-Za-z_].*\(/ && !begun { signature = FNR; name = name_of($0) }
/^[A-Za-z_0-9]*\(\) *[{(]$/ || (/^[{]$/ && signature && !begun) { begun = signature }
/^[})]/ && begun { end_function(FNR - begun + 1); signature = 0 }
/[;]$/ && !begun { signature = 0 }

END {
    if (file != "") end_file()
    exit found
}
