# ratio.awk - with numbers.awk, for the tables that set two variants beside each other: of each
# id values[id, i] are the runs' medians, lows[id, i] and highs[id, i] the ends of their
# intervals and clocks[id, i] the MHz that they were measured at, for i from 1 to count[id].

# Of the row that csv.awk has read.
function add_run(id) {
    values[id, ++count[id]] = number("median_us")
    lows[id, count[id]] = number("ci95_low_us")
    highs[id, count[id]] = number("ci95_high_us")
    clocks[id, count[id]] = value("sm_mhz")
}

function move_run(from, i, id, to) {
    values[id, to] = values[from, i]
    lows[id, to] = lows[from, i]
    highs[id, to] = highs[from, i]
    clocks[id, to] = clocks[from, i]
}

# Of a list the least for sign 1, the greatest for sign -1.
function extreme(list, id, sign,    i, out) {
    out = list[id, 1]
    for (i = 2; i <= count[id]; i++) if (sign * list[id, i] < sign * out) out = list[id, i]
    return out
}

# 0 where no run tells its clock.
function mean_clock(id,    i, sum, known) {
    for (i = 1; i <= count[id]; i++)
        if (clocks[id, i] != "") { sum += clocks[id, i]; known++ }
    return known ? sum / known : 0
}

# The time of `own` over that of `other`: the ratio of their medians, and the widest interval
# that those of any of their runs allow. One that contains 1 is a tie. Where the clocks are more
# than 2 % apart there is no ratio: at the power cap the clock depends on what ran before.
function ratio_text(own, other,    low, high, clock, other_clock) {
    clock = mean_clock(own)
    other_clock = mean_clock(other)
    if (clock > 0 && other_clock > 0 && (clock > 1.02 * other_clock || other_clock > 1.02 * clock))
        return sprintf("none, at %.0f and %.0f MHz", clock, other_clock)
    low = extreme(lows, own, 1) / extreme(highs, other, -1)
    high = extreme(highs, own, -1) / extreme(lows, other, 1)
    return sprintf("%.3f (%.3f to %.3f)%s", median(own) / median(other), low, high,
                   low <= 1 && high >= 1 ? ", a tie" : "")
}
