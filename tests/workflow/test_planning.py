"""Every shipped config and every target is planned; mistakes are one clear line."""

import re
import subprocess
import sys

import pytest
from damage import read_commands
from studies import ROOT, SMOKE, Study, read_jobs, snakemake

from docmt.cli.main import app

CONFIGS = [ROOT / "config/config.yaml", *sorted((ROOT / "config/examples").rglob("*.yaml"))]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda file: file.stem)
def test_shipped_config_can_be_planned_and_docmt_takes_the_command_of_each_rule(config, tmp_path, monkeypatch):
    done = snakemake(tmp_path, "--dry-run", "--printshellcmds", config=config)
    assert done.returncode == 0, done.stderr
    jobs = {job.rule: job for job in read_commands(done.stdout + done.stderr)}
    assert {"train", "translate", "evaluate_translation", "gather", "render"} <= jobs.keys()
    monkeypatch.chdir(tmp_path)
    for rule, job in jobs.items():
        words = job.words
        if not rule.startswith("fetch"):
            *words, name, value = words
            assert (name, len(value)) == ("--fingerprint", 12), rule
        app.parse_args(words, exit_on_error=False, print_error=False)


def test_demo_is_the_config_that_is_taken_without_a_name(tmp_path):
    done = snakemake(tmp_path, "--dry-run", config=None)
    assert done.returncode == 0, done.stderr
    by_name = snakemake(tmp_path, "--dry-run", config=ROOT / "config/config.yaml")
    assert set(read_jobs(done.stdout + done.stderr)) == set(read_jobs(by_name.stdout + by_name.stderr))


@pytest.mark.parametrize(
    "target",
    [
        *("all", "demo", "corpora", "text", "discourse", "instances", "training", "decoding", "evaluation", "report"),
        "results/controlled/scores.csv",
        "results/controlled/runs/g_transformer_finetuned/scores.csv",
    ],
)
def test_target_can_be_planned(target, tmp_path):
    done = snakemake(tmp_path, "--dry-run", target)
    assert done.returncode == 0, done.stderr
    jobs = set(read_jobs(done.stdout + done.stderr))
    assert jobs
    if "g_transformer_finetuned" in target:
        trained = {job for job in jobs if job.startswith("train ")}
        assert trained == {"train sentence_transformer", "train g_transformer_finetuned"}
        assert not {job for job in jobs if "parsed" in job or "parser" in job}, "it reads no trees"


def test_files_of_the_user_are_read_and_joined(tmp_path):
    (tmp_path / "talks.en").write_text("Hello .\n\nOne .\nTwo .\n", encoding="utf-8")
    (tmp_path / "talks.de").write_text("Hallo .\n\nEins .\nZwei .\n", encoding="utf-8")
    custom = {
        "languages": ["en", "de"],
        "format": {"reader": "blank_lines"},
        "splits": {"all": {"files": {"en": "talks.en", "de": "talks.de"}}},
    }
    changes = {
        "corpora": {"custom": {"talks": custom}},
        "datasets": {"controlled": {"train": ["talks/all", "controlled/train"]}},
    }
    study = Study(tmp_path)
    prefix = "results/controlled/corpora/en-de/train"
    done = study.run(f"{prefix}.documents.tsv", changes=changes)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{prefix}.en").read_text(encoding="utf-8").startswith("Hello .\nOne .\nTwo .\n")
    index = (tmp_path / f"{prefix}.documents.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[1] for line in index[1:3]] == ["1", "2"]


def test_lint_is_clean():
    command = [sys.executable, "-m", "snakemake", "--lint"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("decoding: {beam_sise: 3}\n", "config.decoding.beam_sise: unknown key; did you mean 'beam_size'?"),
        ("seeds: [1]\nseeds: [2]\n", "line 2: duplicate key 'seeds'"),
        ("training: {scratch: {learning_rate: 1e-4}}\n", "write it with a point, as in 1.0e-4"),
    ],
)
def test_mistake_in_the_config_is_named_without_a_traceback(text, words, tmp_path):
    changes = tmp_path / "changes.yaml"
    changes.write_text(text, encoding="utf-8")
    done = snakemake(tmp_path, "--dry-run", config=[SMOKE, changes])
    assert done.returncode != 0
    messages = done.stdout + done.stderr
    assert words in messages
    assert "Traceback" not in messages
    assert "site-packages" not in messages


@pytest.mark.parametrize(("config", "limit"), [("paper_gtransformer", 670), ("paper_rst_transformer", 340)])
def test_a_full_experiment_submits_a_few_hundred_jobs(config, limit, tmp_path):
    done = snakemake(tmp_path, "--dry-run", config=ROOT / f"config/examples/papers/{config}.yaml")
    assert done.returncode == 0, done.stderr
    rules = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "workflow/rules").glob("*.smk"))
    blocks = re.split(r"^(?=rule |use rule )", rules, flags=re.MULTILINE)
    local = {re.search(r"(\w+)(?: with)?:", block)[1] for block in blocks if "    localrule: True\n" in block}
    assert {"gather", "gather_system", "render"} <= local
    submitted = [job for job in read_jobs(done.stdout + done.stderr) if job.split()[0] not in local]
    assert {"train", "translate", "tokenize"} <= {job.split()[0] for job in submitted}
    assert len(submitted) <= limit
