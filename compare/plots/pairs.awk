# pairs.awk - with csv.awk, numbers.awk, counters.awk and plot.awk, from the rows of
# memcpy.peer: for each variant, size and mode a matrix of GB/s, the median over the runs,
# from the GPU of the row to the GPU of the column. The colour is the rate's share of the
# largest in all panels. A pair that was not measured stays empty.

BEGIN {
    cell_width = 58
    cell_height = 30
}

value("case") == "memcpy.peer" && value("status") == "ok" && counter("from") != "" {
    name = value("variant") " " param("bytes") " " value("mode")
    if (!(name in panel_of)) {
        panel_of[name] = ++panels
        panel_name[panels] = name
        heading[panels] = value("variant") ", " si(param("bytes") + 0, "B")
        mode[panels] = value("mode")
    }
    id = panel_of[name] " " counter("from") " " counter("to")
    values[id, ++count[id]] = number("gb_per_s")
    gpus = max(gpus, max(counter("from"), counter("to")) + 1)
    device = value("device")
}

# From white to blue, as a colour of gnuplot.
function shade(share) {
    return sprintf("#%02X%02X%02X", 255 - 255 * share, 255 - 141 * share, 255 - 77 * share)
}

function cell(p, from, to, left, top,    id, rate) {
    id = p " " from " " to
    if (!(id in count)) return
    rate = median(id)
    printf "set object rectangle from screen %s,%s to screen %s,%s behind fc rgb '%s' fs solid noborder\n", \
           across(left), down(top), across(left + cell_width - 2), down(top + cell_height - 2), \
           shade(rate / largest) > script
    put(left + cell_width / 2 - 1, top + cell_height / 2, sprintf("%.4g", rate), \
        "center textcolor rgb '" (rate > 0.55 * largest ? "#ffffff" : "#111111") "'", "text")
}

function panel(i, left, top,    p, from, to, y) {
    p = panel_of[panel_name[i]]
    put(left + 12, top + 16, heading[p], "left", "title")
    put(left + 12, top + 34, device, "left", "small")
    put(left + 12, top + 50, mode[p] ", GB/s from GPU (row) to GPU (column)", "left", "small")
    for (from = 0; from < gpus; from++) {
        y = top + 84 + from * cell_height
        put(left + 24, y + cell_height / 2, from "", "center", "text")
        put(left + 40 + (from + 0.5) * cell_width, top + 72, from "", "center", "text")
        for (to = 0; to < gpus; to++) cell(p, from, to, left + 40 + to * cell_width, y)
    }
    frame(left + 40, top + 84, left + 40 + gpus * cell_width, top + 84 + gpus * cell_height)
    print "unset border\nunset tics\nunset grid\nplot [0:1] [0:1] 2 notitle\nunset label\nunset object" > script
}

END {
    if (failed) exit 2
    if (!panels) { print "no row of memcpy.peer that is ok and says from which GPU to which" > "/dev/stderr"; exit 2 }
    for (id in count) largest = max(largest, median(id))
    sort(panel_name, panels)
    draw_panels(panels, max(300, 60 + gpus * cell_width), 100 + gpus * cell_height, \
                "copies between GPUs, " device)
}
