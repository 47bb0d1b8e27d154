# memory_changes.awk - with compare/csv.awk: what a batch or a context twice as large would
# take, computed, beside what it took. Reads --memory-csv files in which a case stands and the
# same with b= or t= twice as large, which `make memory-model` makes. By category; ends with
# 1 where computed and taken are apart by more than 1 % and 4 KiB, with 2 if there is nothing
# to compare.

function absolute(amount) { return amount < 0 ? -amount : amount }

# The params of the case that the change makes of this one. size= is a name of the shape,
# not a part of it.
function changed(params, change,    name, words, n, i, text) {
    name = change == "batch x2" ? "b" : change == "context x2" ? "t" : "none"
    n = split(params, words, " ")
    for (i = 1; i <= n; i++) {
        if (words[i] ~ /^size=/) continue
        if (index(words[i], name "=") == 1) words[i] = name "=" 2 * substr(words[i], length(name) + 2)
        text = text " " words[i]
    }
    return text
}

{
    identity = joined("suite case variant dtype")
    category = value("category")
    change = value("change")
    if (change == "") {
        plain = identity changed(value("params"), "")
        taken[plain, category] += number("bytes")
        whole[plain] += number("bytes")
        known[plain] = 1
        driver[plain] = number("device_bytes", 1)
        next
    }
    target = identity changed(value("params"), change)
    computed[target, category] += number("bytes")
    if (!((target, category) in listed)) {
        listed[target, category] = 1
        of[target] = of[target] (of[target] == "" ? "" : "\t") category
    }
    if (!(target in from)) {
        from[target] = identity " " value("params") ", " change
        targets[++count] = target
    }
}

function judge(target,    names, n, i, c, t, sum, apart) {
    if (!(target in known)) return
    compared++
    printf "%s: %s\n  %-22s %14s %14s\n", from[target], target, "bytes", "computed", "taken"
    n = split(of[target], names, "\t")
    for (i = 1; i <= n; i++) {
        c = computed[target, names[i]]
        t = taken[target, names[i]] + 0
        sum += c
        apart = absolute(c - t) > 4096 && absolute(c - t) > 0.01 * t
        different += apart
        printf "  %-22s %14.0f %14.0f%s\n", names[i], c, t, apart ? "  apart" : ""
    }
    printf "  %-22s %14.0f %14.0f%s\n", "all", sum, whole[target],
           (driver[target] != "" ? sprintf("  (setup took %.0f)", driver[target]) : "")
}

END {
    if (failed) exit 2
    for (i = 1; i <= count; i++) judge(targets[i])
    if (!compared) {
        print "memory_changes: no case here is another one with a batch or context twice as large" > "/dev/stderr"
        exit 2
    }
    exit different > 0
}
