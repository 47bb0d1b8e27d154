# tables.awk - with median.awk: a suite's baseline CSV as markdown: for each case and dtype a table
# with a line per shape and a column per variant, each cell the median over the
# runs of median_us. Rows that are not ok hold no numbers and are left out.
# Splits at plain commas: in a row that is ok no field has one.

BEGIN { FS = "," }

FNR == 1 {
    for (i = 1; i <= NF; i++) column[$i] = i
    next
}

$(column["status"]) == "ok" && $(column["mode"]) == "cold" {
    table = "`" $(column["case"]) "`, " $(column["dtype"])
    shape = $(column["params"])
    variant = $(column["variant"])
    if (!((table, shape) in shapes)) {
        shapes[table, shape] = 1
        tables[table] = 1
    }
    variants[table, variant] = 1
    n = ++count[table, shape, variant]
    values[table, shape, variant, n] = $(column["median_us"])
    runs[$(column["campaign"]) " " $(column["run"])] = 1
    device = $(column["device"])
    drivers = with(drivers, $(column["driver"]))
    runtimes = with(runtimes, $(column["cuda_runtime"]))
    revisions = with(revisions, $(column["git"]))
}

# The list, and the value if it is not in it yet.
function with(list, value) {
    if (index(", " list ",", ", " value ",")) return list
    return list (list == "" ? "" : ", ") value
}

function sort(list, n,    i, j, t) {
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
            t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
        }
}

function cell(table, shape, variant) {
    return (table, shape, variant) in count ? show(median(table SUBSEP shape SUBSEP variant)) : "-"
}

# Numbers inside a shape sort as numbers: b=4 t=128 before b=4 t=1024.
function padded(text,    out) {
    out = ""
    while (match(text, /[0-9]+/)) {
        out = out substr(text, 1, RSTART - 1) sprintf("%020d", substr(text, RSTART, RLENGTH))
        text = substr(text, RSTART + RLENGTH)
    }
    return out text
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
    run_count = 0
    for (r in runs) run_count++
    printf "%s, %d runs, driver %s, CUDA %s, revision %s. Microseconds, cold.\n", device,
           run_count, drivers, runtimes, revisions
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
