# draw.awk -v seed=N - puts a pseudo-random number that follows from the seed and the mutant's
# own text before each line of mutants.sh, so that a mutant is drawn or not whatever becomes of
# other lines.

BEGIN {
    FS = "\t"
    for (i = 1; i < 256; i++) code[sprintf("%c", i)] = i
}

# A multiplicative hash in whole numbers that a double holds.
function hash(text,    h, i) {
    h = 1 + seed * 7919
    for (i = 1; i <= length(text); i++) h = (h * 31 + code[substr(text, i, 1)]) % 2147483647
    for (i = 0; i < 4; i++) h = (h * 48271 + 11) % 2147483647
    return h
}

{
    text = $1 FS $6 FS $7
    printf "%010d\t%s\n", hash(text FS ++seen[text]), $0
}
