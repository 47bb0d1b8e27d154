# summary.awk -v kept=FILE -v drawn=FILE REASONS KEPT DRAWN - of the mutants that were drawn,
# those that survived without a reason, and how many were killed, for the header, compare and
# the kernels, and in all. Status 1 where fewer than 90 % were, or a reason is missing.

BEGIN { FS = "\t" }

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
    else { unexplained++; printf "no reason: %s:%d\t%s\t%s\n", $4, $5, $6, trimmed($7) }
}

function show(room, name,    killed, judged) {
    killed = count[room, "killed"]
    judged = killed + count[room, "survived"]
    printf "%s: %d mutants, %d killed (%.1f %%), %d survived; %d others are the same program, %d none\n", name,
           judged, killed, judged ? 100 * killed / judged : 0, judged - killed,
           count[room, "equal"], count[room, "invalid"]
    return judged && killed >= 0.9 * judged
}

END {
    show("gpubench.h", "gpubench.h")
    show("compare", "compare")
    show("kernels", "kernels")
    enough = show("all", "in all")
    for (why in kinds) printf "    survived, %s: %d\n", why, kinds[why]
    exit !enough || unexplained > 0
}
