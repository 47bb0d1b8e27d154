# planted.awk - judges a comparison: reads the patched program's rows, then the
# CSV of gpubench-compare, whose exit status is `status`. What "found" means
# stands in planted.sh. Ends with 0 if the slowdown was.

FNR == 1 {
    file++
    for (i = 1; i <= NF; i++) column[file, $i] = i
    next
}

function value(name) { return $(column[file, name]) }

function is_patched() { return value("case") ~ /norm(_residual)?\.forward$/ && value("variant") == "vectorized" }

function wrong(text) {
    print "planted: " text
    failures++
}

file == 1 && is_patched() && value("status") == "ok" && value("bytes") + 0 > most {
    most = value("bytes") + 0
    largest = value("params")
}

file == 2 && value("verdict") != "missing" {
    verdict = value("verdict")
    name = value("case") " " value("variant") " " value("dtype") " " value("params") " " value("mode")
    judged++
    if (verdict == "SLOWER") slower++
    if (is_patched() && value("params") == largest) {
        expected++
        if (verdict != "SLOWER") wrong(name " is " verdict ", not SLOWER")
    } else if (verdict == "SLOWER" && !is_patched())
        wrong(name " is SLOWER, and nothing was done to it")
    else if (verdict ~ /^(not ok|invalid|work changed)$/)
        wrong(name " is " verdict)
}

END {
    if (!expected) wrong("no case of the patched kernel was judged")
    if (status != 1) wrong("the comparison ended with status " status ", not 1")
    printf "planted: %s: %d of %d cases SLOWER; expected of the patched kernel at %s: %d\n",
           failures ? "NOT FOUND, or not only there" : "found, and only there", slower, judged, largest, expected
    exit failures > 0
}
