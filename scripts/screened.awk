# screened.awk - with fields.awk: the cases that gpubench-compare --format csv finds
# slower by more than `limit` (0.02), whatever its verdict: what a stored baseline can
# tell across cards and sittings. One line of --list each.

NR == 1 { find_columns($0, column); next }

{
    split_csv($0, field)
    if (field[column["ratio"]] + 0 <= 1 + limit) next
    n = split("case variant dtype params", part, " ")
    line = ""
    for (i = 1; i <= n; i++)
        if (field[column[part[i]]] != "") line = line (line == "" ? "" : " ") field[column[part[i]]]
    if (!(line in seen)) print line
    seen[line] = 1
}
