# report_tables.awk - with report_html.awk: one suite of the report (SUITE in the
# environment) as HTML, from the lines of points.awk: for each case a heading, a table for each dtype and mode (a line per
# shape, a column per variant, the median time of the runs; the fastest in bold),
# and the pictures size-CASE-*.svg that `pictures` (a folder) holds for it.

BEGIN {
    FS = "\t"
    suite = ENVIRON["SUITE"] ""
}

$1 "" != suite { next }

{
    if (!($2 in case_seen)) { case_seen[$2] = 1; cases[++case_count] = $2 }
}

$8 != "ok" {
    bad[$2] = bad[$2] "<tr><th scope=\"row\">" html($7 " " $3 " " $6 " " $4) "</th><td class=\"text\">" html($8) \
              "</td><td class=\"text\">" html($15) "</td></tr>\n"
    next
}

{
    table = $2 "\t" $3 "\t" $4
    if (!(table in table_seen)) { table_seen[table] = 1; tables[$2, ++table_count[$2]] = table }
    if (!((table, $6) in shape_seen)) { shape_seen[table, $6] = 1; shapes[table, ++shape_count[table]] = $6 }
    if (!((table, $7) in variant_seen)) { variant_seen[table, $7] = 1; variants[table, ++variant_count[table]] = $7 }
    time[table, $6, $7] = $11
    if (!((table, $6) in fastest) || $11 < fastest[table, $6]) fastest[table, $6] = $11
    runs[table] = $14 > runs[table] ? $14 : runs[table] + 0
    if (!(table in least_runs) || $14 < least_runs[table]) least_runs[table] = $14 + 0
}

function sort_variants(table,    i, j, t) {
    for (i = 2; i <= variant_count[table]; i++)
        for (j = i; j > 1 && variants[table, j - 1] > variants[table, j]; j--) {
            t = variants[table, j]; variants[table, j] = variants[table, j - 1]; variants[table, j - 1] = t
        }
}

function cell(table, shape, variant,    us) {
    if (!((table, shape, variant) in time)) return "<td data-label=\"" html(variant) "\">\342\200\223</td>"
    us = show(time[table, shape, variant])
    if (time[table, shape, variant] == fastest[table, shape] && variant_count[table] > 1) us = "<b>" us "</b>"
    return "<td data-label=\"" html(variant) "\">" us "</td>"
}

# Of how many runs a table's cells are, those of the fewest and those of the most.
function runs_text(table) {
    if (runs[table] == 1) return "one run"
    return "median of " (least_runs[table] < runs[table] ? least_runs[table] " to " : "") runs[table] " runs"
}

# The variants that a shape was measured with.
function set_of(table, shape,    v, set) {
    for (v = 1; v <= variant_count[table]; v++)
        if ((table, shape, variants[table, v]) in time) set = set "\t" variants[table, v]
    return set "\t"
}

# The shapes with one set of variants; with all, if `set` is "".
function print_shapes(table, set,    part, v, s, text) {
    split(table, part, "\t")
    print "<div><table>"
    printf "<caption>%s, %s: microseconds, %s</caption>\n<thead><tr><th scope=\"col\">shape</th>", html(part[2]),
           html(part[3]), runs_text(table)
    for (v = 1; v <= variant_count[table]; v++)
        if (set == "" || index(set, "\t" variants[table, v] "\t"))
            printf "<th scope=\"col\">%s</th>", html(variants[table, v])
    print "</tr></thead><tbody>"
    for (s = 1; s <= shape_count[table]; s++) {
        if (set != "" && set_of(table, shapes[table, s]) != set) continue
        text = sprintf("<tr><th scope=\"row\">%s</th>", html(shapes[table, s]))
        for (v = 1; v <= variant_count[table]; v++)
            if (set == "" || index(set, "\t" variants[table, v] "\t"))
                text = text cell(table, shapes[table, s], variants[table, v])
        print text "</tr>"
    }
    print "</tbody></table></div>"
}

# What would be wider than a page becomes a table for each set of variants, which leaves no
# cell empty.
function print_table(table,    s, set, printed) {
    sort_variants(table)
    if (variant_count[table] <= 12) {
        print_shapes(table, "")
        return
    }
    for (s = 1; s <= shape_count[table]; s++) {
        set = set_of(table, shapes[table, s])
        if (!(set in printed)) print_shapes(table, set)
        printed[set] = 1
    }
}

function print_pictures(pattern,    command, line) {
    command = "ls '" pictures "' | grep '^" pattern "'"
    print "<div class=\"plots\">"
    while ((command | getline name) > 0) {
        while ((getline line < (pictures "/" name)) > 0) print line
        close(pictures "/" name)
    }
    close(command)
    print "</div>"
}

# What file_name of plot.awk makes of it, as a pattern of grep.
function file_name(text) {
    gsub(/[^A-Za-z0-9._-]+/, "-", text)
    gsub(/\./, "\\.", text)
    return text
}

function print_case(name,    t, long) {
    id = anchor "." identifier(name)
    printf "<h3 id=\"%s\">%s</h3>\n", id (used[id]++ ? "-" used[id] : ""), html(name)
    long = name ~ /\.part$/
    if (long) print "<details><summary>every part</summary>"
    print "<div class=\"tables\">"
    for (t = 1; t <= table_count[name]; t++) print_table(tables[name, t])
    if (name in bad)
        print "<div><table><caption>not measured</caption><thead><tr><th scope=\"col\">variant, shape</th>" \
              "<th scope=\"col\">status</th><th scope=\"col\">flags</th></tr></thead><tbody>\n" bad[name] \
              "</tbody></table></div>"
    print "</div>"
    if (long) print "</details>"
    print_pictures(long ? "parts-" number "-" : "size-" number "-" file_name(name "-"))
}

END {
    printf "<h2 id=\"%s\">%s</h2>\n", anchor, html(suite)
    for (c = 1; c <= case_count; c++) print_case(cases[c])
    if (rooflines) {
        printf "<h3 id=\"%s.roofline\">roofline</h3>\n", anchor
        print_pictures("roofline-" number "-")
    }
}
