"""`docmt clean`: finds what nothing needs, and deletes nothing else, and not while the study runs."""

import pytest
from smoke_study import SMOKE, smoke_config

from docmt.cli.clean import find_leftovers
from docmt.cli.main import main
from docmt.config.plan import Plan

FINISHED = "results/smoke/runs/sentence_transformer/seed1"
UNFINISHED = "results/smoke/runs/g_transformer_finetuned/seed1"
UNKNOWN = "results/smoke/runs/removed/seed1"
OTHER_SEED = "results/smoke/runs/sentence_transformer/seed2"


@pytest.fixture
def study(tmp_path):
    for run in (FINISHED, UNFINISHED, UNKNOWN, OTHER_SEED):
        (tmp_path / run / "checkpoints/abc").mkdir(parents=True)
        (tmp_path / run / "checkpoints/abc/step3.pt").write_bytes(bytes(1000))
    (tmp_path / FINISHED / "model.pt").write_bytes(bytes(10))
    (tmp_path / FINISHED / "decoding").mkdir()
    return tmp_path


def clean(study, *options):
    return main(["clean", "--directory", str(study), "--configfile", str(SMOKE), *options])


def test_what_nothing_needs_is_listed_and_kept(study, capsys):
    plan = Plan(smoke_config())
    assert {str(found.path): found.n_bytes for found in find_leftovers(study, plan)} == {
        f"{FINISHED}/checkpoints": 1000,
        UNKNOWN: 1000,
        OTHER_SEED: 1000,
    }
    before = sorted(study.rglob("*"))
    assert clean(study) == 0
    assert "in 3 folders, delete them with docmt clean --delete" in capsys.readouterr().out
    assert sorted(study.rglob("*")) == before


def test_it_is_deleted_and_all_else_stays(study, tmp_path_factory, capsys):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    elsewhere.touch()
    own = [study / f"{UNKNOWN}{end}" for end in (".zip", "0", "_mine")]
    own[0].touch()
    own[1].symlink_to(elsewhere.parent)
    own[2].mkdir()
    assert clean(study, "--delete") == 0
    assert all(place.exists() for place in [*own, elsewhere])
    assert "removed/seed1  (the configuration has no such run)" in capsys.readouterr().out
    assert not any((study / name).exists() for name in (f"{FINISHED}/checkpoints", UNKNOWN, OTHER_SEED))
    assert (study / FINISHED / "model.pt").exists()
    assert (study / FINISHED / "decoding").exists()
    assert (study / UNFINISHED / "checkpoints/abc/step3.pt").exists()


def test_what_killed_jobs_left_is_found_once(study, capsys):
    for place in (study / "results/smoke/text", study / UNKNOWN):
        (place / ".train.tok.de.4rmkout2").mkdir(parents=True)
        (place / ".train.tok.de.4rmkout2/train.tok.de").write_bytes(bytes(7))
    (study / "results/smoke/text/.checksums").mkdir()
    plan = Plan(smoke_config())
    found = {str(found.path): found for found in find_leftovers(study, plan)}
    assert found["results/smoke/text/.train.tok.de.4rmkout2"].n_bytes == 7
    assert "unfinished" in found["results/smoke/text/.train.tok.de.4rmkout2"].why
    assert found[UNKNOWN].n_bytes == 1007
    assert len(found) == 4
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
    assert (study / UNKNOWN).exists()


def test_a_folder_without_results_is_refused(tmp_path, capsys):
    assert clean(tmp_path) == 2
    assert "contains no results" in capsys.readouterr().err
