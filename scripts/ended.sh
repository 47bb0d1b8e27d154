# shellcheck shell=sh
# ended.sh - how scripts that write files come to an end; they source it. clean_up, which they
# define anew, is called however they end but by SIGKILL. The status of a signal is its
# number and 128.

clean_up() { :; }

# leave STATUS: what cleans up is not ended half-way by a signal to all.
leave() {
    trap '' HUP INT PIPE TERM XFSZ
    clean_up
    trap - EXIT
    exit "$1"
}
trap 'leave $?' EXIT
trap 'leave 129' HUP
trap 'leave 130' INT
trap 'leave 141' PIPE
trap 'leave 143' TERM
trap 'leave 153' XFSZ

# unbroken COMMAND...: what makes something and says its name, as `name=$(unbroken COMMAND)`:
# a signal that came between would leave what nobody knows of.
unbroken() {
    trap '' HUP INT PIPE TERM
    "$@"
}

# beside FILE: makes a file of its own beside it, with the usual rights, and says its name.
beside() {
    new=$(mktemp "$1.XXXXXX") && chmod "=rw" "$new" && printf '%s\n' "$new"
}
