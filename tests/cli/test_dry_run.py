"""`docmt run --dry-run` prints a table of rules with one reason each."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docmt.cli.run import REASON_WIDTH, _print_plan, shorten_reason

SMOKE = Path(__file__).parents[2] / "config/examples/smoke.yaml"


@pytest.mark.slow
def test_dry_run_is_a_table_of_rules(tmp_path):
    words = [str(SMOKE), "corpora", "-n", "--set", "seeds=[2]", "--directory", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "docmt", "run", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    rows = done.stdout.splitlines()
    assert rows[0].split() == ["rule", "jobs", "reason"]
    assert re.match(r"controlled_generate +2  Missing output files: results/corpora/", rows[2])
    assert re.match(r"corpora_combine +3  Missing output files: ", rows[3])
    assert rows[5].split()[:3] == ["corpora", "1", "after"]
    assert [row.split() for row in rows[6:]] == [["total", "7"]], "as in the run; no training is planned"
    assert not (tmp_path / "results").exists()
    call = [sys.executable, "-m", "docmt", "run", *words, "--verbose"]
    assert "rule corpora_combine:" in subprocess.run(call, capture_output=True, text=True, check=True).stdout


def test_unknown_file_is_named_in_one_line(tmp_path):
    call = [sys.executable, "-m", "docmt", "run", str(SMOKE), "results/tables/table_11.txt", "-n", "-d", str(tmp_path)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    expected = (
        "target 'results/tables/table_11.txt': not a file of this study; did you mean 'results/tables/table_1.txt'?"
    )
    assert done.stderr == f"docmt: error: {expected}\n"


def test_dry_run_names_replaced_models_first(monkeypatch, capsys):
    line = "docmt: this run replaces 1 existing model: mine/base seed 1 (900 updates)"
    job = "rule train:\n    output: model.pt\n    reason: Missing output files\n"
    text = f"{line}\nJob stats:\ntrain 1\n\n{job}\n{line}\n"
    done = subprocess.CompletedProcess([], 0, text)
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: done)
    _print_plan([], None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [line, ""]
    assert [words.split()[0] for words in lines[2:]] == ["rule", "------", "train", "total"]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Missing output files: a.txt; Input files updated by another job: b.txt", "Missing output files: a.txt"),
        ("Input files updated by another job: b.txt, c.txt", "after train"),
        ("Forced execution", "Forced execution"),
        (
            'Params have changed since last execution: Union: before: \'{"a": {"beam": 5}, "x": 1}\',\'7b\' now: '
            '\'81\',\'{"a": {"beam": 3}, "x": 1}\'',
            "changed: beam 5 → 3",
        ),
        (
            "Params have changed since last execution: Union: before: '7b' now: '81'",
            "changed: settings or data of an earlier stage",
        ),
        ("Updated input files: a.txt, b.txt, c.txt", "Updated input files: a.txt and 2 more"),
        (f"Updated input files: {'x' * 199}", f"Updated input files: {'x' * (REASON_WIDTH - 21)}…"),
    ],
)
def test_a_reason_is_short(reason, expected):
    assert shorten_reason(reason, {"b.txt": "train"}) == expected
