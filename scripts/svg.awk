# svg.awk - what the awk programs that draw share.

function xml(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    return text
}

# The same name has the same colour, in light and dark.
function colour(name,    i, sum) {
    for (i = 1; i <= length(name); i++)
        sum = (sum * 31 + index("abcdefghijklmnopqrstuvwxyz0123456789_<>, ", tolower(substr(name, i, 1)))) % 360
    return "hsl(" sum " 55% 50%)"
}

function open_svg(width, height, title) {
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %d %d\" class=\"timeline\" font-family=\"sans-serif\" font-size=\"11\" color=\"#57606a\">\n", \
        width, height
    print "<title>" xml(title) "</title>"
}

function label(x, y, text, more) {
    printf "<text x=\"%.2f\" y=\"%.2f\" fill=\"currentColor\"%s>%s</text>\n", x, y, more, xml(text)
}
