# points.awk - with csv.awk and numbers.awk: suites' results as lines with tabs, one for each case,
# variant, dtype, shape and mode:
#
#   1 a key that sorts shapes by their numbers (cut it off after sorting)
#   2 suite  3 case  4 dtype  5 mode  6 options  7 params  8 variant  9 status
#   10 bytes  11 flops, medians over the runs  12 median  13 lowest  14 highest, of median_us
#   15 runs  16 flags  17 device  18 median of overhead_us
#
# Options are the params that are no sizes: those that are not numbers, or only ever 0
# and 1, or of how many GPUs or ranks a case is. Rows that are not ok have their status
# and no numbers; a shape that has ok rows too is shown by those.

function is_of_ranks(name, key) {
    return key == "gpus" || key == "ranks" || (key == "n" && name ~ /^collective[.]/)
}

# Which of a case's params differ, and which of them hold sizes.
function learn(name, params,    word, n, i, key, held) {
    n = split(params, word, " ")
    for (i = 1; i <= n; i++) {
        key = word[i]
        sub(/=.*/, "", key)
        held = substr(word[i], length(key) + 2)
        if (held !~ /^[01]$/ && held ~ /^[0-9]+$/ && !is_of_ranks(name, key)) is_size[name, key] = 1
        if (!((name, key) in first_held)) first_held[name, key] = held
        if (first_held[name, key] != held) differs[name, key] = 1
    }
}

function options(name, params,    word, n, i, key, out) {
    n = split(params, word, " ")
    for (i = 1; i <= n; i++) {
        key = word[i]
        sub(/=.*/, "", key)
        if (!((name, key) in is_size) && (name, key) in differs) out = out (out == "" ? "" : " ") word[i]
    }
    return out
}

{
    if (value("schema") != 1 && value("schema") != 2)
        fail_here("schema '" value("schema") "', where these plots know 1 and 2")
    # Their cold and graph were measured behind different flushes.
    if (schema == "") schema = value("schema")
    if (value("schema") != schema)
        fail_here("schema '" value("schema") "', where the rows before are of '" schema "'")
    if (device == "") device = value("device")
    if (value("device") != device && value("device") != "")
        fail_here("device '" value("device") "', where the rows before are of '" device "'")
    learn(value("case"), value("params"))
    id = value("suite") "\t" value("case") "\t" value("dtype") "\t" value("mode") "\t" \
         value("params") "\t" value("variant")
    if (!(id in status)) ids[++id_count] = id
    if (!(id in status) || value("status") == "ok") {
        status[id] = value("status")
        flags[id] = value("flags")
    }
}

value("status") == "ok" {
    us = number("median_us")
    if (us <= 0) fail_here("median_us is " us)
    values[id, ++count[id]] = us
    note_work("bytes\t" id, number("bytes", 1))
    note_work("flops\t" id, number("flops", 1))
    values[id "\tlaunch", ++count[id "\tlaunch"]] = number("overhead_us", 1)
    run = value("campaign") " " value("run")
    if (!(run in seen_run)) { seen_run[run] = 1; runs++ }
}

END {
    if (failed) exit 2
    if (!runs) fail(file ": no row that is ok")
    for (i = 1; i <= id_count; i++) {
        id = ids[i]
        split(id, part, "\t")
        numbers = "\t\t\t\t\t0"
        launch = count[id] ? sprintf("%.10g", median(id "\tlaunch")) : ""
        bytes = typical_work("bytes\t" id)
        flops = typical_work("flops\t" id)
        if (count[id])
            numbers = sprintf("%s\t%s\t%.10g\t%.10g\t%.10g\t%d", bytes, flops, median(id), lowest, highest,
                              count[id])
        printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", \
               padded(part[1] " " part[2] " " part[3] " " part[4] " " part[5] " " part[6]), \
               part[1], part[2], part[3], part[4], options(part[2], part[5]), part[5], part[6], \
               status[id], numbers, flags[id], device, launch
    }
}
