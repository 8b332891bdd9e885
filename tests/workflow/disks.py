"""A finished study on full and read-only disks. The disks are tmpfs that only this process and its children see.

Usage: unshare --map-root-user --mount python disks.py commands|study FINISHED DISK, where DISK is an empty folder.
`commands` runs one command per rule on a copy of the study, and `study` runs the whole study on a disk that grows. Both
print a trial as JSON per line.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from pathlib import Path

import torch
import warm
from damage import lasting, read_commands
from studies import Study, snakemake
from test_workflow_many_kills import results

from docmt.checksums import checksum_path
from docmt.cli.main import main

CONDITIONS = ("full", "nearly full", "read-only")
SECONDS = 300
"""Time limit of a command."""
FIRST_KILOBYTES = 200
N_SIZES = 10
"""Number of disk sizes, up to twice the size of the study."""


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def run(job):
    """Run the command of a job in a new process. Returns its exit code and the errors that it prints."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        os.dup2(writer, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        signal.alarm(SECONDS)
        try:
            code = main(list(job.words))
        except BaseException:  # everything ends this process
            traceback.print_exc()
            code = 99
        sys.stderr.flush()
        os._exit(code)
    os.close(writer)
    with open(reader, encoding="utf-8", errors="replace") as printed:
        text = printed.read()
    _, status = os.waitpid(process, 0)
    lines = [line for line in text.splitlines() if line.strip() and " INFO " not in line and " WARNING " not in line]
    return os.waitstatus_to_exitcode(status), lines


def spoil(disk, condition, n_bytes):
    """Fill a disk, leave half of the space for these bytes, or make it read-only."""
    if condition == "read-only":
        mount("-o", "remount,ro", disk)
        return
    filler = disk / "filler"
    block = bytes(1 << 16)
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(block) == len(block):
                pass
        except OSError:
            pass
        if condition == "nearly full":
            file.truncate(max(0, file.tell() - n_bytes // 2))


def mend(disk):
    mount("-o", "remount,rw", disk)
    remove(disk / "filler")


def outputs_of(job):
    """Outputs of a job, and checkpoints of a training."""
    for name in job.outputs:
        yield Path(name)
        if name.endswith("model.pt"):
            yield Path(name).with_name("checkpoints")


def contents(job):
    """Results of a job without times."""
    files = [file for path in map(Path, job.outputs) for file in ([path] if path.is_file() else path.rglob("*"))]
    return {
        str(file): lasting(file)
        for file in files
        if file.is_file() and ".checksums" not in file.parts and file.name != "history.csv"
    }


def other_files(job):
    """Files in the results, except complete outputs of the job and checkpoints. Snakemake deletes these outputs."""
    outputs = [*map(Path, job.outputs)]
    ignored = {*outputs, *map(checksum_path, outputs)}
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in Path("results").rglob("*")
        if ignored.isdisjoint([path, *path.parents]) and "checkpoints" not in path.parts
    }


def try_command(disk, job):
    """Yield a trial of a job's command per condition."""
    expected = None
    for condition in ("undisturbed", *CONDITIONS):
        for path in outputs_of(job):
            remove(path)  # as Snakemake does
        before = other_files(job)
        code, lines, changed = None, [], []
        if expected is not None:
            spoil(disk, condition, sum(map(len, expected.values())))
            code, lines = run(job)
            mend(disk)
            after = other_files(job)
            changed = [name for name in before | after if before.get(name) != after.get(name)]
        again, _ = run(job)
        expected = expected or contents(job)
        if code is not None:
            yield {
                "rule": job.rule,
                "condition": condition,
                "code": code,
                "lines": lines,
                "changed": changed,
                "is_equal": again == 0 and contents(job) == expected,
            }


def try_commands(finished, disk):
    """Yield the trials of a command per rule."""
    mount("-t", "tmpfs", "-o", "size=200m", "tmpfs", disk)
    plan = snakemake(finished, "--forceall", "--dry-run", "--printshellcmds", config=finished / "study.yaml")
    shutil.copytree(finished / "results", disk / "results")
    os.chdir(disk)
    rules = set()
    for job in read_commands(plan.stdout):
        if job.rule not in rules:
            rules.add(job.rule)
            yield from try_command(disk, job)
        elif not all(map(os.path.exists, job.outputs)):  # intermediate text, which later commands read
            run(job)


def try_study(finished, disk):
    """Yield runs of a study on larger and larger disks. After a run, the disk is read-only once."""
    n_kilobytes = sum(file.stat().st_size for file in finished.rglob("*") if file.is_file()) // 1024
    mount("-t", "tmpfs", "-o", f"size={FIRST_KILOBYTES}k", "tmpfs", disk)
    study = Study(disk)
    study.config()
    for number in range(1, N_SIZES + 1):
        done = snakemake(disk, "--cores", "2", config=disk / "study.yaml")
        yield {"code": done.returncode, "text": done.stdout + done.stderr}
        mount("-o", "remount,ro", disk)
        refused = snakemake(disk, "--cores", "2", config=disk / "study.yaml")
        yield {"code": refused.returncode, "text": refused.stdout + refused.stderr}
        mount("-o", f"remount,rw,size={FIRST_KILOBYTES + 2 * n_kilobytes * number // N_SIZES}k", disk)
    expected, actual = results(finished), results(disk)
    yield {"differing": [name for name in expected | actual if expected.get(name) != actual.get(name)]}


if __name__ == "__main__":
    trials, finished, disk = sys.argv[1:]
    for module in warm.IMPORTED:
        __import__(module)
    torch.set_num_threads(1)  # a process with threads cannot fork
    for trial in {"commands": try_commands, "study": try_study}[trials](Path(finished), Path(disk)):
        print(json.dumps(trial), flush=True)
