# collective.awk - with csv.awk, numbers.awk, counters.awk and plot.awk, from the rows of
# the collective suite: for each collective, dtype and mode the bus bandwidth (its counter
# busB/s, the median over the runs) over the bytes of the array, a line for each variant
# and number of ranks. With reading=limit before a file of the memcpy suite, the fastest
# median of memcpy.peer is the link's limit, a grey line.

BEGIN {
    panel_width = 380
    plot_height = 220
}

reading == "limit" {
    if (value("case") == "memcpy.peer" && value("status") == "ok") {
        id = "limit " value("variant") " " value("params") " " value("mode") " " value("counters")
        values[id, ++count[id]] = number("gb_per_s")
        of_limit[id] = value("variant")
        limit_device = value("device")
    }
    next
}

value("case") ~ /^collective\./ && value("status") == "ok" && counter("busB/s") != "" {
    name = value("case") " " value("dtype") " " value("mode")
    if (!(name in panel_of)) {
        panel_of[name] = ++panels
        panel_name[panels] = name
        heading[panels] = substr(value("case"), 12) ", " value("dtype")
        mode[panels] = value("mode")
    }
    line = value("variant") ", " plural(param("n"), "rank")
    if (!(line in line_of)) { line_of[line] = 1; lines_of_all[++line_count] = line }
    in_panel[panel_of[name], line] = 1
    id = panel_of[name] "\t" line "\t" number("bytes")
    if (!(id in count)) ids[++id_count] = id
    values[id, ++count[id]] = counter("busB/s") / 1e9
    device = value("device")
}

function find_limit(    id) {
    for (id in of_limit)
        if (median(id) > limit) { limit = median(id); limit_name = of_limit[id] }
}

# The panel's lines, in names[] and their places in the palette, in place[].
function names_of(p,    i, n) {
    for (i = 1; i <= line_count; i++)
        if ((p, lines_of_all[i]) in in_panel) { names[++n] = lines_of_all[i]; place[n] = i }
    return n
}

# A data block for each line: bytes, median, lowest, highest.
function data(p, n,    v, i, part, middle) {
    size_low = rate_low = 1e300
    size_high = rate_high = 0
    for (v = 1; v <= n; v++) {
        printf "$v%d << EOD\n", v > script
        for (i = 1; i <= id_count; i++) {
            split(ids[i], part, "\t")
            if (part[1] != p || part[2] != names[v]) continue
            middle = median(ids[i])
            printf "%.10g %.10g %.10g %.10g\n", part[3], middle, lowest, highest > script
            size_low = min(size_low, part[3] + 0); size_high = max(size_high, part[3] + 0)
            rate_low = min(rate_low, lowest); rate_high = max(rate_high, highest)
        }
        print "EOD" > script
    }
    if (limit) rate_high = max(rate_high, limit)
}

function plot_lines(n,    v, style) {
    printf "plot " (limit ? sprintf("%.10g with lines lw 2 dt 2 lc rgb '%s' notitle, ", limit, grey) : "") > script
    for (v = 1; v <= n; v++) {
        style = sprintf("lw 1.2 lc rgb '%s' notitle", colour(place[v]))
        printf "%s$v%d using 1:2 smooth unique with lines %s, ", (v > 1 ? ", " : ""), v, style > script
        printf "$v%d using 1:3:(0):($4-$3) with vectors nohead %s, ", v, style > script
        printf "$v%d using 1:2 with points pt %d ps 0.7 %s", v, shape(place[v]), style > script
    }
    print "\nunset label" > script
}

function panel(i, left, top,    p, n, v, y) {
    p = panel_of[panel_name[i]]
    n = names_of(p)
    data(p, n)
    put(left + 12, top + 16, heading[p], "left", "title")
    put(left + 12, top + 34, device, "left", "small")
    put(left + 12, top + 50, mode[p] ", " made_of(least_runs, runs) \
        (limit ? "; dashed: one " limit_name " copy, " sprintf("%.4g", limit) " GB/s" : ""), "left", "small")
    lay_legend(names, n, panel_width - 24)
    for (v = 1; v <= n; v++) put_mark(left + 18 + legend_x[v], top + 70 + legend_y[v], names[v], place[v])
    y = top + 70 + 18 * legend_rows
    put(left + 12, y + 4, "bus bandwidth, GB/s", "left", "text")
    put(left + (62 + panel_width - 18) / 2, y + 18 + plot_height + 36, "bytes of the array", "center", "text")
    frame(left + 62, y + 18, left + panel_width - 18, y + 18 + plot_height)
    axis("x", size_low, size_high, "B", 1)
    axis("y", rate_low, rate_high, "plain", 1)
    plot_lines(n)
}

END {
    if (failed) exit 2
    if (!panels) { print "no collective with a bus bandwidth (two ranks or more)" > "/dev/stderr"; exit 2 }
    find_limit()
    if (limit && limit_device != device)
        fail("the copies are those of '" limit_device "', the collectives of '" device "'")
    sort(panel_name, panels)
    sort(lines_of_all, line_count)
    for (i = 1; i <= id_count; i++) {
        runs = max(runs, count[ids[i]])
        if (i == 1 || count[ids[i]] < least_runs) least_runs = count[ids[i]]
    }
    for (p = 1; p <= panels; p++) legend_rows = max(legend_rows, lay_legend(names, names_of(p), panel_width - 24))
    draw_panels(panels, panel_width, 70 + 18 * legend_rows + plot_height + 72, \
                "bus bandwidth of collectives, " device)
}
