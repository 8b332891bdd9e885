#!/usr/bin/env bash
# Stops what start_slurm.sh started, by its pid files alone, each pid checked to be that program still.
set -uo pipefail

folder=${SLURM_CI_DIR:-${TMPDIR:-/tmp}/docmt-slurm}

is_alive() { # a zombie counts as gone: the first process of a container may collect it late
    local state
    state=$(sed 's/.*) //' "/proc/$1/stat" 2> /dev/null | cut -d' ' -f1)
    [ -n "$state" ] && [ "$state" != Z ]
}

stop() { # program, pid file: TERM, after 15 seconds KILL
    local file=$2 pid
    pid=$(cat "$file" 2> /dev/null) || return 0
    if [ -n "$pid" ] && is_alive "$pid" && [ "$(cat "/proc/$pid/comm" 2> /dev/null)" = "$1" ]; then
        kill -TERM "$pid"
        for _ in $(seq 60); do
            is_alive "$pid" || break
            sleep 0.25
        done
        is_alive "$pid" && kill -KILL "$pid"
    fi
    rm -f "$file"
}

# Jobs first: they outlive slurmd. Never on another cluster.
if [ "$(readlink /etc/slurm/slurm.conf)" = "$folder/slurm.conf" ] && timeout 5 scontrol ping 2> /dev/null | grep -q UP; then
    timeout 10 squeue -h -o %i | xargs -r timeout 10 scancel
    for _ in $(seq 100); do
        [ -z "$(timeout 5 squeue -h -t R,CG,PD 2> /dev/null)" ] && break
        sleep 0.25
    done
fi
for file in "$folder"/slurmd-*.pid; do stop slurmd "$file"; done
for program in slurmctld munged; do stop "$program" "$folder/$program.pid"; done
for file in slurm.conf gres.conf; do
    [ "$(readlink "/etc/slurm/$file")" = "$folder/$file" ] && rm "/etc/slurm/$file"
done
true
