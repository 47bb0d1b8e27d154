# largest.awk - with csv.awk and numbers.awk: baseline CSVs as one markdown table: for
# each case and dtype the shape with the most work (operations, else bytes), its slowest
# and its fastest variant by the median over the runs of median_us, and what the fastest
# reaches. The block's parts have a table of their own (parts.awk), and variants that do
# a part of their operation (_alone) would always be the fastest. Only rows that are ok
# and cold.

value("status") == "ok" && value("mode") == "cold" && value("case") != "block.part" &&
value("variant") !~ /_alone$/ {
    key = "`" value("case") "` | " value("dtype")
    flops = value("flops") + 0
    bytes = value("bytes") + 0
    amount = flops > 0 ? flops : bytes
    if (!(key in most)) ordered[++keys] = key
    if (!(key in most) || amount > most[key]) {
        most[key] = amount
        shape[key] = value("params")
        work[key] = flops > 0 ? "flops" : "bytes"
    }
    id = key SUBSEP value("params") SUBSEP value("variant")
    values[id, ++count[id]] = value("median_us")
    note_work("bytes" SUBSEP id, value("bytes"))
    note_work("flops" SUBSEP id, value("flops"))
}

# Bandwidth where moving bytes is the work: fewer than ten operations a byte.
function reaches(id, us,    bytes, flops) {
    bytes = typical_work("bytes" SUBSEP id)
    flops = typical_work("flops" SUBSEP id)
    if (flops > 10 * bytes) return sprintf("%.1f TFLOP/s", flops / us / 1e6)
    if (bytes / us < 1e5) return sprintf("%.1f GB/s", bytes / us / 1e3)
    return sprintf("%.2f TB/s", bytes / us / 1e6)
}

END {
    if (failed) exit 2
    sort(ordered, keys)
    print "| case | dtype | shape | slowest variant, us | fastest variant, us | it reaches |"
    print "|---|---|---|---:|---:|---:|"
    for (k = 1; k <= keys; k++) {
        key = ordered[k]
        slow = 0
        fast = 1e30
        for (id in count) {
            split(id, part, SUBSEP)
            if (part[1] != key || part[2] != shape[key]) continue
            us = median(id)
            if (us > slow) { slow = us; slow_name = part[3] }
            if (us < fast) { fast = us; fast_name = part[3]; best = id }
        }
        printf "| %s | %s | %s %s | %s %s | %s |\n", key, shape[key], slow_name, show(slow),
               fast_name, show(fast), reaches(best, fast)
    }
}
