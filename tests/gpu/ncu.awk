# ncu.awk - with csv.awk and numbers.awk, before a program that reads the CSV lines of
# `ncu --csv --page raw`: what the times of kernels are in.

function unit_in_us(unit) {
    if (unit ~ /^(ns|nsecond)$/) return 1e-3
    if (unit ~ /^(us|usecond)$/) return 1
    if (unit ~ /^(ms|msecond)$/) return 1e3
    return unit ~ /^(s|second)$/ ? 1e6 : 0
}

# What the kernel of ncu's line took, -1 if the line does not say.
function ncu_us(    duration) {
    duration = value("gpu__time_duration.sum")
    gsub(/,/, "", duration) # between thousands
    return scale > 0 && is_number(duration) ? duration * scale : -1
}

function absolute(amount) { return amount < 0 ? -amount : amount }

# The line below ncu's header is that of units; each file has its own.
"Kernel Name" in column && value("Kernel Name") == "" {
    scale = unit_in_us(value("gpu__time_duration.sum"))
    next
}
