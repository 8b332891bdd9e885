import pytest
from parsing_fixtures import random_document


@pytest.fixture(scope="session")
def documents():
    """Documents with trees for parsers to learn by heart. Tests do not change them."""
    return [random_document(seed, n_sentences=3) for seed in range(9)]
