"""Trees that need no knowledge of the words."""

import pytest
from parsing_fixtures import complete_units, random_document

from docmt.discourse.documents import DiscourseDocument, DocumentUnits, edus_from_starts
from docmt.discourse.parsing.baselines import BASELINES, baseline

DOCUMENT = DiscourseDocument(
    "d", (("a", "b"), ("c",), ("d", "e")), edus_from_starts([[1], [], [1]], [2, 1, 2]), paragraphs=(0, 1)
)


def spans(tree):
    return [(node.first, node.last, node.nuclearity) for node in tree.postorder() if not node.is_leaf]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("flat", [(0, 4, "NNNNN")]),
        ("right_branching", [(3, 4, "NS"), (2, 4, "NS"), (1, 4, "NS"), (0, 4, "NS")]),
        ("sentence_branching", [(0, 1, "NS"), (3, 4, "NS"), (2, 4, "NS"), (0, 4, "NS")]),
        ("paragraph_branching", [(0, 1, "NS"), (3, 4, "NS"), (2, 4, "NS"), (0, 4, "NS")]),
    ],
)
def test_shapes(name, expected):
    assert spans(baseline(name).parse(DOCUMENT).tree) == expected


def test_paragraphs_are_joined_before_the_document():
    words = (("a",), ("b",), ("c",), ("d",))
    document = DiscourseDocument("d", words, edus_from_starts([[]] * 4, [1] * 4), paragraphs=(0, 3))
    assert spans(baseline("paragraph_branching").parse(document).tree) == [(1, 2, "NS"), (0, 2, "NS"), (0, 3, "NS")]
    assert spans(baseline("sentence_branching").parse(document).tree)[0] == (2, 3, "NS")


def test_the_chain_attaches_every_edu_to_the_one_before():
    parsed = baseline("chain").parse(DOCUMENT)
    assert parsed.tree is None
    assert parsed.arcs.heads == (-1, 0, 1, 2, 3)
    assert parsed.arcs.relations == ("root", *["elaboration"] * 4)


def test_flat_attaches_every_edu_to_the_first_and_right_branching_makes_a_chain():
    assert baseline("flat").parse(DOCUMENT).dependencies.heads == (-1, 0, 0, 0, 0)
    assert baseline("right_branching").parse(DOCUMENT).dependencies.heads == (-1, 0, 1, 2, 3)


@pytest.mark.parametrize("name", BASELINES)
def test_ugly_documents(name):
    documents = [
        DiscourseDocument("none", (), ()),
        DiscourseDocument("empty sentence", ((),), edus_from_starts([[]], [0])),
        *(random_document(seed) for seed in range(10)),
    ]
    parser = baseline(name)
    parsed = parser.parse_batch(documents)
    assert [document.id for document in parsed] == [document.id for document in documents]
    assert [document.edus for document in parsed] == [document.edus for document in documents]
    assert parser.counts["edus"] == sum(len(document.edus) for document in documents)
    for document in parsed[1:]:
        assert document.dependencies.heads.count(-1) == 1
        if name in ("sentence_branching", "paragraph_branching"):
            assert complete_units(document.tree, DocumentUnits(document).sentences.number_of)
