# theme.awk - gnuplot's SVG for light and dark pages, inline or as a file: black
# becomes the text's colour and grey text a paler shade of it, the ids get a prefix
# so that several pictures fit in one page, and what draws nothing goes.

function escape(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    return text
}

BEGIN {
    gsub(/[^A-Za-z0-9._-]/, "-", prefix)
    print "<svg class=\"gpubench-plot\" role=\"img\""
}

NR == 1 || /^<svg *$/ || /^<desc>/ || /fill="none"\/>$/ { next }
/<filter / { hidden = 1 }
/<\/filter>/ { hidden = 0; next }
hidden { next }

/^<title>/ {
    print "<title>" escape(title) "</title>"
    print "<style>.gpubench-plot{color:#1f2328}@media(prefers-color-scheme:dark){.gpubench-plot{color:#e6edf3}}</style>"
    next
}

{
    gsub(/<title>gnuplot_plot_[0-9a-z]*<\/title>/, "")
    gsub(/ color="(black|white|gray)"/, "")
    gsub(/fill="(black|rgb\(0,0,0\))"/, "fill=\"currentColor\"")
    gsub(/stroke="black"/, "stroke=\"currentColor\"")
    gsub(/stroke='black'/, "stroke='currentColor'")
    gsub(/font-family="sans-serif:Bold"/, "font-family=\"sans-serif\" font-weight=\"bold\"")
    gsub(/fill="rgb\(119,119,119\)"/, "fill=\"currentColor\" fill-opacity=\"0.7\"")
    gsub(/ id=["']/, "&" prefix "-")
    gsub(/href='#/, "&" prefix "-")
    gsub(/ stroke-linecap="butt" stroke-linejoin="miter"/, "")
}

# A group that closes as it opens.
/^<g .*>$/ { if (opened != "") print opened; opened = $0; next }
opened != "" && /^<\/g>$/ { opened = ""; next }
{
    if (opened != "") print opened
    opened = ""
    if ($0 !~ /^[ \t]*$/) print
}
