"""Costs from hand-made benchmarks and logs."""

import csv
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from docmt.report.costs import costs_table, read_costs, summarise_costs
from docmt.report.sources import History
from docmt.report.stages import STAGES, stage_of
from docmt.report.tables import to_latex, to_text

RULES = Path(__file__).parents[2] / "workflow/rules"
HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
TRAINING = "05:31:30 INFO 1.07M parameters, {device}, 32-true\n"


@pytest.fixture
def folder(tmp_path):
    """A folder of benchmarks and logs, with functions to write them."""

    class Folder:
        benchmarks, logs = tmp_path / "benchmarks", tmp_path / "logs"

        def benchmark(self, rule, name, seconds, cpu="1.00", rss="10.00", text=None):
            path = self.benchmarks / rule / f"{name}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            row = "\t".join([str(seconds), "0:00:00", rss, "1", "1", "1", "0", "0", "0", cpu])
            path.write_text(HEADER + row + "\n" if text is None else text)

        def log(self, rule, name, text):
            path = self.logs / rule / f"{name}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

        def read(self, **options):
            return read_costs(self.benchmarks, logs=self.logs, **options)

    return Folder()


def history(system, steps, seconds):
    return History("d", system, 1, pd.DataFrame({"step": steps, "seconds": seconds}, dtype="float64"))


def test_stages_are_those_of_the_rule_files():
    found = {
        file.stem: tuple(re.findall(r"^(?:rule|checkpoint) (\w+):", file.read_text(), re.MULTILINE))
        for file in RULES.glob("*.smk")
    }
    assert {stage: found[stage] for stage in STAGES} == STAGES
    assert stage_of("mine") == "other"


def test_sums_by_rule_in_the_order_of_the_workflow(folder):
    folder.benchmark("train", "d_a_seed1", 7200, cpu="7000", rss="2048")
    folder.benchmark("apply_bpe", "d_dev_en", 1800, cpu="900", rss="100")
    folder.benchmark("apply_bpe", "d_dev_de", 1800, cpu="2700", rss="300")
    folder.benchmark("mine", "x", 3600, cpu="3600")
    text, training, other = summarise_costs(folder.read())
    assert (text["stage"], text["rule"], text["jobs"]) == ("text", "apply_bpe", 2)
    assert (text["wall_hours"], text["core_hours"], text["gpu_hours"], text["peak_mib"]) == (1, 1, 0, 300)
    assert (training["stage"], training["wall_hours"], training["peak_mib"]) == ("training", 2, 2048)
    assert (other["stage"], other["rule"]) == ("other", "mine")
    table = costs_table(folder.read())
    assert [row[0] for row in table.rows] == ["text", "training", "other", "all"]
    assert table.rows[-1][2:4] == ["4", "4.000"]
    assert table.rows[-1][-1] == "2.00"


@pytest.mark.parametrize("mark", ["-", "NA", ""])
def test_jobs_too_short_to_be_measured_count_in_wall_time_only(folder, mark):
    folder.benchmark("gather", "gather", 36, cpu=mark, rss=mark)
    (record,) = summarise_costs(folder.read())
    assert record["wall_hours"] == pytest.approx(0.01)
    assert record["core_hours"] == 0
    assert math.isnan(record["peak_mib"])
    assert record["not_measured"] == 1
    table = costs_table(folder.read())
    assert "not in core-hours: 1." in table.caption
    assert table.rows[0][-1] == "–"
    assert "–" in to_text(table)
    assert "--" in to_latex(table)


@pytest.mark.parametrize(
    ("rule", "line", "gpus"),
    [
        ("train", TRAINING.format(device="cpu"), 0),
        ("train", TRAINING.format(device="cuda:0"), 1),
        ("train", TRAINING.format(device="4 × cuda"), 4),
        ("translate", "05:31:30 INFO device cuda\n", 1),
        ("contrast", "05:31:30 INFO device cpu\n", 0),
        ("translate", "no log line of ours\n", 0),
    ],
)
def test_gpu_hours_are_those_of_gpus_in_use(folder, rule, line, gpus):
    folder.benchmark(rule, "d_a_seed1", 1800)
    folder.log(rule, "d_a_seed1", "05:31:29 WARNING hello\n" + line)
    (record,) = summarise_costs(folder.read())
    assert record["gpu_hours"] == gpus / 2


