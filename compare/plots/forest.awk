# forest.awk - with csv.awk, numbers.awk and plot.awk, from the CSV of gpubench-compare: for each
# case the change with its interval, the margin shaded, the verdict as colour and
# shape. What got slower comes first; `most` (0: all) limits the number of cases.

BEGIN {
    panel_width = 380
    row_height = 50
    split("slower missing not_ok invalid work_changed faster inconclusive same", ranking, " ")
    for (i in ranking) rank_of[ranking[i]] = i
    split("slower faster inconclusive same other", verdicts, " ")
    split("#D55E00 #0072B2 #E69F00 #777777 #8C6BB1", verdict_colours, " ")
    split("9 11 4 7 3", verdict_shapes, " ")
}

{
    ratio = number("ratio", 1)
    n++
    title[n] = value("case") " " value("variant")
    against[n] = value("against") == value("variant") || value("against") == "" ? "" : \
                 " against " value("against")
    detail[n] = value("dtype") " " value("params")
    mode[n] = value("mode")
    verdict[n] = tolower(value("verdict"))
    gsub(/ /, "_", verdict[n])
    judged[n] = ratio != ""
    change[n] = judged[n] ? 100 * (ratio - 1) : 0
    low[n] = number("ratio_low", 1)
    high[n] = number("ratio_high", 1)
    metric = value("metric")
    rank[n] = (verdict[n] in rank_of ? rank_of[verdict[n]] : 7) * 1e6 - (change[n] < 0 ? -change[n] : change[n])
    if (!(mode[n] in seen_mode)) {
        seen_mode[mode[n]] = 1
        mode_list = mode_list (mode_count++ ? ", " : "") mode[n]
    }
}

function sorted(    i) {
    for (i = 1; i <= n; i++) order[i] = i
    sort_by(order, n, rank)
}

function kind(i,    v) {
    for (v = 1; v <= 4; v++)
        if (verdicts[v] == verdict[i]) return v
    return 5
}

# The widest change that the axis shows, percent; farther ones get an arrow.
function reach(    i, k, widest) {
    widest = 2 * margin
    for (k = 1; k <= shown; k++) {
        i = order[k]
        if (!judged[i]) continue
        widest = max(widest, change[i] < 0 ? -change[i] : change[i])
        if (low[i] != "") widest = max(widest, max(100 - 100 * low[i], 100 * high[i] - 100))
    }
    return max(0.1, min(50, widest * 1.06))
}

function clipped(percent) { return max(-limit, min(limit, percent)) }

function change_text(i,    words, text) {
    if (!judged[i]) { words = verdict[i]; gsub(/_/, " ", words); return words }
    text = sprintf("%+.1f %%", change[i])
    return text == "-0.0 %" ? "+0.0 %" : text
}

# Longer names would run into the change; the tool's own tables have them whole.
function shortened(text, most_letters) {
    return length(text) > most_letters ? substr(text, 1, most_letters - 1) "\342\200\246" : text
}

# A case: its name, its shape, and its interval at height -k.
function draw_case(i, k, left, y,    v, from, to) {
    v = kind(i)
    put(left + 12, y, shortened(title[i] against[i], 45), "left", "text")
    put(left + 12, y + 15, detail[i] (mode_count > 1 ? ", " mode[i] : ""), "left", "small")
    printf "set label %s at screen %s,%s right front font 'sans-serif:Bold,12'\n",
           quote(change_text(i)), across(left + panel_width - 12), down(y) > script
    if (!judged[i]) return
    if (low[i] != "") {
        from = clipped(100 * low[i] - 100)
        to = clipped(100 * high[i] - 100)
        printf "set arrow from %.6g,%d to %.6g,%d nohead lw 2 lc rgb '%s'\n", from, -k, to, -k,
               verdict_colours[v] > script
    }
    if (change[i] != clipped(change[i]))
        printf "set arrow from %.6g,%d to %.6g,%d head filled size screen 0.015,20 lw 2 lc rgb '%s'\n",
               clipped(change[i]) * 0.94, -k, clipped(change[i]), -k, verdict_colours[v] > script
    printf "set label '' at %.6g,%d point pt %d ps 0.8 lc rgb '%s' front\n", clipped(change[i]), -k,
           verdict_shapes[v], verdict_colours[v] > script
}

function legend(left, y,    v, x) {
    x = 0
    for (v = 1; v <= 5; v++) {
        if (!(verdicts[v] in present)) continue
        printf "set label '%s' at screen %s,%s left point pt %d ps 0.8 lc rgb '%s' offset character 1,-0.3\n",
               verdicts[v], across(left + 18 + x), down(y), verdict_shapes[v], verdict_colours[v] > script
        x += 25 + 6.7 * length(verdicts[v])
    }
}

function shown_text() {
    return shown < n ? "the first " shown " of " plural(n, "case") ", slower first" : plural(n, "case")
}

function panel(p, left, top,    k, y, first) {
    limit = reach()
    put(left + 12, top + 16, "change of " metric, "left", "title")
    put(left + 12, top + 34, (device == "" ? "" : device ", ") mode_list, "left", "small")
    put(left + 12, top + 50, "current against baseline; margin " margin " % shaded", "left", "small")
    put(left + 12, top + 66, shown_text(), "left", "small")
    legend(left, top + 86)
    first = top + 112
    for (k = 1; k <= shown; k++) draw_case(order[k], k, left, first + (k - 1) * row_height)
    y = first + shown * row_height
    put(left + panel_width / 2, y + 26, "change, %", "center", "text")
    frame(left + 18, first - 14, left + panel_width - 18, y - 10)
    printf "set xrange [%.6g:%.6g]\nset yrange [%.6g:%.6g]\n", -limit, limit, -shown - 0.2,
           -shown - 0.2 + (y - first + 4) / row_height > script
    printf "set object rectangle from %.6g,graph 0 to %.6g,graph 1 behind fc rgb '#c8808080' fs solid 1 noborder\n",
           -margin, margin > script
    print "set arrow from 0,graph 0 to 0,graph 1 nohead back lw 0.7 lc rgb '" grey "'" > script
    printf "set border 1\nunset ytics\nset grid noxtics noytics\nset xtics %.6g\nset format x '%%+g'\n",
           nice_step(limit, 2) > script
    print "plot -1e9 notitle\nunset label\nunset object\nunset arrow" > script
}

END {
    if (failed) exit 2
    if (!n) { print "no case" > "/dev/stderr"; exit 2 }
    sorted()
    shown = most > 0 ? min(most, n) : n
    for (k = 1; k <= shown; k++) present[verdicts[kind(order[k])]] = 1
    panel_name[1] = "forest"
    draw_panels(1, panel_width, 112 + shown * row_height + 42, "change of " metric ", current against baseline")
}
