# report_verdicts.awk - with csv.awk, numbers.awk and report_case.awk: the CSV of
# gpubench-compare as HTML tables. -v part=changed prints the cases that changed or
# cannot be right, part=rest what stands at the end of the page: those of which
# nothing can be said, and those that are as they were.

function percent(ratio) { return ratio == "" ? "" : sprintf("%+.2f %%", 100 * (ratio - 1)) }

function interval(low, high) {
    return low == "" ? "" : sprintf("%+.2f to %s", 100 * (low - 1), percent(high))
}

function cell(label, text) { return "<td data-label=\"" label "\">" text "</td>" }

{
    verdict = tolower(value("verdict"))
    if (!(verdict in count)) verdicts[++verdict_count] = verdict
    n = ++count[verdict]
    change = number("smallest_change", 1)
    ratio = number("ratio", 1)
    size[verdict, n] = ratio == "" ? 0 : ratio < 1 ? 1 / ratio : ratio
    class = verdict
    gsub(/[^a-z]/, "", class)
    row[verdict, n] = sprintf("<tr class=\"%s\"><td class=\"text verdict\">%s</td>" \
        "<th scope=\"row\">%s</th>%s%s%s%s%s%s</tr>\n", class, html(verdict), case_name(), \
        cell("baseline", show(number("baseline", 1))), \
        cell("current", show(number("current", 1))), cell("change", percent(ratio)), \
        cell("interval", interval(number("ratio_low", 1), number("ratio_high", 1))), \
        cell("findable", change == "" ? "" : sprintf("%.1f %%", 100 * change)), \
        cell("runs", change == "" ? "" : value("baseline_runs") " / " value("current_runs")))
}

# Adds the rows of a verdict to the table, the largest change first.
function take(verdict,    i, list, rank) {
    for (i = 1; i <= count[verdict]; i++) {
        list[i] = i
        rank[i] = -size[verdict, i]
    }
    sort_by(list, count[verdict], rank)
    for (i = 1; i <= count[verdict]; i++) table[++taken] = row[verdict, list[i]]
}

function print_table(    head) {
    head = "<thead><tr><th scope=\"col\">verdict</th><th scope=\"col\" class=\"text\">case</th>" \
           "<th scope=\"col\">baseline, \302\265s</th><th scope=\"col\">current, \302\265s</th>" \
           "<th scope=\"col\">change</th><th scope=\"col\">interval</th>" \
           "<th scope=\"col\">findable</th><th scope=\"col\">runs</th></tr></thead>"
    print_rows(head, table, taken, part == "changed" ? 40 : taken)
    taken = 0
}

function print_folded(name, title) {
    if (!count[name]) return
    print "<details><summary>" count[name] " " title "</summary>"
    take(name)
    print_table()
    print "</details>"
}

END {
    if (failed) exit 2
    n = split("slower,missing,not ok,invalid,work changed,faster,new", shown, ",")
    for (i = 1; i <= n; i++) {
        is_shown[shown[i]] = 1
        if (part == "changed") take(shown[i])
    }
    if (part == "changed") { print_table(); exit }
    print_folded("inconclusive", "inconclusive: the data cannot tell")
    for (i = 1; i <= verdict_count; i++)
        if (!(verdicts[i] in is_shown) && verdicts[i] != "inconclusive")
            print_folded(verdicts[i], html(verdicts[i]))
}
