"""The transition system (oracle, constraints, greedy search), and trees that do not depend on words."""

import random
from dataclasses import replace

import pytest
from parsing_fixtures import complete_units, random_document, random_tree

from docmt.discourse.constituents import binarize, check_cover
from docmt.discourse.discourse_documents import (
    ABOVE,
    SAME_PARAGRAPH,
    SAME_SENTENCE,
    UNKNOWN,
    DiscourseDocument,
    DocumentUnits,
    edus_from_starts,
)
from docmt.discourse.other_parsers import BASELINES, baseline
from docmt.discourse.parsing.greedy_search import Constraint, best_action, build_tree, parse_greedily
from docmt.discourse.parsing.transitions import FORMS, NN, NS, SHIFT, SN, State


def chance_scores(chance):
    return lambda states, numbers: [[chance.gauss(0, 1) for _ in range(4)] for _ in states]


def search(documents, scores, *, sentences=True, paragraphs=False):
    constraints = [
        Constraint(DocumentUnits(document), sentences=sentences, paragraphs=paragraphs) for document in documents
    ]
    return parse_greedily(constraints, [len(document.edus) for document in documents], scores)


@pytest.mark.parametrize("seed", range(40))
def test_the_oracle_replays_every_tree(seed):
    chance = random.Random(seed)
    tree = binarize(random_tree(chance, chance.randint(1, 30)))
    actions = [FORMS.index(node.nuclearity) for node in tree.postorder()]
    state = State(tree.last + 1)
    for action in actions:
        assert not state.is_final
        state.apply(action)
    assert state.is_final
    relations = [node.relation for node in tree.postorder() if not node.is_leaf]
    assert build_tree(actions, relations) == tree


def test_spans_know_their_nuclei_forms_and_children():
    state = State(4)
    for action in (SHIFT, SHIFT, SN, SHIFT, SHIFT, NS):
        state.apply(action)
    first, second = state.stack
    assert (first.first, first.last, first.nucleus, first.form) == (0, 1, 1, SN)
    assert (second.first, second.last, second.nucleus, second.form) == (2, 3, 2, NS)
    assert [child.form for child in (*first.children, *second.children)] == [SHIFT] * 4
    state.apply(NN)
    (root,) = state.stack
    assert state.nodes == [first, second, root]
    assert root.children == (first, second)
    assert (root.first, root.last, root.nucleus, root.form) == (0, 3, 1, NN)


@pytest.mark.parametrize("paragraphs", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_any_classifier_reaches_a_tree_with_complete_sentences(seed, paragraphs):
    document = random_document(seed, with_tree=False)
    (state,), _ = search([document], chance_scores(random.Random(seed)), paragraphs=paragraphs)
    assert len(state.actions) == 2 * len(document.edus) - 1
    tree = build_tree(state.actions, ["joint"] * (len(document.edus) - 1))
    check_cover(tree, len(document.edus))
    units = DocumentUnits(document)
    assert complete_units(tree, units.sentences.number_of)
    if paragraphs and units.paragraphs is not None:
        assert complete_units(tree, units.paragraphs.number_of)


def test_without_constraint_any_tree_is_possible():
    documents = [random_document(seed, with_tree=False) for seed in range(30)]
    states, n_enforced = search(documents, chance_scores(random.Random(0)), sentences=False)
    assert n_enforced == 0
    assert not all(
        complete_units(build_tree(state.actions, ["joint"] * 99), DocumentUnits(document).sentences.number_of)
        for state, document in zip(states, documents, strict=True)
    )


def test_enforced_steps_overrule_the_classifier():
    document = DiscourseDocument("d", (("a", "b"), ("c", "d")), edus_from_starts([[1], [1]], [2, 2]))
    always_shift = search([document], lambda states, _: [[1.0, 0.0, 0.0, 0.0] for _ in states])
    always_reduce = search([document], lambda states, _: [[0.0, 0.0, 1.0, 0.0] for _ in states])
    assert always_shift[1] == 1  # the first sentence had to be closed
    assert always_shift[0][0].actions == [SHIFT, SHIFT, NN, SHIFT, SHIFT, NN, NN]
    assert always_reduce[1] == 1  # the second sentence had to be finished before joining it to the first
    assert always_reduce[0][0].actions == [SHIFT, SHIFT, NS, SHIFT, SHIFT, NS, NS]


def test_impossible_step_is_not_enforced():
    document = DiscourseDocument("d", (("a",),), edus_from_starts([[]], [1]))
    constraint = Constraint(DocumentUnits(document), sentences=True, paragraphs=False)
    assert best_action(State(1), constraint, [0.0, 9.0, 9.0, 9.0]) == (SHIFT, False)


def test_documents_of_one_edu_and_of_none():
    one = DiscourseDocument("one", ((),), edus_from_starts([[]], [0]))
    none = DiscourseDocument("none", (), ())
    (first, second), n_enforced = search([one, none], chance_scores(random.Random(1)))
    assert (first.actions, second.actions, n_enforced) == ([SHIFT], [], 0)


def test_levels_of_boundaries():
    words = (("a", "b"), ("c",), ("d",))
    edus = edus_from_starts([[1], [], []], [2, 1, 1])
    units = DocumentUnits(DiscourseDocument("d", words, edus, paragraphs=(0, 2)))
    assert [units.level(0, 1), units.level(1, 2), units.level(2, 3)] == [SAME_SENTENCE, SAME_PARAGRAPH, ABOVE]
    assert DocumentUnits(DiscourseDocument("d", words, edus)).level(1, 2) == UNKNOWN


DOCUMENT = DiscourseDocument(
    "d", (("a", "b"), ("c",), ("d", "e")), edus_from_starts([[1], [], [1]], [2, 1, 2]), paragraphs=(0, 1)
)


def test_a_chain():
    parsed = baseline("chain").parse(DOCUMENT)
    assert parsed.tree is None
    assert parsed.dependencies.heads == (-1, 0, 1, 2, 3)
    assert parsed.dependencies.relations == ("root", *["elaboration"] * 4)


def test_random_trees_depend_on_the_document_alone():
    trees = [baseline("random").parse(replace(DOCUMENT, id=name)).arcs for name in ("a", "a", "b")]
    assert trees[0] == trees[1] != trees[2]
    assert all(head < edu for tree in trees for edu, head in enumerate(tree.heads))


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
