"""Replaces `sbatch`: accepts or refuses jobs by the rules of a center (`CENTER`), with messages of Slurm.

It appends a line per job to the file `SUBMISSIONS`: the job's `KIND`, `accepted` or `refused`, and the options.
"""

import argparse
import fcntl
import json
import math
import os
import sys

UNAVAILABLE = "Batch job submission failed: Requested node configuration is not available"
POLICY = (
    "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
)
SCRIPT = "Batch job submission failed: Unspecified error"  # after words of the center's own script

parser = argparse.ArgumentParser("sbatch", allow_abbrev=False)
parser.add_argument("-A", dest="account")
parser.add_argument("-p", dest="partition")
parser.add_argument("-t", dest="minutes", type=int)
parser.add_argument("-D", dest="folder")
for name in ("mem", "nodes", "ntasks", "cpus-per-task", "cpus-per-gpu"):
    parser.add_argument(f"--{name}", type=int)
for name in ("job-name", "output", "export", "comment", "gres", "gpus", "qos", "signal", "wrap"):
    parser.add_argument(f"--{name}")
for name in ("parsable", "requeue"):
    parser.add_argument(f"--{name}", action="store_true")


def refuse(job, center, n_submitted):
    """Slurm messages for a job that the center refuses, line by line. None if the job is accepted."""
    if job.partition not in center["partitions"]:
        words = f"invalid partition specified: {job.partition}"
        return words, "Batch job submission failed: Invalid partition name specified"
    partition = center["partitions"][job.partition]
    if job.account != center["account"]:
        return ("Batch job submission failed: Invalid account or account/partition combination specified",)
    if job.qos != center.get("qos"):
        return ("Batch job submission failed: Invalid qos specification",)
    if job.minutes is None or job.minutes > partition["minutes"]:
        return ("Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)",)
    form, other = ("gres", "gpus") if center["gpus_by"] == "gres" else ("gpus", "gres")
    if getattr(job, other):
        return f"request GPUs with --{form}, not --{other}", SCRIPT
    gpus = getattr(job, form)
    if bool(gpus) != bool(partition["gpus"]):
        return (UNAVAILABLE,)
    if gpus and gpus not in partition["gpus"]:
        return ("Batch job submission failed: Invalid generic resource (gres) specification",)
    n_gpus = int(gpus.rpartition(":")[2]) if gpus else 0
    n_cores = n_gpus * job.cpus_per_gpu if job.cpus_per_gpu else (job.ntasks or 1) * (job.cpus_per_task or 1)
    if job.mem is not None and not partition["mem_mb"]:
        return "nodes are exclusive here: remove --mem", SCRIPT
    if job.mem is not None and job.mem > partition["mem_mb"]:
        return "Memory specification can not be satisfied", UNAVAILABLE
    if "mem_mb_per_core" in partition:  # MaxMemPerCPU: more memory is more cores
        n_cores = max(n_cores, math.ceil((job.mem or 0) / partition["mem_mb_per_core"]))
    if n_cores > partition["cores"]:
        return "CPU count per node can not be satisfied", UNAVAILABLE
    if n_submitted >= center["max_submitted"]:
        return "AssocMaxSubmitJobLimit", POLICY
    return None


def main():
    """Print the id of the accepted job, or the reason for refusal."""
    job = parser.parse_args()
    with open(os.environ["SUBMISSIONS"], "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        n_submitted = file.read().count(" accepted ")
        words = refuse(job, json.loads(os.environ["CENTER"]), n_submitted)
        options = {name: value for name, value in vars(job).items() if value is not None and name != "wrap"}
        file.write(f"{os.environ['KIND']} {'refused' if words else 'accepted'} {json.dumps(options)}\n")
    if words:
        sys.exit("\n".join(f"sbatch: error: {line}" for line in words))
    print(n_submitted + 1)


main()
