"""The bracket format of the RST-DT (`.dis`)."""

import pytest

from docmt.discourse.constituents import SPAN, binarize, join, join_pair, leaf
from docmt.discourse.treebanks.brackets import format_brackets, parse_brackets
from docmt.discourse.treebanks.treebank import RstFile
from docmt.errors import UserError

TEXT = """( Root (span 1 4)
  ( Satellite (leaf 1) (rel2par heading) (text _!A (short) title_!) )
  ( Nucleus (span 2 4) (rel2par span)
    ( Nucleus (leaf 2) (rel2par List) (text _!One,<P>_!) )
    ( Nucleus (leaf 3) (rel2par List) (text _!two_!) )  //TT_ERR
    ( Nucleus (leaf 4) (rel2par List) (text _!and "three_!" .
_!) )
  )
)
"""
ITEMS = join([leaf(1), leaf(2), leaf(3)], "NNN", ("List",) * 3)
TREE = join([leaf(0), ITEMS], "SN", ("heading", SPAN))


def test_nodes_with_many_children_and_odd_texts():
    found = parse_brackets(TEXT, where="a.dis")
    assert found.tree == TREE
    assert found.texts == ("A (short) title", "One,<P>", "two", 'and "three_!" .\n')


def test_texts_with_parentheses_that_do_not_close():
    found = parse_brackets("( Root (leaf 1) (text _!:-) ( Nucleus (leaf 9)_!) )", where="a.dis")
    assert (found.tree, found.texts) == (leaf(0), (":-) ( Nucleus (leaf 9)",))


def test_a_span_that_differs_from_its_leaves_is_counted_and_the_leaves_decide():
    found = parse_brackets(TEXT.replace("(span 2 4)", "(span 2 5)"), where="a.dis")
    assert (found.tree, found.n_wrong_spans) == (TREE, 1)
    assert parse_brackets(TEXT, where="a.dis").n_wrong_spans == 0


@pytest.mark.parametrize("change", [lambda tree: tree, binarize])
def test_written_and_read_again(change):
    rst = RstFile(change(TREE), ("A (short) title", "One,", "two", "äöü 中文"))
    assert parse_brackets(format_brackets(rst), where="a.dis") == rst


def test_one_edu_written_and_read_again():
    rst = RstFile(leaf(0), ("alone",))
    assert parse_brackets(format_brackets(rst), where="a.dis") == rst


def test_deep_trees_are_written_and_read_without_recursion():
    tree = leaf(2999)
    for edu in reversed(range(2999)):
        tree = join_pair(leaf(edu), tree, "NS", "r")
    rst = RstFile(tree, tuple(f"edu {i}" for i in range(3000)))
    assert parse_brackets(format_brackets(rst), where="a.dis") == rst


def test_text_that_would_end_the_bracket_is_not_written():
    with pytest.raises(UserError, match="EDU 1 cannot be written"):
        format_brackets(RstFile(leaf(0), ("wow_! )",)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(leaf 4)", "(leaf 5)", "a.dis: line 3: .*span 2 4|without gap"),
        ("(leaf 3)", "(leaf 2)", "a.dis: line 5: duplicate leaf 2"),
        ("(leaf 1)", "(leaf 2)", "duplicate leaf|without gap"),
        ("(span 2 4)", "", "a.dis: line 3: Nucleus has neither"),
        ("(text _!two_!)", "", "a.dis: line 5: leaf 3 must have a text"),
        ("( Nucleus (span", "( Satellite (span", "at least one N"),
        ("( Nucleus (leaf 3)", "( Nukleus (leaf 3)", "a.dis: line 5: cannot be parsed"),
        ("(rel2par heading)", "(rel2par )", "a.dis: line 2: cannot be parsed"),
        ("_!two_!", "two", "a.dis: line 5: cannot be parsed"),
    ],
)
def test_malformed_files_are_named_with_their_line(old, new, message):
    assert TEXT.count(old) == 1
    with pytest.raises(UserError, match=message):
        parse_brackets(TEXT.replace(old, new), where="a.dis")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one Root, found 0 trees"),
        (TEXT + TEXT, "duplicate leaf"),
        ("( Root (leaf 2) (text _!x_!) )", "must be EDUs 1 to n"),
        ("( Nucleus (leaf 1) (text _!x_!) )", "one Root"),
        (TEXT.rstrip()[:-1], "the bracket of line 1 is never closed"),
        (TEXT + ")", r"line 10: '\)' is outside"),
    ],
)
def test_files_that_hold_no_tree_are_refused(text, message):
    with pytest.raises(UserError, match=message):
        parse_brackets(text, where="a.dis")
