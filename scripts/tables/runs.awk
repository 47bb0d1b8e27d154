# runs.awk - with csv.awk: the baseline CSVs of a device and those of its torch/ and llmc/ as
# one markdown table: how many runs, campaigns and cards each file's rows come from, how many
# of the runs a case has, and the revisions of the code. Only rows that are ok. A campaign is of
# one card; of it are also the cases that `make compare` found doubtful in it and gave a name of
# their own.

value("status") == "ok" {
    source = name_of(FILENAME) whose(FILENAME)
    if (!(source in known)) { known[source] = 1; sources[++source_count] = source }
    campaign = value("campaign")
    sub(/-doubtful$/, "", campaign)
    campaign = campaign " on " value("uuid")
    count_once(run_count, source, "run " value("run") " of " campaign)
    count_once(campaign_count, source, "campaign " campaign)
    count_once(card_count, source, "card " value("uuid"))
    if (count_once(revision_count, source, "revision " value("git")))
        revisions[source] = revisions[source] (revisions[source] == "" ? "" : ", ") value("git")
    case_runs[source, joined("case variant dtype params mode")]++
}

function name_of(path) {
    gsub(/^.*\/|\.csv$/, "", path)
    return path
}

function whose(path) {
    if (path ~ /(^|\/)llmc\//) return " by llm.c"
    if (value("variant") ~ /^torch-/) return " by PyTorch"
    return path ~ /(^|\/)torch\// ? " beside PyTorch" : ""
}

function count_once(counts, source, what) {
    if ((source, what) in seen) return 0
    seen[source, what] = 1
    counts[source]++
    return 1
}

# By name, unless they are many.
function revisions_of(source) {
    return revision_count[source] <= 4 ? revisions[source] : revision_count[source] " of them"
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
    if (failed) exit 2
    print "| baseline | runs | of a case | campaigns | cards | revisions |"
    print "|---|---:|---:|---:|---:|---|"
    for (i = 1; i <= source_count; i++)
        printf "| %s | %d | %s | %d | %d | %s |\n", sources[i], run_count[sources[i]], range_of(sources[i]),
               campaign_count[sources[i]], card_count[sources[i]], revisions_of(sources[i])
}
