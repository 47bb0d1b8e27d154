# report_holds.awk - with csv.awk: status 0 if a file holds rows of SUITE
# (in the environment), else 1.

value("suite") "" == ENVIRON["SUITE"] "" { found = 1; exit }

END { exit failed ? 2 : !found }
