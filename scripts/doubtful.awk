# doubtful.awk - with csv.awk: the cases of which further processes may tell more than the
# first, one line of --list each. Of gpubench-compare --format csv what is slower by more than
# `above`, whatever the verdict, what no longer is ok, and what the tool has no times to judge
# by; with `slower` set only what it calls SLOWER. Behind it stand the first process's rows,
# which say which of the missing cases were skipped, and with which other variants a doubtful
# case took turns: it does so again, since near the power cap it takes other times alone.

function is_doubtful() {
    return verdict == "not ok" || value("ratio") + 0 > 1 + above ||
           (verdict == "inconclusive" && value("ratio") == "")
}

{
    line = joined("case variant dtype params")
    turns = value("case") SUBSEP value("dtype") SUBSEP value("params")
    verdict = value("verdict")
}

verdict == "missing" { missing[line] = 1 }

verdict == "SLOWER" || (verdict != "" && !slower && is_doubtful()) { doubted[turns] = 1 }

verdict == "" && !slower && line in missing { doubted[turns] = 1 }

verdict == "" && !(line in seen) {
    seen[line] = 1
    lines[++count] = line
    turns_of[count] = turns
}

END {
    if (failed) exit 2
    for (i = 1; i <= count; i++) if (turns_of[i] in doubted) print lines[i]
}
