"""The workflow as a whole: every shipped config is planned, the smallest is run, mistakes are one clear line."""

import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, SMOKE, Study, read_jobs, snakemake

CONFIGS = [ROOT / "config/config.yaml", *sorted((ROOT / "config/examples").rglob("*.yaml"))]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda file: file.stem)
def test_shipped_config_can_be_planned(config, tmp_path):
    done = snakemake(tmp_path, "--dry-run", config=config)
    assert done.returncode == 0, done.stderr
    jobs = list(read_jobs(done.stdout + done.stderr))
    assert {"train", "translate", "evaluate_translation", "gather", "render"} <= {job.split()[0] for job in jobs}


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


def test_run_makes_all_products(finished):
    report = finished.folder / "results/report"
    for name in ("scores.csv", "report.html", "reader.html", "summary.txt"):
        assert (report / name).stat().st_size > 100, name
    assert list((report / "tables").glob("*.tex"))
    assert list((report / "figures").glob("*.svg"))
    run = finished.folder / "results/controlled/runs/g_transformer_finetuned/seed1"
    assert (run / "model.pt").exists()
    assert list((run / "checkpoints").iterdir())
    tokens = [path for path in finished.folder.rglob("*.tok.*") if path.parent.name != ".checksums"]
    assert not tokens, "tokens are temporary"
    assert not [path for path in finished.folder.rglob(".*") if path.name.startswith(".report")], "a half-written file"


def test_trees_are_made_counted_and_drawn(finished):
    results = finished.folder / "results"
    for kind, key in (("segmenters", "scores"), ("parsers", "parseval")):
        evaluation = json.loads((results / f"discourse/{kind}/tiny/evaluation.json").read_text(encoding="utf-8"))
        assert evaluation[key]
    folder = results / "controlled/discourse/parsed"
    index = (results / "controlled/corpora/en-de/dev.documents.tsv").read_text(encoding="utf-8").splitlines()
    trees = (folder / "dev.1-of-1.discourse.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["document"] for line in trees] == [line.split("\t")[0] for line in index[1:]]
    assert (folder / "statistics.csv").read_text(encoding="utf-8").count("\n") == 4
    assert "<svg" in (folder / "dev.svg").read_text(encoding="utf-8")


def test_a_system_decodes_the_models_of_another(finished):
    runs = finished.folder / "results/controlled/runs"
    assert not (runs / "rst_mix_without_trees/seed1/model.pt").exists()
    with_trees, without = (
        json.loads((runs / f"{system}/seed1/decoding/suite_pronoun.json").read_text(encoding="utf-8"))["items"]
        for system in ("rst_mix", "rst_mix_without_trees")
    )
    assert [item["id"] for item in with_trees] == [item["id"] for item in without]
    assert with_trees != without


def test_every_rule_leaves_a_log_and_a_benchmark(finished):
    logs = {path.name for path in (finished.folder / "logs").iterdir()}
    assert logs == {path.name for path in (finished.folder / "results/benchmarks").iterdir()}
    assert {"generate_corpus", "train", "render"} <= logs


def test_a_table_of_a_paper_is_a_target_of_its_systems_alone(finished, tmp_path):
    target = "results/tables/table_1.txt"
    done = finished.run(target)
    assert done.returncode == 0, done.stderr
    first, second = (finished.folder / target).read_text(encoding="utf-8").splitlines()[4:6]
    assert first.split()[:2] == ["g_transformer_finetuned", "documents"]
    assert second.split()[:2] == ["sentence_transformer", "sentences"]
    assert (finished.folder / "results/report/tables/table_1.csv").exists()
    planned = set(read_jobs(snakemake(tmp_path, "--dry-run", target).stdout))
    trained = {job for job in planned if job.startswith("train ")}
    assert trained == {"train sentence_transformer", "train g_transformer_finetuned"}


def test_pictures_and_a_case_study_are_targets_of_their_systems_alone(finished, tmp_path):
    done = finished.run("figures", "results/tables/table_4.txt")
    assert done.returncode == 0, done.stderr
    results = finished.folder / "results"
    report = (results / "report/report.html").read_text(encoding="utf-8")
    for name in ("figure_2", "figure_4"):
        assert (results / f"figures/{name}.svg").read_bytes() == (results / f"report/figures/{name}.svg").read_bytes()
        assert f'id="figures-{name}"' in report
    assert (results / "tables/table_4.txt").read_text(encoding="utf-8").startswith("Case study\n")
    assert list(results.glob("controlled/runs/g_transformer_finetuned/against/sentence_transformer/suite_pronoun.json"))
    planned = set(read_jobs(snakemake(tmp_path, "--dry-run", "results/figures/figure_4.svg").stdout))
    trained = {job for job in planned if job.startswith("train ")}
    assert trained == {
        f"train {name}" for name in ("sentence_transformer", "document_transformer", "g_transformer_finetuned")
    }
    assert not [job for job in planned if job.startswith("translate ")]


def test_scores_of_one_system_are_a_target(finished):
    target = "results/controlled/runs/document_transformer/scores.csv"
    done = finished.run(target)
    assert done.returncode == 0, done.stderr
    lines = (finished.folder / target).read_text(encoding="utf-8").splitlines()
    assert len(lines) > 2
    assert all("document_transformer" in line for line in lines[1:])


def test_snakemake_report_is_made(finished):
    done = finished.run("--report", "snakemake.html")
    assert done.returncode == 0, done.stderr
    page = (finished.folder / "snakemake.html").read_text(encoding="utf-8")
    labels = [json.loads(found) for found in re.findall(r'"labels": (\{[^}]*\})', page)]
    for run in finished.plan().artifacts.trained:
        assert {"dataset": run.dataset, "system": run.system, "seed": str(run.seed)} in labels
        assert f"The training of {run.system} on {run.dataset} with seed {run.seed}" in page
    assert {"page": "translations to read"} in labels


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


@pytest.mark.parametrize(("config", "limit"), [("paper_gtransformer", 660), ("paper_rst_transformer", 320)])
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
