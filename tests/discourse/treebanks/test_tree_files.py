"""Treebank files: brackets of the RST-DT (`.dis`), and CoNLL-U with discourse marks."""

import pytest

from docmt.discourse.constituents import SPAN, join, join_pair, leaf
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.readers import read_conllu
from docmt.discourse.treebanks.treebank import TreebankFile
from docmt.errors import UserError

DIS = """( Root (span 1 4)
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
    file = parse_brackets(DIS, where="a.dis")
    assert file.tree == TREE
    assert file.texts == ("A (short) title", "One,<P>", "two", 'and "three_!" .\n')


def test_texts_with_parentheses_that_do_not_close():
    file = parse_brackets("( Root (leaf 1) (text _!:-) ( Nucleus (leaf 9)_!) )", where="a.dis")
    assert (file.tree, file.texts) == (leaf(0), (":-) ( Nucleus (leaf 9)",))


def test_leaves_decide_over_spans():
    file = parse_brackets(DIS.replace("(span 2 4)", "(span 2 5)"), where="a.dis")
    assert (file.tree, file.n_wrong_spans) == (TREE, 1)
    assert parse_brackets(DIS, where="a.dis").n_wrong_spans == 0


def test_deep_trees_are_read_without_recursion():
    n, tree = 3000, leaf(2999)
    for edu in reversed(range(n - 1)):
        tree = join_pair(leaf(edu), tree, "NS", "r")
    inner = "".join(
        f"(span {edu} {n}) ( Nucleus (leaf {edu}) (text _!a_!) ) ( Satellite (rel2par r) " for edu in range(1, n)
    )
    assert parse_brackets(f"( Root {inner}(leaf {n}) (text _!a_!){')' * n}", where="a.dis").tree == tree


def word(number, form, head, misc="_"):
    return f"{number}\t{form}\tlemma\tUPOS\tX-{form}\t_\t{head}\trel-{form}\t_\t{misc}"


CONLLU = "\n".join(
    [
        "# newdoc id = a",
        "# newpar",
        "# newpar_block = head (1 s)",
        "# sent_id = a-1",
        "1-2\tI'm\t_\t_\t_\t_\t_\t_\t_\tDiscourse=never:1->2",
        word(1, "I", 2, "Discourse=causal-cause:1->2:8:x|Entity=(1)"),
        word(2, "'m", 0),
        word(3, "there", 2, "SpaceAfter=No|Discourse=joint-list_m:2->1:0;context-background:2->5:_"),
        "3.1\tbeing\t_\t_\t_\t_\t_\t_\t_\tDiscourse=never:1->2",
        "",
        "# sent_id = a-2",
        "# newpart = no paragraph",
        word(1, ".", 0, "Discourse=ROOT:3"),
        "",
    ]
)


def parse_conllu(text, *, where):
    return read_conllu(TreebankFile(where, "a", "dep", text))


@pytest.mark.parametrize("text", [CONLLU, CONLLU + "\n\n", CONLLU.replace("\n", "\r\n"), CONLLU.rstrip("\n")])
def test_words_without_multiword_tokens_and_ellipsis(text):
    first, second = parse_conllu(text, where="a.conllu")
    assert first.words == ("I", "'m", "there")
    assert first.syntax.pos == ("X-I", "X-'m", "X-there")
    assert first.syntax.heads == (1, -1, 1)
    assert first.syntax.relations == ("rel-I", "rel-'m", "rel-there")
    assert first.edu_starts == (0, 2)
    assert (first.opens_paragraph, second.opens_paragraph) == (True, False)
    assert second.edu_starts == (0,)


def changed_dis(old, new):
    assert DIS.count(old) == 1
    return DIS.replace(old, new)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_brackets, changed_dis("(leaf 4)", "(leaf 5)"), "line 3: .*(span 2 4|a gap or overlap)"),
        (parse_brackets, changed_dis("(leaf 3)", "(leaf 2)"), "line 5: duplicate leaf 2"),
        (parse_brackets, changed_dis("(leaf 1)", "(leaf 2)"), "duplicate leaf|a gap or overlap"),
        (parse_brackets, changed_dis("(span 2 4)", ""), "line 3: Nucleus has neither"),
        (parse_brackets, changed_dis("(text _!two_!)", ""), "line 5: leaf 3 must have a text"),
        (parse_brackets, changed_dis("( Nucleus (span", "( Satellite (span"), "at least one N"),
        (parse_brackets, changed_dis("( Nucleus (leaf 3)", "( Nukleus (leaf 3)"), "line 5: cannot be parsed"),
        (parse_brackets, changed_dis("(rel2par heading)", "(rel2par )"), "line 2: cannot be parsed"),
        (parse_brackets, changed_dis("_!two_!", "two"), "line 5: cannot be parsed"),
        (parse_brackets, "", "expected one Root, found 0 trees"),
        (parse_brackets, DIS + DIS, "duplicate leaf"),
        (parse_brackets, "( Root (leaf 2) (text _!x_!) )", "must be EDUs 1 to n"),
        (parse_brackets, "( Nucleus (leaf 1) (text _!x_!) )", "one Root"),
        (parse_brackets, DIS.rstrip()[:-1], "the bracket in line 1 is never closed"),
        (parse_brackets, DIS + ")", r"line 10: '\)' is outside"),
        (parse_conllu, "", "no sentence"),
        (parse_conllu, "# newdoc id = a\n", "no sentence"),
        (parse_conllu, word(1, "a", 0) + "\n" + word(3, "b", 1), "line 2: expected word 2, found word 3"),
        (parse_conllu, word(1, "a", 2), "head '2' of 'a' is not a word"),
        (parse_conllu, word(1, "a", "_"), "head '_' of 'a'"),
        (parse_conllu, "1\ta\tb", "line 1 has 3 columns, CoNLL-U has 10"),
    ],
)
def test_malformed_files_are_named_with_their_line(parse, text, message):
    between = "" if message.startswith("line") else ".*"
    with pytest.raises(UserError, match=rf"a\.tree: {between}({message})"):
        parse(text, where="a.tree")
