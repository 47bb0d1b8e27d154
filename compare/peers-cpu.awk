# peers-cpu.awk - with csv.awk and numbers.awk: the suites' rows of the CPU and those of
# their peers as markdown, each file behind threads=N. For each case, dtype, shape and number
# of threads the fastest variant beside each peer; beside products alone (numpy-products)
# the fastest of own code and `blas`; and beside the fastest copy or read of the sitting what
# moves as many bytes as memory does. Medians over the rounds of median_us; the interval is
# the widest that the intervals of both medians allow in any round.

value("mode") != "cold" { next }

{
    variant = value("variant")
    peer = variant ~ /^(torch|numpy)/
    place = value("case") SUBSEP value("dtype") SUBSEP value("params") SUBSEP threads
}

# What is not there has no row beside it, and is no trouble.
value("status") != "ok" {
    if (value("status") != "unsupported")
        trouble[++troubles] = variant " " value("case") " " value("dtype") " " value("params") \
            ", " threads " threads: " value("status")
    next
}

{
    id = place SUBSEP variant
    if (!(place in seen)) {
        seen[place] = 1
        places[++place_count] = place
    }
    if (!(id in count)) {
        members[place, ++member_count[place]] = id
        name[id] = variant
        is_peer[id] = peer
        low[id] = number("ci95_low_us")
        high[id] = number("ci95_high_us")
    }
    values[id, ++count[id]] = number("median_us")
    if (number("ci95_low_us") < low[id]) low[id] = number("ci95_low_us")
    if (number("ci95_high_us") > high[id]) high[id] = number("ci95_high_us")
    note_work("bytes" SUBSEP id, value("bytes"))
}

# The fastest of the place's own variants whose names match; "" if there is none.
function fastest(place, wanted,    i, id, best) {
    best = ""
    for (i = 1; i <= member_count[place]; i++) {
        id = members[place, i]
        if (!is_peer[id] && name[id] ~ wanted && (best == "" || median(id) < median(best))) best = id
    }
    return best
}

function print_pair(place, own, other,    word) {
    split(place, word, SUBSEP)
    printf "| `%s` | %s | %s | %s | %s %.3f | %s %.3f | %.2f (%.2f to %.2f) |\n", word[1], word[2], \
        word[3], word[4], name[own], median(own) / 1000, name[other], median(other) / 1000, \
        median(own) / median(other), low[own] / high[other], high[own] / low[other]
}

function print_place(place,    i, id, all, own, blas) {
    all = fastest(place, ".")
    own = fastest(place, "^[^b]")
    blas = fastest(place, "^blas$")
    for (i = 1; i <= member_count[place]; i++) {
        id = members[place, i]
        if (!is_peer[id]) continue
        if (name[id] != "numpy-products") {
            if (all != "") print_pair(place, all, id)
            continue
        }
        if (own != "") print_pair(place, own, id)
        if (blas != "") print_pair(place, blas, id)
    }
}

function gb_per_s(id) { return typical_work("bytes" SUBSEP id) / median(id) / 1000 }

# GB/s of the fastest own variant of a bandwidth case with these threads; "" without one.
function ceiling(kind, count_of_threads,    i, word, own, most) {
    most = ""
    for (i = 1; i <= place_count; i++) {
        split(places[i], word, SUBSEP)
        if (word[1] != "bandwidth." kind || word[4] != count_of_threads) continue
        own = fastest(places[i], ".")
        if (own != "" && gb_per_s(own) > most) most = gb_per_s(own)
    }
    return most
}

# A pass that writes next to nothing is held against reading.
function kind_of(case_name) { return case_name == "cross_entropy.forward" ? "read" : "copy" }

function print_bound(place,    word, own, most) {
    split(place, word, SUBSEP)
    if (word[1] !~ /norm|cross_entropy|optimizer|embedding/) return
    own = fastest(place, ".")
    most = ceiling(kind_of(word[1]), word[4])
    if (own == "" || most == "") return
    bounds = bounds sprintf("| `%s` | %s | %s | %s | %s %.1f | %s %.1f | %.2f |\n", word[1], word[2], \
        word[3], word[4], name[own], gb_per_s(own), kind_of(word[1]), most, gb_per_s(own) / most)
}

# As they were measured, they are shuffled.
function in_order(    i) {
    for (i = 1; i <= place_count; i++) order[places[i]] = padded(places[i])
    sort_by(places, place_count, order)
}

END {
    if (failed) exit 2
    in_order()
    print "| case | dtype | shape | threads | gpubench, ms | peer, ms | gpubench / peer |"
    print "|---|---|---|---:|---:|---:|---|"
    for (i = 1; i <= place_count; i++) print_place(places[i])
    for (i = 1; i <= place_count; i++) print_bound(places[i])
    if (bounds != "") {
        print "\n| case | dtype | shape | threads | gpubench, GB/s | ceiling, GB/s | share |"
        print "|---|---|---|---:|---:|---:|---:|"
        printf "%s", bounds
    }
    if (troubles > 0) print "\nNot ok:\n"
    for (i = 1; i <= troubles; i++) print "- " trouble[i]
}
