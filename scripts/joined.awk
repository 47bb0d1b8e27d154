# joined.awk - with csv.awk: `further` and another file, the first process's rows of all cases
# and those that further processes have of some, as one sitting. What was measured further
# gets a campaign of its own, the first process's rows of it too: so each case has all its runs
# in one campaign, as one sitting is, and each run of a campaign has the same cases.

function quoted(text) {
    if (text !~ /[",\r\n]/) return text
    gsub(/"/, "\"\"", text)
    return "\"" text "\""
}

function print_as(text, campaign, run,    i, line) {
    cut(text)
    fields[column["campaign"]] = campaign
    if (run) fields[column["run"]] = run
    for (i = 1; i <= width; i++) line = line (i > 1 ? "," : "") quoted(fields[i])
    print line
}

{ line = joined("case variant dtype params") }

file == further {
    is_doubtful[line] = 1
    rows[++count] = record
    run_of[count] = value("run") + 0
    next
}

!printed++ { print header }

{
    campaign = fields[column["campaign"]]
    if (value("run") + 0 > last) last = value("run") + 0
}

line in is_doubtful {
    held[++holding] = record
    next
}

{ print record }

END {
    if (failed) exit 2
    for (i = 1; i <= holding; i++) print_as(held[i], campaign "-doubtful")
    for (i = 1; i <= count; i++) print_as(rows[i], campaign "-doubtful", last + run_of[i])
}
