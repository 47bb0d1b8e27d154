# truth.awk - gpubench's cold numbers against Nsight Compute's: reads the rows of
# tests/gpu/truth.cu (files that `file == "rows"` precedes) and the output of `ncu
# --csv --page raw` (`file == "ncu"`), any number of each, and prints the table.
# Ends with 0 if all but two of the kernels agree and none is far off, with 1 if
# not so, with 2 if one side has nothing.

# The fields of a line of CSV into field[1..], by RFC 4180; how many.
function split_csv(line, field,    count, at, text) {
    split("", field)
    count = 0
    sub(/\r$/, "", line)
    for (;;) {
        if (line ~ /^"/) {
            text = ""
            line = substr(line, 2)
            while ((at = index(line, "\"")) > 0 && substr(line, at + 1, 1) == "\"") {
                text = text substr(line, 1, at)
                line = substr(line, at + 2)
            }
            if (at == 0) return 0 # the quote never ends
            text = text substr(line, 1, at - 1)
            line = substr(line, at + 1)
        } else {
            at = index(line, ",")
            text = at ? substr(line, 1, at - 1) : line
            line = at ? substr(line, at) : ""
        }
        field[++count] = text
        if (line !~ /^,/) return count
        line = substr(line, 2)
    }
}

function note_columns(count,    i) {
    split("", column)
    for (i = 1; i <= count; i++) column[field[i]] = i
}

function value(name) { return name in column ? field[column[name]] : "" }

# void truth_copy<(int)64>(float4 *, const float4 *) is the case "copy 64".
function kernel_of(text) {
    if (!match(text, /truth_[a-z]+<[^>]*>/)) return ""
    text = substr(text, RSTART + 6, RLENGTH - 6)
    gsub(/\([a-z ]*\)|>/, "", text)
    sub(/</, " ", text)
    return text ~ /^empty / ? "empty" : text
}

# "copy" with "kib=64" is "copy 64".
function kernel_of_row(    parameter) {
    parameter = value("params")
    sub(/.*=/, "", parameter)
    return parameter == "" ? value("case") : value("case") " " parameter
}

function is_number(text) { return text ~ /^[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?$/ }

function unit_in_us(unit) {
    if (unit ~ /^(ns|nsecond)$/) return 1e-3
    if (unit ~ /^(us|usecond)$/) return 1
    if (unit ~ /^(ms|msecond)$/) return 1e3
    return unit ~ /^(s|second)$/ ? 1e6 : 0
}

function absolute(number) { return number < 0 ? -number : number }

# The median of the numbers in a text with blanks between them.
function median(text,    numbers, count, i, j, each) {
    count = split(text, numbers, " ")
    for (i = 2; i <= count; i++) {
        each = numbers[i] + 0
        for (j = i - 1; j > 0 && numbers[j] + 0 > each; j--) numbers[j + 1] = numbers[j]
        numbers[j + 1] = each
    }
    i = int((count + 1) / 2)
    return count % 2 ? numbers[i] + 0 : (numbers[i] + numbers[i + 1]) / 2
}

FNR == 1 {
    split("", column)
    scale = 0
}

file == "ncu" {
    if ($0 !~ /^"/) next # what ncu and the program say in between
    count = split_csv($0, field)
    if (!("Kernel Name" in column)) {
        note_columns(count)
        next
    }
    if (value("Kernel Name") == "") { # the line of units
        scale = unit_in_us(value("gpu__time_duration.sum"))
        next
    }
    kernel = kernel_of(value("Kernel Name"))
    duration = value("gpu__time_duration.sum")
    gsub(/,/, "", duration) # between thousands
    if (kernel != "" && scale > 0 && is_number(duration)) {
        ncu[kernel] = ncu[kernel] " " sprintf("%.6f", duration * scale)
        ncu_rows++
    }
    next
}

file == "rows" {
    count = split_csv($0, field)
    if (FNR == 1) {
        note_columns(count)
        next
    }
    if (value("mode") != "cold") next
    kernel = kernel_of_row()
    if (!(kernel in name)) {
        name[kernel] = value("case") (value("params") == "" ? "" : " " value("params"))
        kernels[++kernel_count] = kernel
    }
    if (value("status") != "ok" || !is_number(value("overhead_us"))) {
        problem[kernel] = value("status") == "ok" ? "no overhead_us" : value("status")
        next
    }
    cold[kernel] = cold[kernel] " " value("median_us")
    overhead[kernel] = overhead[kernel] " " value("overhead_us")
    own[kernel] = own[kernel] " " sprintf("%.6f", value("median_us") - value("overhead_us"))
    cold_rows++
}

function complain(text) {
    print "truth: " text > "/dev/stderr"
    status = 2
}

# One line of the table; counts it.
function judge(kernel,    truth, corrected, difference, verdict) {
    if (kernel in problem || !(kernel in cold) || !(kernel in ncu)) {
        printf "%-20s %10s %s\n", name[kernel], "",
               kernel in problem ? problem[kernel] : "not measured by ncu"
        return
    }
    truth = median(ncu[kernel])
    corrected = median(own[kernel]) + empty_us
    difference = corrected - truth
    verdict = "apart"
    if (absolute(difference) <= 0.3 || absolute(difference) <= 0.01 * truth) {
        verdict = "agrees"
        within++
    } else if (absolute(difference) > 0.5 && absolute(difference) > 0.03 * truth) {
        verdict = "FAR OFF"
        beyond++
    }
    judged++
    printf "%-20s %10.3f %10.3f %10.3f %12.3f %+9.3f %+8.2f%%  %s\n", name[kernel], truth,
           median(cold[kernel]), median(overhead[kernel]), corrected, difference,
           100 * difference / truth, verdict
}

END {
    if (!ncu_rows) complain("no times of the kernels in what ncu printed")
    if (!cold_rows) complain("no rows of the kernels in what the program wrote")
    if (!status && !("empty" in ncu)) complain("ncu has no time of the empty kernel")
    if (status) exit status
    empty_us = median(ncu["empty"])
    printf "%-20s %10s %10s %10s %12s %9s %9s  %s\n", "kernel", "ncu us", "cold us", "overhead",
           "corrected us", "off by us", "off by", "verdict"
    for (i = 1; i <= kernel_count; i++) judge(kernels[i])
    printf "truth: of %d kernels %d within 1 %% or 0.3 us of ncu, %d beyond 3 %% or 0.5 us",
           kernel_count, within, beyond
    printf ", %d not measured\n", kernel_count - judged
    exit !(within >= kernel_count - 2 && !beyond)
}
