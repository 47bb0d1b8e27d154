#!/bin/sh
# csv.sh PROGRAM [VARIABLE=VALUE...] FILE... - runs PROGRAM.awk of this folder on the rows
# of CSV files, which compare/csv.awk reads for it.
export LC_ALL=C CDPATH=
here=$(dirname "$0")
program=$1
shift
exec awk -f "$here/../compare/csv.awk" -f "$here/$program.awk" "$@"
