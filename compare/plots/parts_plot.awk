# parts_plot.awk - with plot.awk and parts.awk: for each pass, dtype and shape of a block a
# panel with its parts as a stack beside the whole. Each part is named beside its segment,
# so that no colour has to be matched.

BEGIN {
    panel_width = 380
    plot_height = 300
}

# Segments as rectangles, with a hair between them that any background fills.
function segment(left, bottom, right, top, fill) {
    printf "set object rectangle from %s,%.10g to %s,%.10g fc rgb '%s' fs solid 1 noborder\n", left,
           bottom + highest / 400, right, top - highest / 400, fill > script
}

# Heights of the parts' names: at the middle of their segments, then apart.
function spread(p,    i, below, least) {
    least = 16 * highest / plot_height
    below = 0
    for (i = 1; i <= parts[p]; i++) {
        height[i] = max(below + time[p, i] / 2, i > 1 ? height[i - 1] + least : 0)
        below += time[p, i]
    }
    for (i = parts[p]; i >= 1; i--)
        height[i] = min(height[i], i < parts[p] ? height[i + 1] - least : highest - least / 2)
}

function microseconds(us) { return show(us) " \302\265s" }

# Text inside the plot, at its own coordinates: 0 to 10 across, time upwards.
function put_at(x, us, text, style) {
    printf "set label %s at %s,%.10g %s noenhanced front font 'sans-serif,11'\n", quote(text), x, us, style > script
}

function bars(p,    i, below, total) {
    total = whole[p]
    if (total) {
        segment(0.2, 0, 1.5, total, grey)
        put_at(0.85, total + highest * 0.025, microseconds(total), "center")
    }
    spread(p)
    below = 0
    for (i = 1; i <= parts[p]; i++) {
        segment(1.9, below, 3.4, below + time[p, i], colour(place[part_name[p, i]]))
        printf "set arrow from 3.45,%.10g to 3.95,%.10g nohead lc rgb '%s' lw 0.7\n", below + time[p, i] / 2,
               height[i], grey > script
        put_at(4.05, height[i], part_name[p, i], "left")
        put_at(10, height[i], sprintf("%s  %2.0f %%", microseconds(time[p, i]), 100 * time[p, i] / sum[p]), "right")
        below += time[p, i]
    }
    put_at(2.65, sum[p] + highest * 0.025, microseconds(sum[p]), "center")
}

function panel(p, left, top) {
    highest = max(sum[p], whole[p]) * 1.08
    put(left + 12, top + 16, heading[p] ", " dtype[p], "left", "title")
    put(left + 12, top + 34, shape_of[p], "left", "text")
    put(left + 12, top + 52, device, "left", "small")
    put(left + 12, top + 68, mode[p] ", variant " variant[p] ", " \
        (runs[p] > 1 ? "medians of " plural(runs[p], "run") : "one run"), "left", "small")
    frame(left + 62, top + 86, left + panel_width - 12, top + 86 + plot_height)
    linear_axis("y", highest / 1.08, "s", 1e-6)
    bars(p)
    print "set yrange [0:" highest "]\nset xrange [0:10]\nset border 2\nunset logscale x" > script
    print "set xtics ('whole' 0.85, 'parts' 2.65)\nset grid noxtics noytics" > script
    print "plot -1 notitle\nunset label\nunset object\nunset arrow" > script
}

END {
    if (!groups) { print "no parts of a block" > "/dev/stderr"; exit 2 }
    for (p = 1; p <= groups; p++) {
        panel_name[p] = pass[p] " " dtype[p] " " shape_of[p] " " mode[p]
        for (i = 1; i <= parts[p]; i++)
            if (!(part_name[p, i] in place)) place[part_name[p, i]] = ++places
    }
    draw_panels(groups, panel_width, 86 + plot_height + 34, "parts beside the whole, " device)
}
