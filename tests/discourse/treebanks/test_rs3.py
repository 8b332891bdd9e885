"""The formats of RSTTool and rstWeb (`.rs3`, `.rs4`)."""

import random

import pytest

from docmt.discourse.constituents import SPAN, binarize, check_cover, join, join_pair, leaf
from docmt.discourse.dependencies import NO_HEAD, check_dependencies, nary_to_dependencies
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.errors import UserError

RELATIONS = {"elaboration": "rst", "cause": "rst", "list": "multinuc", "same-unit": "multinuc", "both": "rst"}


def rs3(*rows, more=""):
    """A file from rows `id, kind (text, `span` or `multinuc`), parent, relation`."""
    rels = "".join(f'<rel name="{name}" type="{kind}"/>' for name, kind in RELATIONS.items())
    body = ""
    for name, kind, *above in rows:
        attributes = f'parent="{above[0]}" relname="{above[1]}"' if above else ""
        if kind in ("span", "multinuc"):
            body += f'<group id="{name}" type="{kind}" {attributes}/>'
        else:
            body += f'<segment id="{name}" {attributes}>{kind}</segment>'
    rels += '<rel name="both" type="multinuc"/>'
    return f"<rst><header><relations>{rels}</relations></header><body>{body}{more}</body></rst>"


def parse(*rows, more=""):
    return parse_rs3(rs3(*rows, more=more), where="a.rs3")


def test_satellites_on_both_sides_share_a_node():
    file = parse(
        (1, "a", 2, "cause"), (2, "b &amp; c", 9, SPAN), (3, "d", 2, "elaboration"), (4, "e", 2, "cause"), (9, "span")
    )
    assert file.texts == ("a", "b & c", "d", "e")
    assert file.tree == join([leaf(i) for i in range(4)], "SNSS", ("cause", SPAN, "elaboration", "cause"))
    assert file.arcs == nary_to_dependencies(file.tree, 4)


def test_arcs_that_cross_are_those_of_the_file():
    file = parse(
        (1, "a", 5, SPAN),
        (2, "b", 6, SPAN),
        (3, "c", 1, "elaboration"),
        (4, "d", 2, "cause"),
        (5, "span", 7, "list"),
        (6, "span", 7, "list"),
        (7, "multinuc"),
    )
    assert file.n_lifted == 2
    assert file.arcs.heads == (NO_HEAD, 0, 0, 1)
    assert file.arcs.relations == ("root", "list", "elaboration", "cause")


def test_lists_with_two_kinds_of_satellites():
    file = parse(
        (1, "a", 7, "list"),
        (2, "b", 8, SPAN),
        (3, "c", 2, "elaboration"),
        (4, "d", 7, "list"),
        (5, "e", 7, "cause"),
        (6, "span"),
        (7, "multinuc", 6, SPAN),
        (8, "span", 7, "list"),
    )
    member = join_pair(leaf(1), leaf(2), "NS", "elaboration")
    items = join([leaf(0), member, leaf(3)], "NNN", ("list",) * 3)
    assert file.tree == join_pair(items, leaf(4), "NS", "cause")


def test_ambiguous_relation_is_multinuclear_in_groups():
    file = parse((1, "a", 9, "both"), (2, "b", 9, "both"), (3, "c", 1, "both"), (9, "multinuc"))
    # EDU 3 is cut off from EDU 1 by EDU 2
    assert file.tree == join([leaf(0), leaf(1), leaf(2)], "NNS", ("both",) * 3)
    assert file.n_lifted == 1


def test_groups_over_one_element_vanish():
    file = parse((1, "a", 7, SPAN), (2, "b", 1, "cause"), (7, "span", 8, "list"), (8, "multinuc", 9, SPAN), (9, "span"))
    assert file.tree == join_pair(leaf(0), leaf(1), "NS", "cause")


def test_several_trees_become_the_nuclei_of_one_node():
    file = parse((1, "a"), (2, "b", 3, "cause"), (3, "c", 9, SPAN), (9, "span"), (4, "d"))
    second = join_pair(leaf(1), leaf(2), "SN", "cause")
    assert file.tree == join([leaf(0), second, leaf(3)], "NNN", ("joint",) * 3)
    assert (file.n_trees, file.n_lifted) == (3, 0)
    assert file.arcs.heads == (NO_HEAD, 2, 0, 0)
    assert parse((1, "a")).n_trees == 1


def test_trees_that_enclose_one_another_are_joined_too():
    file = parse((1, "a", 3, "cause"), (2, "b"), (3, "c"))
    check_cover(file.tree, 3)
    assert file.n_trees == 2


