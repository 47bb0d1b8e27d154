# history.awk - with csv.awk, numbers.awk and plot.awk, from gpubench-compare --history as CSV: a
# panel for each case that changed, the largest change first: its campaigns from left
# to right with the range of their runs, its levels as lines, and each change with a
# number, below which stand the dates and the revisions before and after it.

BEGIN {
    panel_width = 380
    plot_height = 170
    most_changes = 4
}

{
    id = value("case") SUBSEP value("variant") SUBSEP value("dtype") SUBSEP value("params") SUBSEP value("mode")
    if (!(id in case_of)) {
        case_of[id] = ++cases
        title[cases] = value("case") " " value("variant")
        detail[cases] = value("dtype") " " value("params") ", " value("mode")
    }
    c = case_of[id]
    n = ++points[c]
    metric = value("metric")
    middle[c, n] = number("median")
    best[c, n] = number("best")
    worst[c, n] = number("worst")
    level[c, n] = number("level")
    sitting[c, n] = sitting_text(value("timestamp"), value("git"), value("campaign"))
    lone[c, n] = number("lone")
    day[c, n] = substr(value("timestamp"), 1, 10)
    runs[c] += number("runs")
    ratio = number("cost_change", 1)
    if (ratio == "") next
    change_at[c, ++changes[c]] = n
    change[c, changes[c]] = 100 * (ratio - 1)
    largest[c] = max(largest[c] + 0, ratio < 1 ? 1 / ratio : ratio)
}

# Date, revision and campaign, as far as they are known.
function sitting_text(time, revision, campaign) {
    return (time == "" ? "" : substr(time, 1, 10) ", ") (revision == "" ? "" : revision ", ") campaign
}

function by_size(    c, rank) {
    for (c = 1; c <= cases; c++) {
        if (!(c in changes)) continue
        order[++changed] = c
        rank[c] = -largest[c]
    }
    sort_by(order, changed, rank)
}

function shortened(text, most_letters) {
    return length(text) > most_letters ? substr(text, 1, most_letters - 1) "\342\200\246" : text
}

function extent(c,    i) {
    low = 1e300
    high = -1e300
    for (i = 1; i <= points[c]; i++) {
        low = min(low, min(best[c, i], worst[c, i]))
        high = max(high, max(best[c, i], worst[c, i]))
    }
    low -= (high - low) * 0.08
    high += (high - low) * 0.12
}

# From below the lowest to above the highest: changes are small beside the value.
function value_axis(    step, at, list, tick_text) {
    step = nice_step(high - low, 4)
    for (at = (int(low / step) + 1) * step; at <= high; at += step)
        list = list (list == "" ? "" : ", ") quote(sprintf("%.6g", at)) sprintf(" %.10g", at)
    printf "unset logscale\nset yrange [%.10g:%.10g]\nset ytics (%s)\n", low, high, list > script
}

function data(c,    i) {
    print "$runs << EOD" > script
    for (i = 1; i <= points[c]; i++)
        printf "%d %.10g %.10g %.10g\n", i, middle[c, i], best[c, i], worst[c, i] > script
    print "EOD" > script
}

# A line for each level, from before its first campaign to after its last.
function draw_levels(c,    i, from) {
    from = 1
    for (i = 2; i <= points[c] + 1; i++) {
        if (i <= points[c] && level[c, i] == level[c, from]) continue
        printf "set arrow from %.2f,%.10g to %.2f,%.10g nohead lw 2.5 lc rgb '%s'\n", from - 0.4, level[c, from],
               i - 0.6, level[c, from], colour(1) > script
        from = i
    }
}

# The last campaign of the level in front of a change; one that is alone is of neither.
function before(c, at) {
    for (at--; lone[c, at]; at--) ;
    return at
}

function draw_changes(c, left, y,    k, at) {
    for (k = 1; k <= changes[c]; k++) {
        at = change_at[c, k]
        printf "set arrow from %.2f,graph 0 to %.2f,graph 1 nohead back dt 2 lw 0.8 lc rgb '%s'\n", at - 0.5,
               at - 0.5, colour(6) > script
        printf "set label '%d' at %.2f,graph 0.94 offset character 0.4,0 left front font 'sans-serif:Bold,12'\n",
               k, at - 0.5 > script
        if (k > most_changes) continue
        put(left + 12, y, sprintf("%d: cost %+.1f %%", k, change[c, k]), "left", "text")
        put(left + 24, y + 15, shortened("at " sitting[c, at], 56), "left", "small")
        put(left + 24, y + 30, shortened("after " sitting[c, before(c, at)], 56), "left", "small")
        y += 48
    }
    if (changes[c] > most_changes) put(left + 12, y, "and " changes[c] - most_changes " more", "left", "small")
}

function panel(p, left, top,    c, bottom, right) {
    c = order[p]
    bottom = top + 92 + plot_height
    right = left + panel_width - 18
    extent(c)
    data(c)
    put(left + 12, top + 16, shortened(title[c], 48), "left", "title")
    put(left + 12, top + 34, shortened(detail[c], 60), "left", "small")
    put(left + 12, top + 50, device, "left", "small")
    put(left + 12, top + 78, metric " of " plural(points[c], "campaign") ", " plural(runs[c], "run") \
        ": median and range", "left", "text")
    put(left + 62, bottom + 16, day[c, 1], "left", "small")
    put(right, bottom + 16, day[c, points[c]], "right", "small")
    draw_levels(c)
    draw_changes(c, left, bottom + 40)
    frame(left + 62, top + 92, right, bottom)
    value_axis()
    printf "set xrange [0.4:%g]\nset xtics ('' 1)\nset grid noxtics ytics\n", points[c] + 0.6 > script
    printf "plot $runs using 1:3:(0):($4-$3) with vectors nohead lw 1.2 lc rgb '%s' notitle, ", grey > script
    printf "$runs using 1:2 with points pt 7 ps 0.6 lc rgb '%s' notitle\n", grey > script
    print "unset label\nunset arrow" > script
}

END {
    if (failed) exit 2
    by_size()
    if (!changed) { print "no case changed" > "/dev/stderr"; exit 2 }
    shown = most > 0 ? min(most, changed) : changed
    for (p = 1; p <= shown; p++) {
        panel_name[p] = sprintf("%03d %s %s", p, title[order[p]], detail[order[p]])
        rows = max(rows, min(changes[order[p]], most_changes) + (changes[order[p]] > most_changes) * 0.5)
    }
    draw_panels(shown, panel_width, int(92 + plot_height + 34 + 48 * rows), "history, " device)
}
