# size.awk - with numbers.awk and plot.awk, from the lines of points.awk: for each case, dtype,
# options and mode a panel of two plots over the shape's size, one line a variant:
# time, and throughput. The size is operations where there are more than ten a
# byte, else bytes. Parts of a block have a plot of their own (parts.sh).

BEGIN {
    FS = "\t"
    panel_width = 380
    plot_height = 170
}

$8 == "ok" && $2 != "block.part" && ($9 > 0 || $10 > 0) {
    name = $2 " " $3 ($5 == "" ? "" : " " $5) " " $4
    if (!(name in panel_of)) {
        panel_of[name] = ++panels
        panel_name[panels] = name
        heading[panels] = $2 ", " $3 ($5 == "" ? "" : ", " $5)
        mode[panels] = $4
    }
    p = panel_of[name]
    if (!(($1, $7) in suite_variant)) {
        suite_variant[$1, $7] = 1
        if (!($7 in variant_of)) { variant_of[$7] = 1; variants[++variant_count] = $7 }
    }
    if (!((p, $7) in in_panel)) in_panel[p, $7] = 1
    n = ++points[p]
    variant[p, n] = $7
    bytes[p, n] = $9 + 0
    flops[p, n] = $10 + 0
    time[p, n] = $11
    low[p, n] = $12
    high[p, n] = $13
    runs[p] = max(runs[p] + 0, $14)
    if (!(p in least_runs) || $14 < least_runs[p]) least_runs[p] = $14 + 0
    if (flops[p, n] > 10 * bytes[p, n]) by_flops[p] = 1
    if (!((p, $6) in shape_seen)) { shape_seen[p, $6] = 1; shapes_in[p]++; one_shape[p] = $6 }
    device = $16
}

# The panel's variants, in names[] and their places in the palette, in place[].
function names_of(p,    i, n) {
    n = 0
    for (i = 1; i <= variant_count; i++)
        if ((p, variants[i]) in in_panel) { names[++n] = variants[i]; place[n] = i }
    return n
}

function size(p, i) { return by_flops[p] ? flops[p, i] : bytes[p, i] }

# Operations or bytes per second, in the panel's unit.
function rate(p, i, us) { return size(p, i) / us * 1e6 / rate_unit }

function choose_unit(p,    i, best) {
    if (!by_flops[p]) { rate_unit = 1e9; rate_name = "GB/s"; return }
    for (i = 1; i <= points[p]; i++) best = max(best, flops[p, i] / time[p, i] * 1e6)
    rate_unit = best >= 1e12 ? 1e12 : 1e9
    rate_name = best >= 1e12 ? "TFLOP/s" : "GFLOP/s"
}

# A data block for each variant: size, time and range, throughput and range.
# Where all shapes have one size the variants stand side by side instead.
function data(p, n,    v, i) {
    for (v = 1; v <= n; v++) {
        printf "$v%d << EOD\n", v > script
        for (i = 1; i <= points[p]; i++)
            if (variant[p, i] == names[v])
                printf "%.10g %.10g %.10g %.10g %.10g %.10g %.10g\n", alike[p] ? v : size(p, i), time[p, i], \
                       low[p, i], high[p, i], rate(p, i, time[p, i]), rate(p, i, high[p, i]), \
                       rate(p, i, low[p, i]) > script
        print "EOD" > script
    }
}

function extent(p,    i) {
    size_low = time_low = rate_low = 1e300
    size_high = time_high = rate_high = 0
    for (i = 1; i <= points[p]; i++) {
        size_low = min(size_low, size(p, i))
        size_high = max(size_high, size(p, i))
        time_low = min(time_low, low[p, i])
        time_high = max(time_high, high[p, i])
        rate_low = min(rate_low, rate(p, i, high[p, i]))
        rate_high = max(rate_high, rate(p, i, low[p, i]))
    }
    alike[p] = size_low == size_high
}

function size_axis(p, n, labelled) {
    if (alike[p]) printf "unset logscale x\nset xrange [0.3:%g]\nset xtics ('' 1)\n", n + 0.7 > script
    else axis("x", size_low, size_high, !labelled ? "none" : by_flops[p] ? "" : "B", 1)
}

# One plot: for each variant a line through its sizes, the ranges, the medians.
# `y` is the column of the medians; their range is in the two after it.
function lines(n, y,    v, style) {
    printf "plot " > script
    for (v = 1; v <= n; v++) {
        style = sprintf("lw 1.2 lc rgb '%s' notitle", colour(place[v]))
        printf "%s$v%d using 1:%d smooth unique with lines %s, ", (v > 1 ? ", " : ""), v, y, style > script
        printf "$v%d using 1:%d:(0):($%d-$%d) with vectors nohead %s, ", v, y + 1, y + 2, y + 1, style > script
        printf "$v%d using 1:%d with points pt %d ps 0.7 %s", v, y, shape(place[v]), style > script
    }
    print "\nunset label" > script
}

function panel(p, left, top,    n, v, y, rows) {
    n = names_of(p)
    choose_unit(p)
    extent(p)
    data(p, n)
    put(left + 12, top + 16, heading[p], "left", "title")
    put(left + 12, top + 34, device, "left", "small")
    put(left + 12, top + 50, mode[p] ", " made_of(least_runs[p], runs[p]),
        "left", "small")
    rows = lay_legend(names, n, panel_width - 24)
    for (v = 1; v <= n; v++) put_mark(left + 18 + legend_x[v], top + 70 + legend_y[v], names[v], place[v])
    y = top + 70 + 18 * legend_rows
    put(left + 12, y + 4, "time of one execution", "left", "text")
    frame(left + 62, y + 18, left + panel_width - 18, y + 18 + plot_height)
    size_axis(p, n, 0)
    axis("y", time_low, time_high, "s", 1e-6)
    lines(n, 2)
    y += plot_height + 34
    put(left + 12, y + 4, "throughput, " rate_name, "left", "text")
    put_caption(left + panel_width / 2, y + 18 + plot_height + 36, size_caption(p))
    frame(left + 62, y + 18, left + panel_width - 18, y + 18 + plot_height)
    size_axis(p, n, 1)
    axis("y", rate_low, rate_high, "plain", 1)
    lines(n, 5)
}

# In two lines where it is wider than a panel.
function put_caption(px, py, text,    at) {
    for (at = 56; length(text) > 56 && at > 1 && substr(text, at, 1) != " "; at--) continue
    if (length(text) <= 56 || at == 1) {
        put(px, py, text, "center", "text")
        return
    }
    put(px, py, substr(text, 1, at - 1), "center", "small")
    put(px, py + 14, substr(text, at + 1), "center", "small")
}

function size_caption(p) {
    if (shapes_in[p] == 1) return one_shape[p]
    if (alike[p]) return "all shapes: " (by_flops[p] ? si(size_low, "FLOP") : si(size_low, "B"))
    return by_flops[p] ? "operations of the shape, FLOP" : "bytes of the shape"
}

END {
    if (!panels) { print "no case with bytes or operations" > "/dev/stderr"; exit 2 }
    sort(variants, variant_count)
    for (p = 1; p <= panels; p++) legend_rows = max(legend_rows, lay_legend(names, names_of(p), panel_width - 24))
    draw_panels(panels, panel_width, 70 + 18 * legend_rows + 2 * (plot_height + 34) + 44, \
                "time and throughput over size, " device)
}
