# median.awk - the median of values[id, 1] to values[id, count[id]], which the
# scripts that come after it on awk's command line collect, and how they write it.

function median(id,    n, i, j, t, list) {
    n = count[id]
    for (i = 1; i <= n; i++) {
        list[i] = values[id, i] + 0
        for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
            t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
        }
    }
    return (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2
}

# Microseconds, four significant digits.
function show(us) {
    return us >= 1000 ? sprintf("%.0f", us) : us >= 100 ? sprintf("%.1f", us) : sprintf("%.2f", us)
}
