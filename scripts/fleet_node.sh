#!/bin/sh
# fleet_node.sh FOLDER [NUMBER] - measures on one node, for fleet.sh, which says in FOLDER
# what: on the host of line NUMBER of FOLDER/hosts, or, as a task of srun, here. Leaves
# NUMBER.csv, NUMBER.log and NUMBER.status there, and the node's name for messages.
set -u
export LC_ALL=C CDPATH=
folder=$1
number=${2:-$((SLURM_PROCID + 1))}
seconds=$(cat "$folder/seconds")
grace=$((seconds < 30 ? seconds : 30))
# The node itself ends what hangs: when ssh goes, what it started stays.
command="timeout -k 10 $seconds $(cat "$folder/command") --campaign $(cat "$folder/campaign")-$number"
# Each node's process is a world of its own, which no launcher's variables may deny.
unset SLURM_STEP_NUM_TASKS PMI_SIZE OMPI_COMM_WORLD_SIZE
echo $$ > "$folder/$number.pid"
child=
trap '[ -z "$child" ] || kill "$child"; exit 143' HUP INT TERM

host=localhost
[ ! -e "$folder/hosts" ] || host=$(sed -n "${number}p" "$folder/hosts")
if [ "$host" = localhost ]; then
    echo "${SLURMD_NODENAME:-localhost}" > "$folder/$number.name"
    set -- sh -c "exec $command"
else
    echo "$host" > "$folder/$number.name"
    set -- timeout -k 10 $((seconds + grace)) ssh -n -o BatchMode=yes -o ConnectTimeout="$grace" "$host" \
        "cd $(cat "$folder/directory") && $command"
fi
"$@" > "$folder/$number.csv" 2> "$folder/$number.log" < /dev/null &
child=$!
wait "$child"
echo $? > "$folder/$number.status"
rm "$folder/$number.pid"
exit 0
