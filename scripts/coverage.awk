# coverage.awk - which lines ran, and which branches were taken, from what
# `gcov --stdout --branch-probabilities` prints of many programs: a line ran, or a branch was
# taken, if it was in one of them. Prints the header, compare/ as a whole and its files that
# fall short; status 1 if one of the first two does. Of lines at least `lines` per cent are
# asked for, of branches `branches` per cent.

/^branch +[0-9]/ {
    if (!wanted || !line) next
    at = source SUBSEP line SUBSEP $2
    if (!(at in branch)) {
        branch[at] = 1
        branches_of[source]++
    }
    if (/taken [1-9]/ && !(at in went)) {
        went[at] = 1
        taken[source]++
    }
    next
}

# Calls, and the summaries of functions.
/^(call|unconditional|function) / { next }

{
    mark = $1
    sub(/:.*/, "", mark)
    rest = substr($0, index($0, ":") + 1)
    line = rest + 0
}

line == 0 && match(rest, /0:Source:/) {
    source = substr(rest, RSTART + RLENGTH)
    wanted = source == "gpubench.h" || (source ~ /^compare\/[a-z_]*\.c$/)
    next
}

wanted && line > 0 && mark != "-" {
    if (!((source, line) in seen)) {
        seen[source, line] = 1
        total[source]++
    }
    if (mark !~ /[#=]/ && !((source, line) in ran)) {
        ran[source, line] = 1
        covered[source]++
    }
}

function share(part, whole) { return whole ? 100 * part / whole : 0 }

function show(name, part, whole, these, all) {
    printf "%s: %d of %d lines ran, %.1f %%; %d of %d branches were taken, %.1f %%\n", name,
           part, whole, share(part, whole), these, all, share(these, all)
    if (share(part, whole) < lines || share(these, all) < branches) failed = 1
}

END {
    for (source in total) {
        if (source == "gpubench.h") continue
        part += covered[source]
        whole += total[source]
        these += taken[source]
        all += branches_of[source]
        if (share(covered[source], total[source]) < lines || share(taken[source], branches_of[source]) < branches)
            printf "    %s: %.1f %% of %d lines, %.1f %% of %d branches\n", source,
                   share(covered[source], total[source]), total[source],
                   share(taken[source], branches_of[source]), branches_of[source] | "sort"
    }
    close("sort")
    show("compare", part, whole, these, all)
    source = "gpubench.h"
    show(source, covered[source], total[source], taken[source], branches_of[source])
    exit failed
}
