# slower.awk - with csv.awk: the cases that gpubench-compare --format csv calls SLOWER, as
# one regular expression: of their --list lines, or with `labels` set of the names that
# the tool's --filter goes by.

value("verdict") == "SLOWER" {
    line = joined(labels ? "suite case variant backend dtype params mode" : "case variant dtype params")
    if (line in seen) next
    seen[line] = 1
    printf "%s^%s$", separator, escaped(line)
    separator = "|"
}
