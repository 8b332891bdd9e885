"""In place of `sbatch`: accepts what a center accepts, whose rules are in the environment variable CENTRE."""

import argparse
import json
import os
import sys

center = json.loads(os.environ["CENTRE"])
parser = argparse.ArgumentParser("sbatch", allow_abbrev=False)
parser.add_argument("-A", dest="account")
parser.add_argument("-p", dest="partition")
parser.add_argument("-t", dest="minutes", type=int)
for name in ("mem", "nodes", "ntasks", "cpus-per-task", "cpus-per-gpu"):
    parser.add_argument(f"--{name}", type=int)
for name in ("job-name", "output", "export", "comment", "gres", "gpus", "qos", "signal"):
    parser.add_argument(f"--{name}")
parser.add_argument("--parsable", action="store_true")
job = parser.parse_args()

if job.account != center["account"]:
    sys.exit(f"sbatch: error: Invalid account: {job.account}")
if job.partition not in center["partitions"]:
    sys.exit(f"sbatch: error: invalid partition specified: {job.partition}")
partition = center["partitions"][job.partition]
if job.qos not in (None, center.get("qos")):
    sys.exit(f"sbatch: error: Invalid qos specification: {job.qos}")
if job.minutes is None or job.minutes > partition["minutes"]:
    sys.exit(f"sbatch: error: Requested time limit is invalid: {job.minutes}")
if job.mem is None or job.mem > partition["mem_mb"]:
    sys.exit(f"sbatch: error: Memory specification can not be satisfied: {job.mem}")
if getattr(job, {"gres": "gpus", "gpus": "gres"}[center["gpus_by"]]):
    sys.exit(f"sbatch: error: GPUs are requested with --{center['gpus_by']} here")
gpus = getattr(job, center["gpus_by"])
if bool(gpus) != partition["has_gpus"] or (gpus and gpus not in partition["requests"]):
    sys.exit(f"sbatch: error: Requested node configuration is not available: {gpus} in {job.partition}")
print(1)
