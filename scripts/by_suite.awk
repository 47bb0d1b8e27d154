# by_suite.awk - with csv.awk: the rows of each suite as a file of its own, SUITE.csv in
# `folder`, each with the header. A suite whose name is no plain word has status 2.

value("suite") !~ /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/ {
    fail_here("suite '" value("suite") "': wants letters, digits and ._-")
}

{
    target = folder "/" value("suite") ".csv"
    if (!(target in begun)) {
        begun[target] = 1
        print header > target
    }
    print record > target
}
