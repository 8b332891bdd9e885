"""The manual describes all registered names, so that new ones are not forgotten."""

from pathlib import Path

import pytest

from docmt.config.discourse import TREEBANKS
from docmt.corpora.readers.registry import FORMATS
from docmt.evaluation.metrics import METRICS
from docmt.models.attention.patterns import PATTERNS
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.systems.context_traits import CONTEXTS

DOCS = Path(__file__).parents[1] / "docs"
REGISTRIES = {
    "corpora.md": [FORMATS],
    "treebanks.md": [TREEBANKS],
    "models.md": [PATTERNS, CONTEXTS, ARCHITECTURES, SIZES],
    "evaluation.md": [METRICS],
}


@pytest.mark.parametrize("page", REGISTRIES)
def test_page_names_everything_registered(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for registry in REGISTRIES[page] for name in registry if f"`{name}`" not in text] == []
