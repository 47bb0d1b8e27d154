# truth.awk - with csv.awk, numbers.awk and ncu.awk: gpubench's cold numbers against Nsight
# Compute's. Reads the rows of tests/gpu/truth.cu and the CSV lines of `ncu --csv --page raw`,
# any number of files of each, and prints the table. Ends with 0 if all but two of the
# kernels agree, one at least, and none is far off, with 1 if not so, with 2 if one side has
# nothing.

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

function add(what, amount) { values[what, ++count[what]] = amount }

"Kernel Name" in column {
    kernel = kernel_of(value("Kernel Name"))
    us = ncu_us()
    if (kernel != "" && us >= 0) {
        add("ncu " kernel, us)
        ncu_rows++
    }
    next
}

value("mode") == "cold" {
    kernel = kernel_of_row()
    if (!(kernel in name)) {
        name[kernel] = joined("case params")
        kernels[++kernel_count] = kernel
    }
    if (value("status") != "ok" || !is_number(value("overhead_us"))) {
        problem[kernel] = value("status") == "ok" ? "no overhead_us" : value("status")
        next
    }
    add("cold " kernel, value("median_us"))
    add("overhead " kernel, value("overhead_us"))
    add("own " kernel, value("median_us") - value("overhead_us"))
    cold_rows++
}

function complain(text) {
    print "truth: " text > "/dev/stderr"
    status = 2
}

# One line of the table; counts it.
function judge(kernel,    truth, corrected, difference, verdict) {
    if (kernel in problem || !(("cold " kernel) in count) || !(("ncu " kernel) in count)) {
        printf "%-20s %10s %s\n", name[kernel], "",
               kernel in problem ? problem[kernel] : "not measured by ncu"
        return
    }
    truth = median("ncu " kernel)
    corrected = median("own " kernel) + empty_us
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
           median("cold " kernel), median("overhead " kernel), corrected, difference,
           100 * difference / truth, verdict
}

END {
    if (failed) exit 2
    if (!ncu_rows) complain("no times of the kernels in what ncu printed")
    if (!cold_rows) complain("no rows of the kernels in what the program wrote")
    if (!status && !("ncu empty" in count)) complain("ncu has no time of the empty kernel")
    if (status) exit status
    empty_us = median("ncu empty")
    printf "%-20s %10s %10s %10s %12s %9s %9s  %s\n", "kernel", "ncu us", "cold us", "overhead",
           "corrected us", "off by us", "off by", "verdict"
    for (i = 1; i <= kernel_count; i++) judge(kernels[i])
    printf "truth: of %d kernels %d within 1 %% or 0.3 us of ncu, %d beyond 3 %% or 0.5 us",
           kernel_count, within, beyond
    printf ", %d not measured\n", kernel_count - judged
    exit !(within && within >= kernel_count - 2 && !beyond)
}
