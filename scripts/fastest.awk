# fastest.awk - with csv.awk and numbers.awk, of two files: PyTorch's rows, then a suite's
# baseline. Of each case that PyTorch measured cold the suite's fastest variant there, by the
# median of its runs, a line of --list each, of those in the file `listed`: a baseline may be
# older than the program. * is the variant where there is none.

BEGIN { while ((getline text < listed) > 0) is_listed[text] = 1 }

value("status") != "ok" || value("mode") != "cold" { next }

{ shape = value("dtype") " " value("params") }

value("variant") ~ /^torch-/ {
    if (value("suite") == suite && !((value("case"), shape) in wanted)) {
        wanted[value("case"), shape] = 1
        cases[++case_count] = value("case")
        shapes[case_count] = shape
    }
    next
}

(value("case"), shape) in wanted && joined("case variant dtype params") in is_listed {
    id = value("case") SUBSEP shape SUBSEP value("variant")
    values[id, ++count[id]] = value("median_us")
}

function find_fastest(    id, part) {
    for (id in count) {
        split(id, part, SUBSEP)
        if (!((part[1], part[2]) in least) || median(id) < least[part[1], part[2]]) {
            least[part[1], part[2]] = median(id)
            best[part[1], part[2]] = part[3]
        }
    }
}

END {
    if (failed) exit 2
    find_fastest()
    for (i = 1; i <= case_count; i++) {
        variant = best[cases[i], shapes[i]]
        print cases[i], (variant == "" ? "*" : variant), shapes[i]
    }
}
