# numbers.awk - medians, orders and texts of numbers, for the scripts that follow it on
# awk's command line.

# Of values[id, 1] to values[id, count[id]]; `lowest` and `highest` are those of them.
function median(id,    n, i, list) {
    n = count[id]
    for (i = 1; i <= n; i++) list[i] = values[id, i] + 0
    sort(list, n)
    lowest = list[1]
    highest = list[n]
    return (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2
}

function sort(list, n,    i, j, t) {
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
            t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
        }
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

# Microseconds, four significant digits; "" stays so. A field of a record with quotes is
# a text, which would be compared as one.
function show(us) {
    if (us == "") return ""
    us += 0
    return us >= 1000 ? sprintf("%.0f", us) : us >= 100 ? sprintf("%.1f", us) : sprintf("%.2f", us)
}
