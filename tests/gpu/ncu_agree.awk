# ncu_agree.awk - with csv.awk, numbers.awk and ncu.awk: the kernels of --kernels-csv files
# against the CSV lines of `ncu --csv --page raw`, any number of files of each, a process a
# file. Kernels go by their names; of each, launches in a process are to be equal, and the
# median over the processes of the mean time of a launch within 1 % or 0.3 us. Ends with 1
# where one is not so, with 2 if one side has nothing.

# What both sides call a kernel: casts, blanks, nameless namespaces and parameters are none
# of its name.
function plain(name,    i, depth, letter) {
    sub(/^void /, "", name)
    gsub(/\(anonymous namespace\)::|<unnamed>::/, "", name)
    gsub(/\((unsigned )?(bool|char|short|int|long|long long)\)/, "", name)
    gsub(/ /, "", name)
    for (i = 1; i <= length(name); i++) {
        letter = substr(name, i, 1)
        if (letter == "<") depth++
        if (letter == ">") depth--
        if (letter == "(" && depth == 0) return substr(name, 1, i - 1)
    }
    return name
}

# Of this file's kernel so many launches more, of so many us in all.
function add(side, name, launches, us) {
    if (!((side, name) in seen)) {
        seen[side, name] = 1
        if (side == "ours") names[++name_count] = name
    }
    launched[side, FILENAME, name] += launches
    spent[side, FILENAME, name] += us
    if (!((side, FILENAME) in opened)) {
        opened[side, FILENAME] = 1
        files[side, ++file_count[side]] = FILENAME
    }
}

"Kernel Name" in column {
    us = ncu_us()
    if (us >= 0) add("ncu", plain(value("Kernel Name")), 1, us)
    next
}

value("kind") == "kernel" { add("ours", plain(value("name")), number("launches"), number("total_us")) }

# Over the files of one side; its launches are those of the last one.
function mean_us(side, name,    i, file, key) {
    key = side SUBSEP name
    for (i = 1; i <= file_count[side]; i++) {
        file = files[side, i]
        if (!((side, file, name) in launched)) continue
        launches[side] = launched[side, file, name]
        values[key, ++count[key]] = spent[side, file, name] / launches[side]
    }
    return median(key)
}

function judge(name,    ours, theirs, verdict) {
    if (!(("ncu", name) in seen)) {
        printf "%-44.44s not seen by ncu\n", name
        return
    }
    ours = mean_us("ours", name)
    theirs = mean_us("ncu", name)
    verdict = launches["ours"] != launches["ncu"] ? "OTHER LAUNCHES" : "agrees"
    if (absolute(ours - theirs) > 0.3 && absolute(ours - theirs) > 0.01 * theirs)
        verdict = verdict == "agrees" ? "apart" : verdict " and apart"
    agreeing += verdict == "agrees"
    printf "%-44.44s %5d %5d %11.3f %11.3f %+8.3f %+7.2f%%  %s\n", name, launches["ncu"], launches["ours"], theirs,
           ours, ours - theirs, 100 * (ours / theirs - 1), verdict
}

END {
    if (failed) exit 2
    if (!file_count["ncu"] || !file_count["ours"]) {
        print "ncu_agree: no kernels in what " (file_count["ncu"] ? "the program wrote" : "ncu printed") > "/dev/stderr"
        exit 2
    }
    printf "%-44s %5s %5s %11s %11s %8s %8s\n", "kernel", "ncu", "ours", "ncu us", "ours us", "off by", "off by"
    for (i = 1; i <= name_count; i++) judge(names[i])
    printf "ncu_agree: of %d kernels %d launched as often and within 1 %% or 0.3 us of ncu\n", name_count, agreeing
    exit agreeing < name_count
}
