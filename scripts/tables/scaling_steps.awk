# scaling_steps.awk - with csv.awk and numbers.awk: the steps of the scaling suite as markdown:
# tokens per second of all ranks, that over as many times what one rank of the same variant
# and shape has among the rows, and the bytes that each rank planned for itself. Of several
# runs the medians' median.

value("case") ~ /^scaling\.(weak|strong)$/ && value("status") == "ok" {
    shape = value("params")
    match(shape, /^(gpus|ranks)=[0-9]+ /)
    ranks = substr(shape, index(shape, "=") + 1, RLENGTH - index(shape, "=")) + 0
    id = value("case") " | " value("variant") " | " value("dtype") " | " substr(shape, RLENGTH + 1)
    row = id SUBSEP ranks
    if (!(row in count)) {
        rows[++row_count] = row
        id_of[row_count] = id
        ranks_of[row_count] = ranks
    }
    n = split(value("counters"), word, /[ =]/)
    for (i = 1; i < n; i += 2) {
        if (word[i] == "tokens/s") values[row, ++count[row]] = word[i + 1]
        if (word[i] == "rank_bytes") bytes[row] = word[i + 1]
    }
}

END {
    if (failed) exit 2
    if (row_count > 0) {
        print "\n| case | variant | dtype | shape | ranks | tokens/s | efficiency | MB a rank |"
        print "|---|---|---|---|---:|---:|---:|---:|"
    }
    for (i = 1; i <= row_count; i++) {
        one = id_of[i] SUBSEP 1
        rate = median(rows[i])
        share = one in count ? sprintf("%.1f %%", 100 * rate / median(one) / ranks_of[i]) : "-"
        printf "| %s | %d | %.0f | %s | %.1f |\n", id_of[i], ranks_of[i], rate, share, bytes[rows[i]] / 1e6
    }
}
