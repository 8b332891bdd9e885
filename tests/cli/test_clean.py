"""`docmt clean` finds unneeded files, deletes nothing else, and does nothing while the study runs."""

import errno
import json
import os
import shutil

import pytest
from smoke_study import SMOKE, smoke_config

from docmt.cli.clean import find_leftovers
from docmt.cli.main import main
from docmt.config.plan import Plan
from docmt.files import write_json, write_lines
from docmt.model_owners import MERGED, MERGED_HEAD, OWNER

FINISHED = "results/smoke/runs/sentence_transformer/seed1"
UNFINISHED = "results/smoke/runs/g_transformer_finetuned/seed1"
REMOVED = "results/smoke/runs/removed/seed1"
OTHER_SEED = "results/smoke/runs/sentence_transformer/seed2"
OTHERS = "results/talks/runs/base/seed1"
OTHERS_FINISHED = "results/smoke/runs/document_transformer/seed1"
NAME = os.path.realpath(SMOKE)


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    owners = dict.fromkeys([FINISHED, UNFINISHED, REMOVED], NAME) | dict.fromkeys([OTHERS, OTHERS_FINISHED], "b.yaml")
    for run in (*owners, OTHER_SEED):
        (tmp_path / run / "checkpoints/abc").mkdir(parents=True)
        (tmp_path / run / "checkpoints/abc/step3.pt").write_bytes(bytes(1000))
        if run in owners:
            write_lines(tmp_path / run / OWNER, [owners[run]], checksum=False)
    for run in (FINISHED, REMOVED, OTHERS_FINISHED):
        (tmp_path / run / "model.pt").write_bytes(bytes(10))
    (tmp_path / FINISHED / "decoding").mkdir()
    return tmp_path


def clean(study, *options):
    return main(["clean", "--directory", str(study), "--configfile", str(SMOKE), *options])


def leftovers():
    return {str(leftover.path): leftover for leftover in find_leftovers(Plan(smoke_config()), [NAME])}


def content(folder):
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def test_what_nothing_needs_is_listed_and_kept(study, capsys):
    assert {path: (leftover.owner, leftover.needs_yes) for path, leftover in leftovers().items()} == {
        f"{FINISHED}/checkpoints/abc": (NAME, False),
        f"{OTHERS_FINISHED}/checkpoints/abc": ("b.yaml", True),
        REMOVED: (NAME, True),
        OTHERS: ("b.yaml", True),
        OTHER_SEED: ("unknown configuration", True),
    }
    before = content(study)
    assert clean(study) == 0
    out = capsys.readouterr().out
    assert "in 5 folders in all; nothing is deleted without --delete" in out
    assert "removed/seed1  (the configuration has no such run; --delete --yes)" in out
    assert [line for line in out.splitlines() if line.endswith(":")] == [
        f"{NAME}:",
        "b.yaml:",
        "unknown configuration:",
    ]
    assert content(study) == before


def test_models_and_other_studies_need_yes(study, capsys):
    assert clean(study, "--delete") == 0
    assert "in 1 folders deleted" in capsys.readouterr().out
    assert not (study / FINISHED / "checkpoints/abc").exists()
    assert (study / UNFINISHED / "checkpoints/abc/step3.pt").exists()
    runs = (REMOVED, OTHERS, OTHERS_FINISHED, OTHER_SEED)
    assert all((study / run / "checkpoints/abc/step3.pt").exists() for run in runs)
    assert clean(study, "--delete", "--yes") == 0
    assert not any((study / run).exists() for run in (REMOVED, OTHERS, OTHER_SEED))
    assert (study / OTHERS_FINISHED / "model.pt").exists()
    assert (study / FINISHED / "model.pt").exists()
    assert (study / FINISHED / "decoding").exists()
    assert (study / UNFINISHED / "checkpoints/abc/step3.pt").exists()


def test_deleting_names_one_of_several_configurations(study, monkeypatch, capsys):
    monkeypatch.setattr("docmt.cli.status.last_configuration", lambda folder: [SMOKE])
    before = content(study)
    assert main(["clean", "--delete", "--yes"]) == 2
    error = capsys.readouterr().err
    assert f"contains runs of {NAME} and b.yaml: name the configuration" in error
    assert content(study) == before
    for run in (OTHERS, OTHERS_FINISHED):
        shutil.rmtree(study / run)
    assert main(["clean", "--delete"]) == 0
    assert not (study / FINISHED / "checkpoints/abc").exists()


@pytest.mark.parametrize("name", ["my.yaml", "study/results/config.yaml"])
def test_configuration_outside_the_study_folder(name, study, tmp_path_factory, monkeypatch, capsys):
    outside = tmp_path_factory.mktemp("outside")
    shutil.move(study, outside / "study")
    (outside / "my.yaml").write_bytes(SMOKE.read_bytes())
    head = json.dumps({"files": [str(outside / "my.yaml")], "--set": []})
    (outside / "study" / MERGED).write_text(
        f"{MERGED_HEAD}{head}\n{SMOKE.read_text(encoding='utf-8')}",
        encoding="utf-8",
    )
    write_lines(outside / "study" / FINISHED / OWNER, [str(outside / "my.yaml")], checksum=False)
    monkeypatch.chdir(outside)
    for n_folders in (1, 0):
        assert main(["clean", name, "--directory", "study", "--delete"]) == 0
        *_, total = capsys.readouterr().out.splitlines()
        assert total.split() == ["0.0", "MB", "in", str(n_folders), "folders", "deleted"]
    assert not (outside / "study" / FINISHED / "checkpoints/abc").exists()


