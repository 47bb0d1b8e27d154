# runs.awk - the baseline CSVs of a device and those of its torch/ folder as one
# markdown table: how many runs, campaigns and cards each suite's rows come from,
# and how many of the runs a case has. Only rows that are ok. Splits at plain
# commas: in such a row no field has one.

BEGIN { FS = "," }

FNR == 1 {
    for (i = 1; i <= NF; i++) column[$i] = i
    next
}

$(column["status"]) == "ok" {
    source = $(column["suite"]) ($(column["variant"]) ~ /^torch-/ ? " by PyTorch" : "")
    if (!(source in known)) { known[source] = 1; sources[++source_count] = source }
    count_once(run_count, source, "run " $(column["run"]) " of " $(column["campaign"]))
    count_once(campaign_count, source, "campaign " $(column["campaign"]))
    count_once(card_count, source, "card " $(column["uuid"]))
    case_runs[source, $(column["case"]) " " $(column["variant"]) " " $(column["dtype"]) " " $(column["params"]) " " \
              $(column["mode"])]++
}

function count_once(counts, source, what) {
    if ((source, what) in seen) return
    seen[source, what] = 1
    counts[source]++
}

# The least and the most runs that a case of the source has.
function range_of(source,    id, part, least, most) {
    for (id in case_runs) {
        split(id, part, SUBSEP)
        if (part[1] != source) continue
        if (least == "" || case_runs[id] < least) least = case_runs[id]
        if (case_runs[id] > most) most = case_runs[id]
    }
    return least == most ? least : least " to " most
}

END {
    print "| baseline | runs | of a case | campaigns | cards |"
    print "|---|---:|---:|---:|---:|"
    for (i = 1; i <= source_count; i++)
        printf "| %s | %d | %s | %d | %d |\n", sources[i], run_count[sources[i]], range_of(sources[i]),
               campaign_count[sources[i]], card_count[sources[i]]
}
