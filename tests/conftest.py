import pytest


@pytest.fixture(scope="session")
def study_files(tmp_path_factory):
    """Text pipeline, vocabulary and instances of a tiny corpus (`core_fixtures.Study`); tests do not change them."""
    from core_fixtures import make_study  # torch takes seconds, and most tests do without it

    return make_study(tmp_path_factory.mktemp("study"))
