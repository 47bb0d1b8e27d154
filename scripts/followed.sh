# shellcheck shell=sh
# followed.sh - files that are links stay links, and what these lead to is what scripts replace;
# they source it.

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

# followed FILE: the same, as `name=$(followed FILE)` of scripts that end where something fails.
followed() {
    real "$1" && return
    echo "$1: a link that leads nowhere" >&2
    exit 2
}
