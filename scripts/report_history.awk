# report_history.awk - with csv.awk, numbers.awk and report_case.awk: the changes in
# the CSV of gpubench-compare --history as an HTML table, the largest first.

function sitting(    text) {
    text = substr(value("timestamp"), 1, 10)
    if (value("git") != "") text = text (text == "" ? "" : ", ") value("git")
    return html(text (text == "" ? "" : ", ") value("campaign"))
}

{
    label = case_name()
    if (label != last) { last = label; cases++; before = ""; level = "" }
    ratio = number("cost_change", 1)
    if (ratio != "") {
        rank[++n] = ratio < 1 ? -1 / ratio : -ratio
        row[n] = sprintf("<tr><th scope=\"row\">%s</th><td data-label=\"cost\">%+.1f %%</td>" \
            "<td data-label=\"level\">%s to %s</td>" \
            "<td class=\"text\" data-label=\"at\">%s</td><td class=\"text\" data-label=\"after\">%s</td></tr>\n", \
            label, 100 * (ratio - 1), show(level), show(number("level")), sitting(), before)
        order[n] = n
    }
    if (!number("lone")) before = sitting()
    level = number("level")
}

END {
    if (failed) exit 2
    printf "<p>%d change%s in the history of %d case%s over the campaigns.</p>\n", n, \
           (n == 1 ? "" : "s"), cases, (cases == 1 ? "" : "s")
    if (!n) exit
    sort_by(order, n, rank)
    head = "<thead><tr><th scope=\"col\">case</th><th scope=\"col\">cost</th>" \
           "<th scope=\"col\">level, \302\265s</th>" \
           "<th scope=\"col\" class=\"text\">at</th><th scope=\"col\" class=\"text\">after</th></tr></thead>"
    for (i = 1; i <= n; i++) table[i] = row[order[i]]
    print_rows(head, table, n, 20)
}
