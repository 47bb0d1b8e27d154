# shellcheck shell=sh
# orderly.sh - how scripts that measure come to an early end; they source it. What takes
# long is started by `watched`: a signal is heard at once, ends what is watched, and then the
# script, whose clean_up (if it has one) is called however it ends. SIGKILL is heard by
# nobody: where setpriv is there, the kernel then ends what was watched.

bound=
! setpriv --pdeathsig TERM true 2> /dev/null || bound='setpriv --pdeathsig TERM'
ended= # the last that was watched; $! is the same but while it runs

# watched COMMAND...: its status.
watched() {
    code_of_watched=0
    $bound "$@" < /dev/null &
    wait "$!" || code_of_watched=$?
    ended=$!
    return "$code_of_watched"
}

# stop STATUS: whoever asks twice does not want to wait.
stop() {
    if [ "${!:-}" != "$ended" ]; then
        trap 'kill -s KILL "$!" 2> /dev/null' HUP INT TERM
        kill "$!" 2> /dev/null || true
        wait "$!" 2> /dev/null || true
    fi
    leave "$1"
}

clean_up() { :; }

# leave STATUS: what cleans up is not ended half-way by a signal to all.
leave() {
    trap '' HUP INT PIPE TERM
    clean_up
    trap - EXIT
    exit "$1"
}
trap 'leave $?' EXIT
trap 'stop 129' HUP
trap 'stop 130' INT
trap 'stop 141' PIPE
trap 'stop 143' TERM

# alone FILE NAME: ends with status 2 where another process that did so for the same file has
# not ended, with all that it watches. The file stays, and so does what a link there leads to;
# where there is no flock, nobody is refused.
alone() {
    command -v flock > /dev/null || return 0
    exec 9>> "$1"
    flock -n 9 && return
    echo "$2: another process is at it" >&2
    exit 2
}

# in_turn FILE: waits until no other process is between this and its `exec 8>&-`.
in_turn() {
    exec 8>> "$1"
    ! command -v flock > /dev/null || flock 8
}
