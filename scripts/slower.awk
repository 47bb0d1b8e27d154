# slower.awk - with fields.awk: the cases that gpubench-compare --format csv calls
# SLOWER, as one regular expression: of their --list lines, or with `labels` set of
# the names that the tool's --filter goes by.

function escaped(text) {
    gsub(/[.+*?()\[\]{}|^$\\]/, "\\\\&", text)
    return text
}

NR == 1 { find_columns($0, column); next }

{
    split_csv($0, field)
    if (field[column["verdict"]] != "SLOWER") next
    n = split(labels ? "suite case variant backend dtype params mode" : "case variant dtype params", part, " ")
    line = ""
    for (i = 1; i <= n; i++)
        if (field[column[part[i]]] != "") line = line (line == "" ? "" : " ") field[column[part[i]]]
    line = "^" escaped(line) "$"
    if (line in seen) next
    seen[line] = 1
    printf "%s%s", separator, line
    separator = "|"
}
