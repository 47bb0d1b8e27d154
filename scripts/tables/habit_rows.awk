# habit_rows.awk - with csv.awk: of a file the rows of model.habit that are ok and cold, the
# last first, so that the better habit is the first variant of its case.

value("case") == "model.habit" && value("status") == "ok" && value("mode") == "cold" {
    rows[++row_count] = record
}

END {
    if (failed) exit 2
    print header
    for (i = row_count; i >= 1; i--) print rows[i]
}
