# summary.awk - with csv.awk: one line over files of verdicts.awk: of one suite, or with `all`
# set of all of them and of those that could not be judged, whose names are in `unjudged`.

{
    suites++
    name = value("suite")
    cases += number("cases")
    slower += number("slower")
    inconclusive += number("inconclusive")
    missing += number("missing")
    not_ok += number("not_ok")
    raced += number("raced")
    elsewhere += number("elsewhere")
    seconds += number("seconds")
}

END {
    if (failed) exit 2
    if (all) printf "compare: %d suites, ", suites
    else printf "compare-%s: ", name
    printf "%d cases in %.1f min: %d slower, %d inconclusive (%.1f %%), %d missing, %d not ok, %d raced%s%s\n",
           cases, seconds / 60, slower, inconclusive, cases ? 100 * inconclusive / cases : 0, missing, not_ok, raced,
           elsewhere ? sprintf("; %d of other hosts", elsewhere) : "", (unjudged == "" ? "" : "; not judged:" unjudged)
}
