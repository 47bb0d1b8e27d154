# timeline.awk - a case of a --trace file as an inline SVG: the host's ranges and calls
# above, below them the device's ranges and streams, over one axis of microseconds.
#
#   awk -f scripts/svg.awk -f scripts/timeline.awk [-v want=2] results/traces/block.json > timeline.svg
#
# want: which of the file's cases, from 1 (1). Reads what gpubench_trace.h writes: an
# event a line, a case's own range in front of all that happened in it.

function text_of(key,    at) {
    if (!match($0, "\"" key "\":\"[^\"\\\\]*(\\\\.[^\"\\\\]*)*\"")) return ""
    at = substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5)
    gsub(/\\"/, "\"", at)
    gsub(/\\\\/, "\\", at)
    return at
}

# So many digits are no time: as one beyond all numbers they would make the axis endless.
function number_of(key) {
    if (!match($0, "\"" key "\":[0-9.]+") || RLENGTH > length(key) + 3 + 24) return 0
    return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
}

BEGIN {
    if (want == "") want = 1
    width = 1000
    margin = 110
    height = 18
}

!/"ph":"X"/ { next }

{
    process = number_of("pid")
    thread = number_of("tid") % 100000 # lanes of one track are levels here
    ts = number_of("ts")
    duration = number_of("dur")
    if (process == 1 && thread == 0 && ts >= case_end) {
        cases++
        case_end = ts + duration
        if (cases == want) title = text_of("name")
    }
    if (cases != want) next
    n++
    start[n] = ts
    spent[n] = duration
    name[n] = text_of("name")
    track[n] = process == 1 ? (thread == 0 ? "ranges" : "calls") : thread == 0 ? "on the device" : \
        thread == 99999 ? "graph launches" : "stream " thread - 1
    if (n == 1 || ts < from) from = ts
    if (ts + duration > to) to = ts + duration
}

# Nested spans of one track lie below each other.
function place(i,    t, depth) {
    t = track[i]
    for (depth = 0; free[t, depth] > start[i] + 1e-9; depth++) continue
    free[t, depth] = start[i] + spent[i]
    level[i] = depth
    if (depth > deepest[t]) deepest[t] = depth
}

function find_rows(    i, t, k, order) {
    order = 0
    for (i = 1; i <= n; i++) {
        place(i)
        if (!(track[i] in known)) {
            known[track[i]] = 1
            tracks[++order] = track[i]
        }
    }
    # The host in front of the device, whatever came first.
    count = 0
    for (k = 1; k <= order; k++) if (tracks[k] == "ranges") row_of[tracks[k]] = ++count
    for (k = 1; k <= order; k++) if (tracks[k] == "calls") row_of[tracks[k]] = ++count
    for (k = 1; k <= order; k++) if (tracks[k] == "on the device") row_of[tracks[k]] = ++count
    for (k = 1; k <= order; k++) if (!(tracks[k] in row_of)) row_of[tracks[k]] = ++count
    for (t in row_of) at_row[row_of[t]] = t
    top = 22
    for (k = 1; k <= count; k++) {
        y[at_row[k]] = top
        top += (deepest[at_row[k]] + 1) * height + 6
    }
}

function print_span(i,    x, w, h) {
    x = margin + (start[i] - from) * scale
    w = spent[i] * scale
    if (w < 0.5) w = 0.5
    h = y[track[i]] + level[i] * height
    printf "<g><title>%s: %.3f us</title><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>", \
        xml(name[i]), spent[i], x, h, w, height - 2, colour(name[i])
    if (w > 40)
        printf "<text x=\"%.2f\" y=\"%d\" fill=\"#fff\">%s</text>", x + 3, h + 12, xml(substr(name[i], 1, int((w - 6) / 6)))
    print "</g>"
}

# Three to seven round steps.
function print_axis(    step, us, x) {
    for (step = 0.001; (to - from) / step > 7; step *= (++turn % 3 == 2 ? 2.5 : 2)) continue
    for (us = 0; us <= to - from; us += step) {
        x = margin + us * scale
        printf "<path d=\"M%.2f 18V%d\" stroke=\"currentColor\" stroke-opacity=\"0.2\"/>", x, top
        printf "<text x=\"%.2f\" y=\"12\" fill=\"currentColor\">%g us</text>\n", x + 2, us
    }
}

END {
    if (n == 0) {
        print "timeline.awk: " FILENAME ": there is no case " want > "/dev/stderr"
        exit 2
    }
    find_rows()
    scale = (width - margin - 4) / (to > from ? to - from : 1)
    open_svg(width, top, title)
    print_axis()
    for (k = 1; k <= count; k++)
        printf "<text x=\"2\" y=\"%d\" fill=\"currentColor\">%s</text>\n", y[at_row[k]] + 12, at_row[k]
    for (i = 1; i <= n; i++) print_span(i)
    print "</svg>"
}
