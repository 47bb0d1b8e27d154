# shellcheck shell=sh
# mpi.sh - what the tests of the suites of several ranks begin with. They read it with `.`
# behind tap.sh, with their own arguments, the suite and BAD_MPI, and with the options that
# every run has in $quick. Without MPI they end here.
. tests/suites/ranks.sh
bad=$2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # Open MPI 4, 5
export OMPI_MCA_mpi_yield_when_idle=1

if ! command -v mpirun > /dev/null || [ ! -e "$bad" ]; then
    check 0 "the suite under mpirun" "no MPI here"
    finish
fi

# measure RANKS OPTION...: into $rows; what is said goes to $log.
measure() {
    ranks=$1
    shift
    rm -f "$rows"
    # shellcheck disable=SC2086 # words
    mpirun -np "$ranks" "$program" $quick --csv "$rows" "$@" > "$log" 2>&1
}
