"""Shipped profiles: the Slurm plugin submits all kinds of jobs to an `sbatch` with a center's rules."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import warm
import yaml
from architectures import slow_but
from studies import ROOT, SMOKE, clean_environment

from docmt.snakemake import read_jobs


def partition(hours, cores, mem_mb, *gpus, **limits):
    return {"minutes": 60 * hours, "cores": cores, "mem_mb": mem_mb, "gpus": gpus, **limits}


CENTERS = {
    "university": {
        "account": "nlp-group",
        "qos": "normal",
        "gpus_by": "gres",
        "partitions": {
            "cpu": partition(12, 64, 190_000, mem_mb_per_core=4000),
            "gpu": partition(12, 40, 380_000, "gpu:v100:1", "gpu:a100:2"),
        },
        "max_submitted": 100,
    },
    "container": {
        "account": "my-project",
        "gpus_by": "gpus",
        "partitions": {"compute": partition(24, 48, 250_000), "accelerated": partition(24, 64, 500_000, "1")},
        "max_submitted": 1000,
    },
    "lumi": {
        "account": "project_465000000",
        "gpus_by": "gres",
        "partitions": {"small": partition(72, 128, 224_000), "small-g": partition(72, 63, 480_000, "gpu:mi250:1")},
        "max_submitted": 200,
    },
    "whole_nodes": {
        "account": "my-project",
        "gpus_by": "gres",
        "partitions": {"batch": partition(24, 48, None), "booster": partition(24, 48, None, "gpu:4")},
        "max_submitted": 100,
    },
}
"""Rules of centers. `gpus`: accepted requests, `mem_mb`: memory per node, or None if `--mem` is refused."""
SHORT = {"cpu": partition(2, 64, 190_000), "gpu": partition(2, 40, 380_000, "gpu:v100:1", "gpu:a100:2")}
"""University partitions with a limit of two hours."""
KINDS = {"corpora", "text", "instances", "scores", "train", "translate", "score_candidates", "report_render"}
"""Groups by the start of their name, and rules in the smoke study."""
PROGRAMS = {"container": "apptainer", "lumi": "singularity"}


def read_profile(site):
    return yaml.safe_load((ROOT / f"slurm/{site}/config.yaml").read_text(encoding="utf-8"))


@dataclass
class Submissions:
    """Submissions of the plugin.

    Attributes:
        local: rules that run on Snakemake's node.
        accepted, refused: sbatch options by kind.
        messages: output of Snakemake.
    """

    local: set
    accepted: dict
    refused: dict
    messages: str


def submit(folder, center, profile):
    """Submit a job per kind in the smoke study to a center."""
    programs = folder / "bin"
    programs.mkdir()
    sbatch = Path(__file__).with_name("fake_sbatch.py")
    texts = {"sbatch": f"#!{sys.executable} -IS\n{sbatch.read_text()}"}
    texts |= dict.fromkeys(("squeue", "sacctmgr", "sshare"), "#!/bin/sh\n")
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (folder / "profile").mkdir()
    (folder / "profile/config.yaml").write_text(yaml.safe_dump(profile))
    environment = clean_environment() | {"CENTER": json.dumps(center), "SUBMISSIONS": str(folder / "submissions")}
    profiles = ("--profile", ROOT / "slurm", "--profile", folder / "profile")
    options = ("--snakefile", ROOT / "tests/workflow/submissions.smk", "--configfile", SMOKE, "--directory", folder)
    done = warm.run("snakemake", ["all", *profiles, *options], environment=environment, programs=[programs])
    messages = done.stdout + done.stderr
    submissions = Submissions(set(re.findall(r"^local rule: (\w+)$", messages, flags=re.M)), {}, {}, messages)
    for line in (folder / "submissions").read_text().splitlines():
        kind, answer, options = line.split(" ", 2)
        getattr(submissions, answer)[kind] = json.loads(options)
    return submissions


@pytest.mark.parametrize("site", slow_but((), CENTERS))
def test_center_accepts_all_kinds_of_jobs(site, tmp_path):
    profile = read_profile(site)
    submissions = submit(tmp_path, CENTERS[site], profile)
    assert submissions.refused == {}
    assert submissions.accepted.keys() >= KINDS
    assert submissions.local == {"all", "instances_count", "report_collect"}
    assert profile["jobs"] < CENTERS[site]["max_submitted"]  # the job of Snakemake itself counts, too
    assert profile["local-cores"] == 1


@pytest.mark.slow
def test_short_queue_needs_two_changed_lines(tmp_path):
    profile = read_profile("university") | {"retries": 12}
    profile["default-resources"]["max_runtime"] = 120
    submissions = submit(tmp_path, CENTERS["university"] | {"partitions": SHORT}, profile)
    assert submissions.refused == {}
    assert submissions.accepted.keys() >= KINDS
    assert {submissions.accepted[kind]["minutes"] for kind in ("train", "translate", "text")} == {120}


@pytest.mark.slow
def test_center_refuses_other_jobs_with_reason(tmp_path):
    changes = {
        "train": ({"runtime": 721}, "Requested time limit is invalid (missing or exceeds some limit)"),
        "translate": ({"slurm_partition": "cpux"}, "invalid partition specified: cpux; "),
        "score_candidates": ({"gpu": 1, "gres": ""}, "request GPUs with --gres, not --gpus; "),
        "annotate": ({"mem_mb": 190_001}, "Memory specification can not be satisfied; "),
        "tokenize": ({"mem_mb": 32_000}, "Memory specification can not be satisfied; "),  # of the group
        "train_parser": ({"slurm_partition": "whole"}, "nodes are exclusive here: remove --mem; "),
        "count_trees": ({"qos": "long"}, "Invalid qos specification"),
        "count_overlap": ({"slurm_account": "other"}, "Invalid account or account/partition combination specified"),
        "report_cases": ({"slurm_partition": "gpu"}, "Requested node configuration is not available"),
        "report_reader": (
            {"slurm_partition": "gpu", "gres": "gpu:h100:1"},
            "Invalid generic resource (gres) specification",
        ),
        "report_render": ({"cpus_per_task": 65}, "CPU count per node can not be satisfied; "),
        "evaluate_parser": ({"mem_mb": 65 * 2900}, "CPU count per node can not be satisfied; "),  # MaxMemPerCPU
    }
    profile = read_profile("university")
    del profile["default-resources"]["max_runtime"], profile["default-resources"]["max_mem_mb"]
    for rule, (change, _) in changes.items():
        profile["set-resources"][rule] = profile["set-resources"].get(rule, {}) | change
    center = json.loads(json.dumps(CENTERS["university"])) | {"max_submitted": 5}
    center["partitions"]["cpu"]["mem_mb_per_core"] = 2900
    center["partitions"]["whole"] = partition(12, 64, None)
    submissions = submit(tmp_path, center, profile)
    reasons = {job.rule: job.message for job in read_jobs(submissions.messages) if job.is_failed}
    for rule, (_, words) in changes.items():
        assert words in reasons[rule], rule
        assert reasons[rule].startswith("sbatch refused this job: "), rule
    assert len(submissions.accepted) == 5
    # Above the limit of submitted jobs, the plugin waits.
    assert submissions.refused.keys() == {*changes, "text", "train_segmenter"} - {"tokenize"}
    assert "yet (AssocMaxSubmitJobLimit; Batch job submission failed: Job violates" in submissions.messages


@pytest.mark.parametrize("site", CENTERS)
def test_profile_names_all_gpu_rules(site):
    shipped = yaml.safe_load((ROOT / "slurm/config.yaml").read_text(encoding="utf-8"))
    profile = read_profile(site)
    assert set(profile) <= {*shipped, "set-resources"}
    rules = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "workflow/rules").glob("*.smk"))
    gpu_rules = re.findall(
        r"^rule (\w+):(?:(?!^rule ).*\n)*?.*(?:\bgpu=1|training_resources\(workflow\))", rules, flags=re.M
    )
    derived = re.findall(r"^use rule (\w+) as (\w+) with:", rules, flags=re.M)
    gpu_rules += [rule for original, rule in derived if original in gpu_rules]
    assert sorted(profile["set-resources"]) == sorted(gpu_rules)


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
