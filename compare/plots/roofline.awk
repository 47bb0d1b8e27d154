# roofline.awk - with plot.awk, from the lines of points.awk, first those of the
# ceilings: for each dtype a panel of operations per byte against TFLOP/s, a point
# for the fastest variant of each case and shape. The slope is the best median of
# all bandwidth.* rows, the flat part the best of gemm.nn in this dtype. Rows that
# fit a cache show no memory's bandwidth and are left out of it.

BEGIN {
    FS = "\t"
    panel_width = 380
    plot_height = 270
}

$8 != "ok" { next }

reading == "ceilings" && $2 ~ /^bandwidth\./ && $15 !~ /fits-l2|above-peak/ {
    rate = $9 / $11 * 1e6
    if (rate > bandwidth) { bandwidth = rate; bandwidth_name = $2 " " $7 " " $3 ", " $4 }
}

reading == "ceilings" && $2 == "gemm.nn" && $15 !~ /above-peak/ {
    rate = $10 / $11 * 1e6
    if (rate > roof[$3]) { roof[$3] = rate; roof_name[$3] = $2 " " $7 " " $3 ", " $4 }
}

reading == "ceilings" { ceilings_device = $16; next }

$9 > 0 && $10 > 0 && $2 !~ /^(block\.part|gemm\.nn|bandwidth\..*)$/ {
    if ($16 != ceilings_device) {
        print "the ceilings are those of '" ceilings_device "', the results of '" $16 "'" > "/dev/stderr"
        failed = 1
        exit 2
    }
    device = $16
    id = $3 "\t" $4 "\t" $2 "\t" $6
    if (!(id in fastest)) { ids[++id_count] = id; suite[id] = $1 }
    if (!(id in fastest) || $11 < fastest[id]) {
        fastest[id] = $11
        flops[id] = $10
        bytes[id] = $9
    }
    if (!($2 in case_seen)) { case_seen[$2] = 1; case_count++ }
}

# Colours tell cases apart, or suites where there are too many cases.
function group_of(id,    part) {
    split(id, part, "\t")
    return case_count > 8 ? suite[id] : part[3]
}

function gather(    i, part, name, g) {
    for (i = 1; i <= id_count; i++) {
        split(ids[i], part, "\t")
        name = part[1] " " part[2]
        if (!(name in panel_of)) {
            panel_of[name] = ++panels
            panel_name[panels] = name
            dtype[panels] = part[1]
            mode[panels] = part[2]
        }
        panel_at[i] = panel_of[name]
        g = group_of(ids[i])
        if (!(g in group_number)) { group_number[g] = ++groups; group_name[groups] = g }
        group_at[i] = group_number[g]
        in_panel[panel_at[i], group_at[i]] = 1
    }
}

function intensity(i) { return flops[ids[i]] / bytes[ids[i]] }
function reached(i) { return flops[ids[i]] / fastest[ids[i]] / 1e6 }

function names_in(p,    g, n) {
    n = 0
    for (g = 1; g <= groups; g++)
        if ((p, g) in in_panel) { names[++n] = group_name[g]; place[n] = g }
    return n
}

function extent(p,    i, top) {
    x_low = y_low = 1e300
    x_high = y_high = 0
    for (i = 1; i <= id_count; i++) {
        if (panel_at[i] != p) continue
        x_low = min(x_low, intensity(i)); x_high = max(x_high, intensity(i))
        y_low = min(y_low, reached(i)); y_high = max(y_high, reached(i))
    }
    top = roof[dtype[p]]
    if (top && bandwidth) {
        x_low = min(x_low, top / bandwidth / 10)
        x_high = max(x_high, 3 * top / bandwidth)
    }
    x_high = max(x_high, 10 * x_low)
    if (top) y_high = max(y_high, top / 1e12)
    y_low = min(y_low, y_high / 10)
}

function ceiling(x, top) {
    if (!bandwidth) return top / 1e12
    return (top ? min(top, x * bandwidth) : x * bandwidth) / 1e12
}

function put_point(x, top) { printf "%.10g %.10g\n", x, ceiling(x, top) > script }

function data(p, n,    i, g, top) {
    top = roof[dtype[p]]
    print "$ceiling << EOD" > script
    put_point(x_low / 10, top)
    if (top && bandwidth) put_point(top / bandwidth, top)
    put_point(x_high * 10, top)
    print "EOD" > script
    for (g = 1; g <= n; g++) {
        printf "$v%d << EOD\n", g > script
        for (i = 1; i <= id_count; i++)
            if (panel_at[i] == p && group_at[i] == place[g])
                printf "%.10g %.10g\n", intensity(i), reached(i) > script
        print "EOD" > script
    }
}

function rate_text(per_second, unit) {
    return sprintf("%.4g %s", per_second / (unit == "GB/s" ? 1e9 : 1e12), unit)
}

# What the two ceilings are, in words.
function put_ceilings(p, left, y,    top) {
    top = roof[dtype[p]]
    put(left + 12, y, bandwidth ? "slope: " rate_text(bandwidth, "GB/s") ", " bandwidth_name : \
        "no slope: the ceilings have no bandwidth row", "left", "small")
    put(left + 12, y + 16, top ? "flat: " rate_text(top, "TFLOP/s") ", " roof_name[dtype[p]] : \
        "no flat part: the ceilings have no gemm.nn in " dtype[p], "left", "small")
}

function panel(p, left, top,    n, g, y, drawn) {
    n = names_in(p)
    extent(p)
    data(p, n)
    put(left + 12, top + 16, "roofline, " dtype[p], "left", "title")
    put(left + 12, top + 34, device, "left", "small")
    put(left + 12, top + 50, mode[p] ", the fastest variant of each case and shape", "left", "small")
    lay_legend(names, n, panel_width - 24)
    for (g = 1; g <= n; g++) put_mark(left + 18 + legend_x[g], top + 70 + legend_y[g], names[g], place[g])
    y = top + 70 + 18 * legend_rows
    put_ceilings(p, left, y)
    y += 38
    put(left + 12, y, "TFLOP/s", "left", "text")
    put(left + (62 + panel_width - 18) / 2, y + 14 + plot_height + 36, "operations per byte, FLOP/B", "center", "text")
    frame(left + 62, y + 14, left + panel_width - 18, y + 14 + plot_height)
    log_axis("x", x_low, x_high, "plain", 1)
    log_axis("y", y_low, y_high * 1.3, "plain", 1)
    drawn = bandwidth || roof[dtype[p]]
    printf "plot " (drawn ? "$ceiling using 1:2 with lines lw 2 lc rgb '" grey "' notitle" : "") > script
    for (g = 1; g <= n; g++)
        printf "%s$v%d using 1:2 with points pt %d ps 0.7 lc rgb '%s' notitle", (drawn || g > 1 ? ", " : ""), g,
               shape(place[g]), colour(place[g]) > script
    print "\nunset label" > script
}

END {
    if (failed) exit 2
    if (!bandwidth && !roof_count()) {
        print "the ceilings have neither a bandwidth nor a gemm.nn row" > "/dev/stderr"
        exit 2
    }
    if (!id_count) { print "no row with both bytes and operations" > "/dev/stderr"; exit 2 }
    gather()
    for (p = 1; p <= panels; p++) legend_rows = max(legend_rows, lay_legend(names, names_in(p), panel_width - 24))
    draw_panels(panels, panel_width, 70 + 18 * legend_rows + 38 + 14 + plot_height + 52, "roofline, " device)
}

function roof_count(    key, n) {
    for (key in roof) if (roof[key]) n++
    return n
}
