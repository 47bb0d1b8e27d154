# untold.awk - with csv.awk: `second`, the verdicts of a race or of a second measurement, and
# behind it those of the first. Names the cases that the first calls SLOWER and of which the
# second has no interval, as it ran out of time or its rows were throttled: nothing was said
# against the verdict. Ends with 1 if there are any.

{ key = joined("suite case variant backend dtype params mode") }

file == second {
    if (value("verdict") == "inconclusive" && value("ratio_low") == "") untold[key] = 1
    next
}

value("verdict") == "SLOWER" && key in untold {
    printf "still SLOWER by the baseline, of which the second look cannot tell: %s\n", key
    found = 1
}

END { exit failed ? 2 : found }
