# report_html.awk - what the report's awk programs share.

function html(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    gsub(/"/, "\\&quot;", text)
    return text
}

# What an id may hold, in HTML and behind a # in an address.
function identifier(text) {
    gsub(/[^A-Za-z0-9._-]+/, "-", text)
    return text
}

# A table of rows; those after the first `most` are folded.
function print_rows(head, rows, n, most,    i) {
    for (i = 1; i <= n; i++) {
        if (i == most + 1) print "<details><summary>and " n - most " more</summary>"
        if (i == 1 || i == most + 1) print "<div><table>" head "<tbody>"
        printf "%s", rows[i]
        if (i == most || i == n) print "</tbody></table></div>"
    }
    if (n > most) print "</details>"
}
