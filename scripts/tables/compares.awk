# compares.awk - what make compare-SUITE ended with, as a markdown table: of lines of the number of
# the host's GPUs, the revision, and the last line that scripts/compare.sh prints.

BEGIN {
    print "| suite | GPUs of the host | cases | minutes | raced | slower | inconclusive | missing | not ok | revision |"
    print "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"
}

/^#/ { next }

# 2 d1f831b compare-norm: 256 cases in 1.6 min: 0 slower, 5 inconclusive (2.0 %), 0 missing, 0 not ok, 5 raced
!/^[0-9]+ [0-9a-f]+ compare-[a-z]+: [0-9]+ cases in [0-9.]+ min: [0-9]+ slower, [0-9]+ inconclusive \([0-9.]+ %\), [0-9]+ missing, [0-9]+ not ok, [0-9]+ raced(; [0-9]+ of other hosts)?$/ {
    printf "compares.awk: %s: line %d: not what make compare ends with: %s\n", FILENAME, FNR, $0 > "/dev/stderr"
    failed = 1
    exit 2
}

{
    suite = $3
    gsub(/^compare-|:$/, "", suite)
    inconclusive = $11
    if ($11 + 0 > 0) inconclusive = $11 " " $13 " %)"
    printf "| `%s` | %d | %d | %s | %d | %d | %s | %d | %d | %s |\n", suite, $1, $4, $7, $20, $9, inconclusive,
           $15, $17, $2
}

END { exit failed ? 2 : 0 }
