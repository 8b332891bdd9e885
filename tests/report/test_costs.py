"""Costs from hand-made benchmarks and records of jobs."""

import csv
import json
import math

import pytest
from score_rows import render_report, score, write_scores

from docmt.errors import UserError
from docmt.report.costs import costs_table, read_costs, summarize_costs
from docmt.report.tables import to_latex, to_text

HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
RUN_FOLDER = "runs/{dataset}/{system}/{seed}"


@pytest.fixture
def folder(tmp_path):
    """A folder of benchmarks and runs, with functions to write them."""

    class Folder:
        benchmarks = tmp_path / "benchmarks"
        run_folders = {f"d_{system}_seed1": tmp_path / f"runs/d/{system}/1" for system in ("a", "a_seed1_b", "c")}

        def benchmark(self, rule, name, seconds, cpu="1.00", rss="10.00", text=None):
            path = self.benchmarks / rule / f"{name}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            row = "\t".join([str(seconds), "0:00:00", rss, "1", "1", "1", "0", "0", "0", cpu])
            path.write_text(HEADER + row + "\n" if text is None else text)

        def facts(self, name, content, *, system="a"):
            path = self.run_folders[f"d_{system}_seed1"] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))

        def read(self, **options):
            return read_costs(self.benchmarks, run_folders=self.run_folders, **{"stages": STAGES} | options)

    return Folder()


STAGES = {
    "text": ["apply_bpe"],
    "discourse": ["annotate"],
    "training": ["train"],
    "decoding": ["translate", "contrast"],
    "report": ["render"],
}


def test_jobs_stand_in_the_order_of_the_stages(folder):
    folder.benchmark("b", "x", 5)
    folder.benchmark("a", "x", 5)
    costs = folder.read(stages={"one": ["b"], "two": ["a"]})
    assert [(cost.stage, cost.rule) for cost in costs] == [("one", "b"), ("two", "a")]


def test_sums_by_rule_in_the_order_of_the_workflow(folder):
    folder.benchmark("train", "d_a_seed1", 7200, cpu="7000", rss="2048")
    folder.benchmark("apply_bpe", "d_dev_en", 1800, cpu="900", rss="100")
    folder.benchmark("apply_bpe", "d_dev_de", 1800, cpu="2700", rss="300")
    folder.benchmark("mine", "x", 3600, cpu="3600")
    text, training, other = summarize_costs(folder.read())
    assert (text["stage"], text["rule"], text["jobs"]) == ("text", "apply_bpe", 2)
    assert (text["wall_hours"], text["core_hours"], text["gpu_hours"], text["peak_mib"]) == (1, 1, 0, 300)
    assert (training["stage"], training["wall_hours"], training["peak_mib"]) == ("training", 2, 2048)
    assert (other["stage"], other["rule"]) == ("other", "mine")
    table = costs_table(folder.read())
    assert [row[0] for row in table.rows] == ["text", "training", "other", "all"]
    assert table.rows[-1][2:4] == ["4", "4.000"]
    assert table.rows[-1][-1] == "2.00"
    stages = costs_table(folder.read(), by=["stage"])
    assert stages.header == [name for name in table.header if name != "Rule"]
    assert [row[:3] for row in stages.rows] == [
        ["text", "2", "1.000"],
        ["training", "1", "2.000"],
        ["other", "1", "1.000"],
        ["all", "4", "4.000"],
    ]


@pytest.mark.parametrize("mark", ["-", "NA", ""])
def test_jobs_too_short_to_be_measured_count_in_wall_time_only(folder, mark):
    folder.benchmark("gather", "gather", 36, cpu=mark, rss=mark)
    (record,) = summarize_costs(folder.read())
    assert record["wall_hours"] == pytest.approx(0.01)
    assert record["core_hours"] == 0
    assert math.isnan(record["peak_mib"])
    assert record["not_measured"] == 1
    table = costs_table(folder.read())
    assert "not in core-hours: 1." in table.caption
    assert table.caption.startswith(f"In all, {table.rows[-1][2]} jobs took ")
    assert table.rows[0][-1] == "–"
    assert "–" in to_text(table)
    assert "--" in to_latex(table)


def sessions(*seconds):
    return [{"from_update": 100 * i, "seconds": time} for i, time in enumerate(seconds)]


@pytest.mark.parametrize(
    ("rule", "name", "file"),
    [
        ("train", "d_a_seed1", "model.job.json"),
        ("translate", "d_a_seed1_test_t", "decoding/test_t.job.json"),
        ("contrast", "d_a_seed1_pronoun", "decoding/suite_pronoun.json"),
    ],
)
@pytest.mark.parametrize(("device", "n_devices", "gpus"), [("cpu", 1, 0), ("cuda", 1, 1), ("cuda", 4, 4)])
def test_gpu_hours_are_those_of_gpus_in_use(folder, rule, name, file, device, n_devices, gpus):
    folder.benchmark(rule, name, 1800)
    facts = {"device": device, "n_devices": n_devices}
    folder.facts(file, {"items": [], "provenance": facts} if rule == "contrast" else facts)
    (record,) = summarize_costs(folder.read())
    assert record["gpu_hours"] == gpus / 2
    assert "older docmt" not in costs_table(folder.read()).caption


def test_the_longest_run_name_that_fits_is_that_of_the_job(folder):
    folder.benchmark("translate", "d_a_seed1_b_seed1_t", 1800)
    folder.facts("decoding/t.job.json", {"device": "cuda", "n_devices": 2}, system="a_seed1_b")
    folder.facts("decoding/b_seed1_t.job.json", {"device": "cpu", "n_devices": 1})
    (cost,) = folder.read()
    assert cost.gpu_seconds == 2 * 1800


