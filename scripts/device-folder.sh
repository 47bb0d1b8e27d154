#!/bin/sh
# device-folder.sh FILE.csv - the folder under baselines/ of the device that a
# result file was measured on: its name in lower case, everything but letters
# and digits a dash. Status 2 if the file names none, or more than one.
set -eu
export LC_ALL=C CDPATH=
here=$(dirname "$0")
names=$(sh "$here/csv.sh" values name=device "$1")
if [ -z "$names" ] || [ "$(printf '%s\n' "$names" | wc -l)" -ne 1 ]; then
    echo "$1: one device expected, found: ${names:-none}" >&2
    exit 2
fi
folder=$(printf '%s' "$names" | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9' '-' | sed 's/-$//')
printf 'baselines/%s\n' "$folder"
