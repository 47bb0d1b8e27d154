# untold.awk - with csv.awk: `raced`, a race's verdicts, and behind it the screen's. Names the
# cases that the screen calls SLOWER and of which the race has no interval, as it ran out of
# time or its rows were throttled: nothing was said against the verdict. Ends with 1 if there
# are any.

{ key = joined("suite case variant backend dtype params mode") }

file == raced {
    if (value("verdict") == "inconclusive" && value("ratio_low") == "") untold[key] = 1
    next
}

value("verdict") == "SLOWER" && key in untold {
    printf "still SLOWER by the baseline, of which the race cannot tell: %s\n", key
    found = 1
}

END { exit failed ? 2 : found }
