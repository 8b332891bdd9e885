"""Word syntax: reading, writing, checks."""

import pytest

from docmt.discourse.documents import DiscourseDocument, edus_from_starts
from docmt.discourse.syntax import SentenceSyntax, check_syntax, iterate_syntax, read_syntax, write_syntax
from docmt.errors import UserError

DOCUMENT = DiscourseDocument("d", (("He", "left"), ()), edus_from_starts([[1], []], [2, 0]))
SYNTAX = (SentenceSyntax(("PRP", "VBD"), (1, -1), ("nsubj", "root")), SentenceSyntax((), (), ()))


def test_written_and_read_is_the_same(tmp_path):
    path = tmp_path / "train.syntax.jsonl"
    write_syntax(path, [("d", SYNTAX)])
    assert list(iterate_syntax(path)) == [("d", SYNTAX)]
    assert read_syntax(path, [DOCUMENT]) == [SYNTAX]
    with pytest.raises(UserError, match=r"train\.syntax\.jsonl: 1 documents, but the discourse file has 2"):
        read_syntax(path, [DOCUMENT, DOCUMENT])


def test_predicted_heads_need_not_form_a_tree():
    check_syntax(DOCUMENT, (SentenceSyntax(("PRP", "VBD"), (1, 0), ("nsubj", "root")), SYNTAX[1]))


@pytest.mark.parametrize("heads", [(2, -1), (-2, -1), ("1", -1)])
def test_head_outside_its_sentence_is_one_line(heads):
    with pytest.raises(UserError, match="syntax of 'd': sentence 1: a head is not one of its 2 words"):
        check_syntax(DOCUMENT, (SentenceSyntax(("PRP", "VBD"), heads, ("nsubj", "root")), SYNTAX[1]))
