# others.awk - with csv.awk: names the cases that gpubench-compare --format csv calls
# missing (unless `subset` is set) or not ok, and ends with 1 if there are any.

value("verdict") == "not ok" || (value("verdict") == "missing" && subset == "") {
    printf "still %s: %s %s %s %s %s\n", value("verdict"), value("case"), value("variant"),
           value("dtype"), value("params"), value("mode")
    found = 1
}

END { exit failed ? 2 : found }
