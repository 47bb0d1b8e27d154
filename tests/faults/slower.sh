#!/bin/sh
# The other program of the race: see racer.sh.
SLOWER=1 exec "$(dirname "$0")/racer.sh" "$@"
