# steps.awk - with csv.awk: the file of --samples as markdown: for each case, variant, dtype
# and shape of the model suite's steps, measured cold, how many were a second on average, in
# the first tenth of the samples and in the last, and the last over the average: below 1
# the device became slower while it was measured (its clocks, say), above 1 the warm-up was
# too short. Runs are taken one after the other, so the last tenth is of each run.

value("case") !~ /^model\.(step|forward|backward|forward_loss)$/ || value("mode") != "cold" { next }

{
    id = value("case") " " value("variant") " " value("dtype") " " value("params")
    run = id SUBSEP value("campaign") SUBSEP value("run")
    if (!(id in known)) {
        known[id] = 1
        ids[++id_count] = id
    }
    if (!(run in count)) runs[id, ++run_count[id]] = run
    us[run, ++count[run]] = number("us")
}

# Adds up the samples from one to another of a run.
function add(run, from, to,    i) {
    for (i = from; i <= to; i++) time += us[run, i]
    steps += to - from + 1
}

# Steps per second over the runs of `whole`, the `first` tenth or the `last`.
function rate(id, which,    i, run, n, tenth) {
    time = steps = 0
    for (i = 1; i <= run_count[id]; i++) {
        run = runs[id, i]
        n = count[run]
        tenth = n >= 10 ? int(n / 10) : 1
        if (which == "whole") add(run, 1, n)
        else if (which == "first") add(run, 1, tenth)
        else add(run, n - tenth + 1, n)
    }
    return 1e6 * steps / time
}

END {
    if (failed) exit 2
    print "| case | variant | dtype | shape | steps | a second | in the first tenth | in the last | last / average |"
    print "|---|---|---|---|---:|---:|---:|---:|---:|"
    for (i = 1; i <= id_count; i++) {
        split(ids[i], word, " ")
        average = rate(ids[i], "whole")
        measured = steps
        printf "| `%s` | %s | %s | %s | %d | %.1f | %.1f | %.1f | %.3f |\n", word[1], word[2], word[3], \
            substr(ids[i], length(word[1] word[2] word[3]) + 4), measured, average, \
            rate(ids[i], "first"), rate(ids[i], "last"), rate(ids[i], "last") / average
    }
}
