#!/bin/sh
# test_fleet.sh - a suite on many nodes, with programs in the place of ssh, srun and the
# suite: nodes that fail, hang, are cut short or cannot be reached cost their own rows
# only. As TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/tap.sh
root=$PWD
unset HOSTS LABELS DIR FLEET_SECONDS SLURM_JOB_ID SLURM_JOB_NUM_NODES SLURM_PROCID SLURMD_NODENAME

mkdir -p "$work/scripts" "$work/compare" "$work/bin"
cp "$root"/scripts/fleet* "$root"/scripts/followed.sh "$root"/scripts/csv.sh "$root"/scripts/values.awk "$work/scripts/"
cp "$root"/compare/*.awk "$work/compare/"
cd "$work" || exit 2
PATH=$work/bin:$PATH

# A suite: two rows of the card GPU-$CARD. What goes wrong is in MISHAP.
cat > suite <<'EOS'
#!/bin/sh
echo "$*" >> calls
while [ $# -gt 0 ]; do
    [ "$1" != --campaign ] || campaign=$2
    shift
done
row() { printf '2,toy,"toy, %s",a,cuda,f32,n=1,cold,%s,1,%s,10.5,Toy Card 1,GPU-%s,0000:0%s:00.0' "$@"; }
[ "${MISHAP:-}" != dead ] || { echo 'no GPU is visible' >&2; exit 2; }
[ "${MISHAP:-}" != other ] || { echo "schema,suite,case,$campaign"; echo 2,toy,x,1; exit 0; }
[ "${MISHAP:-}" != noisy ] || echo 'Welcome to the machine'
echo schema,suite,case,variant,backend,dtype,params,mode,campaign,run,status,median_us,device,uuid,pci
row one "$campaign" ok "$CARD" 1; echo
[ "${MISHAP:-}" != hang ] || exec sleep 600
[ "${MISHAP:-}" != half ] || { row two "$campaign" ok "$CARD" 1 | cut -c 1-20 | tr -d '\n'; kill -9 $$; }
[ "${MISHAP:-}" != torn ] || { echo '2,toy,"toy, tw'; exit 3; }
[ "${MISHAP:-}" != case ] || { row two "$campaign" failed "$CARD" 1; echo; exit 1; }
row two "$campaign" ok "$CARD" 1; echo
EOS

# The last two arguments are the host, whose name says what goes wrong, and the command.
cat > bin/ssh <<'EOS'
#!/bin/sh
echo "$*" >> sshs
while [ $# -gt 2 ]; do shift; done
case $1 in
gone*) echo "ssh: connect to host $1 port 22: No route to host" >&2; exit 255 ;;
deaf*) exec sleep 600 ;;
esac
CARD=$1 MISHAP=${1%%-*} exec sh -c "$2"
EOS

# Starts the tasks of a step, one for each node; the one of SRUN_KILLED dies at once.
cat > bin/srun <<'EOS'
#!/bin/sh
echo "$*" >> sruns
for word; do case $word in --ntasks=*) tasks=${word#*=} ;; esac; done
while [ "${1#--}" != "$1" ]; do shift; done
task=0
while [ $task -lt "$tasks" ]; do
    [ "$task" = "${SRUN_KILLED:-}" ] ||
        SLURM_PROCID=$task SLURMD_NODENAME=secret$task SLURM_STEP_NUM_TASKS=$tasks \
            CARD=$task MISHAP=$(echo "${MISHAPS:-}" | cut -d , -f $((task + 1))) "$@"
    task=$((task + 1))
done
[ -z "${SRUN_KILLED:-}" ] || { echo "srun: error: Node failure on secret$SRUN_KILLED" >&2; exit 1; }
EOS
chmod +x suite bin/ssh bin/srun

rows='results/fleet/toy.csv'
explain() { cat "$log" "$rows" 2> /dev/null | head -n 40; }

# fleet SETTING...: runs it; `status` and $log are what came of it.
fleet() {
    rm -rf results calls sshs sruns
    env "$@" sh scripts/fleet.sh ./suite toy --filter 'a b' > "$log" 2>&1
    status=$?
}
lines() { [ "$(grep -c . "$rows")" -eq "$1" ]; }

fleet HOSTS="red blue" LABELS="rack-1 rack-2"
[ $status -eq 0 ] && lines 5 && [ "$(sed -n 1p "$rows" | sed 's/.*,//')" = node ] &&
    [ "$(grep -c '"toy, one".*GPU-red.*,rack-1$' "$rows")" -eq 1 ] &&
    [ "$(grep -c 'GPU-blue.*,rack-2$' "$rows")" -eq 2 ]
check $? "rows of two hosts are one file, with their labels"
[ "$(cut -d , -f 10 "$rows" | sort -u | grep -c -e '-[12]$')" -eq 2 ] && grep -q "4 rows of 2 cards from 2 nodes" "$log"
check $? "each node is a campaign of its own"
[ "$(grep -c -- '--csv - --quiet --filter a b --campaign' calls)" -eq 2 ] && grep -q BatchMode sshs
check $? "arguments get there as they are, and ssh asks for nothing"

fleet HOSTS="red blue"
[ $status -eq 0 ] && lines 5 && [ "$(grep -c ',$' "$rows")" -eq 4 ] && ! sed 's/GPU-[a-z]*//' "$rows" | grep -q 'red\|blue'
check $? "without labels no host's name is in the file"

fleet HOSTS="red gone-1 dead-1 noisy-1"
[ $status -eq 1 ] && lines 5 && grep -q 'node 2 (gone-1): ended with status 255; 0 rows kept' "$log" &&
    grep -q 'No route to host' "$log" && grep -q 'node 3 (dead-1): ended with status 2; 0 rows' "$log" &&
    grep -q 'no GPU is visible' "$log" && grep -q 'from 4 nodes, of which 2 failed' "$log"
