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

# Bytes or operations, which may depend on the seed: no row stands for the others. `id` is no
# other's; an empty text says nothing.
function note_work(id, text) { if (text != "") values[id, ++count[id]] = text }

# Of what was noted the median, "" where there is none.
function typical_work(id) { return id in count ? median(id) : "" }

# Numbers as such; where one is none, all as texts: an order of both would be none.
function sort(list, n,    i, key, at, texts) {
    for (i = 1; i <= n; i++) if (list[i] != list[i] + 0) texts = 1
    for (i = 1; i <= n; i++) { key[i] = texts ? list[i] "" : list[i]; at[i] = i }
    sort_by(at, n, key)
    for (i = 1; i <= n; i++) list[i] = key[at[i]]
}

# Puts list[1] to list[n] in the order of their keys, key[list[i]]; where these are equal the
# order stays. Runs of 1, 2, 4 and so on are merged: a hundred thousand take no hour.
function sort_by(list, n, key,    width, low, middle, end, i, j, k, merged) {
    for (width = 1; width < n; width *= 2) {
        for (low = 1; low <= n; low = end) {
            i = low
            j = middle = low + width
            end = middle + width
            for (k = low; k < end && k <= n; k++)
                merged[k] = j >= end || j > n || (i < middle && key[list[i]] <= key[list[j]]) ? \
                            list[i++] : list[j++]
        }
        for (k = 1; k <= n; k++) list[k] = merged[k]
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
