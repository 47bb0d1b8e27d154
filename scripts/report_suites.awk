# report_suites.awk - with report_html.awk, from the lines of points.awk: each suite
# once as a line of its anchor, a tab and its name. Anchors are unique, and none is that
# of another part of the page.

BEGIN {
    FS = "\t"
    n = split("verdict history results machine rest", reserved, " ")
    for (i = 1; i <= n; i++) used[reserved[i]] = 1
}

!(($1 "") in seen) {
    seen[$1 ""] = 1
    anchor = identifier($1)
    if (anchor == "") anchor = "suite"
    if (anchor in used) anchor = anchor "-" NR
    used[anchor] = 1
    print anchor "\t" $1
}
