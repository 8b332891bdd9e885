"""A small study, run once for all tests of the workflow."""

import shutil

import pytest
from own_suites import write_config
from studies import RUN, SMOKE, Study, snakemake


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The finished smoke study. Tests that change files use `study`, a copy."""
    study = Study(tmp_path_factory.mktemp("finished"))
    study.make()
    return study


@pytest.fixture(scope="session")
def suites(tmp_path_factory):
    """A study on user-supplied suites, run up to the report. Tests only read it."""
    study = Study(tmp_path_factory.mktemp("suites"))
    targets = ["results/report/report.html", "results/report/reader.html"]
    done = snakemake(study.folder, *RUN, *targets, config=write_config(study.folder, SMOKE))
    assert done.returncode == 0, done.stderr[-5000:]
    return study


@pytest.fixture
def study(finished, tmp_path):
    """A copy of the finished study, including file times."""
    shutil.copytree(finished.folder, tmp_path / "study")
    return Study(tmp_path / "study")
