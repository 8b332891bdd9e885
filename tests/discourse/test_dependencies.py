"""Dependency trees: conversion, checks, merging to sentences, cutting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_fixtures import random_heads

from docmt.discourse.constituents import SPAN, join, join_pair, leaf
from docmt.discourse.dependencies import (
    NO_HEAD,
    ROOT,
    check_dependencies,
    cut_heads,
    depths,
    merge_to_sentences,
    nary_to_dependencies,
    to_dependencies,
)
from docmt.errors import UserError


def test_conversion_of_a_small_tree_by_hand():
    """Li et al. (2014): leftmost nucleus, satellites on both sides. A list depends on its first member."""
    items = join([leaf(1), leaf(2), leaf(3)], "NNN", ("list",) * 3)
    tree = join([leaf(0), items, leaf(4)], "SNS", ("background", SPAN, "evaluation"))
    dependencies = to_dependencies(tree, 5)
    assert dependencies.heads == (1, NO_HEAD, 1, 1, 1)
    assert dependencies.relations == ("background", ROOT, "list", "list", "evaluation")


def test_binary_list_becomes_a_star_not_a_chain():
    tree = join_pair(leaf(0), join_pair(leaf(1), leaf(2), "NN", "list"), "NN", "list")
    assert to_dependencies(tree, 3).heads == (NO_HEAD, 0, 0)
    assert nary_to_dependencies(tree, 3).heads == (NO_HEAD, 0, 1)


def test_list_in_a_list_stays():
    tree = join([leaf(0), leaf(1), join_pair(leaf(2), leaf(3), "NN", "list")], "NNN", ("list",) * 3)
    assert to_dependencies(tree, 4).heads == (NO_HEAD, 0, 0, 2)


def test_one_edu_is_the_root():
    assert to_dependencies(leaf(0), 1).heads == (NO_HEAD,)


def test_tree_of_another_document_is_refused():
    with pytest.raises(UserError, match="the document has EDUs 1 to 3"):
        to_dependencies(join_pair(leaf(0), leaf(1), "NS", "r"), 3)


@given(random_heads())
def test_trees_pass_the_check(heads):
    check_dependencies(heads, where="here")


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([-1, -1], "here: units 1 and 2 are both roots"),
        ([1, 0], "here: unit 1 depends on itself"),
        ([-1, 2, 1], "here: unit 2 depends on itself"),
        ([0], "here: unit 1 depends on itself"),
        ([-1, 2], "here: a head is not one of the 2 units"),
        ([-2, -1], "here: a head is not one of"),
        ([-1, 0.0], "here: every head must be a whole number"),
    ],
)
def test_no_tree_is_refused(heads, message):
    with pytest.raises(UserError, match=message):
        check_dependencies(heads, where="here")


@given(random_heads())
def test_depths_equal_a_walk_to_the_root(heads):
    def walk(unit):
        return 0 if heads[unit] == NO_HEAD else 1 + walk(heads[unit])

    assert depths(heads).tolist() == [walk(unit) for unit in range(len(heads))]


@given(random_heads(), st.data())
def test_merged_to_sentences_is_a_tree(heads, data):
    """RST-Transformer §2.2, including sentences whose EDUs have heads in several other sentences."""
    ends = data.draw(st.sets(st.integers(1, len(heads)))) | {len(heads)}
    sentence_of, start = [], 0
    for sentence, end in enumerate(sorted(ends)):
        sentence_of += [sentence] * (end - start)
        start = end
    merged = merge_to_sentences(heads, sentence_of, len(ends))
    check_dependencies(merged, where="merged")
    assert merged.index(NO_HEAD) == sentence_of[heads.index(NO_HEAD)]
    # every arc of the merged tree is an arc of the EDUs
    between = {(sentence_of[unit], sentence_of[head]) for unit, head in enumerate(heads) if head != NO_HEAD}
    assert {(unit, head) for unit, head in enumerate(merged) if head != NO_HEAD} <= between


def test_sentence_takes_the_highest_left_arc():
    #        EDU 0 is the root. Sentence 2 = EDUs 3, 4, with heads in sentences 1 and 0
    heads, sentence_of = [NO_HEAD, 0, 1, 2, 0], [0, 1, 1, 2, 2]
    assert merge_to_sentences(heads, sentence_of, 3) == (NO_HEAD, 0, 0)
    heads = [NO_HEAD, 0, 1, 0, 0]
    assert merge_to_sentences(heads, [0, 1, 1, 2, 3], 4) == (NO_HEAD, 0, 0, 0)


def test_cut_makes_a_forest():
    heads = np.array([2, 0, NO_HEAD, 2, 3, 0])
    assert cut_heads(heads, 0, 6).tolist() == heads.tolist()
    assert cut_heads(heads, 2, 5).tolist() == [NO_HEAD, 0, 1]
    assert cut_heads(heads, 3, 6).tolist() == [NO_HEAD, 0, NO_HEAD]
    assert cut_heads(heads, 1, 1).tolist() == []
