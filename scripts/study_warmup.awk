# study_warmup.awk - study-warmup.sh's rows as a table in markdown, or with -v svg=1 as a
# picture: for each number of steps before, the ten timed ones, means over the processes.

BEGIN { FS = "," }

FNR == 1 { next }

{
    if (!($1 in seen)) {
        seen[$1] = 1
        order[++groups] = $1
    }
    sum[$1, $2] += $3
    n[$1, $2]++
    all[$1] += $3
    squares[$1] += $3 * $3
    count[$1]++
    if ($2 > steps) steps = $2
}

# A process that was ended has not all steps.
function of(group, step) {
    return n[group, step] > 0 ? sum[group, step] / n[group, step] / 1000 : 0
}

function table(    g, before, mean, deviation, last) {
    last = all[order[groups]] / count[order[groups]]
    print "| steps before | first, ms | second | third | mean of ten | standard deviation |" \
          " mean against the last line |"
    print "|---:|---:|---:|---:|---:|---:|---:|"
    for (g = 1; g <= groups; g++) {
        before = order[g]
        mean = all[before] / count[before]
        deviation = squares[before] / count[before] - mean * mean
        printf "| %d | %.3f | %.3f | %.3f | %.3f | %.3f | %+.1f %% |\n", before, of(before, 1), \
            of(before, 2), of(before, 3), mean / 1000, sqrt(deviation > 0 ? deviation : 0) / 1000, \
            100 * (mean / last - 1)
    }
}

# Times on a logarithmic scale over the step of the process, one line a group.
function picture(    g, s, x, y, low, high, path, colours) {
    split("#0969da #bf3989 #1a7f37 #9a6700 #8250df", colours, " ")
    low = high = log(of(order[1], 1))
    for (g = 1; g <= groups; g++)
        for (s = 1; s <= steps; s++) {
            y = log(of(order[g], s))
            if (y < low) low = y
            if (y > high) high = y
        }
    high += 0.05
    low -= 0.05
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 320\"" \
          " font-family=\"sans-serif\" font-size=\"12\">"
    print "<title>The first steps of a process, ms, by how many came before</title>"
    printf "<text x=\"8\" y=\"24\">%.2f ms</text>", exp(high)
    printf "<text x=\"8\" y=\"284\">%.2f ms</text>\n", exp(low)
    print "<text x=\"280\" y=\"312\">step of the process</text>"
    for (g = 1; g <= groups; g++) {
        path = ""
        for (s = 1; s <= steps; s++) {
            x = 70 + (order[g] + s - 1) * 500 / (order[groups] + steps)
            y = 280 - 260 * (log(of(order[g], s)) - low) / (high - low)
            path = path sprintf("%s%.1f,%.1f", s > 1 ? " " : "", x, y)
        }
        printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"%s\"/>\n", \
            colours[g], path
        printf "<text x=\"560\" y=\"%d\" fill=\"%s\">%d before</text>\n", 20 + 16 * g, \
            colours[g], order[g]
    }
    print "</svg>"
}

END {
    if (groups == 0) {
        print "study_warmup: no rows" > "/dev/stderr"
        exit 2
    }
    if (svg) picture()
    else table()
}
