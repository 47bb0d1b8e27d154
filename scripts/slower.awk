# slower.awk - with csv.awk: the cases that gpubench-compare --format csv calls SLOWER, one a
# line: of --list, or with `labels` set the names that the tool's own --filter goes by.

value("verdict") == "SLOWER" {
    line = joined(labels ? "suite case variant backend dtype params mode" : "case variant dtype params")
    if (!(line in seen)) print line
    seen[line] = 1
}
