# memory_plot.awk - with compare/csv.awk and svg.awk: a --memory-csv file as an SVG, a bar for
# each case and for what each change would make of it, cut by category, over MiB; and with
# -v over=time the first case's memory as it was taken, over the setup's microseconds. At most
# 24 bars: the rest is counted.

function mib(bytes) { return bytes / 1048576 }

{
    key = joined("case variant dtype params") (value("change") == "" ? "" : " if " value("change"))
    if (!(key in bar)) {
        bar[key] = ++bars
        name[bars] = key
    }
    b = bar[key]
    category = value("category")
    if (!((b, category) in bytes)) cut_of[b, ++cuts[b]] = category
    if (!(category in known)) {
        known[category] = ++category_count
        categories[category_count] = category
    }
    bytes[b, category] += number("bytes")
    whole[b] += number("bytes")
    if (whole[b] > most) most = whole[b]
    if (b == 1) {
        parts++
        part_at[parts] = number("at_us", 1) + 0
        part_bytes[parts] = number("bytes")
        part_category[parts] = category
    }
}

# By their order, turned by the golden angle: neighbours are far apart.
function hue(category) { return "hsl(" known[category] * 137 % 360 " 55% 50%)" }

function round_step(range,    step, turn) {
    for (step = 1e-6; range / step > 7; step *= (turn++ % 3 == 1 ? 2.5 : 2)) continue
    return step
}

function legend(y,    i, x) {
    for (i = 1; i <= category_count; i++) {
        x = 10 + (i - 1) % 6 * 160
        if (i > 1 && (i - 1) % 6 == 0) y += 16
        printf "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/>", x, y - 9, hue(categories[i])
        label(x + 14, y, categories[i])
    }
    return y
}

function draw_bars(    shown, b, i, x, w, y, step, at, top) {
    shown = bars > 24 ? 24 : bars
    top = 24 + 16 * int((category_count + 5) / 6)
    open_svg(1000, top + 34 * shown + 24, "memory by category")
    legend(16)
    step = round_step(mib(most))
    for (at = 0; at <= mib(most); at += step) {
        x = 10 + 880 * at / mib(most)
        printf "<path d=\"M%.2f %dV%d\" stroke=\"currentColor\" stroke-opacity=\"0.2\"/>", x, top, top + 34 * shown
        label(x + 2, top + 34 * shown + 12, sprintf("%g MiB", at))
    }
    for (b = 1; b <= shown; b++) {
        y = top + 34 * (b - 1)
        label(10, y + 11, name[b])
        x = 10
        for (i = 1; i <= cuts[b]; i++) {
            w = 880 * bytes[b, cut_of[b, i]] / most
            printf "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"14\" fill=\"%s\"><title>%s: %.2f MiB</title></rect>", \
                x, y + 15, w, hue(cut_of[b, i]), xml(cut_of[b, i]), mib(bytes[b, cut_of[b, i]])
            x += w
        }
        label(x + 4, y + 26, sprintf("%.2f MiB", mib(whole[b])))
    }
    if (bars > shown) label(896, top + 34 * shown + 12, "and " bars - shown " more")
    print "</svg>"
}

# By when they came; what came together stays in the file's order.
function sort_parts(    i, j, at, size, category) {
    for (i = 2; i <= parts; i++) {
        at = part_at[i]; size = part_bytes[i]; category = part_category[i]
        for (j = i - 1; j >= 1 && part_at[j] > at; j--) {
            part_at[j + 1] = part_at[j]; part_bytes[j + 1] = part_bytes[j]; part_category[j + 1] = part_category[j]
        }
        part_at[j + 1] = at; part_bytes[j + 1] = size; part_category[j + 1] = category
    }
}

# Areas over each other, each from when its part was there to the end.
function draw_over_time(    i, x, h, under, last, top) {
    sort_parts()
    top = 24 + 16 * int((category_count + 5) / 6)
    last = part_at[parts] * 1.1
    open_svg(1000, top + 230, name[1] ": memory over setup")
    legend(16)
    for (i = 1; i <= parts; i++) {
        x = 10 + (last > 0 ? 880 * part_at[i] / last : 0)
        h = 200 * part_bytes[i] / whole[1]
        under += h
        printf "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>%s: %.3f MiB from %.1f us on</title></rect>\n", \
            x, top + 200 - under, 890 - x, h, hue(part_category[i]), xml(part_category[i]), mib(part_bytes[i]), part_at[i]
    }
    label(10, top + 214, "0 us")
    label(890, top + 214, sprintf("%.0f us", last), " text-anchor=\"end\"")
    label(896, top + 10, sprintf("%.2f MiB", mib(whole[1])))
    print "</svg>"
}

END {
    if (failed) exit 2
    if (!bars) {
        print "memory_plot: no case there" > "/dev/stderr"
        exit 2
    }
    if (over == "time") draw_over_time()
    else draw_bars()
}
