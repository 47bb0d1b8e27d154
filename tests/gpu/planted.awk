# planted.awk - with csv.awk: judges a comparison. Reads the patched program's rows, then
# the CSV of gpubench-compare, whose exit status is `ended`. What "found" means
# stands in planted.sh. Ends with 0 if the slowdown was.

function is_patched() { return value("case") ~ /norm(_residual)?\.forward$/ && value("variant") == "vectorized" }

function wrong(text) {
    print "planted: " text
    failures++
}

!("verdict" in column) && is_patched() && value("status") == "ok" && value("bytes") + 0 > most {
    most = value("bytes") + 0
    largest = value("params")
}

"verdict" in column && value("verdict") != "missing" {
    verdict = value("verdict")
    name = joined("case variant dtype params mode")
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
    if (failed) exit 2
    if (!expected) wrong("no case of the patched kernel was judged")
    if (ended != 1) wrong("the comparison ended with status " ended ", not 1")
    printf "planted: %s: %d of %d cases SLOWER; expected of the patched kernel at %s: %d\n",
           failures ? "NOT FOUND, or not only there" : "found, and only there", slower, judged, largest, expected
    exit failures > 0
}
