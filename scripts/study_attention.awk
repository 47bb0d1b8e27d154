# study_attention.awk - with csv.awk and numbers.awk: attention's share of a block's parts
# over the context as a table in markdown, or with -v svg=1 as a picture: by operations
# (column flops), and by time, the parts of each pass one after the other. Medians over the
# runs of median_us. With causal attention counted half and d_ff = 4 d_model the share of the
# operations is context / (12 d_model + context).

value("case") != "block.part" || value("status") != "ok" || value("mode") != "cold" { next }

{
    pass = of_params("pass")
    part = of_params("part")
    context = of_params("t") + 0
    line = value("dtype") " " of_params("d")
    if (!((line, context) in seen)) {
        seen[line, context] = 1
        contexts[line, ++context_count[line]] = context
        if (context_count[line] == 1) lines[++line_count] = line
        batch[line, context] = of_params("b")
    }
    id = line SUBSEP context SUBSEP pass SUBSEP part
    if (!(id in count)) ids[++id_count] = id
    values[id, ++count[id]] = number("median_us")
    work[id] = number("flops", 1) + 0
}

function of_params(wanted,    n, i, list, pair) {
    n = split(value("params"), list, " ")
    for (i = 1; i <= n; i++) {
        split(list[i], pair, "=")
        if (pair[1] == wanted) return pair[2]
    }
    return ""
}

function add_up(    i, key, us, word) {
    for (i = 1; i <= id_count; i++) {
        split(ids[i], word, SUBSEP)
        key = word[1] SUBSEP word[2] SUBSEP word[3]
        us = median(ids[i])
        time_of[key] += us
        work_of[key] += work[ids[i]]
        if (word[4] != "attention") continue
        attention_time[key] += us
        attention_work[key] += work[ids[i]]
    }
}

function share(part, whole, line, context, pass,    key) {
    key = line SUBSEP context SUBSEP pass
    return whole[key] > 0 ? 100 * part[key] / whole[key] : 0
}

function sorted_contexts(line, list,    i) {
    split("", list)
    for (i = 1; i <= context_count[line]; i++) list[i] = contexts[line, i]
    sort(list, context_count[line])
    return context_count[line]
}

function table(    l, n, i, line, word, list) {
    for (l = 1; l <= line_count; l++) {
        line = lines[l]
        split(line, word, " ")
        printf "%s%s, d_model %d\n\n", (l > 1 ? "\n" : ""), word[1], word[2]
        print "| context | batch | of the operations | of the forward pass | of the backward pass |" \
              " attention forward, us | backward, us |"
        print "|---:|---:|---:|---:|---:|---:|---:|"
        n = sorted_contexts(line, list)
        for (i = 1; i <= n; i++) print_context(line, list[i])
    }
}

function print_context(line, context) {
    printf "| %d | %d | %.1f %% | %.1f %% | %.1f %% | %s | %s |\n", context, batch[line, context], \
        share(attention_work, work_of, line, context, "forward"), \
        share(attention_time, time_of, line, context, "forward"), \
        share(attention_time, time_of, line, context, "backward"), \
        show(attention_time[line, context, "forward"]), \
        show(attention_time[line, context, "backward"])
}

# Of the first line: shares over the context, which doubles from step to step.
function picture(    line, n, list) {
    line = lines[1]
    n = sorted_contexts(line, list)
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 320\"" \
          " font-family=\"sans-serif\" font-size=\"12\">"
    printf "<title>Attention's share of a block over the context: %s</title>\n", line
    print "<text x=\"8\" y=\"24\">100 %</text><text x=\"8\" y=\"284\">0 %</text>"
    print "<text x=\"280\" y=\"312\">context</text>"
    curve(line, n, list, attention_work, work_of, "forward", "#6e7781", "operations", 1)
    curve(line, n, list, attention_time, time_of, "forward", "#0969da", "forward", 2)
    curve(line, n, list, attention_time, time_of, "backward", "#bf3989", "backward", 3)
    print "</svg>"
}

function curve(line, n, list, part, whole, pass, colour, name, number_of,    i, x, y, path) {
    for (i = 1; i <= n; i++) {
        x = 60 + (n > 1 ? (i - 1) * 470 / (n - 1) : 0)
        y = 280 - 2.6 * share(part, whole, line, list[i], pass)
        path = path sprintf("%s%.1f,%.1f", i > 1 ? " " : "", x, y)
        if (number_of == 1) printf "<text x=\"%.1f\" y=\"298\">%d</text>\n", x - 12, list[i]
    }
    printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"%s\"/>\n", colour, path
    printf "<text x=\"550\" y=\"%d\" fill=\"%s\">%s</text>\n", 20 + 16 * number_of, colour, name
}

END {
    if (failed) exit 2
    if (line_count == 0) fail("study_attention: no parts of blocks")
    add_up()
    if (svg) picture()
    else table()
}
