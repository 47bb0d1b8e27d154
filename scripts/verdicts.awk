# verdicts.awk - with csv.awk: how many cases of a comparison have which verdict, as a CSV of
# one row for summary.awk. Files of gpubench-compare --format csv, of a case in several the
# last one's verdict, but where `second`, which looked at them again, has nothing to say against
# SLOWER; with `race` set those of it were raced. `subset` set: nobody misses the missing. What
# only other hosts can measure (elsewhere) is counted by itself.

value("verdict") == "missing" && subset != "" { next }

{
    key = joined("suite case variant backend dtype params mode")
    if (!(key in verdict) && value("verdict") != "elsewhere") cases++
    untold = file == second && value("verdict") == "inconclusive" && value("ratio_low") == ""
    if (!untold || verdict[key] != "SLOWER") verdict[key] = value("verdict")
    was_raced += race != "" && file == second
}

END {
    if (failed) exit 2
    for (key in verdict) count[verdict[key]]++
    print "suite,cases,slower,inconclusive,missing,not_ok,raced,elsewhere,seconds"
    printf "%s,%d,%d,%d,%d,%d,%d,%d,%d\n", suite, cases, count["SLOWER"], count["inconclusive"], count["missing"],
           count["not ok"], was_raced, count["elsewhere"], seconds
}
