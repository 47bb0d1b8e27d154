# shellcheck shell=sh
# ended.sh - how scripts that write files come to an end; they source it. clean_up, which they
# define anew, is called however they end but by SIGKILL. The status of a signal is its
# number and 128.

clean_up() { :; }
trap 'clean_up' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM
trap 'exit 153' XFSZ

# real FILE: what it leads to where it is a link, which stays one; false if that is nowhere.
real() {
    if [ ! -L "$1" ]; then
        printf '%s\n' "$1"
    elif [ -e "$1" ]; then
        readlink -f "$1"
    else
        return 1
    fi
}

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
