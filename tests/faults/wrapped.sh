#!/bin/sh
# wrapped.sh FILE  prints the linker's options for the calls that a file stands in front of.
export LC_ALL=C CDPATH=
sed -n 's/^[A-Z_]*CALL(\([A-Za-z0-9_]*\),.*/-Wl,--wrap=\1/p
  s/^[A-Za-z].* \**__wrap_\([A-Za-z0-9_]*\)(.*/-Wl,--wrap=\1/p' "$1" | sort -u
