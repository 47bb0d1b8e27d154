# by_suite.awk - with csv.awk: the rows of each suite as a file of its own, SUITE.csv in
# `folder`, each with the header.

{
    target = folder "/" value("suite") ".csv"
    if (!(target in begun)) {
        begun[target] = 1
        print header > target
    }
    print record > target
}
