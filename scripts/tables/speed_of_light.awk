# speed_of_light.awk - with csv.awk, numbers.awk and ratio.awk: a list of cases (the file `cases`:
# speed_of_light.txt) from the baseline CSVs of a device and those of its torch/ folder,
# as one markdown table: for each case of the list the fastest variant of the suites, the
# fastest of PyTorch's (their names begin with torch-), and the device's ceiling with the
# share of it that is reached. Medians over the runs of median_us; only rows that are ok
# and cold, and of the suites' rows only those of the sittings (one campaign on one
# card) that PyTorch has too, where there are any: cards and days differ. (In torch/ they
# stand beside PyTorch's own.) Which ratios
# there are, and with which interval: ratio.awk.
#
# The ceiling is what the ceilings suite reached on this device: the bandwidth of a
# copy (of a triad where no copy was measured) and the matrix product of the dtype;
# that of the two counts which needs more time for the case's bytes or operations.

BEGIN {
    while ((getline one < cases) > 0)
        if (one !~ /^#/ && one != "") {
            wanted[one] = 1
            list[++list_length] = one
        }
    close(cases)
}

value("status") != "ok" || value("mode") != "cold" { next }

{
    line = value("case") " " value("dtype") " " value("params")
    side = value("variant") ~ /^torch-/ ? "torch" : "own"
}

side == "own" && value("case") ~ /^(bandwidth\.(copy|triad)|gemm\.nn)$/ { add("ceiling") }

line in wanted {
    id = add(side)
    sitting[id, count[id]] = value("suite") SUBSEP value("campaign") SUBSEP value("uuid")
    if (side == "torch") {
        versions[value("compiler")] = 1
        shared[sitting[id, count[id]]] = 1
    }
    if (value("flags") ~ /(^| )ungated( |$)/) ungated[id] = 1
}

function add(kind,    id) {
    id = kind SUBSEP line SUBSEP value("variant")
    add_run(id)
    note_work("bytes" SUBSEP line, value("bytes"))
    note_work("flops" SUBSEP line, value("flops"))
    return id
}

function bytes(line) { return typical_work("bytes" SUBSEP line) }
function flops(line) { return typical_work("flops" SUBSEP line) }

# Of the suites' values those of the shared sittings, or all if none is.
function keep_shared(    id, part, i, kept) {
    for (id in count) {
        split(id, part, SUBSEP)
        if (part[1] != "own") continue
        kept = 0
        for (i = 1; i <= count[id]; i++)
            if (sitting[id, i] in shared) move_run(id, i, id, ++kept)
        if (kept > 0) count[id] = kept
    }
}

# The id of the fastest variant of a line, "" if there is none; its median is in `us`.
function fastest(kind, line,    id, part, best, median_us) {
    us = 0
    for (id in count) {
        split(id, part, SUBSEP)
        if (part[1] != kind || part[2] != line) continue
        median_us = median(id)
        if (best == "" || median_us < us) { best = id; us = median_us }
    }
    return best
}

# Work per microsecond: of the copy in bytes, of a dtype's matrix product in operations.
function find_ceilings(    id, part, word, rate, name) {
    for (id in count) {
        split(id, part, SUBSEP)
        if (part[1] != "ceiling") continue
        split(part[2], word, " ")
        name = word[1] == "gemm.nn" ? "gemm.nn " word[2] : word[1]
        rate = (word[1] == "gemm.nn" ? flops(part[2]) : bytes(part[2])) / median(id)
        if (rate > ceiling[name]) ceiling[name] = rate
    }
    copy = ("bandwidth.copy" in ceiling) ? "bandwidth.copy" : "bandwidth.triad"
}

# The name of the ceiling that counts for a line; "" if one was not measured.
function find_bound(line,    word, product) {
    split(line, word, " ")
    product = "gemm.nn " word[2]
    if (!(copy in ceiling) || !(product in ceiling)) return ""
    return bytes(line) / ceiling[copy] >= flops(line) / ceiling[product] ? copy : product
}

function work(line, bound) { return bound ~ /^gemm/ ? flops(line) : bytes(line) }

function rate_text(rate, bound) {
    return bound ~ /^gemm/ ? sprintf("%.1f TFLOP/s", rate / 1e6) : sprintf("%.2f TB/s", rate / 1e6)
}

function variant_text(id, us,    part) {
    if (id == "") return "not measured"
    split(id, part, SUBSEP)
    return part[3] " " show(us) (id in ungated ? " (ungated)" : "")
}

function print_line(line,    own, own_us, torch, bound, word, unknown) {
    unknown = "not measured"
    own = fastest("own", line)
    own_us = us
    torch = fastest("torch", line)
    bound = find_bound(line)
    split(line, word, " ")
    printf "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s |\n", word[1], word[2],
           substr(line, length(word[1] word[2]) + 3), variant_text(own, own_us),
           (own == "" || bound == "" ? unknown : rate_text(work(line, bound) / own_us, bound)),
           variant_text(torch, us),
           (own == "" || torch == "" ? unknown : ratio_text(own, torch)),
           (bound == "" ? unknown : bound " " rate_text(ceiling[bound], bound)),
           (own == "" || bound == "" ? unknown : sprintf("%.0f %%", 100 * work(line, bound) / ceiling[bound] / own_us))
}

END {
    if (failed) exit 2
    find_ceilings()
    keep_shared()
    print "| case | dtype | shape | gpubench, us | it reaches | PyTorch, us | gpubench / PyTorch | ceiling | reached |"
    print "|---|---|---|---:|---:|---:|---|---:|---:|"
    for (i = 1; i <= list_length; i++) print_line(list[i])
    for (version in versions) printf "\nPyTorch's rows: %s.\n", version
}
