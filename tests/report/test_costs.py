"""Costs from hand-made benchmarks and job records."""

import csv
import json
import math
import re
from pathlib import Path

import pytest
from score_rows import render_report, score, write_scores

from docmt.errors import UserError
from docmt.report.costs import RECORDS, costs_table, read_costs
from docmt.report.markup import to_latex
from docmt.report.tables import to_text

HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
STAGES = {
    "text": ["apply_bpe"],
    "discourse": ["annotate"],
    "training": ["train"],
    "decoding": ["translate", "translate_shard", "score_candidates", "translate_suite", "evaluate_cxmi"],
    "evaluation": ["evaluate_comet"],
    "report": ["report_render"],
}


@pytest.fixture
def folder(tmp_path):
    """A folder with benchmarks and runs, and functions to write them."""

    class Folder:
        benchmarks = tmp_path / "benchmarks"

        def benchmark(self, rule, name, seconds, cpu="1.00", text=None):
            path = self.benchmarks / rule / f"{name}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            row = "\t".join([str(seconds), "0:00:00", "10.00", "1", "1", "1", "0", "0", "0", cpu])
            path.write_text(HEADER + row + "\n" if text is None else text)

        def facts(self, name, content, *, system="a"):
            path = tmp_path / f"d/runs/{system}/seed1" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))

        def table(self, *, stages=STAGES):
            return costs_table(read_costs(self.benchmarks, stages))

        def hours(self):
            """Core-hours and GPU-hours of the only stage."""
            values = self.table().full
            return values["core_hours"].item(), values["gpu_hours"].item()

    return Folder()


def test_sums_follow_the_workflow(folder):
    folder.benchmark("train", "d/a/seed1", 7200, cpu="7200")
    folder.benchmark("apply_bpe", "d/dev/en", 1800, cpu="900")
    folder.benchmark("apply_bpe", "d/dev/de", 1800, cpu="2700")
    folder.benchmark("annotate", "d/parsed/train/1-of-2", 3600, cpu="3600")
    folder.benchmark("mine", "x", 3600, cpu="3600")
    table = folder.table()
    assert table.header == ["Stage", "jobs", "core-minutes"], "no job used a GPU"
    assert table.rows == [
        ["text", "2", "60.0"],
        ["discourse", "1", "60.0"],
        ["training", "1", "120.0"],
        ["other", "1", "60.0"],
        ["all", "5", "300.0"],
    ]
    assert table.full["stage"].tolist() == ["text", "discourse", "training", "other"]
    assert "300.0" in to_text(table)
    assert "300.0" in to_latex(table)


@pytest.mark.parametrize(
    ("hours", "heading", "cell"),
    [
        (0.05, "core-seconds", "180.0"),
        (0.1, "core-minutes", "6.0"),
        (10, "core-hours", "10.0"),
        (200, "core-hours", "200.0"),
    ],
)
def test_the_unit_suits_the_longest_time(folder, hours, heading, cell):
    folder.benchmark("train", "d/a/seed1", 5, cpu=str(3600 * hours))
    table = folder.table()
    assert [table.header[2], table.rows[-1][2]] == [heading, cell]
    assert table.full["core_hours"].tolist() == [hours], "the file has hours"


@pytest.mark.parametrize("mark", ["-", "NA", ""])
def test_short_jobs_have_no_core_hours(folder, mark):
    folder.benchmark("report_collect", "report_collect", 36, cpu=mark)
    folder.benchmark("report_collect", "again", 36, cpu="36")
    assert folder.table().rows[-1] == ["all", "2", "36.0"]


def sessions(*seconds):
    return [{"from_update": 100 * i, "seconds": time} for i, time in enumerate(seconds)]


