# plot.awk - what the plots' awk programs share: they print gnuplot scripts, and
# place what they draw by pixels from the top left corner, because gnuplot's own
# layout lets long names overlap.
#
# -v folder=DIR   where the scripts go, one for each picture
# -v each=1       a picture for each panel, instead of one with all of them

function min(a, b) { return a < b ? a : b }
function max(a, b) { return a > b ? a : b }

# Okabe and Ito's colours (2008) without yellow and black, which vanish on a light
# or a dark background; then darker ones of other hues.
BEGIN {
    palette_size = split("#0072B2 #E69F00 #009E73 #CC79A7 #56B4E9 #D55E00 #8C6BB1 #8C6D31 " \
                         "#4D9221 #7F7F7F #C51B7D #35978F #B35806 #6A7FDB", palette, " ")
    shape_count = split("7 5 9 11 13 6 4 8 10 12", shapes, " ")
    grey = "#777777"
}

function colour(i) { return palette[(i - 1) % palette_size + 1] }
function shape(i) { return shapes[(i - 1) % shape_count + 1] }

# A string of gnuplot, in which nothing of a stranger's name is obeyed: not even doubled
# does gnuplot keep every quote inside.
function quote(text) {
    gsub(/'/, "\342\200\231", text)
    return "'" text "'"
}

# A name for a file: letters, digits, dots, dashes and underscores.
function file_name(text) {
    gsub(/[^A-Za-z0-9._-]+/, "-", text)
    sub(/-+$/, "", text)
    return text
}

# Starts a picture's script. draw.sh sets `format` and `target`.
function begin_picture(name, title, width, height) {
    script = folder "/" name ".gp"
    picture_width = width
    picture_height = height
    print "# " title > script
    print "set encoding utf8" > script
    printf "if (format eq 'svg') set terminal svg size %d,%d fixed noenhanced font 'sans-serif,12'\n", \
           width, height > script
    printf "if (format eq 'png') set terminal pngcairo size %d,%d noenhanced font 'sans,12' " \
           "fontscale 1.5 linewidth 2 pointscale 2 background '#ffffff'\n", 2 * width, 2 * height > script
    print "set output target\nset multiplot\nunset key\nset errorbars 0" > script
    print "set border 3 lc rgb '" grey "'\nset tics nomirror scale 0.4 textcolor rgb 'black'" > script
    print "set grid lt 1 lc rgb '#b0808080' lw 0.5" > script
}

function end_picture() {
    print "unset multiplot" > script
    close(script)
}

function across(px) { return sprintf("%.5f", px / picture_width) }
function down(px) { return sprintf("%.5f", 1 - px / picture_height) }

# Text (style: "left", "center" or "right", then more of gnuplot's label options)
# in one of three sizes: title (smaller where it would be wider than a panel), text, small.
function put(px, py, text, style, size) {
    printf "set label %s at screen %s,%s %s %s noenhanced front\n", quote(text), across(px), down(py),
           style, (size == "title" ? "font 'sans-serif:Bold," (length(text) > 44 ? 11 : 13) "'" : size == "small" ? \
           "font 'sans-serif,11' textcolor rgb '" grey "'" : "font 'sans-serif,12'") > script
}

# A legend's entry: the mark, then the name.
function put_mark(px, py, name, i) {
    printf "set label %s at screen %s,%s left point pt %d ps 0.8 lc rgb '%s' offset character 1,-0.3 " \
           "noenhanced font 'sans-serif,12'\n", quote(name), across(px), down(py), shape(i), colour(i) > script
}

# Where the next plot's axes go.
function frame(left, top, right, bottom) {
    printf "set lmargin at screen %s\nset rmargin at screen %s\n", across(left), across(right) > script
    printf "set tmargin at screen %s\nset bmargin at screen %s\n", down(top), down(bottom) > script
}

# Entries of a legend in rows: where each goes (legend_x, legend_y) from a corner.
# Returns the number of rows.
function lay_legend(names, n, width,    i, x, row, need) {
    x = 0
    row = 0
    for (i = 1; i <= n; i++) {
        need = 34 + 7.2 * length(names[i])
        if (x > 0 && x + need > width) { x = 0; row++ }
        legend_x[i] = x
        legend_y[i] = 18 * row
        x += need
    }
    return row + 1
}

# 1200000 as "1.2 M": a number and the prefix of its unit.
function si(amount, unit,    prefix, power) {
    split("n,u,m,,k,M,G,T,P,E", prefix, ",")
    power = 4
    while (amount >= 999.9995 && power < 10) { amount /= 1000; power++ }
    while (amount > 0 && amount < 0.9999995 && power > 1) { amount *= 1000; power-- }
    return sprintf("%.4g %s%s", amount, prefix[power] == "u" ? "\302\265" : prefix[power], unit)
}

function log10(x) { return log(x) / log(10) }

# Prints one axis ("x" or "y") that shows low to high: logarithmic where they span
# a decade, else linear from zero. Labels are numbers times `scale` with SI
# prefixes; plain where unit is "plain"; none where it is "none".
function axis(which, low, high, unit, scale) {
    if (high >= 10 * low) log_axis(which, low, high, unit, scale)
    else linear_axis(which, high, unit, scale)
}

function tick(list, at, unit, scale,    text) {
    text = unit == "none" ? "" : unit == "plain" ? sprintf("%g", at) : at == 0 ? "0" : si(at * scale, unit)
    return list (list == "" ? "" : ", ") quote(text) sprintf(" %.10g", at)
}

function log_axis(which, low, high, unit, scale,    pad, power, decades, steps, step, i, list, at) {
    pad = exp(log(high / low) * 0.06)
    low /= pad
    high *= pad
    decades = log10(high / low)
    step = decades > 7 ? 2 : 1
    steps = split(decades < 1.7 ? "1 2 5" : decades < 3.2 && which == "y" ? "1 3" : "1", mantissa, " ")
    for (power = int(log10(low)) - 1; power <= log10(high); power++) {
        if (power % step) continue
        for (i = 1; i <= steps; i++) {
            at = mantissa[i] * exp(power * log(10))
            if (at >= low && at <= high) list = tick(list, at, unit, scale)
        }
    }
    printf "set logscale %s\nset %srange [%.10g:%.10g]\nset %stics (%s)\n", which, which, low, high,
           which, list > script
}

function linear_axis(which, high, unit, scale,    step, at, list) {
    step = nice_step(high, which == "x" ? 4 : 5)
    for (at = 0; at <= high * 1.08; at += step) list = tick(list, at, unit, scale)
    printf "unset logscale %s\nset %srange [0:%.10g]\nset %stics (%s)\n", which, which, high * 1.08,
           which, list > script
}

# 1, 2 or 5 times a power of ten, of which about `parts` make `length`.
function nice_step(span, parts,    power, step) {
    step = span / parts
    power = exp(log(10) * int(log10(step) + 100) - log(10) * 100)
    step /= power
    return (step < 1.5 ? 1 : step < 3.5 ? 2 : step < 7.5 ? 5 : 10) * power
}

# Panels in a grid: where the panel of this number begins.
function grid_columns(n) { return min(4, int(sqrt(n) + 0.9999)) }

# Draws `n` panels of one size with panel(i, left, top), named by panel_name[i].
function draw_panels(n, width, height, title,    i, columns) {
    if (each) {
        for (i = 1; i <= n; i++) {
            begin_picture(file_name(panel_name[i]), panel_name[i], width, height)
            panel(i, 0, 0)
            end_picture()
        }
        return
    }
    columns = grid_columns(n)
    begin_picture("all", title, columns * width, int((n + columns - 1) / columns) * height)
    for (i = 1; i <= n; i++)
        panel(i, (i - 1) % columns * width, int((i - 1) / columns) * height)
    end_picture()
}

function plural(n, word) { return n " " word (n == 1 ? "" : "s") }

# What the points of a panel are, the one of the fewest runs and the one of the most.
function made_of(least, most) {
    if (most == 1) return "one run"
    return "median and range of " (least < most ? least " to " : "") plural(most, "run")
}
