# scaling_steps.awk - with csv.awk and numbers.awk: the steps of the scaling suite as markdown:
# tokens per second of all ranks, that over as many times what one rank of the same variant
# and shape has among the rows, the bytes that each rank planned for itself, and which shares
# of a step go to computing, to communication that nothing hides, and to waiting for the
# slowest rank, which is named where that is more than a hundredth. Of several runs the
# medians' median; the shares are the last one's.

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
        else counted[row, word[i]] = word[i + 1]
    }
}

# Of what the three are together: nothing where the row has none.
function share(row, name,    sum) {
    sum = counted[row, "compute_us"] + counted[row, "exposed_us"] + counted[row, "wait_us"]
    return sum > 0 ? sprintf("%.1f %%", 100 * counted[row, name] / sum) : ""
}

function waiting(row,    text) {
    text = share(row, "wait_us")
    return text + 0 > 1 ? text " for rank " counted[row, "slowest_rank"] : text
}

END {
    if (failed) exit 2
    if (row_count > 0) {
        print "\n| case | variant | dtype | shape | ranks | tokens/s | efficiency | MB a rank | compute | exposed | wait |"
        print "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|"
    }
    for (i = 1; i <= row_count; i++) {
        row = rows[i]
        one = id_of[i] SUBSEP 1
        rate = median(row)
        efficiency = one in count ? sprintf("%.1f %%", 100 * rate / median(one) / ranks_of[i]) : "-"
        printf "| %s | %d | %.0f | %s | %.1f | %s | %s | %s |\n", id_of[i], ranks_of[i], rate, efficiency, \
            counted[row, "rank_bytes"] / 1e6, share(row, "compute_us"), share(row, "exposed_us"), waiting(row)
    }
}
