# habits.awk - with csv.awk and numbers.awk: from what `gpubench-compare --variants --format
# csv` says of model.habit, and the rows that it says it of, the table of habits. why (-v):
# a file with a habit's name, a tab and a sentence a line.

# The value behind NAME= in params, "" without.
function of_params(params, wanted,    n, i, list, pair) {
    n = split(params, list, " ")
    for (i = 1; i <= n; i++) {
        split(list[i], pair, "=")
        if (pair[1] == wanted) return pair[2]
    }
    return ""
}

function key_of(variant) { return variant SUBSEP value("dtype") SUBSEP value("params") }

# A line of the table. What comes in front of a row of steps costs less the longer the
# row: the part beyond 1 shrinks with `share`.
function add_line(what, share,    id) {
    id = ++lines
    habit[id] = of_params(value("params"), "habit")
    label[id] = what
    dtype[id] = value("dtype")
    key[id] = key_of(value("variant"))
    base[id] = value("against")
    size[id] = of_params(value("params"), "size") " b=" of_params(value("params"), "b") \
        " t=" of_params(value("params"), "t")
    times[id] = scaled(number("ratio"), share)
    low[id] = scaled(number("ratio_low", 1), share)
    high[id] = scaled(number("ratio_high", 1), share)
}

function scaled(ratio, share) { return ratio == "" ? "" : 1 + (ratio - 1) * share }

function interval(id) {
    return low[id] == "" || high[id] == "" ? "-" : sprintf("%.3f to %.3f", low[id], high[id])
}

"against" in column {
    what = value("variant")
    steps = of_params(value("params"), "steps")
    milliseconds = of_params(value("params"), "batch_ms")
    if (milliseconds != "") what = milliseconds " ms, " what
    if (of_params(value("params"), "habit") == "evaluation") {
        add_line(what " every 50 steps", steps / 50)
        add_line(what " every 100 steps", steps / 100)
        add_line(what " every 500 steps", steps / 500)
    } else if (of_params(value("params"), "habit") == "checkpoint") {
        add_line(what " every " steps " steps", 1)
    } else
        add_line(what, 1)
    next
}

# The rows: how long the device was idle, where they know, and how many runs there are.
{
    id = key_of(value("variant"))
    if (match(value("counters"), /idle_us=[^ ]*/))
        values[id, ++count[id]] = substr(value("counters"), RSTART + 8, RLENGTH - 8)
    runs[joined("campaign uuid run")] = 1
    device = value("device")
}

function idle(id) { return key[id] in count ? show(median(key[id])) : "-" }

# The line of the largest factor that `taken` does not have; 0: none is left.
function largest(taken,    i, best) {
    for (i = 1; i <= lines; i++)
        if (!(i in taken) && (!best || times[i] > times[best])) best = i
    return best
}

function read_why(    line, part) {
    while ((getline line < why) > 0) {
        split(line, part, "\t")
        sentence[part[1]] = part[2]
    }
}

# Each habit once, by the most that it costs.
function print_five(    i, id, taken, told, n) {
    while (n < 5 && (id = largest(taken))) {
        taken[id] = 1
        if (habit[id] in told || times[id] <= 1) continue
        told[habit[id]] = 1
        printf "%d. **%s**, %s (%s, %s): %.2f times `%s` (%s). %s\n", ++n, habit[id], label[id], \
            dtype[id], size[id], times[id], base[id], interval(id), sentence[habit[id]]
    }
}

END {
    if (failed) exit 2
    read_why()
    for (run in runs) run_count++
    printf "%s, %d runs. Times a step by the better habit, with the interval of `gpubench-compare --variants`.\n\n", \
        device, run_count
    print_five()
    print "\n| habit | variant | dtype | size | times | interval | against | idle us a step |"
    print "|---|---|---|---|---:|---|---|---:|"
    while ((id = largest(printed))) {
        printed[id] = 1
        printf "| %s | %s | %s | %s | %.3f | %s | %s | %s |\n", habit[id], label[id], dtype[id], \
            size[id], times[id], interval(id), base[id], idle(id)
    }
}
