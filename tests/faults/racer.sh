#!/bin/sh
# A program for a race in which calls of the compare tool fail: one of its two cases is
# decided at once. SLOWER=1 in the environment, from slower.sh: it takes half as long again.
exec "$(dirname "$0")/../../build/tests/racer" cases=copy:100,add:200 noise=0.1 \
    ${SLOWER:+slow=copy:1.5} salt="old$SLOWER" -- "$@"
