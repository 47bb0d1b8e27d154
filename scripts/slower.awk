# slower.awk - with csv.awk: the cases that gpubench-compare --format csv calls SLOWER, one a
# line, as the names that the tool's own --filter goes by.

value("verdict") == "SLOWER" {
    line = joined("suite case variant backend dtype params mode")
    if (!(line in seen)) print line
    seen[line] = 1
}
