# model_parts.awk - with csv.awk and numbers.awk: the components of a training step as
# markdown: for each size, dtype and variant whose parts were measured cold, the twenty
# that take longest with the ops that each runs (the counter `ops`) and how many launches
# that is (`launches`, which `graph` knows), what each phase's add up to, and their sum
# against the step measured as a whole; of `best` also what a step from a graph takes, which
# waits for no launch. The rest is what no
# part has: launches of the whole, and what neighbours save in the caches (negative).
# Medians over the runs of median_us.

BEGIN { most = 20 }

value("status") != "ok" || value("mode") != "cold" { next }

value("case") == "model.step" {
    if (value("variant") == "graph") note_launches("whole")
    add("whole " value("variant") " " value("dtype") " " value("params"))
    next
}

value("case") == "model.part" {
    params = value("params")
    split(params, word, " ")
    step = value("variant") " " value("dtype") " " substr(params, length(word[1] word[2]) + 3)
    part = substr(word[1], 6) " " substr(word[2], 6)
    if (!(step in number_of)) {
        steps[++step_count] = step
        number_of[step] = 0
    }
    if (!((step, part) in known)) {
        known[step, part] = 1
        name[step, ++number_of[step]] = part
    }
    ops[step, part] = counter("ops")
    if (value("variant") == "graph") note_launches(part)
    add(step " " part)
}

# Of any variant that launches the same.
function note_launches(part,    shape) {
    shape = value("params")
    sub(/^pass=[^ ]* part=[^ ]* /, "", shape)
    launches[value("dtype") " " shape, part] = counter("launches")
}

function launches_of(step, part,    shape) {
    shape = step
    sub(/^[^ ]* /, "", shape)
    return (shape, part) in launches ? launches[shape, part] : "-"
}

function add(id) { values[id, ++count[id]] = number("median_us") }

function counter(name,    pair, n, i, list) {
    n = split(value("counters"), list, " ")
    for (i = 1; i <= n; i++) {
        split(list[i], pair, "=")
        if (pair[1] == name) return pair[2]
    }
    return "-"
}

# The parts of a step, the longest first, into ranked[1..], and their sum and phases'.
function rank(step,    i, j, part, t) {
    sum = 0
    split("", of_phase)
    for (i = 1; i <= number_of[step]; i++) {
        part = name[step, i]
        time[part] = median(step " " part)
        sum += time[part]
        of_phase[substr(part, 1, index(part, " ") - 1)] += time[part]
        for (j = i; j > 1 && time[ranked[j - 1]] < time[part]; j--) ranked[j] = ranked[j - 1]
        ranked[j] = part
    }
}

function print_shares(step, whole,    phases, n, i) {
    n = split("forward loss backward update", phases, " ")
    for (i = 1; i <= n; i++)
        printf "%s %.1f %%, ", phases[i], 100 * of_phase[phases[i]] / whole
    printf "rest %.1f %% of the step; ", 100 * (whole - sum) / whole
    printf "the parts' sum is %s us of %s us: %.3f\n", show(sum), show(whole), sum / whole
    print_graph(step, whole)
}

# How busy launches keep the device.
function print_graph(step, whole,    graph) {
    if (step !~ /^best /) return
    graph = step
    sub(/^best/, "whole graph", graph)
    if (!count[graph]) return
    printf "from a graph the step's %s launches take %s us, %.1f %% of the time launch by launch\n", \
        launches_of(step, "whole"), show(median(graph)), 100 * median(graph) / whole
}

function print_step(step,    i, whole) {
    rank(step)
    printf "\n%s\n\n| phase | component | ops | launches | us | of the sum |\n|---|---|---:|---:|---:|---:|\n", step
    for (i = 1; i <= number_of[step] && i <= most; i++) {
        part = ranked[i]
        split(part, word, " ")
        printf "| %s | %s | %s | %s | %s | %.1f %% |\n", word[1], word[2], ops[step, part], \
            launches_of(step, part), show(time[part]), 100 * time[part] / sum
    }
    print ""
    if (count["whole " step]) print_shares(step, median("whole " step))
    else print "no row of the whole step"
}

END {
    if (failed) exit 2
    for (s = 1; s <= step_count; s++) print_step(steps[s])
}
