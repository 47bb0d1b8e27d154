# report_html.awk - what the report's awk programs share.

function html(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    gsub(/"/, "\\&quot;", text)
    return text
}

# Four significant digits, as the tables of the README.
function show(us) {
    return us == "" ? "" : us >= 1000 ? sprintf("%.0f", us) : us >= 100 ? sprintf("%.1f", us) : sprintf("%.2f", us)
}
