"""`docmt status` on the command line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from smoke_study import SMOKE, smoke_values

from docmt.cli.main import main
from docmt.config.user_files import content_digest
from docmt.status.study import bar, duration, shorten


def test_a_study_that_has_not_started(folder, capsys):
    assert folder.status() == 0
    text = capsys.readouterr().out
    assert "waiting" in text
    assert "failed" not in text
    n_all = sum(map(len, folder.plan.targets().values()))
    assert f"\n\n0 of {n_all} results are made; `docmt run --dry-run` lists" in text
    assert not list(folder.path.iterdir())


def test_only_complete_results_count(folder, capsys):
    for files in folder.plan.targets().values():
        for file in files:
            folder.write(file)
    assert folder.status() == 0
    assert re.search(r"^(\d+) of \1 results are made$", capsys.readouterr().out, re.MULTILINE)
    folder.mark("results/report/report.html")
    assert folder.status() == 0
    n_made, planned = re.search(r"^(\d+) of (\d+) results are made", capsys.readouterr().out, re.MULTILINE).groups()
    assert int(n_made) == int(planned) - 1


def test_text_fits_in_100_columns(folder, capsys):
    folder.lock()
    folder.snakemake(host="elsewhere")
    folder.mark(folder.model)
    folder.checkpoint("running.json", {"host": "elsewhere"})
    progress = {"step": 123456, "seconds": 1e6, "tokens_per_second": 1e6, "dev_loss": 12.5}
    folder.checkpoint("progress.json", progress)
    folder.write("logs/learn_bpe/d.log", "ValueError: bad\n")
    assert folder.status() == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if len(line) > 100] == []
    assert re.search(r"seed1 +running +\[[#.]{6}\] 123456/6 +1,000,000 +12\.500 +0s", text)
    assert "failed: 1\n" in text
    assert "logs/learn_bpe/d.log\n  ValueError: bad\n" in text


def test_bad_configuration_and_bad_folder_give_one_line(folder, tmp_path, capsys):
    bad = tmp_path / "bad.yaml"
    bad.write_text("corpra: {}\n")
    assert main(["status", "--configfile", str(bad)]) == 2
    assert "corpra: unknown key" in capsys.readouterr().err
    assert main(["status", "--configfile", str(SMOKE), "--directory", str(bad)]) == 2
    assert "is a file" in capsys.readouterr().err
    assert main(["status", "--configfile", str(SMOKE), "--directory", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder: pass the folder of a study" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["status", "clean"])
def test_paths_start_in_the_study(command, folder, tmp_path, monkeypatch, capsys):
    files = {"en": "da ta/a.en", "de": "da ta/a.de"}
    corpus = {"languages": ["en", "de"], "format": {"reader": "blank_lines"}, "splits": {"all": {"files": files}}}
    changes = {"corpora": {"custom": {"own": corpus}}, "datasets": {"smoke": {"train": ["own/all"]}}}
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(smoke_values(changes)))
    for name in (*files.values(), "results/report/report.html"):
        folder.write(name)
    monkeypatch.chdir(tmp_path)
    content_digest.cache_clear()
    assert main([command, "--directory", "study", "--configfile", "my.yaml"]) == 0
    assert str(Path.cwd()) == str(tmp_path.resolve())


def test_status_does_not_import_torch():
    code = "import sys, docmt.cli.status, docmt.status.study; sys.exit('torch' in sys.modules)"
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
