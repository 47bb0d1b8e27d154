# shellcheck shell=sh
# options.sh - what the scripts that pass arguments on to a suite give it themselves; they
# source it.

# refuse_options WHO OPTIONS ARGUMENTS...: ends with status 2 if one of OPTIONS is among the
# arguments: a suite takes the last that it is given, and the script would not find the rows.
refuse_options() {
    who=$1 own=$2
    shift 2
    for argument; do
        for option in $own; do
            case $argument in
            "$option" | "$option"=*)
                echo "$who: $option is not for ARGS: $who gives it itself" >&2
                exit 2
                ;;
            esac
        done
    done
}
