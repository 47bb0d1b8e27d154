# scaling_overlap.awk - with csv.awk and numbers.awk: what of the gradients' all-reduce the
# backward pass hides, of a model or of one block, as markdown: of each bucket the medians of
# both alone, one after the other and overlapped, (pass + reduce - overlapped) over the
# shorter of the two, and for how long the rank that waits most does, overlapped. It is not
# clamped: below 0 overlapping costs more than it brings, and above 1.05 the four were not
# measured under the same conditions. Of several runs the medians' median.

value("case") ~ /^scaling\.(overlap|block)$/ && value("status") == "ok" {
    shape = (value("case") ~ /block$/ ? "block" : "model") " | " value("dtype") " | " value("params")
    if (!(shape in known)) {
        known[shape] = 1
        shapes[++shape_count] = shape
    }
    id = shape SUBSEP value("variant")
    values[id, ++count[id]] = value("median_us")
    if (value("variant") == "overlapped" && match(value("counters"), /longest_wait_us=[^ ]+/)) {
        id = shape SUBSEP "wait"
        values[id, ++count[id]] = substr(value("counters"), RSTART + 16, RLENGTH - 16)
    }
}

function of(shape, variant) {
    return count[shape, variant] > 0 ? median(shape SUBSEP variant) : ""
}

function hidden(pass, reduce, overlapped,    shorter, share) {
    if (pass == "" || reduce == "" || overlapped == "") return ""
    shorter = pass < reduce ? pass : reduce
    if (!(shorter > 0)) return ""
    share = (pass + reduce - overlapped) / shorter
    return sprintf("%.0f %%%s", 100 * share, share > 1.05 ? ", cannot judge" : "")
}

END {
    if (failed) exit 2
    if (shape_count > 0) {
        print "\n| of | dtype | shape | all-reduce us | backward us | serial us | overlapped us | hidden | longest wait us |"
        print "|---|---|---|---:|---:|---:|---:|---:|---:|"
    }
    for (i = 1; i <= shape_count; i++) {
        s = shapes[i]
        reduce = of(s, "reduce"); pass = of(s, "backward"); overlapped = of(s, "overlapped")
        printf "| %s | %s | %s | %s | %s | %s | %s |\n", s, show(reduce), show(pass), \
            show(of(s, "serial")), show(overlapped), hidden(pass, reduce, overlapped), show(of(s, "wait"))
    }
}
