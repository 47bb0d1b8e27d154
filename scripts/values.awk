# values.awk - with fields.awk: each value once of the column `name`, of the rows
# whose field is not empty.

{ sub(/\r$/, "") }

NR == 1 { find_columns($0, column); next }

name in column {
    split_csv($0, field)
    value = field[column[name]]
    if (value != "" && !(value in seen)) {
        seen[value] = 1
        print value
    }
}
