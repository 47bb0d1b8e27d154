# report_machine.awk - with csv.awk and report_html.awk: what the rows
# say about the machine and the build, as an HTML table; several values where the
# rows differ.

BEGIN {
    n = split("device uuid compute_capability sm_count l2_bytes memory_bytes power_limit_w driver cuda_runtime cpu " \
              "backend gpubench_version compiler git campaign mode", names, " ")
    split("device,card,compute capability,multiprocessors,L2 cache in bytes,memory in bytes,power limit in W,driver," \
          "CUDA runtime,processor,backend,gpubench,compiler,revision,campaigns,modes", titles, ",")
}

value("status") == "ok" {
    for (i = 1; i <= n; i++) {
        held = names[i] in column ? value(names[i]) : ""
        if (held == "" || (i, held) in seen) continue
        seen[i, held] = 1
        list[i] = list[i] (list[i] == "" ? "" : "; ") held
    }
    when = value("timestamp")
    if (first == "" || when < first) first = when
    if (when > last) last = when
}

END {
    if (failed) exit 2
    print "<div><table class=\"machine\">"
    for (i = 1; i <= n; i++)
        if (list[i] != "")
            printf "<tr><th scope=\"row\">%s</th><td class=\"text\">%s</td></tr>\n", titles[i], html(list[i])
    printf "<tr><th scope=\"row\">measured</th><td class=\"text\">%s</td></tr>\n",
           html(first (first == last ? "" : " to " last))
    print "</table></div>"
}
