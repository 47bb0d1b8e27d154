# efficiency.awk - with csv.awk, numbers.awk, counters.awk and plot.awk, from rows whose
# params hold gpus=N and whose counters hold tokens/s (the median over the runs): for each
# case, dtype and mode a panel, a line for each variant and the rest of the params. What is
# drawn is the rate per GPU, as a share of the one with the fewest GPUs. A line of a single
# number of GPUs has nothing to be held against, and is left out.

BEGIN {
    panel_width = 380
    plot_height = 220
}

value("status") == "ok" && param("gpus") > 0 && counter("tokens/s") > 0 {
    gpus = param("gpus") + 0
    rest = " " value("params") " "
    sub(" gpus=" param("gpus") " ", " ", rest)
    gsub(/^ | $/, "", rest)
    line = value("case") " " value("dtype") " " value("mode") "\t" value("variant") (rest == "" ? "" : ", " rest)
    if (!(line in fewest)) { lines[++line_count] = line; fewest[line] = gpus }
    fewest[line] = min(fewest[line], gpus)
    most[line] = max(most[line], gpus)
    id = line "\t" gpus
    if (!(id in count)) ids[++id_count] = id
    values[id, ++count[id]] = counter("tokens/s") / gpus
    device = value("device")
}

function gather(    i, part) {
    sort(lines, line_count)
    for (i = 1; i <= line_count; i++) {
        if (fewest[lines[i]] == most[lines[i]]) continue
        split(lines[i], part, "\t")
        if (!(part[1] in panel_of)) {
            panel_of[part[1]] = ++panels
            panel_name[panels] = part[1]
        }
        name_of[panel_of[part[1]], ++names_in[panel_of[part[1]]]] = part[2]
        line_of[panel_of[part[1]], names_in[panel_of[part[1]]]] = lines[i]
    }
}

# A data block for each line: GPUs, and their rate in per cent of the first's.
function data(p, n,    v, i, part, line) {
    gpus_high = 1
    high = 100
    for (v = 1; v <= n; v++) {
        line = line_of[p, v]
        first = median(line "\t" fewest[line])
        printf "$v%d << EOD\n", v > script
        for (i = 1; i <= id_count; i++) {
            split(ids[i], part, "\t")
            if (part[1] "\t" part[2] != line) continue
            printf "%d %.10g\n", part[3], 100 * median(ids[i]) / first > script
            high = max(high, 100 * median(ids[i]) / first)
            gpus_high = max(gpus_high, part[3] + 0)
        }
        print "EOD" > script
    }
}

function panel(p, left, top,    n, v, y) {
    n = names_in[p]
    for (v = 1; v <= n; v++) names[v] = name_of[p, v]
    data(p, n)
    put(left + 12, top + 16, panel_name[p], "left", "title")
    put(left + 12, top + 34, device, "left", "small")
    for (v = 1; v <= n; v++) put_mark(left + 18, top + 54 + 18 * (v - 1), names[v], v)
    y = top + 54 + 18 * most_names
    put(left + 12, y + 4, "tokens/s per GPU, % of that with the fewest", "left", "text")
    put(left + (62 + panel_width - 18) / 2, y + 18 + plot_height + 36, "GPUs", "center", "text")
    frame(left + 62, y + 18, left + panel_width - 18, y + 18 + plot_height)
    linear_axis("x", gpus_high, "plain", 1)
    linear_axis("y", high, "plain", 1)
    printf "plot 100 with lines lw 2 dt 2 lc rgb '%s' notitle", grey > script
    for (v = 1; v <= n; v++) {
        printf ", $v%d using 1:2 smooth unique with lines lw 1.2 lc rgb '%s' notitle", v, colour(v) > script
        printf ", $v%d using 1:2 with points pt %d ps 0.7 lc rgb '%s' notitle", v, shape(v), colour(v) > script
    }
    print "\nunset label" > script
}

END {
    if (failed) exit 2
    gather()
    if (!panels) { print "no case with tokens/s of two numbers of GPUs (gpus=N)" > "/dev/stderr"; exit 2 }
    for (p = 1; p <= panels; p++) most_names = max(most_names, names_in[p])
    draw_panels(panels, panel_width, 54 + 18 * most_names + plot_height + 72, "efficiency over GPUs, " device)
}
