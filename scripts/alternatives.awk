# alternatives.awk - the lines of a file as one regular expression, which takes each of them
# and nothing else: what the programs' --filter goes by.

{
    gsub(/[].+*?(){}|^$\\[]/, "\\\\&")
    printf "%s^%s$", separator, $0
    separator = "|"
}
