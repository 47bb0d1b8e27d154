# newest-revision.awk - of a CSV file of results, behind fields.awk: the column git of
# the row with the latest timestamp.
NR == 1 { find_columns($0, column); next }
{
    split_csv($0, field)
    if (field[column["timestamp"]] >= newest) {
        newest = field[column["timestamp"]]
        git = field[column["git"]]
    }
}
END { print git }