def test_columns_of_extended_benchmarks_are_no_obstacle(folder):
    extra = "\tjobid\trule_name\tresources\n"
    row = "60.0\t0:01:00\t10\t1\t1\t1\t0\t0\t50\t30.0\t4\tgather\t{'gpu': 1}\n"
    folder.benchmark("gather", "gather", 0, text=HEADER.strip() + extra + row)
    (cost,) = folder.read()
    assert (cost.seconds, cost.cpu_seconds, cost.n_gpus) == (60, 30, 0)


def test_repeated_jobs_are_summed(folder):
    row = "60.0\t0:01:00\t{}\t1\t1\t1\t0\t0\t50\t30.0\n"
    folder.benchmark("gather", "gather", 0, text=HEADER + row.format(10) + row.format(20))
    (cost,) = folder.read()
    assert (cost.seconds, cost.cpu_seconds, cost.peak_mib) == (120, 60, 20)


def test_resumed_training_counts_the_updates_before(folder):
    folder.benchmark("train", "d_a_seed1", 50, cpu="100")
    folder.log("train", "d_a_seed1", TRAINING.format(device="cuda:0") + "05:31:31 INFO resumed after update 150\n")
    (cost,) = folder.read(histories=[history("a", [100, 200, 300], [40, 80, 120])])
    assert cost.earlier_seconds == 70  # what lasted longer than the last session is missing at least
    (cost,) = folder.read(histories=[history("a", [100, 200, 300], [40, 80, 99])])
    assert cost.earlier_seconds == 60  # half way between updates 100 and 200
    assert cost.wall_seconds == 110
    assert cost.core_seconds == pytest.approx(220)
    table = costs_table([cost])
    assert "resumed" in table.caption
    assert table.values["gpu_hours"].item() == pytest.approx(110 / 3600)


def test_uninterrupted_training_counts_once(folder):
    folder.benchmark("train", "d_a_seed1", 150)
    folder.log("train", "d_a_seed1", TRAINING.format(device="cpu"))
    (cost,) = folder.read(histories=[history("a", [100, 200], [60, 120]), history("b", [1], [999])])
    assert cost.earlier_seconds == 0


@pytest.mark.parametrize("table", [pd.DataFrame({"step": [1.0]}), pd.DataFrame({"step": [1.0], "seconds": [math.nan]})])
def test_history_without_times_is_no_obstacle(folder, table):
    folder.benchmark("train", "d_a_seed1", 150)
    (cost,) = folder.read(histories=[History("d", "a", 1, table)])
    assert cost.earlier_seconds == 0


@pytest.mark.parametrize("text", ["", "nonsense\n", HEADER, HEADER + "x\t0\n", "\x00\x01"])
def test_damaged_benchmarks_are_named_and_passed_over(folder, caplog, text):
    folder.benchmark("gather", "gather", 0, text=text)
    folder.benchmark("render", "render", 5)
    assert [cost.rule for cost in folder.read()] == ["render"]
    assert "gather.tsv: not a benchmark" in caplog.text


def test_no_benchmarks_no_table(folder):
    assert folder.read() == []
    assert costs_table([]) is None


def test_report_has_a_section_of_costs_without_its_own(folder, tmp_path, capsys):
    from docmt.cli.main import main

    folder.benchmark("train", "d_a_seed1", 5)
    folder.benchmark("render", "render", 5)
    scores = tmp_path / "scores.csv"
    scores.write_text("dataset,system,seed,test,metric,value,n,signature\nd,a,1,t,s-BLEU,20,5,x\n")
    arguments = ["--scores", str(scores), "--benchmarks", str(folder.benchmarks), "--logs", str(folder.logs)]
    assert main(["report", "render", *arguments, "--out", str(tmp_path / "out")]) == 0
    assert "## Costs" in (tmp_path / "out/report.md").read_text()
    rows = list(csv.DictReader((tmp_path / "out/tables/costs.csv").open()))
    assert [row["rule"] for row in rows] == ["train"]
    assert (tmp_path / "out/tables/costs.tex").exists()
