# report_case.awk - with compare/plots/csv.awk and report_html.awk.

# A case's name, from compare's CSV.
function case_name() {
    return html(value("case") " " value("variant") " " value("dtype") " " value("params") " " \
                value("mode"))
}
