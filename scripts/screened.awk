# screened.awk - with csv.awk: the cases that gpubench-compare --format csv finds slower by
# more than `limit` (0.02), whatever its verdict: what a stored baseline can tell across
# cards and sittings. One line of --list each.

value("ratio") + 0 > 1 + limit {
    line = joined("case variant dtype params")
    if (!(line in seen)) print line
    seen[line] = 1
}
