# parts.awk - with numbers.awk, from the lines of points.awk: what the parts of a block
# take, for who shows it: parts_plot.awk as a stack beside the whole, scripts/tables/
# parts.awk as a table. The passes' shapes and dtypes are groups 1 to `groups`:
#
#   pass[g] dtype[g] shape_of[g] mode[g] variant[g] runs[g] heading[g]
#   part_name[g, 1] to part_name[g, parts[g]], with time[g, i] and launch[g, i], the
#   overhead of its row; sum[g]; whole[g], "" if it was not measured
#
# The whole forward pass is the one that keeps its activations, as the parts do.

BEGIN { FS = "\t" }

$8 != "ok" { next }

$2 ~ /\.part$/ {
    g = group_of($6, substr($2, 1, length($2) - 4))
    part_name[g, ++parts[g]] = part
    time[g, parts[g]] = $11
    launch[g, parts[g]] = $17
    sum[g] += $11
    device = $16
    next
}

{
    params = $6
    keeps = sub(/ keep=1$/, "", params)
    key = $2 "\t" $3 "\t" $4 "\t" params "\t" $7
    if (keeps || !(key in whole_time)) whole_time[key] = $11
}

# "pass=forward part=up b=1" of `block.` belongs to block.forward of shape b=1; `part` is up.
function group_of(params, operation,    word, sizes, key, name) {
    split(params, word, " ")
    name = substr(word[1], 6)
    part = substr(word[2], 6)
    sizes = substr(params, length(word[1]) + length(word[2]) + 3)
    key = operation name "\t" $3 "\t" $4 "\t" sizes "\t" $7
    if (!(key in group_by_key)) {
        group_by_key[key] = ++groups
        key_of[groups] = key
        pass[groups] = name
        heading[groups] = operation name
        dtype[groups] = $3
        mode[groups] = $4
        shape_of[groups] = sizes
        variant[groups] = $7
        runs[groups] = $14
    }
    return group_by_key[key]
}

END {
    for (g = 1; g <= groups; g++) whole[g] = whole_time[key_of[g]]
}