def test_one_segment():
    assert parse((1, "a")).tree == leaf(0)
    assert parse((1, "a", 2, SPAN), (2, "span")).tree == leaf(0)


def test_unit_interrupted_by_a_satellite_of_its_group():
    """A satellite between the parts of a group is a child of the group."""
    file = parse((1, "he", 9, "same-unit"), (2, "who", 9, "elaboration"), (3, "ran", 9, "same-unit"), (9, "multinuc"))
    assert file.tree == join([leaf(0), leaf(1), leaf(2)], "NSN", ("same-unit", "elaboration", "same-unit"))
    assert file.arcs.heads == (NO_HEAD, 0, 0)
    assert file.n_lifted == 0


def test_edges_that_cross_are_lifted_and_counted():
    """EDU 2 depends on EDU 4 across the parts of a unit (1, 3). The right part moves up, and no EDU is lost."""
    file = parse(
        (1, "he", 8, "same-unit"),
        (2, "as", 4, "cause"),
        (3, "ran", 8, "same-unit"),
        (4, "fell", 9, SPAN),
        (8, "multinuc", 4, "elaboration"),
        (9, "span"),
    )
    assert file.n_lifted == 1
    assert file.tree == join([leaf(i) for i in range(4)], "SSSN", ("elaboration", "cause", "same-unit", SPAN))
    assert file.arcs.heads == (3, 3, 0, NO_HEAD)


def test_secondary_edges_are_counted_and_signals_passed_over():
    more = '<secedges><secedge id="1-2" source="1" target="2" relname="cause"/></secedges><signals><signal/></signals>'
    file = parse((1, "a", 9, SPAN), (2, "b", 1, "cause"), (9, "span"), more=more)
    assert (file.n_secondary_edges, file.tree) == (1, join_pair(leaf(0), leaf(1), "NS", "cause"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no segments"),
        ([(1, "a", 2, "cause"), (2, "b", 1, "cause")], "has no root, because the tree contains a cycle"),
        ([(1, "a", 2, "cause"), (2, "b", 1, "cause"), (3, "c")], "is part of a cycle of parents"),
        ([(1, "a", 7, "cause"), (2, "b")], "element 1 has the unknown parent 7"),
        ([(1, "a", 2, "cuase"), (2, "b")], "element 1: unknown relation 'cuase'; did you mean 'cause'"),
        ([(1, "a", 2, SPAN), (2, "b")], "element 1 is a nucleus of 2, which must be a group"),
        ([(1, "a", 9, SPAN), (2, "b", 9, SPAN), (9, "span")], "span group 9 has two nuclei, 1 and 2"),
        ([(1, "a", 9, "cause"), (9, "span")], "group 9 has no nucleus"),
        ([(1, "a"), (1, "b")], "a duplicate one"),
    ],
)
def test_elements_that_make_no_tree_are_named(rows, message):
    with pytest.raises(UserError, match=f"a.rs3: .*{message}"):
        parse(*rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<rst><body>", "not XML"),
        ("", "not XML"),
        ('<!DOCTYPE rst [<!ENTITY a "b">]><rst><body/></rst>', "document type or entities"),
        ("<!DOCTYPE rst><rst><body/></rst>", "document type or entities"),
        ("<rst/>", "no segments"),
    ],
)
def test_files_that_are_not_read(text, message):
    with pytest.raises(UserError, match=f"a.rs3: .*{message}"):
        parse_rs3(text, where="a.rs3")


def random_rows(rng, n_segments):
    """Segments and groups in random trees that ignore their order, so that most edges cross."""
    above, kinds, free = {}, {}, list(range(n_segments))
    while len(free) > 1:
        rng.shuffle(free)
        group = 100 + len(kinds)
        kinds[group] = rng.choice(["span", "multinuc"])
        first, *others = [free.pop() for _ in range(rng.randint(1, min(3, len(free))))]
        above[first] = (group, SPAN if kinds[group] == "span" else "list")
        for other in others:
            choice = [(first, "cause"), (group, "cause"), (group, "list" if kinds[group] == "multinuc" else "cause")]
            above[other] = rng.choice(choice)
        free.append(group)
    return [(name, kinds.get(name, "word"), *above.get(name, ())) for name in (*range(n_segments), *kinds)]


@pytest.mark.parametrize("seed", range(40))
def test_every_edu_has_its_place_however_edges_cross(seed):
    rng = random.Random(seed)
    n_segments = rng.randint(1, 10)
    file = parse(*random_rows(rng, n_segments))
    check_cover(file.tree, n_segments)
    check_cover(binarize(file.tree), n_segments)
    check_dependencies(file.arcs.heads, where="random")
    if not file.n_lifted:
        assert file.arcs == nary_to_dependencies(file.tree, n_segments)
