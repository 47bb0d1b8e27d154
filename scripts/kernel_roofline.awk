# kernel_roofline.awk - with compare/csv.awk and svg.awk: kernels on the roofline of the
# measured ceilings, as an SVG. Reads the rows of the ceilings suite and a --kernels-csv file:
# the kernels that do all of their case's work, which is known as a whole only.

function log10(x) { return log(x) / log(10) }

"median_us" in column {
    if (value("status") != "ok") next
    if (value("case") ~ /^bandwidth\./ && number("gb_per_s", 1) > bandwidth) bandwidth = number("gb_per_s", 1)
    if (value("case") == "gemm.nn" && number("tflop_per_s", 1) > peak[value("dtype")])
        peak[value("dtype")] = number("tflop_per_s", 1)
    next
}

value("kind") == "kernel" && value("gb_per_s") != "" && value("tflop_per_s") != "" {
    rate = number("tflop_per_s")
    intensity = rate * 1000 / number("gb_per_s")
    n++
    x[n] = intensity
    y[n] = rate
    name[n] = value("name")
    of[n] = joined("case variant dtype params")
    dtype[n] = value("dtype")
    if (n == 1 || intensity < least_x) least_x = intensity
    if (intensity > most_x) most_x = intensity
    if (n == 1 || rate < least_y) least_y = rate
    used[dtype[n]] = 1
}

function at_x(what) { return 60 + 900 * (log10(what) - low_x) / (high_x - low_x) }
function at_y(what) { return 330 - 310 * (log10(what) - low_y) / (high_y - low_y) }

function floor(what) { return what >= 0 ? int(what) : -int(-what) - (what != int(what)) }

function find_range(    d) {
    most_y = bandwidth * most_x / 1000
    for (d in peak) {
        if (!(d in used)) continue
        if (peak[d] > most_y) most_y = peak[d]
        if (1000 * peak[d] / bandwidth > most_x) most_x = 1000 * peak[d] / bandwidth
    }
    low_x = floor(log10(least_x))
    high_x = floor(log10(most_x)) + 1
    if (bandwidth * 10 ^ low_x / 1000 < least_y) least_y = bandwidth * 10 ^ low_x / 1000
    low_y = floor(log10(least_y))
    high_y = floor(log10(most_y)) + 1
}

function draw_roof(d,    ridge, roof) {
    ridge = 1000 * peak[d] / bandwidth
    roof = at_y(peak[d])
    printf "<path d=\"M%.2f %.2fL%.2f %.2fH960\" fill=\"none\" stroke=\"%s\"/>\n", at_x(10 ^ low_x), \
        at_y(bandwidth * 10 ^ low_x / 1000), at_x(ridge), roof, colour(d)
    label(956, roof - 4, sprintf("%s: %.0f TFLOP/s", d, peak[d]), " text-anchor=\"end\"")
}

END {
    if (failed) exit 2
    if (!n || !bandwidth) exit 2
    find_range()
    open_svg(1000, 370, "kernels on the measured roofline")
    for (power = low_x; power <= high_x; power++) {
        printf "<path d=\"M%.2f 20V330\" stroke=\"currentColor\" stroke-opacity=\"0.2\"/>", at_x(10 ^ power)
        label(at_x(10 ^ power), 344, sprintf("%g", 10 ^ power), " text-anchor=\"middle\"")
    }
    for (power = low_y; power <= high_y; power++) {
        printf "<path d=\"M60 %.2fH960\" stroke=\"currentColor\" stroke-opacity=\"0.2\"/>", at_y(10 ^ power)
        label(56, at_y(10 ^ power) + 4, sprintf("%g", 10 ^ power), " text-anchor=\"end\"")
    }
    label(510, 362, sprintf("operations per byte; the slope is %.0f GB/s; upwards TFLOP/s", bandwidth), " text-anchor=\"middle\"")
    for (d in peak) if (d in used) draw_roof(d)
    for (i = 1; i <= n; i++)
        printf "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3.5\" fill=\"%s\"><title>%s (%s): %.2f TFLOP/s, %.2f operations a byte</title></circle>\n", \
            at_x(x[i]), at_y(y[i]), colour(dtype[i]), xml(name[i]), xml(of[i]), y[i], x[i]
    print "</svg>"
}
