# model_habits.awk - with csv.awk and numbers.awk: what habits cost a training step as
# markdown. Of each `model.habit` case measured cold the time of one step by each variant,
# tokens per second, and how many times the time of the group's last variant, which has
# the better habit, that is, with the interval from both medians' (the widest that they
# allow). Then the variants of `model.step` against `best` in the same way. Medians over
# the runs of median_us and of the ends of its interval.

value("status") != "ok" || value("mode") != "cold" { next }

value("case") == "model.habit" || value("case") == "model.step" {
    id = value("case") " " value("dtype") " " value("params")
    if (!(id in variants)) ids[++id_count] = id
    variant = value("variant")
    if (!((id, variant) in known)) {
        known[id, variant] = 1
        name[id, ++variants[id]] = variant
    }
    add(id " " variant, "median_us")
    add(id " " variant " low", "ci95_low_us")
    add(id " " variant " high", "ci95_high_us")
    bytes[id, variant] = counter("peak_bytes")
}

function add(key, column_name,    us) {
    us = number(column_name, 1)
    values[key, ++count[key]] = us == "" ? number("median_us") : us
}

# Of the column `counters`; device_bytes where the row does not have it.
function counter(wanted,    n, i, list, pair) {
    n = split(value("counters"), list, " ")
    for (i = 1; i <= n; i++) {
        split(list[i], pair, "=")
        if (pair[1] == wanted) return pair[2]
    }
    return value("device_bytes")
}

# The value behind NAME= in params.
function of_params(params, wanted,    n, i, list, pair) {
    n = split(params, list, " ")
    for (i = 1; i <= n; i++) {
        split(list[i], pair, "=")
        if (pair[1] == wanted) return pair[2]
    }
    return 1
}

function print_variant(id, label, variant, base,    us, low, high, steps, tokens) {
    us = median(id " " variant)
    low = median(id " " variant " low") / median(id " " base " high")
    high = median(id " " variant " high") / median(id " " base " low")
    steps = of_params(id, "steps")
    tokens = of_params(id, "b") * of_params(id, "t") * steps
    printf "| %s | %s | %s | %.0f | %.0f | %s |\n", label, variant, show(us / steps), \
        tokens / us * 1e6, bytes[id, variant] / 1e6, \
        (variant == base ? "1" : sprintf("%.3f (%.3f to %.3f)", us / median(id " " base), low, high))
}

# habit, dtype and size of a case.
function label_of(id,    word) {
    split(id, word, " ")
    return (word[1] == "model.step" ? "step" : of_params(id, "habit")) ", " word[2] \
        ", " of_params(id, "size") " b=" of_params(id, "b") " t=" of_params(id, "t")
}

function print_case(id,    i, base) {
    base = id ~ /^model\.step / ? "best" : name[id, variants[id]]
    if (!((id, base) in known)) return
    for (i = 1; i <= variants[id]; i++) print_variant(id, label_of(id), name[id, i], base)
}

END {
    if (failed) exit 2
    print "\n| habit | variant | us a step | tokens/s | MB | times |\n|---|---|---:|---:|---:|---|"
    for (i = 1; i <= id_count; i++) if (ids[i] ~ /^model\.habit /) print_case(ids[i])
    for (i = 1; i <= id_count; i++) if (ids[i] ~ /^model\.step /) print_case(ids[i])
}
