# model_steps.awk - with csv.awk and numbers.awk: the passes of models as markdown. Of each
# case measured cold mean and standard deviation, tokens per second, the bytes that it
# planned for itself, operations per second, and which share that is of the fastest matrix
# product of its dtype, gemm.nn, among the rows of the ceilings suite: of the file `ceilings`
# (-v; results/ceilings.csv), if there is one, by the same device. A case without room has
# the bytes that it needs and those that were free.

BEGIN {
    if (ceilings == "") ceilings = "results/ceilings.csv"
    if ((getline line < ceilings) > 0) ARGV[ARGC++] = ceilings
    close(ceilings)
}

value("mode") != "cold" { next }

value("case") == "gemm.nn" && value("status") == "ok" {
    id = value("device") SUBSEP value("dtype")
    if (value("tflop_per_s") + 0 > fastest[id]) fastest[id] = value("tflop_per_s") + 0
}

value("case") ~ /^model\.(forward|forward_loss|backward|step)$/ &&
    (value("status") == "ok" || value("status") == "oom") {
    row[++rows] = "| " value("case") " | " value("dtype") " | " value("params") " | " \
        value("variant") " | "
    status[rows] = value("status")
    mean[rows] = value("mean_us")
    deviation[rows] = value("stddev_us")
    tokens[rows] = word("counters", "tokens/s")
    bytes[rows] = word("counters", "peak_bytes")
    rate[rows] = value("tflop_per_s") + 0
    room[rows] = word("flags", "needed_bytes") " bytes needed, " word("flags", "free_bytes") \
        " free"
    product[rows] = value("device") SUBSEP value("dtype")
}

# What stands behind NAME= in a column of such words.
function word(column, name,    n, i, list) {
    n = split(value(column), list, " ")
    for (i = 1; i <= n; i++)
        if (index(list[i], name "=") == 1) return substr(list[i], length(name) + 2)
    return ""
}

function share(i) {
    return fastest[product[i]] > 0 ? sprintf("%.0f %%", 100 * rate[i] / fastest[product[i]]) : "-"
}

END {
    if (failed) exit 2
    if (rows > 0) {
        print "\n| pass | dtype | shape | variant | mean us | sd us | tokens/s | MB | TFLOP/s | of gemm.nn |"
        print "|---|---|---|---|---:|---:|---:|---:|---:|---:|"
    }
    for (i = 1; i <= rows; i++)
        if (status[i] == "oom")
            print row[i] "oom: " room[i] " | | | | | |"
        else
            printf "%s%s | %s | %.0f | %.0f | %.1f | %s |\n", row[i], show(mean[i]), \
                show(deviation[i]), tokens[i], bytes[i] / 1e6, rate[i], share(i)
}
