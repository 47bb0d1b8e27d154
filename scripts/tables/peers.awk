# peers.awk - with csv.awk, numbers.awk and ratio.awk: the model suite's rows, then its peers',
# as markdown: for each case, dtype and shape that both have, the suite's fastest variant
# beside each variant of a peer, with tokens per second of both and the suite's time over the
# peer's, as ratio.awk writes it. Medians over the rounds of median_us. Of the suite's rows only
# those of the sittings that a peer has too. Each row of a peer that is not ok is named at the
# end. With -v best=1 only
# the fastest of each shape's peers.

value("mode") != "" && value("mode") != "cold" { next }

{
    variant = value("variant")
    peer = variant ~ /^(torch|llmc)/
    shape = value("case") " " value("dtype") " " value("params")
}

value("status") != "ok" {
    if (peer) trouble[++troubles] = variant " " shape ": " value("status") " " value("flags")
    next
}

peer { shared[joined("campaign uuid")] = 1 }

{
    row++
    shape_of[row] = shape
    variant_of[row] = variant (value("flags") ~ /(^| )ungated( |$)/ ? " (ungated)" : "")
    is_peer[row] = peer
    sitting_of[row] = joined("campaign uuid")
    add_run(row)
}

function take(row,    shape, id) {
    shape = shape_of[row]
    id = shape SUBSEP variant_of[row]
    if (!(shape in own_count)) {
        shapes[++shape_count] = shape
        own_count[shape] = peer_count[shape] = 0
    }
    if (!(id in count)) {
        if (is_peer[row]) peers[shape, ++peer_count[shape]] = id
        else owns[shape, ++own_count[shape]] = id
        name[id] = variant_of[row]
    }
    move_run(row, 1, id, ++count[id])
}

function fastest(shape,    i, own) {
    own = owns[shape, 1]
    for (i = 2; i <= own_count[shape]; i++)
        if (median(owns[shape, i]) < median(own)) own = owns[shape, i]
    return own
}

# The value behind NAME= in the shape.
function of_shape(shape, wanted,    n, i, list, pair) {
    n = split(shape, list, " ")
    for (i = 1; i <= n; i++) {
        split(list[i], pair, "=")
        if (pair[1] == wanted) return pair[2]
    }
    return 0
}

function is_fastest_peer(shape, other,    i) {
    for (i = 1; i <= peer_count[shape]; i++)
        if (median(peers[shape, i]) < median(other)) return 0
    return 1
}

function ms(id) { return median(id) / 1000 }

function print_shape(shape,    i, own, other, word, tokens) {
    own = fastest(shape)
    tokens = of_shape(shape, "b") * of_shape(shape, "t")
    split(shape, word, " ")
    for (i = 1; i <= peer_count[shape]; i++) {
        other = peers[shape, i]
        if (best && !is_fastest_peer(shape, other)) continue
        printf "| `%s` | %s | %s t=%s | %s %.3f | %s %.3f | %.0f | %.0f | %s |\n", \
            word[1], word[2], of_shape(shape, "size"), of_shape(shape, "t"), name[own], ms(own), \
            name[other], ms(other), tokens / ms(own) * 1000, tokens / ms(other) * 1000, \
            ratio_text(own, other)
    }
}

END {
    if (failed) exit 2
    for (i = 1; i <= row; i++) if (is_peer[i] || sitting_of[i] in shared) take(i)
    print "| case | dtype | shape | gpubench, ms | peer, ms | tokens/s | the peer's | gpubench / peer |"
    print "|---|---|---|---:|---:|---:|---:|---|"
    for (i = 1; i <= shape_count; i++)
        if (own_count[shapes[i]] > 0) print_shape(shapes[i])
    if (troubles > 0 && !best) print "\nNot ok:\n"
    for (i = 1; !best && i <= troubles; i++) print "- " trouble[i]
}
