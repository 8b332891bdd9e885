"""Scores of small trees, counted by hand."""

from dataclasses import replace

import pytest
from parsing_fixtures import coarse, random_document
from tree_fixtures import deep_tree

from docmt.discourse.constituents import join_pair, leaf
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree
from docmt.discourse.discourse_documents import DiscourseDocument, edus_from_starts
from docmt.discourse.evaluation import evaluate
from docmt.discourse.other_parsers import baseline
from docmt.errors import UserError

WORDS = (("a", "b"), ("c", "d"))


def document(tree, starts=((1,), (1,))):
    return DiscourseDocument("d", WORDS, edus_from_starts(starts, [2, 2]), tree, (0,))


def pair(left, right, letters, relation):
    return join_pair(left, right, letters, relation)


GOLD = document(pair(pair(leaf(0), leaf(1), "NS", "x-1"), pair(leaf(2), leaf(3), "NN", "joint"), "SN", "cause-result"))


def test_a_tree_against_itself():
    scores = evaluate([(GOLD, GOLD)])
    for name in ("parseval", "rst_parseval"):
        assert scores[name] == {"S": 100.0, "N": 100.0, "R": 100.0, "F": 100.0}
    assert (scores["uas"], scores["las"], scores["sentence_uas"], scores["edu_f1"]) == (100.0,) * 4


def test_original_parseval_and_rst_parseval_counted_by_hand():
    # The first sentence is right but for its relation. The second is right. The root has another nuclearity.
    predicted = document(
        pair(pair(leaf(0), leaf(1), "NS", "y"), pair(leaf(2), leaf(3), "NN", "joint"), "NS", "cause-result")
    )
    scores = evaluate([(GOLD, predicted)])
    assert scores["parseval"] == {"S": 100.0, "N": 66.67, "R": 66.67, "F": 33.33}
    # Six nodes below the root: both children of the root have the other nuclearity, and with it the other relation.
    # EDU 2 has another relation.
    assert scores["rst_parseval"] == {"S": 100.0, "N": 66.67, "R": 50.0, "F": 50.0}


def test_spans_and_levels():
    # (a (b (c d))): of the gold spans, c d and the root are there.
    predicted = document(
        pair(leaf(0), pair(leaf(1), pair(leaf(2), leaf(3), "NN", "joint"), "NN", "joint"), "SN", "cause-result")
    )
    scores = evaluate([(GOLD, predicted)])
    assert scores["parseval"] == {"S": 66.67, "N": 66.67, "R": 66.67, "F": 66.67}
    assert scores["rst_parseval"]["S"] == 83.33
    assert scores["span_recall"] == {
        "in sentence": {"recall": 50.0, "nodes": 2},
        "in paragraph": {"recall": 100.0, "nodes": 1},
    }


def test_arcs():
    # Gold: c is the root, a → c, b → a, d → c. The chain has its root at a, and only b → a and d → c.
    scores = evaluate([(GOLD, baseline("chain").parse(GOLD))])
    assert scores["uas"] == 50.0
    assert scores["las"] == 0.0
    assert scores["sentence_uas"] == 0.0
    assert scores["parseval"]["S"] is None


def test_coarse_relations_are_compared():
    predicted = document(
        pair(pair(leaf(0), leaf(1), "NS", "x-2"), pair(leaf(2), leaf(3), "NN", "joint"), "SN", "cause-cause")
    )
    assert evaluate([(GOLD, predicted)])["parseval"]["F"] == 33.33
    assert evaluate([(GOLD, predicted)], coarse=coarse)["parseval"]["F"] == 100.0


def test_lists_of_one_coarse_relation_are_joined():
    """A parser learns from coarse relations, so that it cannot distinguish x-1 from x-2."""

    def nested(relation):
        return pair(leaf(0), pair(leaf(1), pair(leaf(2), leaf(3), "NS", "y"), "NN", relation), "NN", "x-1")

    gold, predicted = document(nested("x-2")), document(nested("x-1"))
    assert evaluate([(gold, predicted)])["uas"] < 100
    scores = evaluate([(gold, predicted)], coarse=coarse)
    assert (scores["uas"], scores["las"], scores["sentence_uas"]) == (100.0,) * 3
    from_file = replace(gold, arcs=gold.dependencies)
    assert evaluate([(from_file, predicted)], coarse=coarse)["uas"] == 100.0


def test_arcs_of_a_file_are_compared():
    """Arcs of .rs3 files can cross, so that no constituent tree has them."""
    crossing = DependencyTree((2, 3, NO_HEAD, 2), ("x-1", "x-2", ROOT, "joint"))
    gold = replace(GOLD, arcs=crossing)
    assert evaluate([(gold, replace(gold, tree=None))])["uas"] == 100.0
    assert evaluate([(gold, GOLD)])["uas"] < 100
    assert evaluate([(GOLD, replace(GOLD, arcs=crossing))])["uas"] < 100
    labels = replace(crossing, relations=("x", "x", ROOT, "joint"))
    assert evaluate([(gold, replace(gold, arcs=labels))], coarse=coarse)["las"] == 100.0


def test_documents_without_gold_trees_lower_no_score():
    other = replace(GOLD, id="e", tree=None)
    scores = evaluate([(GOLD, GOLD), (other, replace(GOLD, id="e"))])
    assert (scores["uas"], scores["sentence_uas"], scores["sentences"]) == (100.0, 100.0, 4)


def test_other_edus_are_compared_by_their_words():
    # Two EDUs for the first sentence, one for the second: spans a b, and the root, are there. The span c d is an EDU.
    tree = pair(pair(leaf(0), leaf(1), "NS", "x-1"), leaf(2), "SN", "cause-result")
    scores = evaluate([(GOLD, document(tree, ((1,), ())))])
    assert scores["edus"] == {"gold": 4, "predicted": 3}
    assert scores["edu_f1"] == pytest.approx(2 * 2 / 7 * 100, abs=0.01)
    assert scores["parseval"]["S"] == 80.0  # 2 of 3 and 2 of 2
    assert scores["uas"] == pytest.approx(2 * 1 / 7 * 100, abs=0.01)  # b → a. A's head and the root are other EDUs


def test_identity_of_both_measures_on_binary_trees():
    """RST-Parseval also counts n leaves, and not the root. With n EDUs and m right spans: (n + m − 1) / (2n − 2)."""
    gold = random_document(5, n_sentences=9)
    predicted = replace(gold, tree=deep_tree(len(gold.edus), "NS", relation="joint"))
    scores = evaluate([(gold, predicted)])
    n = len(gold.edus)
    m = scores["parseval"]["S"] / 100 * (n - 1)
    assert scores["rst_parseval"]["S"] == pytest.approx(100 * (n + m - 1) / (2 * n - 2), abs=0.02)


def test_other_words_are_one_clear_line():
    with pytest.raises(UserError, match=r"document 'd' has different words than gold document 'd'"):
        evaluate([(GOLD, replace(GOLD, sentences=(("a", "b"), ("c", "x"))))])


def test_ugly_documents_count_without_error():
    documents = [
        DiscourseDocument("none", (), ()),
        DiscourseDocument("empty", ((), ()), edus_from_starts([[], []], [0, 0]), deep_tree(2, "NN")),
        *(random_document(seed) for seed in range(20)),
    ]
    scores = evaluate([(gold, gold) for gold in documents])
    assert scores["parseval"]["F"] == scores["las"] == scores["sentence_uas"] == 100.0
