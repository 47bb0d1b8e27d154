# habit_why.awk - of kernels/model/habit_why.h each habit's name, a tab and its sentence,
# whose pieces may stand on several lines.

/^#define MODEL_WHY_/ {
    name = substr($2, length("MODEL_WHY_") + 1)
    sentence = ""
}

name != "" {
    line = $0
    while (match(line, /"[^"]*"/)) {
        sentence = sentence substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
    }
    if (line ~ /\\$/) next
    print name "\t" sentence
    name = ""
}
