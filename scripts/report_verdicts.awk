# report_verdicts.awk - with compare/plots/csv.awk and report_html.awk: the CSV of
# gpubench-compare as HTML: how many of each verdict, and a table; cases without a
# change are folded.

function percent(ratio) { return ratio == "" ? "" : sprintf("%+.2f %%", 100 * (ratio - 1)) }

function interval(low, high) { return low == "" ? "" : sprintf("%+.2f to %s", 100 * (low - 1), percent(high)) }

{
    verdict = tolower(value("verdict"))
    if (!(verdict in count)) verdicts[++verdict_count] = verdict
    count[verdict]++
    total++
    change = number("smallest_change", 1)
    class = verdict
    gsub(/[^a-z]/, "", class)
    rows[verdict] = rows[verdict] sprintf("<tr class=\"%s\"><td class=\"text verdict\">%s</td><th scope=\"row\">%s</th>" \
        "<td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", class, html(verdict), \
        html(value("case") " " value("variant") " " value("dtype") " " value("params") " " value("mode")), \
        show(number("baseline", 1)), show(number("current", 1)), percent(number("ratio", 1)), \
        interval(number("ratio_low", 1), number("ratio_high", 1)), \
        change == "" ? "" : sprintf("%.1f %%", 100 * change), \
        change == "" ? "" : value("baseline_runs") " / " value("current_runs"))
}

function print_table(body) {
    print "<div class=\"scroll\"><table><tr><th scope=\"col\">verdict</th><th scope=\"col\" class=\"text\">case</th>" \
          "<th scope=\"col\">baseline, \302\265s</th><th scope=\"col\">current, \302\265s</th><th scope=\"col\">change</th>" \
          "<th scope=\"col\">interval</th><th scope=\"col\">findable</th><th scope=\"col\">runs</th></tr>"
    printf "%s</table></div>\n", body
}

END {
    if (failed) exit 2
    n = split("slower,missing,not ok,invalid,work changed,faster,inconclusive", shown, ",")
    for (i = 1; i <= verdict_count; i++)
        summary = summary (i > 1 ? ", " : "") count[verdicts[i]] " " verdicts[i]
    printf "<p>%d cases: %s. <i>findable</i> is the smallest change that this data would have shown.</p>\n", total,
           html(summary)
    for (i = 1; i <= n; i++) { changed = changed rows[shown[i]]; listed[shown[i]] = 1 }
    if (changed != "") print_table(changed)
    for (i = 1; i <= verdict_count; i++)
        if (!(verdicts[i] in listed)) { rest = rest rows[verdicts[i]]; rest_count += count[verdicts[i]] }
    if (rest == "") exit
    print "<details><summary>" rest_count " without a change</summary>"
    print_table(rest)
    print "</details>"
}
