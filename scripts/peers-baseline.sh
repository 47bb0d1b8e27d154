#!/bin/sh
# peers-baseline.sh FOLDER - appends the rows that compare/peers-model.sh left in FOLDER to the
# baselines of their device: the suite's and PyTorch's to torch/model.csv, llm.c's to
# llmc/model.csv, so that ratios are of one sitting, and compare-model, which measures
# otherwise, does not go by them. Refuses a working tree with changes, and all of the files if
# one cannot be appended.
set -eu
export LC_ALL=C CDPATH=
. "$(dirname "$0")/orderly.sh"
. "$(dirname "$0")/followed.sh"
. "$(dirname "$0")/record.sh"
[ $# -eq 1 ] || { echo 'usage: peers-baseline.sh FOLDER' >&2; exit 2; }

refuse_changes peers-baseline
folder=$(sh scripts/device-folder.sh "$1/model.csv")
each() { # each FUNCTION: of what was measured and where it belongs
    "$1" "$measured/model.csv" "$folder/torch/model.csv"
    for whose in torch llmc; do
        [ ! -s "$measured/$whose.csv" ] || "$1" "$measured/$whose.csv" "$folder/$whose/model.csv"
    done
}
measured=$1
refuse() {
    refuse_unverified "$1"
    refuse_other_columns "$1" "$2"
    [ ! -e "$2" ] || refuse_unreadable "$2"
}
each refuse
each append
