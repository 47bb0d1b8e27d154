# report_kernels.awk - with compare/csv.awk and report_html.awk: a --kernels-csv
# file as a folded table for each of its cases, the longest kernels first, with the
# timeline that the shell drew of it (pictures: NUMBER.svg in that folder).

function close_case() {
    if (cases == 0) return
    print "</tbody></table></div></details>"
}

function open_case(    picture, line) {
    cases++
    print "<details><summary>" html(name) ": " show(value("busy_us")) " us at work" idle() \
        (value("case_us") != "" ? ", timed " show(value("case_us")) : "") "</summary>"
    picture = pictures "/" cases ".svg"
    while ((getline line < picture) > 0) print line
    close(picture)
    print "<div><table><thead><tr><th scope=\"col\">what</th><th scope=\"col\">us</th>" \
        "<th scope=\"col\">times</th><th scope=\"col\">share</th><th scope=\"col\">grid</th>" \
        "<th scope=\"col\">block</th><th scope=\"col\">registers</th><th scope=\"col\">occupancy</th>" \
        "<th scope=\"col\">limited by</th><th scope=\"col\">waves</th></tr></thead><tbody>"
}

# The share between the first start and the last end in which nothing ran.
function idle() {
    if (value("span_us") + 0 <= 0) return ""
    return sprintf(", %.0f %% idle", 100 * (1 - value("busy_us") / value("span_us")))
}

function percent(text) { return text == "" ? "" : sprintf("%.1f %%", 100 * text) }

function cell(label, text) { return "<td data-label=\"" label "\">" html(text) "</td>" }

{
    name = value("case") " " value("variant") " " value("dtype") " " value("params")
    if (name != before) {
        close_case()
        open_case()
        before = name
        kernels = 0
    }
    if (++kernels > 20) next
    print "<tr><th scope=\"row\">" html(value("name")) "</th>" cell("us", show(value("total_us"))) \
        cell("times", value("launches")) cell("share", percent(value("share"))) cell("grid", value("grid")) \
        cell("block", value("block")) cell("registers", value("registers")) \
        cell("occupancy", percent(value("occupancy"))) cell("limited by", value("limit")) \
        cell("waves", value("waves") == "" ? "" : sprintf("%.2f", value("waves"))) "</tr>"
}

END {
    close_case()
}