@pytest.mark.parametrize(
    ("rule", "name", "file"),
    [
        ("train", "d/a/seed1", "model.job.json"),
        ("translate", "d/a/seed1/test_t", "decoding/test_t.job.json"),
        ("translate_shard", "d/a/seed1/test_t.1-of-3", "decoding/test_t.1-of-3.job.json"),
        ("score_candidates", "d/a/seed1/pronoun", "decoding/suite_pronoun.json"),
        ("translate_suite", "d/a/seed1/t", "decoding/generated_t.job.json"),
        ("evaluate_cxmi", "d/a/seed1/t", "scores/cxmi_t.json"),
        ("evaluate_comet", "d/a/seed1/test_t", "scores/comet_test_t.json"),
    ],
)
@pytest.mark.parametrize(("device", "n_devices", "gpus"), [("cpu", 1, 0), ("cuda", 1, 1), ("cuda", 4, 4)])
def test_gpu_hours_are_those_of_gpus_in_use(folder, rule, name, file, device, n_devices, gpus):
    folder.benchmark(rule, name, 1800)
    facts = {"device": device, "n_devices": n_devices}
    folder.facts(file, facts if file.endswith(".job.json") else {"provenance": facts})
    assert folder.hours()[1] == gpus / 2


def test_every_rule_with_a_gpu_records_its_device():
    files = (Path(__file__).parents[2] / "workflow/rules").glob("*.smk")
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    rules = {
        rule.partition(":")[0]
        for rule in re.split(r"^rule ", text, flags=re.MULTILINE)[1:]
        if re.search(r"^        (gpu|cpus_per_gpu)=", rule, re.MULTILINE)
    }
    rules |= {twin for base, twin in re.findall(r"^use rule (\w+) as (\w+) with", text, re.MULTILINE) if base in rules}
    assert rules == set(RECORDS)


def test_jobs_without_a_record_count_as_cpu(folder):
    folder.benchmark("score_candidates", "d/a/seed1/pronoun", 1800, cpu="1800")
    assert folder.hours() == (0.5, 0)


@pytest.mark.parametrize(
    "content", [{"device": "cuda"}, {"device": "cuda", "n_devices": 1, "sessions": [{"from_update": 0}]}, ["cuda"]]
)
def test_damaged_records_of_jobs_are_one_line(folder, content):
    folder.benchmark("train", "d/a/seed1", 5)
    folder.facts("model.job.json", content)
    with pytest.raises(UserError, match=r"model\.job\.json: not a job record"):
        folder.table()


ROW = "60.0\t0:01:00\t10\t1\t1\t1\t0\t0\t50\t"


@pytest.mark.parametrize(
    "text",
    [
        HEADER + f"{ROW}18.0\n" * 2,
        HEADER.strip() + "\tjobid\trule_name\tresources\n" + ROW + "36.0\t4\tgather\t{'gpu': 1}\n",
    ],
    ids=["repeated", "extended"],
)
def test_repeated_jobs_are_summed_and_further_columns_ignored(folder, text):
    folder.benchmark("report_collect", "report_collect", 0, text=text)
    assert folder.hours() == (0.01, 0)


def test_resumed_training_counts_earlier_sessions(folder):
    folder.benchmark("train", "d/a/seed1", 50, cpu="100")
    folder.facts("model.job.json", {"device": "cuda", "n_devices": 1, "sessions": sessions(40, 20, 49.5)})
    folder.facts("model.job.json", {"device": "cpu", "n_devices": 1, "sessions": sessions(999, 1)}, system="c")
    assert folder.hours() == (pytest.approx(220 / 3600), pytest.approx(110 / 3600))
    folder.facts("model.job.json", {"device": "cuda", "n_devices": 1, "sessions": sessions(120)})
    assert folder.hours() == (pytest.approx(100 / 3600), pytest.approx(50 / 3600))


def on_gpu(**facts):
    return {"device": "cuda", "n_devices": 1, **facts}


