"""`docmt status` on the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from smoke_study import SMOKE, smoke_values

from docmt.cli.main import main
from docmt.config.user_files import content_digest
from docmt.status.display import bar, duration, shorten


def test_a_study_that_has_not_started(folder, capsys):
    assert folder.status() == 0
    text = capsys.readouterr().out
    assert "is not running" in text
    assert "waiting" in text
    assert "failed" not in text
    assert not list(folder.path.iterdir())


def test_text_of_a_busy_study_fits_in_100_columns(folder, squeue, capsys):
    folder.lock()
    folder.snakemake(host="elsewhere")
    folder.mark(folder.model, job="31")
    folder.mark("results/x/" + "y" * 200)
    folder.checkpoint("progress.json", {"step": 123456, "seconds": 1e6, "tokens_per_second": 1e6, "dev_loss": 12.5})
    folder.write("logs/learn_bpe/d.log", "ValueError: bad\n")
    squeue.answer(
        ("31", "RUNNING", "None", "a-node-with-a-long-name", "rule_train_wildcards_a_b_1"),
        ("32", "PENDING", "QOSMaxJobsPerUserLimit", "", "rule_translate_wildcards_" + "z" * 90),
    )
    assert folder.status() == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if len(line) > 100] == []
    assert "is running on elsewhere, or was killed there" in text
    assert "last run had a different" not in text
    assert "job 31, on a-node" in text
    assert "QOSMaxJobsPerUserLimit" in text
    assert "logs/learn_bpe/d.log" in text
    assert "  ValueError: bad" in text


def test_a_different_configuration_than_snakemakes_is_reported(folder, capsys):
    folder.snakemake()
    assert main(["status", "--directory", str(folder.path)]) == 0
    assert "its last run had a different configuration: --configfile /somewhere/smoke.yaml" in capsys.readouterr().out


def test_json_holds_the_same(folder, capsys):
    folder.checkpoint("history.csv", "step,seconds,dev_loss\n3,nan,inf\n")
    assert folder.status("--json") == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    assert found["snakemake"]["state"] == "idle"
    assert found["failures"] == []
    assert found["queue_problem"] is None
    assert found["trainings"][0]["state"] == "interrupted"
    assert found["trainings"][0]["seconds"] is None
    assert {stage["name"] for stage in found["stages"]} >= {"corpora", "report"}


def test_costs(folder, capsys):
    assert folder.status("--costs") == 0
    assert "no job has finished" in capsys.readouterr().out
    folder.write("results/benchmarks/train/" + folder.stem + ".tsv", "s\tmax_rss\tcpu_time\n7200\tNA\tNA\n")
    sessions = [{"from_update": 0, "seconds": 1800}, {"from_update": 5, "seconds": 7200}]
    facts = {"device": "cpu", "n_devices": 1, "sessions": sessions}
    folder.write(folder.run_folder / "model.job.json", json.dumps(facts))
    assert folder.status("--costs") == 0
    text = capsys.readouterr().out
    assert "2.500" in text
    assert "resumed" in text
    assert folder.status("--costs", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    assert row["wall_hours"] == 2.5
    assert row["peak_mib"] is None
    assert row["not_measured"] == 1


def test_bad_configuration_and_bad_folder_give_one_line(folder, tmp_path, capsys):
    bad = tmp_path / "bad.yaml"
    bad.write_text("corpra: {}\n")
    assert main(["status", "--configfile", str(bad)]) == 2
    assert "corpra: unknown key" in capsys.readouterr().err
    assert main(["status", "--configfile", str(SMOKE), "--directory", str(bad)]) == 2
    assert "is a file" in capsys.readouterr().err
    assert main(["status", "--configfile", str(SMOKE), "--directory", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder: give the folder of a study" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["status"], ["status", "--why"], ["status", "--verify"], ["tidy"]])
def test_paths_of_a_configuration_start_in_the_folder_of_the_study(command, folder, tmp_path, monkeypatch, capsys):
    files = {"en": "da ta/a.en", "de": "da ta/a.de"}
    own = {"languages": ["en", "de"], "format": {"reader": "blank_lines"}, "splits": {"all": {"files": files}}}
    changes = {"corpora": {"custom": {"own": own}}, "datasets": {"controlled": {"train": ["own/all"]}}}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(smoke_values(changes)))
    for name in (*files.values(), "results/report/report.html"):
        folder.write(name)
    monkeypatch.chdir(tmp_path)
    content_digest.cache_clear()
    assert main([*command, "--directory", "study", "--configfile", "my.yaml"]) == 0
    assert str(Path.cwd()) == str(tmp_path.resolve())


def test_status_does_not_import_torch():
    code = "import sys, docmt.cli.status, docmt.status.study, docmt.status.display; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h00m"), (90061, "1d01h")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_bars_are_full_only_at_the_end():
    assert bar(0, 3, 4) == "[....]"
    assert bar(999, 1000, 4) == "[###.]"
    assert bar(3, 3, 4) == "[####]"
    assert bar(0, 0, 4) == "[####]"
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert shorten("abc", 5) == "abc"
