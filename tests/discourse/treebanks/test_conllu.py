"""CoNLL-U with discourse marks."""

import pytest

from docmt.discourse.treebanks.readers import read_conllu
from docmt.discourse.treebanks.treebank import TreebankFile
from docmt.errors import UserError


def word(number, form, head, misc="_"):
    return f"{number}\t{form}\tlemma\tUPOS\tX-{form}\t_\t{head}\trel-{form}\t_\t{misc}"


TEXT = "\n".join(
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


def read(text):
    return read_conllu(TreebankFile("a.conllu", "a", "dep", text))


@pytest.mark.parametrize("text", [TEXT, TEXT + "\n\n", TEXT.replace("\n", "\r\n"), TEXT.rstrip("\n")])
def test_words_without_multiword_tokens_and_ellipsis(text):
    first, second = read(text)
    assert first.words == ("I", "'m", "there")
    assert first.syntax.pos == ("X-I", "X-'m", "X-there")
    assert first.syntax.heads == (1, -1, 1)
    assert first.syntax.relations == ("rel-I", "rel-'m", "rel-there")
    assert first.edu_starts == (0, 2)
    assert (first.opens_paragraph, second.opens_paragraph) == (True, False)
    assert second.edu_starts == (0,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no sentence"),
        ("# newdoc id = a\n", "no sentence"),
        (word(1, "a", 0) + "\n" + word(3, "b", 1), "line 2: expected word 2, found word 3"),
        (word(1, "a", 2), "head '2' of 'a' is not a word"),
        (word(1, "a", "_"), "head '_' of 'a'"),
        ("1\ta\tb", "line 1 has 3 columns, CoNLL-U has 10"),
    ],
)
def test_malformed_lines_are_named(text, message):
    with pytest.raises(UserError, match=f"a.conllu: .*{message}"):
        read(text)
