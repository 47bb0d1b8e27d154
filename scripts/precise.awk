# precise.awk - with csv.awk: of how many of the measured rows of each suite the interval of the
# median was as narrow as --precision asked for, and how many were measured while the machine
# did something else: a line a suite, one of all.

value("status") != "ok" { next }

{
    suite = value("suite")
    if (!(suite in rows)) suites[++suite_count] = suite
    flags = " " value("flags") " "
    n = split(suite SUBSEP "all", counted, SUBSEP)
    for (i = 1; i <= n; i++) {
        rows[counted[i]]++
        if (flags !~ / imprecise /) precise[counted[i]]++
        if (flags ~ / (busy|steal|throttle=[a-z-]+) /) disturbed[counted[i]]++
    }
}

function show(suite) {
    printf "%s: %d of %d rows reached their precision (%.0f %%); %d on a busy or throttled machine\n", \
        suite, precise[suite], rows[suite], 100 * precise[suite] / rows[suite], disturbed[suite]
}

END {
    if (failed) exit 2
    if (suite_count == 0) fail("precise.awk: there is no row with numbers")
    for (i = 1; i <= suite_count; i++) show(suites[i])
    if (suite_count > 1) show("all")
}
