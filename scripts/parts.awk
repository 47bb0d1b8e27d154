# parts.awk - with median.awk: the block suite's baseline as markdown: what the
# parts of a block add up to, against the whole, for each shape and dtype whose
# parts were measured; how much of that are launches that only the parts pay
# (overhead_us of all but one part); and each part's share of the sum. Medians over
# the runs of median_us. The whole forward pass is the one that keeps its activations, as
# the parts do. Splits at plain commas, as in largest.awk.

BEGIN { FS = "," }

FNR == 1 {
    for (i = 1; i <= NF; i++) column[$i] = i
    next
}

$(column["status"]) == "ok" && $(column["mode"]) == "cold" && $(column["variant"]) == "best" {
    params = $(column["params"])
    dtype = $(column["dtype"])
    if ($(column["case"]) == "block.part") {
        split(params, word, " ")
        pass = substr(word[1], 6)
        part = substr(word[2], 6)
        shape = substr(params, length(word[1]) + length(word[2]) + 3)
        line = pass "|" dtype "|" shape
        if (!((line, part) in known)) {
            known[line, part] = 1
            parts[line, ++part_count[line]] = part
        }
        add(line SUBSEP part, "median_us")
        add(line SUBSEP part SUBSEP "launch", "overhead_us")
        if (part_count[line] == 1 && !(line in seen)) {
            seen[line] = 1
            lines[++line_count] = line
        }
    } else if (sub(/ keep=1$/, "", params) || $(column["case"]) == "block.backward") {
        add(substr($(column["case"]), 7) "|" dtype "|" params, "median_us")
    }
}

function add(id, name) { values[id, ++count[id]] = $(column[name]) + 0 }

END {
    for (i = 2; i <= line_count; i++)
        for (j = i; j > 1 && lines[j - 1] > lines[j]; j--) {
            swap = lines[j]; lines[j] = lines[j - 1]; lines[j - 1] = swap
        }
    print "| pass, dtype, shape | whole, us | sum of parts, us | sum / whole | further launches, us | shares of the sum |"
    print "|---|---:|---:|---:|---:|---|"
    for (i = 1; i <= line_count; i++) {
        line = lines[i]
        sum = launches = 0
        shares = ""
        for (p = 1; p <= part_count[line]; p++) {
            sum += median(line SUBSEP parts[line, p])
            if (p > 1) launches += median(line SUBSEP parts[line, p] SUBSEP "launch")
        }
        for (p = 1; p <= part_count[line]; p++)
            shares = shares (p > 1 ? ", " : "") parts[line, p] " " \
                     sprintf("%.0f %%", 100 * median(line SUBSEP parts[line, p]) / sum)
        label = line
        gsub(/\|/, " ", label)
        printf "| %s | %.1f | %.1f | %.2f | %.1f | %s |\n", label, median(line), sum,
               sum / median(line), launches, shares
    }
}