check $? "nodes that fail are named with their reason, the others kept"
! grep -q Welcome "$rows"
check $? "what a shell says before the header is no row"

fleet HOSTS="red hang-1 deaf-1" FLEET_SECONDS=2
[ $status -eq 1 ] && lines 4 && grep -q 'node 2 (hang-1): given up after 2 s; 1 rows kept' "$log" &&
    grep -q 'node 3 (deaf-1): given up after 2 s; 0 rows kept' "$log"
check $? "a node that hangs is given up, and its finished rows are kept"

fleet HOSTS="half-1 red torn-1"
[ $status -eq 1 ] && lines 5 && [ "$(grep -c '"toy, one"' "$rows")" -eq 3 ] && [ "$(grep -c '"toy, two"' "$rows")" -eq 1 ] &&
    grep -q 'node 1 (half-1): killed, .*; 1 rows kept (half a row left out)' "$log" &&
    grep -q 'node 3 (torn-1): ended with status 3; 1 rows kept (half a row left out)' "$log"
check $? "half a row is left out, the whole ones in front of it are kept"

fleet HOSTS="red case-1"
[ $status -eq 1 ] && lines 5 && grep -q 'node 2 (case-1): a case failed; 2 rows kept' "$log" && grep -q 'of which 0 failed' "$log"
check $? "a case that failed is said, and its row is kept"

fleet HOSTS="red other-1"
[ $status -eq 1 ] && lines 3 && grep -q 'node 2 (other-1): its rows are no good (.*other columns' "$log" &&
    [ -s build/fleet/toy/2.csv ]
check $? "another build's columns are refused, and its file stays"

fleet HOSTS="localhost red" CARD=here LABELS="a b"
[ $status -eq 0 ] && lines 5 && grep -q 'GPU-here.*,a$' "$rows" && [ "$(grep -c . sshs)" -eq 1 ]
check $? "localhost is a plain process"

mkdir -p results/fleet
fleet HOSTS="gone-1 gone-2"
[ $status -eq 2 ] && [ ! -e "$rows" ] && grep -q 'no row from 2 nodes' "$log"
check $? "no row at all: status 2, and no file"
fleet HOSTS="red blue" LABELS="one"
[ $status -eq 2 ] && grep -q '1 labels for 2 nodes' "$log" && [ ! -e calls ]
check $? "labels must be as many as nodes"
fleet HOSTS="red" LABELS="a,b"
[ $status -eq 2 ] && grep -q "label 'a,b'" "$log"
check $? "a label that CSV would have to quote is refused"
fleet HOSTS="-oProxyCommand=x"
[ $status -eq 2 ] && grep -q "is no host" "$log" && [ ! -e sshs ]
check $? "an option of ssh is no host"
fleet HOSTS="red" FLEET_SECONDS=soon
[ $status -eq 2 ] && grep -q "FLEET_SECONDS 'soon'" "$log"
check $? "a time that is none is refused"
fleet NOTHING=1
[ $status -eq 2 ] && grep -q 'HOSTS="a b" names the nodes' "$log"
check $? "no hosts and no Slurm: what to say"

fleet SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=3 LABELS="x y z"
[ $status -eq 0 ] && lines 7 && grep -q 'GPU-2.*,z$' "$rows" && ! grep -q secret "$rows" &&
    grep -q -- '--nodes=3 --ntasks=3 --ntasks-per-node=1 --kill-on-bad-exit=0 --no-kill' sruns
check $? "in an allocation of Slurm srun starts one task on each node"
fleet SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=3 SRUN_KILLED=1 MISHAPS=,,half
[ $status -eq 1 ] && lines 4 && grep -q 'node 2 (): said nothing' "$log" && grep -q 'Node failure on secret1' "$log" &&
    grep -q 'node 3 (secret2): killed, .*; 1 rows kept (half' "$log"
check $? "a node that dies under srun is named, the others kept"

# stopped: what a signal leaves running.
rm -rf results build
HOSTS="hang-1 red" sh scripts/fleet.sh ./suite toy > "$log" 2>&1 &
pid=$!
until grep -q GPU-hang build/fleet/toy/1.csv 2> /dev/null; do sleep 0.05; done
node=$(cat build/fleet/toy/1.pid)
kill -TERM $pid
wait $pid
status=$?
until ! kill -0 "$node" 2> /dev/null; do sleep 0.05; done
[ $status -eq 143 ] && grep -q 'what nodes wrote is in build/fleet/toy/' "$log" && [ -s build/fleet/toy/1.csv ]
check $? "a signal ends the nodes' processes and leaves what they wrote"

# The real thing: two sets of processes of this tree's own suite.
if [ -x "$root/build/cpu/norm" ]; then
    (cd "$root" && HOSTS="localhost localhost" LABELS="a b" FLEET_SECONDS=60 sh scripts/fleet.sh \
        build/cpu/norm test-of-fleet --shape 'n=4 c=32' --max-time 0.001 --filter rmsnorm.forward) > "$log" 2>&1
    status=$?
    mv "$root/results/fleet/test-of-fleet.csv" measured.csv
    rmdir "$root/results/fleet" "$root/results" 2> /dev/null # unless the user has results there
    [ $status -eq 0 ] && "$root/build/gpubench-compare" --check measured.csv &&
        [ "$(grep -c ',a$' measured.csv)" -eq "$(grep -c ',b$' measured.csv)" ] && grep -q ',b$' measured.csv
    check $? "a suite in two sets of processes is one file that compare takes"
    rm -rf "$root/build/fleet/test-of-fleet"
else
    check 0 "a suite in two sets of processes is one file that compare takes" "build/cpu/norm is not built"
fi

finish
