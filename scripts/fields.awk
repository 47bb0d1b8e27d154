# fields.awk - split_csv: the fields of a line of CSV, quotes taken away, into
# field[1..n]; returns n. find_columns: of a header, into column[name].

function split_csv(line, field,    n, value, quoted, c) {
    n = 0
    value = ""
    quoted = 0
    if (line !~ /"/) return split(line, field, ",")
    while (line != "") {
        c = substr(line, 1, 1)
        line = substr(line, 2)
        if (quoted && c == "\"" && substr(line, 1, 1) == "\"") {
            value = value c
            line = substr(line, 2)
        } else if (c == "\"")
            quoted = !quoted
        else if (c == "," && !quoted) {
            field[++n] = value
            value = ""
        } else
            value = value c
    }
    field[++n] = value
    return n
}

function find_columns(line, column,    field, n, i) {
    n = split_csv(line, field)
    for (i = 1; i <= n; i++) column[field[i]] = i
}
