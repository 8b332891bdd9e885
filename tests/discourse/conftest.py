import pytest
from parsing_fixtures import random_document


@pytest.fixture(scope="session")
def documents():
    """Documents with trees that parsers can memorize. Tests do not change them."""
    return [random_document(seed, n_sentences=3) for seed in range(9)]
