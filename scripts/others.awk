# others.awk - with fields.awk: names the cases that gpubench-compare --format csv
# calls missing (unless `subset` is set) or not ok, and ends with 1 if there are any.

NR == 1 { find_columns($0, column); next }

{
    split_csv($0, field)
    verdict = field[column["verdict"]]
    if (verdict != "not ok" && (verdict != "missing" || subset != "")) next
    printf "still %s: %s %s %s %s %s\n", verdict, field[column["case"]], field[column["variant"]],
           field[column["dtype"]], field[column["params"]], field[column["mode"]]
    failed = 1
}

END { exit failed }
