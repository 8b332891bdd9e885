"""The finished smoke study: its files, and targets for parts of it."""

import json
import re

import pytest
from smoke_study import StudyView
from studies import read_jobs, snakemake


def test_run_makes_all_products(finished):
    report = finished.folder / "results/report"
    for name in ("scores.csv", "report.html", "reader.html", "summary.txt"):
        assert (report / name).stat().st_size > 100, name
    assert list((report / "tables").glob("*.tex"))
    assert list((report / "figures").glob("*.svg"))
    run = finished.folder / "results/smoke/runs/g_transformer_finetuned/seed1"
    assert (run / "model.pt").exists()
    assert list((run / "checkpoints").iterdir())
    tokens = [path for path in finished.folder.rglob("*.tok.*") if path.parent.name != ".checksums"]
    assert not tokens, "tokens are temporary"
    assert not [path for path in finished.folder.rglob(".*") if path.name.startswith(".report")], "a half-written file"


def test_trees_are_made_and_counted(finished):
    results = finished.folder / "results"
    for kind, key in (("segmenters", "scores"), ("parsers", "parseval")):
        evaluation = json.loads((results / f"discourse/{kind}/tiny/evaluation.json").read_text(encoding="utf-8"))
        assert evaluation[key]
    folder = results / "smoke/discourse/parsed"
    index = (results / "smoke/corpora/en-de/dev.documents.tsv").read_text(encoding="utf-8").splitlines()
    trees = (folder / "dev.1-of-1.discourse.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["document"] for line in trees] == [line.split("\t")[0] for line in index[1:]]
    assert (folder / "statistics.csv").read_text(encoding="utf-8").count("\n") == 4


def test_a_system_decodes_the_models_of_another(finished):
    runs = finished.folder / "results/smoke/runs"
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
    assert {"controlled_generate", "train", "report_render"} <= logs


@pytest.mark.slow
def test_paper_table_is_a_target(finished, tmp_path):
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


@pytest.mark.slow
def test_pictures_are_targets(finished, tmp_path):
    done = finished.run("figures", "results/tables/table_4.txt")
    assert done.returncode == 0, done.stderr
    results = finished.folder / "results"
    report = (results / "report/report.html").read_text(encoding="utf-8")
    for name in ("figure_2", "figure_4"):
        assert (results / f"figures/{name}.svg").read_bytes() == (results / f"report/figures/{name}.svg").read_bytes()
        assert f'id="figures-{name}"' in report
    assert (results / "tables/table_4.txt").read_text(encoding="utf-8").startswith("Case study\n")
    assert (results / "smoke/runs/g_transformer_finetuned/against/sentence_transformer.json").exists()
    planned = set(read_jobs(snakemake(tmp_path, "--dry-run", "results/figures/figure_4.svg").stdout))
    trained = {job for job in planned if job.startswith("train ")}
    assert trained == {
        f"train {name}" for name in ("sentence_transformer", "document_transformer", "g_transformer_finetuned")
    }
    assert not [job for job in planned if job.startswith("translate ")]


def test_scores_of_one_system_are_a_target(finished):
    target = "results/smoke/runs/document_transformer/scores.csv"
    done = finished.run(target)
    assert done.returncode == 0, done.stderr
    lines = (finished.folder / target).read_text(encoding="utf-8").splitlines()
    assert len(lines) > 2
    assert all("document_transformer" in line for line in lines[1:])


@pytest.mark.slow
def test_snakemake_report_is_made(finished):
    done = finished.run("--report", "snakemake.html")
    assert done.returncode == 0, done.stderr
    page = (finished.folder / "snakemake.html").read_text(encoding="utf-8")
    labels = [json.loads(text) for text in re.findall(r'"labels": (\{[^}]*\})', page)]
    for run in StudyView(finished.plan().config).trained:
        assert {"dataset": run.dataset, "system": run.system, "seed": str(run.seed)} in labels
        assert f"The training of {run.system} on {run.dataset} with seed {run.seed}" in page
    assert {"page": "translations to read"} in labels
