#!/usr/bin/env bash
# A Slurm of two nodes, both this machine, for tests: no systemd, no accounting, run as root, everything under
# $SLURM_CI_DIR.
# Debian and Ubuntu: apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge
set -euo pipefail

folder=${SLURM_CI_DIR:-${TMPDIR:-/tmp}/docmt-slurm}
cpus=${SLURM_CI_CPUS:-8}      # of each node; may be more than there are: jobs then share
memory_mb=${SLURM_CI_MEM:-64000}
gpus=${SLURM_CI_GPUS:-2}      # they only pretend; an even number, half of each type
nodes=(ci1 ci2)
port=${SLURM_CI_PORT:-17817}
host=$(hostname -s)
user=$(id -un)
etc=/etc/slurm # the step plugin removes SLURM_CONF, so the configuration has to stand here

die() {
    echo "start_slurm: $*" >&2
    exit 1
}

wait_for() { # seconds command …
    local end=$((SECONDS + $1))
    shift
    # A client waits about ten seconds for a controller that is not there.
    until timeout 2 "$@" > /dev/null 2>&1; do
        [ $SECONDS -lt "$end" ] || return 1
        sleep 0.2
    done
}

is_idle() { [ "$(sinfo -h -p main -o %T)" = idle ]; }
export -f is_idle

for file in slurm.conf gres.conf; do # never touch the configuration of a real cluster; ours are links to a docmt-slurm…
    if [ -e "$etc/$file" ] || [ -L "$etc/$file" ]; then
        [[ "$(readlink "$etc/$file")" == */docmt-slurm*/$file ]] || die "$etc/$file is not ours"
    fi
done
for file in "$folder"/*.pid; do
    [ ! -e "$file" ] || [ ! -e "/proc/$(cat "$file")" ] || die "already running: $file"
done

mkdir -p "$folder"/{state,log,munge} "$etc"
chmod 711 "$folder/munge"
[ -s "$folder/munge/key" ] || (umask 077 && head -c 1024 /dev/urandom > "$folder/munge/key")

cat > "$folder/slurm.conf" << CONF
ClusterName=ci
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=$user
SlurmdUser=$user
AuthInfo=socket=$folder/munge/socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd-%n.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
EnforcePartLimits=ALL
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=2
JobAcctGatherParams=OverMemoryKill
MinJobAge=3600
KillWait=30
OverTimeLimit=0
GresTypes=gpu
NodeName=DEFAULT CPUs=$cpus RealMemory=$memory_mb Gres=gpu:v100:$((gpus / 2)),gpu:a100:$((gpus / 2)) State=UNKNOWN
$(for ((i = 0; i < ${#nodes[@]}; i++)); do
    echo "NodeName=${nodes[i]} NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1 + i))"
done)
PartitionName=main Nodes=ALL Default=YES MaxTime=1-0 DefMemPerCPU=100 State=UP
PartitionName=cpu Nodes=ALL MaxTime=1-0 DefMemPerCPU=100 State=UP
PartitionName=gpu Nodes=ALL MaxTime=1-0 DefMemPerCPU=100 State=UP
PartitionName=booster Nodes=ALL MaxTime=1-0 DefMemPerCPU=100 State=UP
CONF

devices=(/dev/null /dev/zero /dev/full /dev/random) # each pretended GPU needs its own device
types=(v100 a100)
for ((i = 0; i < gpus; i++)); do echo "Name=gpu Type=${types[i * 2 / gpus]} File=${devices[i]}"; done > "$folder/gres.conf"
ln -sfn "$folder/slurm.conf" "$etc/slurm.conf"
ln -sfn "$folder/gres.conf" "$etc/gres.conf"

munged --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/log/munged.log" --seed-file="$folder/munge/seed"
slurmctld
for node in "${nodes[@]}"; do slurmd -N "$node"; done
wait_for 15 bash -c is_idle || {
    grep -hE 'fatal|INVAL|error' "$folder"/log/slurm*.log | grep -v pmix | tail -n 8 >&2 || true
    die "Slurm did not come up; see $folder/log, then run stop_slurm.sh"
}
sinfo -N -o '%N %P %T %c %m %G'
