"""The run file. It passes the plan from the main Snakemake process to its jobs."""

import json
import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from smoke_study import smoke_values

from docmt.checksums import check_planned, open_verified, sha256_file
from docmt.config.plan import Plan
from docmt.config.run_file import load_plan, start_run
from docmt.config.user_files import content_digest
from docmt.current_run import RUN_FOLDER, RUN_VARIABLE
from docmt.errors import UserError
from docmt.files import iterate_lines, read_bytes, write_lines

TALKS = {
    "languages": ["en", "de"],
    "format": {"reader": "blank_lines"},
    "splits": {"all": {"files": {"en": "talks.en", "de": "more/talks.de"}}},
}
VALUES = smoke_values(
    {"corpora": {"custom": {"talks": TALKS}}, "datasets": {"smoke": {"train": ["smoke/train", "talks/all"]}}}
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study folder with user-supplied files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN_VARIABLE, "of another study")
    content_digest.cache_clear()
    write_lines(tmp_path / "talks.en", ["Hello ."], checksum=False)
    write_lines(tmp_path / "more/talks.de", ["Hallo ."], checksum=False)
    return tmp_path


def workflow(*files, is_main_process) -> Any:
    settings = SimpleNamespace(configfiles=[*files])
    return SimpleNamespace(is_main_process=is_main_process, configfiles=[*files], config_settings=settings)


@pytest.fixture
def run_file(folder):
    """The run file of a started run. The environment contains its path."""
    main = workflow(is_main_process=True)
    start_run(main, VALUES, load_plan(main, VALUES))
    (path,) = main.config_settings.configfiles
    assert os.environ[RUN_VARIABLE] == str(path)
    return path


@pytest.mark.parametrize("name", ["", ".snakemake"])
def test_read_only_study_is_refused(name, folder, monkeypatch):
    read_only = folder / name
    read_only.mkdir(exist_ok=True)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).absolute() != read_only)
    with pytest.raises(UserError, match="is read-only: run a copy of the study"):
        load_plan(workflow(is_main_process=True), VALUES)


def job_plan(path):
    """The plan in a job."""
    return load_plan(workflow(path, is_main_process=False), json.loads(path.read_text(encoding="utf-8")))


def fingerprints(plan):
    return [plan.fingerprint(name)(wildcards) for name, wildcards in RULES]


RULES = [
    ("model", {"dataset": "smoke", "system": "rst_mix", "seed": "1"}),
    ("hypotheses", {"dataset": "smoke", "system": "rst_mix", "seed": "1", "split": "test_smoke"}),
]


def test_jobs_have_the_plan_of_the_run(run_file, folder):
    expected = fingerprints(Plan.load(VALUES, files=[]))
    content = json.loads(run_file.read_text(encoding="utf-8"))
    assert list(content["systems"]) == list(VALUES["systems"])
    shutil.rmtree(folder / "more")
    write_lines(folder / "talks.en", ["Good morning ."], checksum=False)
    assert fingerprints(job_plan(run_file)) == expected
    # The next run, in a new process.
    content_digest.cache_clear()
    write_lines(folder / "more/talks.de", ["Hallo ."], checksum=False)
    assert fingerprints(load_plan(workflow(is_main_process=True), VALUES)) != expected
    assert RUN_VARIABLE not in os.environ


@pytest.mark.parametrize("path", ["talks.en", "more/../talks.en", "link.en"])
@pytest.mark.parametrize(
    "read",
    [read_bytes, lambda path: list(iterate_lines(path)), lambda path: open_verified(path).__enter__(), check_planned],
    ids=["bytes", "lines", "open", "other program"],
)
def test_changed_user_file_is_refused(read, path, run_file, folder):
    (folder / "link.en").symlink_to("talks.en")
    read(Path(path))
    (folder / "talks.en").write_text("Hello !\n", encoding="utf-8")
    with pytest.raises(UserError, match=f"{path}: was changed after this run was planned: start the run again"):
        read(Path(path))
    (folder / "talks.en").write_text("Hello .\n", encoding="utf-8")
    read(Path(path))


@pytest.mark.parametrize("name", ["scratch/talks.en", "scratch/more/talks.en"])
def test_folders_bound_over_links_are_compared(name, folder):
    target, link = folder / "disk", folder / "scratch"
    link.symlink_to(target)
    write_lines(target / Path(name).relative_to("scratch"), ["Hello ."], checksum=False)
    files = {"en": str(folder / name), "de": "more/talks.de"}
    talks = TALKS | {"splits": {"all": {"files": files}}}
    values = VALUES | {"corpora": VALUES["corpora"] | {"custom": {"talks": talks}}}
    main = workflow(is_main_process=True)
    start_run(main, values, load_plan(main, values))
    link.unlink()
    target.rename(link)
    read_bytes(folder / name)
    write_lines(folder / name, ["Hello !"], checksum=False)
    with pytest.raises(UserError, match="was changed after this run was planned"):
        read_bytes(folder / name)


def test_other_files_have_no_planned_checksum(run_file, folder):
    write_lines(folder / "results/a.en", ["a"])
    assert read_bytes(folder / "results/a.en") == b"a\n"
    assert str(folder / "results/a.en") not in run_file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"docmt_run": {"version": "99.0", "files": {}}},
            "planned with docmt 99.0: if docmt was replaced in the meantime, start the run again",
        ),
        ({}, "this job was started without a run file"),
    ],
)
def test_jobs_of_another_plan_are_refused(values, words, run_file):
    with pytest.raises(UserError, match=words):
        load_plan(workflow(run_file, is_main_process=False), VALUES | values)


@pytest.mark.parametrize("content", [None, "", "[]", "{}", "\0"])
def test_lost_run_file_is_one_line(content, run_file, folder, monkeypatch):
    path = folder / "other.json"
    monkeypatch.setenv(RUN_VARIABLE, str(path))
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"other\.json: cannot be read \(.*\): it describes the current run; start"):
        read_bytes(folder / "talks.en")


def test_unused_run_files_are_removed(folder):
    RUN_FOLDER.mkdir(parents=True)
    for name, days in (("old", 61), ("queued", 50)):
        path = RUN_FOLDER / f"{name}.json"
        path.write_text("{}", encoding="utf-8")
        seconds = time.time() - days * 86400
        os.utime(path, (seconds, seconds))
    names = set()
    for values in (VALUES, VALUES | {"decoding": {"beam_size": 7}}, VALUES):
        main = workflow(is_main_process=True)
        start_run(main, values, load_plan(main, values))
        names.add(main.config_settings.configfiles[0].stem)
    assert len(names) == 2
    assert {path.stem for path in RUN_FOLDER.iterdir()} == names | {"queued"}


def test_all_user_files_are_recorded(run_file, folder):
    assert json.loads(run_file.read_text(encoding="utf-8"))["docmt_run"]["files"] == {
        str(folder / name): sha256_file(folder / name) for name in ("talks.en", "more/talks.de")
    }