@pytest.mark.parametrize("content", [None, {"items": [], "provenance": {"commit": "c0ffee"}}])
def test_jobs_of_an_older_docmt_count_as_cpu_and_are_named(folder, content):
    folder.benchmark("contrast", "d_a_seed1_pronoun", 1800)
    folder.benchmark("gather", "gather", 5)
    if content is not None:
        folder.facts("decoding/suite_pronoun.json", content)
    table = costs_table(folder.read())
    assert table.values["gpu_hours"].sum() == 0
    assert "older docmt), which count as the last session on a CPU: 1." in table.caption


@pytest.mark.parametrize(
    "content", [{"device": "cuda"}, {"device": "cuda", "n_devices": 1, "sessions": [{"seconds": 1}]}, ["cuda"]]
)
def test_damaged_records_of_jobs_are_one_line(folder, content):
    folder.benchmark("train", "d_a_seed1", 5)
    folder.facts("model.job.json", content)
    with pytest.raises(UserError, match=r"model\.job\.json: not a record of a job"):
        folder.read()


def test_columns_of_extended_benchmarks_are_no_obstacle(folder):
    extra = "\tjobid\trule_name\tresources\n"
    row = "60.0\t0:01:00\t10\t1\t1\t1\t0\t0\t50\t30.0\t4\tgather\t{'gpu': 1}\n"
    folder.benchmark("gather", "gather", 0, text=HEADER.strip() + extra + row)
    (cost,) = folder.read()
    assert (cost.wall_seconds, cost.core_seconds, cost.gpu_seconds) == (60, 30, 0)


def test_repeated_jobs_are_summed(folder):
    row = "60.0\t0:01:00\t{}\t1\t1\t1\t0\t0\t50\t30.0\n"
    folder.benchmark("gather", "gather", 0, text=HEADER + row.format(10) + row.format(20))
    (cost,) = folder.read()
    assert (cost.wall_seconds, cost.core_seconds, cost.peak_mib) == (120, 60, 20)


def test_resumed_training_counts_earlier_sessions(folder):
    folder.benchmark("train", "d_a_seed1", 50, cpu="100")
    folder.facts("model.job.json", {"device": "cuda", "n_devices": 1, "sessions": sessions(40, 20, 49.5)})
    (cost,) = folder.read()
    assert cost.earlier_seconds == 60
    assert cost.wall_seconds == 110
    assert cost.core_seconds == pytest.approx(220)
    table = costs_table([cost])
    assert "resumed" in table.caption
    assert table.values["gpu_hours"].item() == pytest.approx(110 / 3600)
    folder.facts("model.job.json", {"device": "cpu", "n_devices": 1, "sessions": sessions(120)})
    folder.facts("model.job.json", {"device": "cpu", "n_devices": 1, "sessions": sessions(999, 1)}, system="c")
    (uninterrupted,) = folder.read()
    assert uninterrupted.earlier_seconds == 0


@pytest.mark.parametrize("text", ["", "nonsense\n", HEADER, HEADER + "x\t0\n", "\x00\x01"])
def test_damaged_benchmarks_are_named_and_skipped(folder, caplog, text):
    folder.benchmark("gather", "gather", 0, text=text)
    folder.benchmark("render", "render", 5)
    assert [cost.rule for cost in folder.read()] == ["render"]
    assert "gather.tsv: not a Snakemake benchmark" in caplog.text


def test_no_benchmarks_no_table(folder):
    assert folder.read() == []
    assert costs_table([]) is None


def test_report_has_a_section_of_costs_without_its_own(folder, tmp_path):
    folder.benchmark("train", "d_a_seed1", 5)
    folder.benchmark("translate", "d_c_seed1_t", 3600)
    folder.benchmark("render", "render", 5)
    folder.facts("decoding/t.job.json", {"device": "cuda", "n_devices": 1}, system="c")
    manifest = {"runs": {}, "run_folder": str(tmp_path / RUN_FOLDER), "benchmarks": str(folder.benchmarks)}
    page = render_report(tmp_path, write_scores(tmp_path / "s.json", [score("c", 20)]), manifest=manifest)
    shown, folded = page.index('<section id="costs">'), page.index('<section id="more">')
    assert shown < page.index("<h3>Costs by stage</h3>") < folded < page.index("<h3>Costs by rule</h3>")
    assert "<details>" not in page[shown:folded]
    rows = list(csv.DictReader((tmp_path / "out/tables/costs.csv").open()))
    assert [(row["rule"], float(row["gpu_hours"])) for row in rows] == [("train", 0), ("translate", 1)]
    assert (tmp_path / "out/tables/costs.tex").exists()


def test_a_training_on_several_nodes_counts_what_its_processes_recorded(folder):
    """Snakemake measures only the `srun` that started them."""
    folder.benchmark("train", "d_a_seed1", 3600, cpu="0.12", rss="9.43")
    folder.facts("model.job.json", {"device": "cuda", "n_devices": 8, "n_nodes": 2, "cpu_seconds": 30_000.0})
    (record,) = summarize_costs(folder.read())
    assert (record["gpu_hours"], record["core_hours"]) == (8, pytest.approx(30 / 3.6))
    assert math.isnan(record["peak_mib"])
    assert record["not_measured"] == 0
    assert costs_table(folder.read()).rows[-1][-3:-1] == ["8.333", "8.000"]
