import pytest


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """The tiny corpus with language tags and monolingual documents; tests do not change it."""
    from core_fixtures import make_study  # torch takes seconds, and most tests do without it

    return make_study(tmp_path_factory.mktemp("tagged"), tags=["en", "de"])


@pytest.fixture(scope="session")
def whole(study_files, tmp_path_factory):
    """An uninterrupted training."""
    from core_fixtures import run_training

    return run_training(study_files, tmp_path_factory.mktemp("whole"))
