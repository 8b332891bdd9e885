"""Profiles of three kinds of centers: their plans, and their jobs at an `sbatch` with the rules of such a center."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from studies import ROOT, snakemake


def partition(minutes, mem_mb, *requests):
    return {"minutes": minutes, "mem_mb": mem_mb, "has_gpus": bool(requests), "requests": requests}


CENTERS = {
    "university": {
        "account": "nlp-group",
        "qos": "normal",
        "gpus_by": "gres",
        "partitions": {"cpu": partition(1440, 190_000), "gpu": partition(720, 500_000, "gpu:v100:1", "gpu:a100:2")},
        "max_submitted": 120,
    },
    "container": {
        "account": "my-project",
        "gpus_by": "gpus",
        "partitions": {"compute": partition(2880, 250_000), "accelerated": partition(2880, 500_000, "1")},
        "max_submitted": 1000,
    },
    "lumi": {
        "account": "project_465000000",
        "gpus_by": "gres",
        "partitions": {"small": partition(4320, 224_000), "small-g": partition(4320, 480_000, "gpu:mi250:1")},
        "max_submitted": 200,
    },
}
PROGRAMS = {"container": "apptainer", "lumi": "singularity"}


class Resources(dict):
    """Resources as the plugin reads them, by name or as attributes."""

    __getattr__ = dict.__getitem__


def read_profile(site):
    return yaml.safe_load((ROOT / f"slurm/{site}/config.yaml").read_text(encoding="utf-8"))


def read_requests(text):
    """The threads and resources of the first job of each rule, in a group or not."""
    found = {}
    for _, rule, block in re.findall(r"^( *)rule (\w+):\n((?:\1    \S.*\n)+)", text, flags=re.M):
        entries = dict(re.findall(r"^ +(\w+): (.*)$", block, flags=re.M))
        pairs = [pair.split("=", 1) for pair in entries["resources"].split(", ") if "=" in pair]
        values = {name: int(value) if value.isdecimal() else value for name, value in pairs}
        found.setdefault(rule, (int(entries.get("threads", 1)), Resources(values)))
    return found


def submit(center, threads, resources):
    """The end of the fake `sbatch` for a job."""
    job = SimpleNamespace(resources=resources, threads=threads)
    place = {"account": f"-A {resources.slurm_account}", "partition": f"-p {resources.slurm_partition}"}
    names = ("run_uuid", "slurm_logfile", "comment_str", "workdir")
    command = get_submit_command(job, dict.fromkeys(names, "") | place) + set_gres_string(job)
    program = f"{sys.executable} {Path(__file__).with_name('fake_sbatch.py')}"
    environment = os.environ | {"CENTRE": json.dumps(center)}
    return subprocess.run(
        command.replace("sbatch", program, 1), shell=True, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("site", CENTERS)
def test_a_center_accepts_all_jobs_of_a_plan(site, tmp_path):
    profiles = ("--profile", str(ROOT / "slurm"), "--profile", str(ROOT / "slurm" / site))
    done = snakemake(tmp_path, "--dry-run", *profiles)
    assert done.returncode == 0, done.stderr
    requests = read_requests(done.stdout + done.stderr)
    assert {"tokenize", "train", "translate", "score_candidates", "evaluate_run", "report_render"} <= requests.keys()
    for rule, (threads, resources) in requests.items():
        done = submit(CENTERS[site], threads, resources)
        assert done.returncode == 0, f"{rule}: {done.stderr}"
    profile = read_profile(site)
    assert profile["jobs"] <= CENTERS[site]["max_submitted"]
    assert profile["local-cores"] == 1
    _, training = requests["train"]
    assert training.devices == (2 if site == "university" else 1)
    assert training.mem_mb == 8000 * (1 + training.devices)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"slurm_partition": "cpu"}, "node configuration is not available"),
        ({"gpu": 1, "gres": ""}, "GPUs are requested with --gres here"),
        ({"runtime": 721}, "time limit is invalid"),
        ({"slurm_account": "other"}, "Invalid account"),
    ],
)
def test_a_center_refuses_other_jobs(change, problem):
    accepted = {"slurm_account": "nlp-group", "slurm_partition": "gpu", "gres": "gpu:v100:1", "mem_mb": 8000}
    resources = Resources(accepted | {"runtime": 240, "cpus_per_gpu": 4})
    assert submit(CENTERS["university"], 1, resources).returncode == 0
    done = submit(CENTERS["university"], 1, Resources(resources | change))
    assert done.returncode == 1
    assert problem in done.stderr


@pytest.mark.parametrize("site", CENTERS)
def test_profiles_name_all_gpu_rules(site):
    shipped = yaml.safe_load((ROOT / "slurm/config.yaml").read_text(encoding="utf-8"))
    assert set(read_profile(site)) <= {*shipped, "set-resources"}
    rules = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "workflow/rules").glob("*.smk"))
    on_gpus = re.findall(
        r"^rule (\w+):(?:(?!^rule ).*\n)*?.*(?:\bgpu=1|training_resources\(workflow\))", rules, flags=re.M
    )
    assert sorted(read_profile(site)["set-resources"]) == sorted(on_gpus)


@pytest.mark.parametrize(("site", "program"), PROGRAMS.items())
def test_a_container_gets_the_words_of_a_job(site, program, tmp_path, monkeypatch):
    (tmp_path / program).write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{ROOT}/slurm/{site}:{tmp_path}", prepend=":")
    done = subprocess.run("exec docmt train --settings '{\"a b\": 1}'", shell=True, capture_output=True, text=True)
    words = done.stdout.splitlines()
    assert words[:2] == ["exec", "--nv" if site == "container" else "--rocm"]
    assert words[-4:] == ["docmt", "train", "--settings", '{"a b": 1}']
    assert "//" not in done.stdout
