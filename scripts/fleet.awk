# fleet.awk - with csv.awk: one node's rows with the column `node`, its label, behind them,
# and a header in front unless they follow those of another node. The file `counts` gets
# the number of rows.

!rows++ && !follows { print header ",node" }

{ print record "," label }

END {
    if (!failed) print rows + 0 > counts
}
