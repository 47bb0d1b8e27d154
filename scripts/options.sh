# shellcheck shell=sh
# options.sh - what the scripts that pass arguments on to a suite, or have its rows judged, give
# themselves; they source it.

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

# Params that say how many GPUs or ranks a case takes, of the suites that measure as many as there
# are, for gpubench-compare: what only other hosts have is not missing on this one.
# shellcheck disable=SC2034 # for those who source it
host_params=scaling:gpus,scaling:ranks,collective:n

# tracked SUITE ARGUMENTS...: which of the suite's cases its baselines are of, as --filter takes it;
# nothing where they are of all, or the arguments choose cases themselves. A habit of a training
# step takes up to a second an execution, two thirds of the suite's time, and depends on the host:
# make habits measures habits beside each other.
tracked() {
    case "$*" in
    *" --filter" | *" --filter"[\ =]*) ;;
    "model" | "model "*) echo '^model[.](forward|forward_loss|backward|step|part) ' ;;
    esac
}
