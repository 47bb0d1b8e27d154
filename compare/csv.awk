# csv.awk - reads RFC 4180 files for the scripts that follow it on awk's command
# line: their rules see one whole record at a time (`record`, below `header`) and ask
# value("column"), which is empty where a file has no such column, and of names lacks the
# apostrophe that gpubench-compare puts in front of what a spreadsheet takes for a formula.
# `needs` (-v) lists those that every file must have; `markdown` makes the values cells of a
# table. What is malformed ends the program with a message and status 2: a script that prints
# at the end asks `failed` first.

function fail(message) {
    print message > "/dev/stderr"
    failed = 1
    exit 2
}

function fail_here(message) { fail(FILENAME ": line " FNR ": " message) }

# To awk an operand with an equals sign sets a variable, also where a file has such a name.
BEGIN {
    for (operand = 1; operand < ARGC; operand++)
        if (ARGV[operand] ~ /^[A-Za-z_][A-Za-z0-9_]*=/ && (getline operand_line < ARGV[operand]) >= 0) {
            close(ARGV[operand])
            ARGV[operand] = "./" ARGV[operand]
        }
}

# Splits a record into fields[]; -1 where quotes are not as RFC 4180 has them.
function cut(text,    n) {
    if (text !~ /"/) return split(text, fields, ",")
    n = 0
    text = text ","
    while (text != "") {
        if (match(text, /^"([^"]|"")*",/)) {
            fields[++n] = substr(text, 2, RLENGTH - 3)
            gsub(/""/, "\"", fields[n])
        } else if (match(text, /^[^,"]*,/)) {
            fields[++n] = substr(text, 1, RLENGTH - 1)
        } else {
            return -1
        }
        text = substr(text, RLENGTH + 1)
    }
    return n
}

# Text as a cell of a table in markdown: no tags, no columns, nothing that a terminal obeys.
function as_cell(text) {
    gsub(/[[:cntrl:]]/, "?", text)
    if (length("\302\233") == 2) gsub("\302[\200-\237]", "?", text) # of bytes
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    gsub(/\|/, "\\|", text)
    gsub(/#\[/, "#?[", text) # a CI's log obeys ##[error]
    return text
}

# Tabs and line ends become blanks, so that what we print has one line a record.
function value(name,    text) {
    if (!(name in column)) return ""
    text = fields[column[name]]
    if (is_verdicts && text ~ /^'+[-=+@\t\r]/) text = substr(text, 2)
    if (text ~ /[\t\r\n]/) gsub(/[\t\r\n]/, " ", text)
    return markdown ? as_cell(text) : text
}

# The values of some columns with blanks between them, without those that are empty.
function joined(names,    n, i, part, text, line) {
    n = split(names, part, " ")
    for (i = 1; i <= n; i++) {
        text = value(part[i])
        if (text != "") line = line (line == "" ? "" : " ") text
    }
    return line
}

function is_number(text) { return text ~ /^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$/ }

# The number in a column, or "" where it may be and is empty.
function number(name, may_be_empty,    text) {
    text = value(name)
    if (text == "" && may_be_empty) return ""
    if (!is_number(text)) fail_here("column " name " holds '" text "', which is no number")
    return text + 0
}

FNR == 1 {
    if (open_record != "") fail(file ": ends inside quotes")
    file = FILENAME
    width = 0
    sub(/^\357\273\277/, "")
}

{
    sub(/\r$/, "")
    open_record = open_record == "" ? $0 : open_record "\n" $0
    quotes = open_record
    if (gsub(/"/, "", quotes) % 2) next
    record = open_record
    open_record = ""
    if (record == "") next
    count_of_fields = cut(record)
    if (count_of_fields < 0) fail_here("a quote inside a field that is not quoted")
}

!width {
    header = record
    width = count_of_fields
    split("", column)
    for (i = 1; i <= width; i++) column[fields[i]] = i
    is_verdicts = "metric" in column # the tool's, as no rows of a program have one
    needed = split(needs, need, " ")
    for (i = 1; i <= needed; i++)
        if (!(need[i] in column)) fail_here("no column " need[i])
    next
}

count_of_fields != width {
    fail_here(count_of_fields " fields, where the header has " width)
}

END {
    if (!failed && open_record != "") fail(file ": ends inside quotes")
    if (failed) exit 2
}
