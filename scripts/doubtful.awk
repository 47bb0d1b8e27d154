# doubtful.awk - with csv.awk: the cases of which further processes may tell more than the
# first, one line of --list each. Of gpubench-compare --format csv what is slower by more than
# `above`, whatever the verdict, what no longer is ok, and what the tool has no times to judge
# by; behind it the first process's rows say which of the missing cases were skipped.

function doubt() {
    if (!(line in seen)) print line
    seen[line] = 1
}

{
    line = joined("case variant dtype params")
    verdict = value("verdict")
}

verdict == "missing" { missing[line] = 1 }

verdict == "SLOWER" || verdict == "not ok" || value("ratio") + 0 > 1 + above { doubt() }

verdict == "inconclusive" && value("ratio") == "" { doubt() }

verdict == "" && line in missing { doubt() }
