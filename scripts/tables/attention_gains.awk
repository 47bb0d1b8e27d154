# attention_gains.awk - with csv.awk and numbers.awk: of the CPU's rows, for each case a
# sentence that says how many times as fast each step is as the one in front of it: the
# geometric mean over dtypes and shapes of what the medians over the runs say. A step that
# was not measured is left out; a file of a GPU prints nothing.

BEGIN { step_count = split("naive tiled simd threads blas", steps, " ") }

value("status") == "ok" && value("backend") == "cpu" {
    case_name = value("case")
    if (!(case_name in known)) {
        known[case_name] = 1
        names[++name_count] = case_name
    }
    shape = case_name SUBSEP value("dtype") " " value("params") " " value("mode")
    shapes[shape] = case_name
    n = ++count[shape, value("variant")]
    values[shape, value("variant"), n] = number("median_us")
}

# How many times as fast as `before`, over the shapes that have both; 0: none has.
function gain(case_name, variant, before,    shape, pairs, logs) {
    for (shape in shapes) {
        if (shapes[shape] != case_name) continue
        if (!count[shape, variant] || !count[shape, before]) continue
        logs += log(median(shape SUBSEP before) / median(shape SUBSEP variant))
        pairs++
    }
    return pairs ? exp(logs / pairs) : 0
}

function sentence(case_name,    i, before, times, text) {
    before = steps[1]
    for (i = 2; i <= step_count; i++) {
        times = gain(case_name, steps[i], before)
        if (!times) continue
        text = text (text == "" ? "" : ", ") steps[i] " is " sprintf("%.3g", times) \
            (text == "" ? " times as fast as " : " times ") before
        before = steps[i]
    }
    return text
}

END {
    if (failed) exit 2
    for (i = 1; i <= name_count; i++) {
        text = sentence(names[i])
        if (text != "") print names[i] ": " text
    }
}
