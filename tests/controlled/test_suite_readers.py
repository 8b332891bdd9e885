"""Expected accuracies of different readers on the suites with nested segments (docs/controlled-corpus.md)."""

import re
from pathlib import Path

import pytest
from segment_reading import CLOSES, OPENS, SECTIONS, starts

from docmt.controlled.generator import describe_discourse
from docmt.controlled.settings import SegmentsSettings
from docmt.controlled.suites import SUITES, build_suite
from docmt.discourse.dependencies import merge_to_sentences

DOCS = Path(__file__).parents[2] / "docs/controlled-corpus.md"
SETTINGS = SegmentsSettings(generator="nested", seed=1, n_suite_items=300)


@pytest.fixture(scope="module")
def suites():
    return {
        name: [(item, describe_discourse(item["id"], placed)) for item, placed in build_suite(name, SETTINGS)]
        for name in SUITES["nested"]
    }


def deciding(item):
    return len(item["src"]) - 1 - item["distance"]


def neighbors(discourse, n_steps):
    """Sentences at most `n_steps` away from the last sentence in the gold tree."""
    n_sentences = len(discourse["sentences"])
    heads = merge_to_sentences(
        [arc["head"] for arc in discourse["dependency"]], [edu["sentence"] for edu in discourse["edus"]], n_sentences
    )
    near = {n_sentences - 1}
    for _ in range(n_steps):
        near |= {heads[each] for each in near} | {each for each, head in enumerate(heads) if head in near}
    return near - {-1}


def window(item, n_sentences):
    """True if the last sentences before the focus determine the answer.

    In `structure`, a reader needs the opener of the segment that the focus closes, and an earlier mention. The target
    shows the gender even of a pronoun.
    """
    first = len(item["src"]) - 1 - n_sentences
    if item["phenomenon"] != "structure":
        return deciding(item) >= first
    kind = CLOSES[starts(item["src"][-1], CLOSES)]
    openers = [k for k, text in enumerate(item["src"]) if OPENS.get(starts(text, OPENS)) == kind]
    before = item["src"][max(0, first) : openers[-1]] if openers[-1] >= first else []
    return any(starts(text, (*SECTIONS, *OPENS)) or re.search(r"\b[Ii]t\b", text) for text in before)


ORACLES = {
    "the sentence only": lambda item, discourse: False,
    "also the sentence before": lambda item, discourse: window(item, 1),
    "also three sentences before": lambda item, discourse: window(item, 3),
    "all sentences, in no order": lambda item, discourse: item["phenomenon"] in ("deixis", "cohesion"),
    "parent and children in the tree": lambda item, discourse: deciding(item) in neighbors(discourse, 1),
    "two steps in the tree": lambda item, discourse: deciding(item) in neighbors(discourse, 2),
    "the source in order": lambda item, discourse: item.get("kind") != "consistent",
    "source and target in order": lambda item, discourse: True,
}


def expected(suites, oracle):
    """Expected percentages by suite: all items that the oracle can determine, and half of the others."""
    return [
        100 * sum(1.0 if ORACLES[oracle](*row) else 0.5 for row in suites[name]) / len(suites[name]) for name in suites
    ]


@pytest.mark.parametrize("oracle", ORACLES)
def test_oracle_table_matches_the_suites(suites, oracle):
    row = next(line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {oracle} |"))
    assert [float(cell) for cell in row.split("|")[2:6]] == [round(share) for share in expected(suites, oracle)]
