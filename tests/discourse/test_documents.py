"""Discourse documents and their word syntax: consistency, and files."""

import json

import pytest

from docmt.discourse.constituents import SPAN, join, join_pair, leaf
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree
from docmt.discourse.discourse_documents import (
    DiscourseDocument,
    Edu,
    edus_from_starts,
    iterate_discourse,
    read_discourse,
    write_discourse,
)
from docmt.discourse.syntax import SentenceSyntax, check_syntax, read_syntax, write_syntax
from docmt.errors import UserError

SENTENCES = (("although", "it", "rained", ",", "we", "left", "."), (), ("Good", "."))
EDUS = (Edu(0, 0, 4), Edu(0, 4, 7), Edu(1, 0, 0), Edu(2, 0, 2))
TREE = join(
    [join_pair(leaf(0), leaf(1), "SN", "concession"), leaf(2), leaf(3)], "NSS", (SPAN, "elaboration", "evaluation")
)


def document(**changes):
    values = {"id": "d1", "sentences": SENTENCES, "edus": EDUS, "tree": TREE, "paragraphs": (0, 2)} | changes
    return DiscourseDocument(**values)


def test_edus_of_starts_cover_empty_sentences_too():
    assert edus_from_starts([[4], [], []], [7, 0, 2]) == EDUS


def test_words_of_an_edu():
    assert document().edu_words(1) == ("we", "left", ".")
    assert document().edu_words(2) == ()


def test_dependencies_follow_from_the_tree_or_are_given():
    assert document().dependencies.heads == (1, NO_HEAD, 1, 1)
    arcs = DependencyTree((NO_HEAD, 0, 0, 0), (ROOT, "a", "a", "a"))
    assert document(tree=None, arcs=arcs).dependencies == arcs
    with pytest.raises(UserError, match="parse it first"):
        _ = document(tree=None).dependencies


def arcs(*heads):
    return DependencyTree(heads, tuple("r" for _ in heads))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edus": EDUS[:3]}, "the EDUs cover 0 of 2 words in sentence 3"),
        ({"edus": (EDUS[0], *EDUS[2:])}, "the EDUs cover 4 of 7 words in sentence 1"),
        ({"edus": (EDUS[1], EDUS[0], *EDUS[2:])}, "EDU 1 is words 4 to 7 of sentence 1"),
        ({"edus": (EDUS[0], Edu(0, 3, 7), *EDUS[2:])}, "EDU 2 is words 3 to 7"),
        ({"edus": (EDUS[0], Edu(0, 4, 9), *EDUS[2:])}, "the EDUs cover 9 of 7"),
        ({"edus": (Edu(0, 0, 0), Edu(0, 0, 7), *EDUS[2:])}, "EDU 1 is words 0 to 0"),
        ({"edus": (*EDUS, Edu(3, 0, 1))}, "EDU 5 is in sentence 4"),
        (
            {"edus": (*EDUS[:2], EDUS[3])},
            "sentence 2 is empty and needs one EDU, but has 0: if the trees come from a file without empty lines",
        ),
        ({"tree": leaf(0)}, "covers 1 EDUs"),
        ({"arcs": arcs(NO_HEAD)}, "1 heads for 4 EDUs"),
        ({"arcs": arcs(NO_HEAD, NO_HEAD, 0, 0)}, "units 1 and 2 are both roots"),
        ({"arcs": arcs(1, 0, NO_HEAD, 0)}, "a cycle"),
        ({"paragraphs": (1, 2)}, "paragraphs"),
        ({"paragraphs": (0, 3)}, "paragraphs"),
        ({"paragraphs": (0, 2, 2)}, "paragraphs"),
        ({"paragraphs": ()}, "paragraphs"),
    ],
)
def test_bad_document_is_named(changes, message):
    with pytest.raises(UserError, match=message) as caught:
        document(**changes)
    assert "'d1'" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"paragraphs": None},
        {"tree": None},
        {"tree": None, "arcs": DependencyTree((NO_HEAD, 3, 0, 0), (ROOT, "a", "b", "c"))},
        {"sentences": (), "edus": (), "tree": None, "paragraphs": None},
    ],
)
def test_files_bring_documents_back(tmp_path, changes):
    path = tmp_path / "a.discourse.jsonl"
    write_discourse(path, [document(**changes), document(id="d2")])
    first, second = read_discourse(path)
    assert first.to_json() == document(**changes).to_json()
    assert (first.id, second.id) == ("d1", "d2")
    assert first.tree == document(**changes).tree
    assert first.edus == document(**changes).edus


def test_bad_lines_are_named(tmp_path):
    path = tmp_path / "a.discourse.jsonl"
    good, bad = document().to_json(), document().to_json()
    del bad["edus"]
    path.write_text("".join(json.dumps(value) + "\n" for value in (good, bad)), encoding="utf-8")
    documents = iterate_discourse(path)
    assert next(documents).id == "d1"
    with pytest.raises(UserError, match=r"a\.discourse\.jsonl: line 2: .*'edus'"):
        next(documents)


@pytest.mark.parametrize("value", [[], 3, {"document": "d"}, {"document": "d", "sentences": 1, "edus": []}])
def test_json_of_another_form_is_refused(value):
    with pytest.raises(UserError, match=r"docs/files\.md"):
        DiscourseDocument.from_json(value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sentences": [["In", 1990, "."]]}, "words of a sentence must be text, not 1990"),
        ({"dependency": [{"head": -1, "relation": None}]}, "relations must be text, not None"),
    ],
)
def test_words_and_relations_are_text(changes, message):
    with pytest.raises(UserError, match=message):
        DiscourseDocument.from_json(document().to_json() | changes)


DOCUMENT = DiscourseDocument("d", (("He", "left"), ()), edus_from_starts([[1], []], [2, 0]))
SYNTAX = (SentenceSyntax(("PRP", "VBD"), (1, -1), ("nsubj", "root")), SentenceSyntax((), (), ()))


def test_written_and_read_is_the_same(tmp_path):
    path = tmp_path / "train.syntax.jsonl"
    write_syntax(path, [("d", SYNTAX)])
    assert read_syntax(path, [DOCUMENT]) == [SYNTAX]
    with pytest.raises(UserError, match=r"train\.syntax\.jsonl: 1 documents, but the discourse file has 2"):
        read_syntax(path, [DOCUMENT, DOCUMENT])


@pytest.mark.parametrize("heads", [(2, -1), (-2, -1), ("1", -1)])
def test_head_outside_its_sentence_is_one_line(heads):
    with pytest.raises(UserError, match="syntax of 'd': sentence 1: a head is not one of its 2 words"):
        check_syntax(DOCUMENT, (SentenceSyntax(("PRP", "VBD"), heads, ("nsubj", "root")), SYNTAX[1]))