def test_energy_is_summed_by_stage_and_over_sessions(folder):
    folder.benchmark("annotate", "d/parsed/train/1-of-2", 3600)
    folder.benchmark("train", "d/a/seed1", 3600)
    folder.benchmark("train", "d/c/seed1", 3600)
    folder.benchmark("score_candidates", "d/a/seed1/p", 3600)
    parts = [{"from_update": 0, "seconds": 1, "joules": 1.8e6}, {"from_update": 9, "seconds": 1, "joules": 3.6e6}]
    folder.facts("model.job.json", on_gpu(sessions=parts))
    folder.facts("model.job.json", {"device": "cpu", "n_devices": 1, "sessions": sessions(1)}, system="c")
    folder.facts("decoding/suite_p.json", {"provenance": on_gpu(joules=0.9e6)})
    table = folder.table()
    assert table.header[-1] == "GPU energy (kWh)"
    assert [row[-1] for row in table.rows] == ["–", "1.5", "0.2", "1.8"]
    assert table.full["gpu_kwh"].tolist() == [pytest.approx(x, nan_ok=True) for x in (math.nan, 1.5, 0.25)]


@pytest.mark.parametrize(
    "facts",
    [on_gpu(), on_gpu(sessions=[{"from_update": 0, "seconds": 1}, {"from_update": 9, "seconds": 1, "joules": 1}])],
)
def test_unknown_energy_spreads_to_the_stage(folder, facts):
    folder.benchmark("train", "d/a/seed1", 3600)
    folder.benchmark("train", "d/c/seed1", 3600)
    folder.benchmark("score_candidates", "d/a/seed1/p", 3600)
    folder.facts("model.job.json", facts)
    folder.facts("model.job.json", on_gpu(joules=360_000), system="c")
    assert folder.table().header[-1] == "GPU-minutes", "no energy is known"
    folder.facts("decoding/suite_p.json", {"provenance": on_gpu(joules=360_000)})
    assert folder.table().header[-1] == "GPU energy (Wh)"
    assert [row[-1] for row in folder.table().rows] == ["–", "100.0", "–"]


@pytest.mark.parametrize("text", ["", "nonsense\n", HEADER, HEADER + "x\t0\n", "\x00\x01"])
def test_damaged_benchmarks_are_named_and_skipped(folder, caplog, text):
    folder.benchmark("report_collect", "report_collect", 0, text=text)
    folder.benchmark("train", "d/a/seed1", 5)
    assert [row[:2] for row in folder.table().rows] == [["training", "1"], ["all", "1"]]
    assert "report_collect.tsv: not a Snakemake benchmark" in caplog.text


def test_no_benchmarks_no_table(folder):
    assert folder.table() is None
    assert read_costs(None, STAGES) is None
    assert costs_table(None) is None


def test_costs_section_excludes_the_report(folder, tmp_path):
    folder.benchmark("train", "d/a/seed1", 5)
    folder.benchmark("translate", "d/c/seed1/t", 3600)
    folder.benchmark("report_render", "report_render", 5)
    folder.facts("decoding/t.job.json", {"device": "cuda", "n_devices": 1}, system="c")
    scores = write_scores(tmp_path / "s.json", [score("c", 20)])
    page = render_report(tmp_path, scores, options={"benchmarks": [folder.benchmarks]}, study={"stages": STAGES})
    section = page[page.index('<section id="costs">') :].partition("</section>")[0]
    assert "<h3>Costs by stage</h3>" in section
    assert "<details>" not in section
    rows = list(csv.DictReader((tmp_path / "out/tables/costs_by_stage.csv").open()))
    assert [(row["stage"], float(row["gpu_hours"])) for row in rows] == [("training", 0), ("decoding", 1)]
    assert (tmp_path / "out/tables/costs_by_stage.tex").exists()


def test_nodes_add_up_recorded_processes(folder):
    """Snakemake only measures the `srun` that started them."""
    folder.benchmark("train", "d/a/seed1", 3600, cpu="0.12")
    folder.facts("model.job.json", {"device": "cuda", "n_devices": 8, "n_nodes": 2, "cpu_seconds": 30_000.0})
    assert folder.hours() == (pytest.approx(30 / 3.6), 8)
    assert folder.table().rows[-1] == ["all", "1", "500.0", "480.0"]
