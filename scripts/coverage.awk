# coverage.awk - which lines ran, from what `gcov --stdout` prints of many programs:
# a line ran if it did in one of them. Prints the header, compare/ as a whole and its
# files that fall short of `least` per cent; status 1 if one of the first two does.

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

function show(name, part, whole) {
    if (!whole) {
        print name ": no line was measured"
        failed = 1
        return
    }
    printf "%s: %d of %d lines ran, %.1f %%\n", name, part, whole, 100 * part / whole
    if (100 * part < least * whole) failed = 1
}

END {
    for (source in total)
        if (source != "gpubench.h") { part += covered[source]; whole += total[source] }
    for (source in total)
        if (source != "gpubench.h" && 100 * covered[source] < least * total[source])
            printf "    %s: %d of %d, %.1f %%\n", source, covered[source], total[source],
                   100 * covered[source] / total[source] | "sort"
    close("sort")
    show("compare", part, whole)
    show("gpubench.h", covered["gpubench.h"], total["gpubench.h"])
    exit failed
}
