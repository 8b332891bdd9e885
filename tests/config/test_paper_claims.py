"""Claims of the papers. An example has a row for every table and figure with a claim that a CPU can test."""

import re
from pathlib import Path

import pytest

from docmt.config.loading import load_config, read_config_file

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("config/examples/controlled/claims*.yaml"))
PAPERS = ("G-Transformer", "RST-Transformer", "Cross-task pre-training")
WITHOUT_CLAIM = {
    "G-Transformer": {
        "Table 1": "numbers of sentences",
        "Figure 1": "drawing",
        "Figure 3": "curves of the document Transformer alone; Figure 8a compares",
        "Figure 4": "curves of the document Transformer alone; Figure 8a compares",
        "Figure 5": "curves of the document Transformer alone; Figure 8a compares",
        "Figure 6": "example",
    },
    "RST-Transformer": {
        "Table 1": "numbers of sentences",
        "Table 4": "example",
        "Figure 1": "example",
        "Figure 2": "example",
        "Figure 3": "example",
        "Figure 4": "drawing",
    },
    "Cross-task pre-training": {
        "Table 8": "numbers of sentences",
        "Table 9": "numbers of parameters (docs/experiments/models.md)",
        "Table 10": "numbers of passes",
        "Figure 1": "drawing",
        "Figure 2": "example",
        "Figure 3": "drawing",
    },
}  # fmt: skip


def example_claims():
    """Return all claims in the examples, by file and name."""
    return {
        (path.stem, name): claim
        for path in FILES
        for name, claim in load_config(read_config_file(path)).report.claims.items()
    }


CLAIMS = example_claims()


def items_of(text):
    """Return tables, figures and sections that a text mentions, with complete figures (`Figure 2` for 2a)."""
    return {
        f"{kind} {number}"
        for kind, numbers in re.findall(r"(Table|Figure|Section)s? (\d[\d.]*[a-z]?(?: and \d[\d.]*[a-z]?)*)", text)
        for number in re.findall(r"\d+(?:\.\d+)?", numbers)
    }


def items_of_paper(paper):
    """Return the paper's tables, figures and sections in docs/papers.md."""
    (section,) = re.findall(rf"^## {paper}\n(.*?)(?=^## |\Z)", (ROOT / "docs/papers.md").read_text(), re.M | re.S)
    return set(re.findall(r"^\| ((?:Table|Figure|Section) [\d.]+) \|", section, re.M))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_has_claim(paper):
    claimed = set().union(*(items_of(claim.source) for claim in CLAIMS.values() if claim.paper == paper))
    items = items_of_paper(paper)
    assert len(items) >= 10
    assert items - claimed == set(WITHOUT_CLAIM[paper])


@pytest.mark.parametrize("name", CLAIMS, ids="-".join)
def test_claims_name_their_place(name):
    claim = CLAIMS[name]
    if not claim.paper:
        assert not items_of(claim.source)
        return
    assert claim.paper in PAPERS
    assert items_of(claim.source)
    assert claim.reported
    assert not claim.margin or "margin" in claim.remark.lower(), "a margin needs a reason in the paper"
    if claim.margin == 0:
        assert not any(comparison.kind == "not below" for comparison in claim.differences)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Figures 2a and 7a, Sections 3.1 and 5.3", {"Figure 2", "Figure 7", "Section 3.1", "Section 5.3"}),
        ("Table 1, #6 and #3", {"Table 1"}),
        ("docmt's question", set()),
    ],
)
def test_items_are_read_from_sources(text, items):
    assert items_of(text) == items
