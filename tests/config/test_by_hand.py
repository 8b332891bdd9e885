"""`docmt config check` and dry runs list missing corpora that the user has to obtain."""

import os
import subprocess
from pathlib import Path

import pytest

from docmt.cli.main import main
from docmt.commands import MIRROR_VARIABLE
from docmt.config.artifacts.base import Study
from docmt.config.by_hand import describe_by_hand
from docmt.config.loading import load_config, read_config_files

EXAMPLES = Path(__file__).parents[2] / "config/examples"
MANUAL = EXAMPLES / "papers/paper_gtransformer_enru.yaml"
GROUPS = "voita2019-opensubtitles-enru"
ALL = [f"{GROUPS}/dev", f"{GROUPS}/test", f"{GROUPS}/train", "voita2019-pairs-enru/train"]
RESOURCES = f"resources/corpora/{GROUPS}/2019"
MIRRORED = "mirror/voita2019-enru/opensubtitles"


@pytest.fixture(autouse=True)
def study_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)


def missing_splits(line: str) -> list[str]:
    return line.removeprefix("by hand: ").partition(". ")[0].split(", ")


@pytest.mark.parametrize("mirror", ["variable", "configuration"])
@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ([], ALL),
        ([f"{MIRRORED}/dev.en", f"{MIRRORED}/dev.ru.gz"], ALL[1:]),
        ([f"{MIRRORED}/dev.en"], ALL),
        ([f"{RESOURCES}/dev/opensubtitles/dev.en", f"{MIRRORED}/dev.ru"], ALL[1:]),
        ([f"{RESOURCES}/dev/opensubtitles/dev.en"], ALL),
        ([f"{RESOURCES}/train/opensubtitles/dev.en", f"{MIRRORED}/dev.ru"], ALL),
        ([f"{RESOURCES}/dev.fetched", f"{RESOURCES}/train.fetched"], [ALL[1], ALL[3]]),
    ],
)
def test_missing_manual_splits_are_named(mirror, files, missing, monkeypatch):
    for path in map(Path, files):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    values = read_config_files([MANUAL])
    if mirror == "variable":
        monkeypatch.setenv(MIRROR_VARIABLE, "mirror")
    else:
        values["corpora"] = {"mirror": "mirror"}
    first, *commands = describe_by_hand(Study(load_config(values)))
    assert missing_splits(first) == missing
    assert len(commands) == len({split.partition("/")[0] for split in missing}), "one command per corpus"


def test_one_command_covers_a_corpus():
    _, *commands = describe_by_hand(Study(load_config(read_config_files([MANUAL]))))
    fetch = "docmt corpora fetch --corpus"
    assert commands == [
        f"  for split in dev test train; do {fetch} {GROUPS} --splits $split --out {RESOURCES}/$split; done",
        f"  {fetch} voita2019-pairs-enru --splits train --out resources/corpora/voita2019-pairs-enru/2019/train",
    ]


def test_commands_name_the_study_folder():
    """`docmt run --directory` is called from another folder, and the user copies the commands there."""
    _, *commands = describe_by_hand(Study(load_config(read_config_files([MANUAL]))), folder=Path("studies/one"))
    assert commands
    assert all("--out studies/one/resources/corpora/" in command for command in commands)


def test_commands_say_what_to_obtain(capsys, tmp_path):
    """The shell of the user runs the line, here with a program that notes its arguments."""
    _, line, _ = describe_by_hand(Study(load_config(read_config_files([MANUAL]))))
    program = tmp_path / "docmt"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    paths = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    calls = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, env=paths).stdout
    names = ["dev", "test", "train"]
    for split, call in zip(names, calls.splitlines(), strict=True):
        assert main(call.split()) == 2
        error = capsys.readouterr().err
        assert "obtain the training data of Voita et al. 2019 from https://www.dropbox.com" in error
        assert f"put it at {RESOURCES}/{split}/opensubtitles/{split}.en" in error


def test_only_planned_splits_are_named():
    study = Study(load_config(read_config_files([MANUAL])))
    line, command = describe_by_hand(study, {f"{RESOURCES}/test.fetched", "results/report/report.html"})
    assert missing_splits(line) == [f"{GROUPS}/test"]
    assert "--splits test " in command
    assert describe_by_hand(study, {"results/report/report.html"}) == []


@pytest.mark.parametrize("name", ["real_ende.yaml", "real/real_zhen_trees.yaml", "real/bible_ende.yaml", "smoke.yaml"])
def test_downloadable_corpora_are_not_manual(name):
    assert describe_by_hand(Study(load_config(read_config_files([EXAMPLES / name])))) == []


@pytest.mark.parametrize("command", [["config", "check"], ["run", "--dry-run"]])
@pytest.mark.parametrize(("file", "is_manual"), [(MANUAL, True), (EXAMPLES / "smoke.yaml", False)])
def test_check_and_dry_run_name_them(command, file, is_manual, monkeypatch, capsys):
    planned = {f"{RESOURCES}/{split}.fetched" for split in ("dev", "test", "train")}
    monkeypatch.setattr("docmt.cli.run._print_plan", lambda *_: planned)
    assert main([*command, str(file)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("by hand: ")]
    assert len(lines) == is_manual
    assert not is_manual or missing_splits(lines[0]) == (ALL if command[0] == "config" else ALL[:3])
