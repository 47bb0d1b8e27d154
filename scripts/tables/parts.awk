# parts.awk - with numbers.awk and compare/plots/parts.awk: the parts of a block as markdown:
# what they add up to, against the whole, for each shape and dtype whose parts were
# measured cold, of the variant `best`; how much of that are launches that only the parts
# pay (overhead_us of all but one part); and each part's share of the sum.

END {
    print "| pass, dtype, shape | whole, us | sum of parts, us | sum / whole | further launches, us | shares of the sum |"
    print "|---|---:|---:|---:|---:|---|"
    for (g = 1; g <= groups; g++) {
        if (mode[g] != "cold" || variant[g] != "best") continue
        label = pass[g] " " dtype[g] " " shape_of[g]
        labels[++shown] = label
        line[label] = sprintf("| %s | %.1f | %.1f | %.2f | %.1f | %s |", label, whole[g], sum[g],
                              sum[g] / whole[g], further_launches(g), shares(g))
    }
    sort(labels, shown)
    for (i = 1; i <= shown; i++) print line[labels[i]]
}

function further_launches(g,    i, total) {
    for (i = 2; i <= parts[g]; i++) total += launch[g, i]
    return total
}

function shares(g,    i, text) {
    for (i = 1; i <= parts[g]; i++)
        text = text (i > 1 ? ", " : "") part_name[g, i] sprintf(" %.0f %%", 100 * time[g, i] / sum[g])
    return text
}
