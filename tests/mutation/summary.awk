# summary.awk -v kept=FILE -v drawn=FILE REASONS KEPT DRAWN - of the mutants that were drawn,
# those that survived without a reason, and how many were killed, for the header, compare and
# the kernels, and in all. What changes nothing that a program could notice, as its reason says,
# is told apart. Status 1 where fewer than 90 % of the others were killed, or a reason is missing.

BEGIN {
    FS = "\t"
    alike["same result"] = alike["memory"] = alike["speed"] = 1
}

function trimmed(text) { sub(/^ +/, "", text); return text }
function key(at) { return $at FS $(at + 1) FS $(at + 4) - $(at + 2) FS $(at + 5) FS $(at + 7) }

FILENAME == kept { outcome[key(2)] = $1; next }

# A reason: target, rule, the line as it was, kind, why.
FILENAME != drawn { if ($0 !~ /^#/) reason[$1 FS $2 FS $3] = $4; next }

{
    room = $4
    sub(/\/.*/, "", room)
    is = outcome[key(1)]
    count[room, is]++
    count["all", is]++
    if (is != "survived") next
    why = reason[$1 FS $6 FS trimmed($7)]
    if (why) kinds[why]++
    if (why in alike) {
        count[room, "alike"]++
        count["all", "alike"]++
    }
    if (why) next
    unexplained++
    printf "no reason: %s:%d\t%s\t%s\n", $4, $5, $6, trimmed($7)
}

function share(part, whole) { return whole ? 100 * part / whole : 0 }

function show(room, name,    killed, judged, noticeable) {
    killed = count[room, "killed"]
    judged = killed + count[room, "survived"]
    noticeable = judged - count[room, "alike"]
    printf "%s: %d mutants, %d killed (%.1f %%), %d survived, of which %d change nothing: of the other %d %.1f %%; " \
           "%d others are the same program, %d none\n", name, judged, killed, share(killed, judged), judged - killed,
           count[room, "alike"], noticeable, share(killed, noticeable), count[room, "equal"], count[room, "invalid"]
    return noticeable && killed >= 0.9 * noticeable
}

END {
    show("gpubench.h", "gpubench.h")
    show("compare", "compare")
    show("kernels", "kernels")
    enough = show("all", "in all")
    for (why in kinds) printf "    survived, %s: %d\n", why, kinds[why]
    exit !enough || unexplained > 0
}
