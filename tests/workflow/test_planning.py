"""All shipped configs and all targets can be planned. Mistakes lead to one clear line."""

import re
from functools import cache

import pytest
from damage import read_commands
from studies import ROOT, SMOKE, read_jobs, snakemake

from docmt.cli.main import app
from docmt.config.loading import load_config, read_config_file

DEMO = ROOT / "config/config.yaml"
CONFIGS = [DEMO, *sorted((ROOT / "config/examples").rglob("*.yaml"))]
QUICK = {"config"}
"""The demo. `docmt config check` reads the others in `make test`."""
STAGES = ("corpora", "text", "discourse", "instances", "training", "decoding", "evaluation", "report")
RECORD_FINGERPRINTS = {"train", "evaluate_run", "evaluate_comet", "evaluate_cxmi", "evaluate_difference"}


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Output of a dry run for a whole study. Studies are planned once."""

    @cache
    def plan(config):
        done = snakemake(tmp_path_factory.mktemp("planned"), "--dry-run", "--printshellcmds", config=config)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return plan


@pytest.mark.parametrize(
    "config",
    [file if file.stem in QUICK else pytest.param(file, marks=pytest.mark.slow) for file in CONFIGS],
    ids=lambda file: file.stem,
)
def test_shipped_configs_can_be_planned(config, planned, tmp_path, monkeypatch):
    jobs = {job.rule: job for job in read_commands(planned(config))}
    assert {"train", "translate", "evaluate_run", "report_collect", "report_render"} <= jobs.keys()
    monkeypatch.chdir(tmp_path)
    for rule, job in jobs.items():
        assert ("--fingerprint" in job.words) == (rule in RECORD_FINGERPRINTS), rule
        app.parse_args(job.words, exit_on_error=False, print_error=False)


def test_demo_is_the_default(planned):
    assert set(read_jobs(planned(None))) == set(read_jobs(planned(DEMO)))


@pytest.mark.parametrize(
    "target",
    [
        "all",
        "results/smoke/runs/g_transformer_finetuned/scores.csv",
        *(pytest.param(target, marks=pytest.mark.slow) for target in (*STAGES, "results/smoke/scores.csv")),
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("decoding: {beam_sise: 3}\n", "config.decoding.beam_sise: unknown key; did you mean 'beam_size'?"),
        ("seeds: [1]\nseeds: [2]\n", "line 2: duplicate key 'seeds'"),
    ],
)
def test_config_mistake_has_no_traceback(text, words, tmp_path):
    changes = tmp_path / "changes.yaml"
    changes.write_text(text, encoding="utf-8")
    done = snakemake(tmp_path, "--dry-run", config=[SMOKE, changes])
    assert done.returncode != 0
    messages = done.stdout + done.stderr
    assert words in messages
    assert "Traceback" not in messages
    assert "site-packages" not in messages


@pytest.mark.slow
@pytest.mark.parametrize(("config", "limit"), [("paper_gtransformer", 630), ("paper_rst_transformer", 330)])
def test_a_full_experiment_submits_a_few_hundred_jobs(config, limit, tmp_path):
    """Under the profile for Slurm, which groups the small jobs."""
    options = ("--dry-run", "--profile", str(ROOT / "slurm"))
    done = snakemake(tmp_path, *options, config=ROOT / f"config/examples/papers/{config}.yaml")
    assert done.returncode == 0, done.stderr
    text = done.stdout + done.stderr
    rules = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "workflow/rules").glob("*.smk"))
    blocks = re.split(r"^(?=rule |use rule )", rules, flags=re.MULTILINE)
    local = {re.search(r"(\w+)(?: with)?:", block)[1] for block in blocks if "    localrule: True\n" in block}
    assert {"report_collect", "corpora_fetch"} <= local
    assert not {"evaluate_run", "evaluate_difference", "report_render"} & local, "they compute"
    alone = [rule for rule in re.findall(r"^rule (\w+):$", text, re.MULTILINE) if rule not in {*local, "all"}]
    grouped = set(re.findall(r"^    rule (\w+):$", text, re.MULTILINE))
    groups = re.findall(r"Group job (\w+) \(jobs in lexicogr. order\):", text)
    assert {"train", "translate"} <= set(alone), "they take hours"
    assert {"tokenize", "evaluate_run", "evaluate_difference"} <= grouped
    assert not grouped & {"train", "translate", "score_candidates", "translate_suite", "annotate", *alone}
    datasets = load_config(read_config_file(ROOT / f"config/examples/papers/{config}.yaml")).datasets
    assert {f"text_{name}" for name in datasets} <= set(groups)
    assert len(alone) + len(groups) <= limit