def test_nothing_deleted_counts_nothing(study, capsys):
    shutil.rmtree(study / FINISHED)
    (study / REMOVED / "large.pt").write_bytes(bytes(2_000_000))
    assert clean(study, "--delete") == 0
    assert "       0.0 MB in 0 folders deleted" in capsys.readouterr().out


@pytest.mark.parametrize("recorded", [True, False])
def test_checkpoints_of_other_settings_stay(recorded, study):
    (study / FINISHED / "checkpoints/def").mkdir()
    if recorded:
        write_json(study / FINISHED / "model.job.json", {"checkpoints": "def"})
    paths = leftovers()
    assert (f"{FINISHED}/checkpoints/def" in paths) == recorded
    assert f"{FINISHED}/checkpoints/abc" not in paths


@pytest.mark.parametrize("facts", [b"", b"\xff", b"[1]", b"1", b"[" * 100_000, b'{"checkpoints": ["def"]}', None])
def test_damaged_facts_keep_checkpoints(facts, study):
    (study / FINISHED / "checkpoints/def").mkdir()
    if facts is None:
        (study / FINISHED / "model.job.json").mkdir()
    else:
        (study / FINISHED / "model.job.json").write_bytes(facts)
    assert not any(path.startswith(FINISHED) for path in leftovers())


def test_links_and_copies_belong_to_the_user(study, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    for name in ("runs/system/seed1/checkpoints/abc", "text/.dev.en.abcdefgh", "seed3/checkpoints"):
        (outside / name).mkdir(parents=True)
        (outside / name / "file").touch()
    (study / "results/linked").symlink_to(outside)
    (study / "results/smoke/runs/linked").symlink_to(outside / "runs/system")
    (study / "results/smoke/runs/removed/seed3").symlink_to(outside / "seed3")
    (study / "results/smoke/.dev.en.abcdefgh").symlink_to(outside / "text/.dev.en.abcdefgh")
    shutil.rmtree(study / FINISHED / "checkpoints")
    (study / FINISHED / "checkpoints").symlink_to(outside / "runs/system/seed1/checkpoints")
    names = ("removed/seed1.zip", "removed/seed10_mine", "removed/seedling")
    for name in names:
        (study / "results/smoke/runs" / name).mkdir(parents=True)
    before = content(outside)
    assert clean(study, "--delete", "--yes") == 0
    assert content(outside) == before
    assert all((study / "results/smoke/runs" / name).exists() for name in names)
    assert (study / "results/linked/runs/system/seed1/checkpoints/abc/file").exists()


def test_results_can_be_a_link(study, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("scratch") / "results"
    shutil.move(study / "results", elsewhere)
    (study / "results").symlink_to(elsewhere)
    assert clean(study, "--delete", "--yes") == 0
    assert not (elsewhere / "talks/runs/base/seed1").exists()


def test_what_killed_jobs_left_is_found_once(study, capsys):
    for folder in (study / "results/smoke/text", study / REMOVED):
        (folder / ".train.tok.de.4rmkout2").mkdir(parents=True)
        (folder / ".train.tok.de.4rmkout2/train.tok.de").write_bytes(bytes(7))
    (study / "results/smoke/text/.checksums").mkdir()
    entries = leftovers()
    assert entries["results/smoke/text/.train.tok.de.4rmkout2"].n_bytes == 7
    assert "unfinished" in entries["results/smoke/text/.train.tok.de.4rmkout2"].why
    assert entries[REMOVED].n_bytes > 1007
    assert len(entries) == 6
    assert clean(study, "--delete") == 0
    assert (study / "results/smoke/text/.checksums").is_dir()
    assert not (study / "results/smoke/text/.train.tok.de.4rmkout2").exists()


def test_nothing_is_deleted_while_the_study_is_locked(study, capsys):
    (study / ".snakemake/locks").mkdir(parents=True)
    (study / ".snakemake/locks/0.output.lock").touch()
    (study / ".snakemake/log").mkdir()
    (study / ".snakemake/log/2026-11-21T054307.000000.snakemake.log").write_text(
        "SNAKEMAKE\n=========\n  Host: other\n"
    )
    assert clean(study, "--delete") == 2
    assert "are still running" in capsys.readouterr().err
    assert (study / REMOVED).exists()


def test_read_only_folder_is_named(study, monkeypatch, capsys):
    def refuse(path):
        raise OSError(errno.EROFS, "Read-only file system", "step3.pt")

    monkeypatch.setattr("shutil.rmtree", refuse)
    assert clean(study, "--delete") == 2
    assert f"{study / FINISHED}/checkpoints/abc: cannot be deleted (Read-only file system)" in capsys.readouterr().err


def test_a_folder_without_results_is_refused(tmp_path, capsys):
    assert clean(tmp_path) == 2
    assert "contains no results" in capsys.readouterr().err
