# shellcheck shell=sh
# fetched.sh - other people's sources for the scripts beside it, which read it with `.`
# after setting given (a folder that holds them already, or nothing) and build.

sources=${given:-$build/sources}

give_up() {
    echo "${0##*/}: $*" >&2
    exit 2
}

# fetched OWNER/NAME REVISION FILE: NAME with FILE in it is in $sources; of GitHub's, at
# that revision.
fetched() {
    folder=$sources/${1#*/}
    if [ -z "$given" ] && [ "$(git -C "$folder" rev-parse HEAD 2>/dev/null)" != "$2" ]; then
        rm -rf "$folder"
        { git init -q "$folder" &&
            git -C "$folder" fetch -q --depth 1 "https://github.com/$1" "$2" &&
            git -C "$folder" checkout -q FETCH_HEAD; } || give_up "cannot fetch $1 at $2"
    fi
    [ -f "$folder/$3" ] || give_up "no $3 in '$folder'"
}

nvcc=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
command -v "$nvcc" >/dev/null || give_up "no compiler '${nvcc:-nvcc}': set NVCC"
