"""Dependency files (`.rsd`)."""

import pytest

from docmt.discourse.constituents import SPAN, binarize, join, leaf
from docmt.discourse.dependencies import NO_HEAD, ROOT
from docmt.discourse.treebanks.rsd import format_rsd, parse_rsd, rsd_of_tree
from docmt.discourse.treebanks.treebank import RstFile
from docmt.errors import UserError

LINES = (
    "1\tA title\t3\t_\t_\tfeats\t2\theading_r\t_\tsignals",
    "2\tone ,\t0\t_\t_\t_\t0\tROOT\t_\t_",
    "3\ttwo .\t0\t_\t_\t_\t2\tlist_m\t_\t_",
)
TEXT = "\n".join(LINES) + "\n"


def test_lines_are_read():
    found = parse_rsd(TEXT, where="a.rsd")
    assert found.arcs.heads == (1, NO_HEAD, 1)
    assert found.arcs.relations == ("heading", ROOT, "list")
    assert found.is_nucleus == (False, False, True)
    assert found.texts == ("A title", "one ,", "two .")


def test_written_and_read_again():
    found = parse_rsd(TEXT.replace("\n", "\r\n"), where="a.rsd")
    assert parse_rsd(format_rsd(found), where="b.rsd") == found


@pytest.mark.parametrize("change", [lambda tree: tree, binarize])
def test_made_from_a_tree(change):
    items = join([leaf(1), leaf(2), leaf(3)], "NNN", ("list",) * 3)
    tree = join([leaf(0), items, leaf(4)], "SNS", ("heading", SPAN, "comment"))
    found = rsd_of_tree(RstFile(change(tree), tuple("abcde")))
    assert found.arcs.heads == (1, NO_HEAD, 1, 1, 1)
    assert found.is_nucleus == (False, False, True, True, False)
    assert parse_rsd(format_rsd(found), where="a.rsd") == found


def test_list_in_a_list_is_kept_when_the_source_is_nary():
    tree = join([leaf(0), join([leaf(1), leaf(2)], "NN", ("list",) * 2)], "NN", ("list",) * 2)
    assert rsd_of_tree(RstFile(tree, tuple("abc"))).arcs.heads == (NO_HEAD, 0, 0)
    assert rsd_of_tree(RstFile(tree, tuple("abc"), is_nary=True)).arcs.heads == (NO_HEAD, 0, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no EDUs"),
        (TEXT.replace("2\theading_r", "0\tROOT"), "units 1 and 2 are both roots"),
        (TEXT.replace("0\tROOT", "3\tlist_m"), "a cycle"),
        (TEXT.replace("2\theading_r", "9\theading_r"), "outside the 3 units"),
        (TEXT.replace("heading_r", "heading"), "line 1: relation 'heading' must end in _r or _m"),
        (TEXT.replace("heading_r", "_r"), "line 1: relation '_r'"),
        (LINES[0] + "\n" + LINES[2], "line 2: expected EDU 2"),
        (TEXT.replace("0\tROOT", "x\tROOT"), "line 2: expected EDU 2"),
        ("1\ta\t0", "line 1: expected EDU 1"),
    ],
)
def test_malformed_files_are_named_with_their_line(text, message):
    with pytest.raises(UserError, match=f"a.rsd: .*{message}"):
        parse_rsd(text, where="a.rsd")


@pytest.mark.parametrize("text", ["a\tb", "a\nb"])
def test_text_that_breaks_the_columns_is_not_written(text):
    with pytest.raises(UserError, match="EDU 1 cannot be written"):
        format_rsd(rsd_of_tree(RstFile(leaf(0), (text,))))
