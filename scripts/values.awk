# values.awk - with csv.awk: each value once of the column `name`, of the rows whose field
# is not empty.

{
    text = value(name)
    if (text != "" && !(text in seen)) {
        seen[text] = 1
        print text
    }
}
