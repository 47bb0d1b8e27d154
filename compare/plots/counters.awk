# counters.awk - with csv.awk: the numbers of a case's own, and those in its params.

# Of NAME=VALUE, separated by blanks, the value of that name; "" without it.
function named(text, name,    n, i, word) {
    n = split(text, word, " ")
    for (i = 1; i <= n; i++)
        if (substr(word[i], 1, length(name) + 1) == name "=") return substr(word[i], length(name) + 2)
    return ""
}

# One that has to be a number where it is there.
function counter(name,    text) {
    text = named(value("counters"), name)
    if (text != "" && !is_number(text)) fail_here("counter " name " is '" text "', which is no number")
    return text == "" ? "" : text + 0
}

function param(name) { return named(value("params"), name) }
