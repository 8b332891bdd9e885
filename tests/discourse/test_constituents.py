"""Constituent trees: shape, binarizing and flattening, JSON."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_fixtures import deep_tree

from docmt.discourse.constituents import (
    SPAN,
    binarize,
    check_cover,
    flatten,
    from_json,
    join,
    join_names,
    join_pair,
    leaf,
    to_json,
)
from docmt.discourse.dependencies import nary_to_dependencies, to_dependencies
from docmt.errors import UserError


def nary(letters, relation, *children):
    return join(children, letters, join_names(letters, relation))


@st.composite
def trees(draw, first=0, depth=3, above=None):
    """Random n-ary trees. A list is never the child of a list with the same relation."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return leaf(first)
    n = draw(st.integers(2, 4))
    letters = draw(st.text("NS", min_size=n, max_size=n).filter(lambda letters: "N" in letters))
    name = draw(st.sampled_from([relation for relation in "abc" if relation != above]))
    children = []
    for _ in letters:
        child = draw(trees(first=children[-1].last + 1 if children else first, depth=depth - 1, above=name))
        children.append(child)
    return nary(letters, name, *children)


def test_join_names_what_does_not_fit():
    for children, letters, relations, message in (
        ([leaf(0)], "N", ["a"], "two or more children"),
        ([], "", [], "two or more children"),
        ([leaf(0), leaf(2)], "NS", ["a", "b"], "a gap or overlap"),
        ([leaf(1), leaf(0)], "NS", ["a", "b"], "a gap or overlap"),
        ([leaf(0), leaf(1)], "SS", ["a", "b"], "at least one N"),
        ([leaf(0), leaf(1)], "NX", ["a", "b"], "one N or S"),
        ([leaf(0), leaf(1)], "N", ["a", "b"], "one N or S"),
        ([leaf(0), leaf(1)], "NS", ["a"], "1 relations for 2 children"),
    ):
        with pytest.raises(UserError, match=message):
            join(children, letters, relations)


def test_join_pair_places_the_relation():
    assert join_pair(leaf(0), leaf(1), "NS", "r").relations == (SPAN, "r")
    assert join_pair(leaf(0), leaf(1), "SN", "r").relations == ("r", SPAN)
    assert join_pair(leaf(0), leaf(1), "NN", "r").relations == ("r", "r")
    assert leaf(0).relation == SPAN
    assert nary("SNS", "r", *map(leaf, range(3))).relation == "r"


def test_cover():
    check_cover(leaf(0), 1)
    check_cover(nary("NN", "r", leaf(0), leaf(1)), 2)
    for tree, n_edus in ((leaf(0), 2), (leaf(1), 1), (nary("NN", "r", leaf(1), leaf(2)), 2)):
        with pytest.raises(UserError, match=r"covers [12] EDUs"):
            check_cover(tree, n_edus)


def test_lists_are_binarized_right_branching():
    tree = nary("NNNN", "list", *map(leaf, range(4)))
    inner = join_pair(leaf(1), join_pair(leaf(2), leaf(3), "NN", "list"), "NN", "list")
    assert binarize(tree) == join_pair(leaf(0), inner, "NN", "list")
    assert flatten(binarize(tree)) == tree


def test_satellites_are_binarized_nearest_first_right_before_left():
    tree = join([leaf(i) for i in range(4)], "SNSS", ("a", SPAN, "b", "c"))
    core = join_pair(join_pair(leaf(1), leaf(2), "NS", "b"), leaf(3), "NS", "c")
    assert binarize(tree) == join_pair(leaf(0), core, "SN", "a")


def test_satellite_between_nuclei_keeps_its_head():
    """It used to go to the nucleus on its right."""
    tree = join([leaf(i) for i in range(5)], "NSNNN", ("same", "b", "same", "same", "same"))
    left = join_pair(leaf(0), leaf(1), "NS", "b")
    right = join_pair(leaf(2), join_pair(leaf(3), leaf(4), "NN", "same"), "NN", "same")
    assert binarize(tree) == join_pair(left, right, "NN", "same")


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(trees())
def test_binarizing_keeps_leaves_and_dependency_arcs(tree):
    n_edus = tree.last + 1
    binary = binarize(tree)
    assert all(len(node.children) in (0, 2) for node in binary.postorder())
    check_cover(binary, n_edus)
    assert to_dependencies(binary, n_edus) == nary_to_dependencies(tree, n_edus)


def test_flatten_merges_lists_of_one_relation():
    pair = join_pair(leaf(1), leaf(2), "NN", "list")
    other = join_pair(leaf(0), pair, "NN", "contrast")
    left = join_pair(join_pair(leaf(0), leaf(1), "NN", "list"), leaf(2), "NN", "list")
    satellite = join_pair(leaf(0), pair, "NS", "list")
    for tree in (other, left, satellite):
        assert flatten(tree) == tree


def test_flatten_keeps_names_and_heads():
    inner = join([leaf(1), leaf(2)], "NN", ("list", "contrast"))
    for tree in (join([leaf(0), inner], "NN", ("list", "joint")), join([leaf(0), inner], "NN", ("list", "list"))):
        assert flatten(tree) == tree


@pytest.mark.slow
@given(trees())
def test_json_brings_trees_back(tree):
    assert from_json(to_json(tree)) == tree
    assert hash(from_json(to_json(tree))) == hash(tree)


def test_json_keeps_different_relations_of_one_node():
    tree = join([leaf(i) for i in range(3)], "SNS", ("a", SPAN, "b"))
    value = to_json(tree)
    assert value[-1]["relation"] == ["a", SPAN, "b"]
    assert from_json(value) == tree


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"edu": "x"},
        {"children": [{"edu": 0}, {"edu": 1}], "relation": "r"},
        {"children": 3, "relation": "r", "nuclearity": "NS"},
        {"children": [], "relation": "r", "nuclearity": ""},
        {"children": [{"edu": 0}, {"edu": 2}], "relation": "r", "nuclearity": "NS"},
        [],
        3,
        [0, 1],
        [{"children": 2, "nuclearity": "NS", "relation": "r"}, 0, 1],
        [0, 1, {"children": 3, "nuclearity": "NSS", "relation": "r"}],
        [0, 1, {"children": 2, "nuclearity": "SS", "relation": "r"}],
        [0, 1, {"children": 2, "nuclearity": "NS", "relation": ["span", 3]}],
    ],
)
def test_json_that_is_no_tree_is_refused(value):
    with pytest.raises(UserError, match="discourse tree"):
        from_json(value)


def test_nested_json_is_read_too():
    nested = {
        "nuclearity": "NS",
        "relation": "r",
        "children": [{"edu": 0}, {"nuclearity": "NN", "relation": "s", "children": [{"edu": 1}, {"edu": 2}]}],
    }
    assert from_json(nested) == join_pair(leaf(0), join_pair(leaf(1), leaf(2), "NN", "s"), "NS", "r")


def test_trees_deeper_than_pythons_stack():
    tree = deep_tree(n_edus := 5000, "NN", "NS")
    assert from_json(json.loads(json.dumps(to_json(tree)))) == tree
    assert binarize(flatten(tree)) == tree
    assert len(to_dependencies(tree, n_edus).heads) == n_edus
