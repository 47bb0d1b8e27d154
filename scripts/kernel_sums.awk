# kernel_sums.awk - with compare/csv.awk: do the kernels of a case add up to its time? Reads
# --kernels-csv files of a GPU and prints, suite by suite, the cases of one kernel, copy or
# memset: how many of their times stand within 2 % or 1 us of the case's own (own_us: the
# timed median less an empty launch, plus an empty kernel), and those that do not. Of cases
# with several the sum over that time is told, which gaps make smaller than 1 and streams
# side by side larger. Ends with 1 if one of the first kind is apart, with 2 if there is none.

function absolute(amount) { return amount < 0 ? -amount : amount }

function close_case(    difference) {
    if (name == "") return
    if (!(suite in seen)) {
        seen[suite] = 1
        suites[++suite_count] = suite
    }
    if (own == "") {
        unknown[suite]++
        return
    }
    if (launches > 1) {
        several[suite]++
        ratio = sum / own
        if (!(suite in least) || ratio < least[suite]) least[suite] = ratio
        if (ratio > most[suite]) most[suite] = ratio
        return
    }
    difference = absolute(sum - own)
    single[suite]++
    if (difference <= 1 || difference <= 0.02 * own) within[suite]++
    else outside[++outside_count] = sprintf("%s: %s: %.2f us, timed %.2f (%+.2f us, %+.1f %%)", suite, name, sum,
                                            own, sum - own, 100 * (sum / own - 1))
}

{
    key = joined("suite case variant dtype params")
    if (key != before) {
        close_case()
        before = key
        suite = value("suite")
        name = joined("case variant dtype params")
        own = number("own_us", 1)
        sum = launches = 0
    }
    if (value("kind") == "range") fail(FILENAME ": the host's ranges, which are no kernels: measured on the CPU")
    sum += number("total_us")
    launches += number("launches")
}

END {
    if (failed) exit 2
    close_case()
    if (suite_count == 0) {
        print "kernel_sums: no case in these files" > "/dev/stderr"
        exit 2
    }
    printf "%-12s %11s %11s %11s %11s %17s\n", "suite", "one kernel", "within", "apart", "several", "their sum / time"
    for (i = 1; i <= suite_count; i++) {
        s = suites[i]
        printf "%-12s %11d %11d %11d %11d %17s%s\n", s, single[s], within[s], single[s] - within[s], several[s],
               s in least ? sprintf("%.2f to %.2f", least[s], most[s]) : "",
               unknown[s] ? sprintf("  (%d without an empty launch's time)", unknown[s]) : ""
        total += single[s]
        good += within[s]
    }
    for (i = 1; i <= outside_count; i++) print outside[i]
    printf "kernel_sums: %d of %d cases of one kernel within 2 %% or 1 us of their timed median\n", good, total
    exit good < total
}
