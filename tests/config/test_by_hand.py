"""`docmt config check` and dry runs list missing corpora that the user has to obtain."""

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
    line = describe_by_hand(Study(load_config(values)))
    assert missing_splits(line) == missing
    assert "\n" not in line


def test_named_command_says_what_to_obtain(capsys):
    command = describe_by_hand(Study(load_config(read_config_files([MANUAL])))).split("`")[1]
    words = command.split()
    assert words[0] == "docmt"
    assert main(words[1:]) == 2
    error = capsys.readouterr().err
    assert "obtain the training data of Voita et al. 2019 from https://www.dropbox.com" in error
    assert f"put it at {RESOURCES}/dev/opensubtitles/dev.en" in error


@pytest.mark.parametrize("name", ["real_ende.yaml", "real/real_zhen_trees.yaml", "real/bible_ende.yaml", "smoke.yaml"])
def test_downloadable_corpora_are_not_manual(name):
    assert describe_by_hand(Study(load_config(read_config_files([EXAMPLES / name])))) == ""


@pytest.mark.parametrize("command", [["config", "check"], ["run", "--dry-run"]])
@pytest.mark.parametrize(("file", "is_manual"), [(MANUAL, True), (EXAMPLES / "smoke.yaml", False)])
def test_check_and_dry_run_end_with_it(command, file, is_manual, monkeypatch, capsys):
    monkeypatch.setattr("docmt.cli.run._print_plan", lambda call: print("nothing to be done"))
    assert main([*command, str(file)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("by hand: ") == is_manual
    assert not is_manual or missing_splits(last) == ALL
