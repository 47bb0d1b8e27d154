# mutants.awk - every mutant of a C file that these rules know, one a line: file, line, rule,
# the line as it was and as it is now, with tabs between them. Text in quotes and comments
# stays as it is.
#
# -v file=PATH -v from=LINE -v to=LINE (0: to the end)

BEGIN {
    count = split("< <= > >= == != && || + - * /", operators, " ")
    split("<= < >= > != == || && - + / *", others, " ")
}

# The second mutant of one rule in one line says so, for a name of its own.
function tell(rule, line) {
    if (++told[NR, rule] > 1) rule = rule ", the " told[NR, rule] ". of the line"
    printf "%s\t%d\t%s\t%s\t%s\n", file, NR, rule, $0, line
}

# The line with quotes and comments blanked out, so that positions stay.
function code_of(line,    out, c, i, quoted) {
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (commented) {
            if (substr(line, i, 2) == "*/") { commented = 0; out = out " "; i++; c = " " }
            out = out " "
        } else if (quoted != "") {
            out = out " "
            if (c == "\\") { out = out " "; i++ } else if (c == quoted) quoted = ""
        } else if (c == "\"" || c == "'") { quoted = c; out = out " " }
        else if (substr(line, i, 2) == "/*") { commented = 1; out = out "  "; i++ }
        else if (substr(line, i, 2) == "//") return out
        else out = out c
    }
    return out
}

# An operator with blanks around it is one with two sides.
function swap_operators(line, code,    i, at, skipped, rest, wanted) {
    for (i = 1; i <= count; i++) {
        wanted = " " operators[i] " "
        skipped = 0
        rest = code
        while ((at = index(rest, wanted)) > 0) {
            at += skipped
            tell(operators[i] " to " others[i],
                 substr(line, 1, at) others[i] substr(line, at + 1 + length(operators[i])))
            skipped = at + length(operators[i])
            rest = substr(code, skipped + 1)
        }
    }
}

function shift_constants(line, code,    at, skipped, rest, number, before) {
    skipped = 0
    rest = code
    while (match(rest, /[0-9]+(\.[0-9]+)?/)) {
        at = skipped + RSTART
        number = substr(code, at, RLENGTH)
        before = at > 1 ? substr(code, at - 1, 1) : " "
        skipped = at + RLENGTH - 1
        rest = substr(code, skipped + 1)
        if (before !~ /[A-Za-z0-9_.]/ && rest !~ /^[A-Za-z0-9_.]/)
            tell(number " and 1 more", substr(line, 1, at - 1) "(" number " + 1)" substr(line, at + length(number)))
    }
}

{
    code = code_of($0)
    if (NR < from || (to > 0 && NR > to) || code ~ /^ *#/ || code ~ /^[a-z].*[;{]$/ && code !~ /^ /) next
    swap_operators($0, code)
    if (code ~ /[=(<>,?+*\/-]|return/) shift_constants($0, code)
    if (match(code, /(if|while) \(.*\)( \{)? *$/) && code !~ /\) +[a-z]/) {
        line = $0
        sub(/if \(/, "if (!(", line) || sub(/while \(/, "while (!(", line)
        sub(/\)( \{)? *$/, "))&", line)
        sub(/\)\)\)/, "))", line)
        tell("condition negated", line)
    }
    if (code ~ /^ +[a-z_][A-Za-z0-9_>.\[\]-]* [-+*\/|&]?= .*; *$/ || code ~ /^ +[a-z_]+\(.*\); *$/ ||
        code ~ /^ +[a-z_][A-Za-z0-9_>.\[\]-]*(\+\+|--); *$/)
        tell("statement removed", "    ;")
}
