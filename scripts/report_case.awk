# report_case.awk - with csv.awk and report_html.awk.

# A case's name, from compare's CSV.
function case_name() {
    return html(joined("case variant dtype params mode"))
}
