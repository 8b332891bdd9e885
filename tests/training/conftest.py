import pytest


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """The tiny corpus with language tags and monolingual documents. Tests do not change it."""
    from core_fixtures import make_study  # torch takes seconds, and most tests do without it

    return make_study(tmp_path_factory.mktemp("tagged"), tags=["en", "de"])


@pytest.fixture(scope="session")
def whole_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("whole")


@pytest.fixture(scope="session")
def whole(study_files, whole_folder):
    """An uninterrupted training."""
    from core_fixtures import run_training

    return run_training(study_files, whole_folder)


@pytest.fixture(scope="session")
def whole_file(whole, whole_folder):
    """Its model file."""
    return whole_folder / "model.pt"
