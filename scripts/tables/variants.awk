# variants.awk - with csv.awk and numbers.awk: a suite's baseline CSV as markdown: for each
# case and dtype a table with a line per shape and a column per variant, each cell the
# median over the runs of median_us in one mode (-v mode=). Rows that are not ok hold no
# numbers and are left out. Campaigns as in runs.awk.

value("status") == "ok" && value("mode") == mode {
    table = "`" value("case") "`, " value("dtype")
    shape = value("params")
    variant = value("variant")
    if (!((table, shape) in shapes)) {
        shapes[table, shape] = 1
        tables[table] = 1
    }
    variants[table, variant] = 1
    n = ++count[table, shape, variant]
    values[table, shape, variant, n] = value("median_us")
    campaign = value("campaign")
    sub(/-doubtful$/, "", campaign)
    runs[campaign " " value("uuid") " " value("run")] = 1
    device = value("device")
    drivers = with(drivers, value("driver"))
    runtimes = with(runtimes, value("cuda_runtime"))
    revisions = with(revisions, value("git"))
}

# The list, and the text if it is not in it yet.
function with(list, text) {
    if (index(", " list ",", ", " text ",")) return list
    return list (list == "" ? "" : ", ") text
}

function cell(table, shape, variant) {
    return (table, shape, variant) in count ? show(median(table SUBSEP shape SUBSEP variant)) : "-"
}

function keys_of(set, table, list, pad,    key, n, parts, by, i) {
    n = 0
    for (key in set) {
        split(key, parts, SUBSEP)
        if (parts[1] == table) {
            n++
            list[n] = pad ? padded(parts[2]) SUBSEP parts[2] : parts[2]
        }
    }
    sort(list, n)
    for (i = 1; pad && i <= n; i++) {
        split(list[i], by, SUBSEP)
        list[i] = by[2]
    }
    return n
}

END {
    if (failed) exit 2
    run_count = 0
    for (r in runs) run_count++
    printf "%s, %d run%s, driver %s, CUDA %s, revision %s. Microseconds, %s.\n", device,
           run_count, (run_count == 1 ? "" : "s"), drivers, runtimes, revisions, mode
    n = 0
    for (t in tables) ordered[++n] = t
    sort(ordered, n)
    for (k = 1; k <= n; k++) {
        t = ordered[k]
        delete names
        delete lines
        columns = keys_of(variants, t, names, 0)
        rows = keys_of(shapes, t, lines, 1)
        printf "\n%s\n\n| shape |", t
        for (c = 1; c <= columns; c++) printf " %s |", names[c]
        printf "\n|---|"
        for (c = 1; c <= columns; c++) printf "---:|"
        printf "\n"
        for (r = 1; r <= rows; r++) {
            printf "| %s |", lines[r]
            for (c = 1; c <= columns; c++)
                printf " %s |", cell(t, lines[r], names[c])
            printf "\n"
        }
    }
}
