# newest-revision.awk - with csv.awk: the column git of the row with the latest timestamp.

value("timestamp") >= newest {
    newest = value("timestamp")
    git = value("git")
}

END {
    if (failed) exit 2
    print git
}
