# nccl_tests.awk - rows of the collective suite beside what nccl-tests found, which -v theirs
# names: lines of operation, variant, bytes, microseconds and GB/s of the bus. Read behind
# compare/csv.awk.

BEGIN {
    while ((getline line < theirs) > 0) {
        split(line, part, ",")
        key = part[1] " " part[2] " " part[3]
        their_us[key] = part[4]
        their_bus[key] = part[5]
    }
    printf "%-15s %-14s %11s %11s %11s %6s %9s %9s %6s\n", "operation", "variant", "bytes",
        "theirs us", "ours us", "ratio", "bus GB/s", "ours", "ratio"
}

record {
    operation = value("case")
    sub(/^collective\./, "", operation)
    bytes = value("params")
    sub(/.*bytes=/, "", bytes)
    key = operation " " value("variant") " " bytes
    if (value("status") != "ok") {
        print key ": " value("status") " " value("flags")
        next
    }
    if (!(key in their_us)) next
    bus = value("counters")
    sub(/.*busB\/s=/, "", bus)
    sub(/ .*/, "", bus)
    us = value("median_us")
    printf "%-15s %-14s %11s %11.2f %11.2f %6.3f %9.2f %9.2f %6.3f\n", operation,
        value("variant"), bytes, their_us[key], us, us / their_us[key], their_bus[key], bus / 1e9,
        (their_bus[key] + 0 ? bus / 1e9 / their_bus[key] : 0)
}
