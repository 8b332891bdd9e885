"""Trees from other programs: files, and isanlp_rst with a stand-in module."""

import sys
from dataclasses import dataclass, replace
from types import ModuleType

import pytest
from parsing_fixtures import random_document
from tree_fixtures import deep_tree

from docmt.discourse.discourse_documents import DiscourseDocument, edus_from_starts, write_discourse
from docmt.discourse.parsing.parser import load_parser
from docmt.errors import UserError

DOCUMENT = DiscourseDocument("a/b", (("Rain", "fell", "."), ("Go", "!")), edus_from_starts([[1], []], [3, 2]))
TREE = deep_tree(3, "NS", relation="elaboration")


@dataclass
class Unit:
    """A tree node in the format of isanlp_rst."""

    relation: str
    text: str
    nuclearity: str = ""
    left: "Unit | None" = None
    right: "Unit | None" = None


def right_branching_units(texts):
    units = [Unit("elementary", text) for text in texts]
    tree = units.pop()
    for unit in reversed(units):
        tree = Unit("Elaboration", f"{unit.text} {tree.text}", "NS", unit, tree)
    return tree


class StandIn:
    def __init__(self, hf_model_version, cuda_device):
        if hf_model_version == "missing":
            raise OSError("best_weights.pt cannot be found\nsecond line")
        self.change = (lambda texts: texts) if hf_model_version != "other" else (lambda texts: [*texts[:-1], "other"])

    def from_edus(self, texts):
        if texts[0] == "refuse":
            raise ValueError("an EDU ends inside a token")
        return {"rst": [right_branching_units(self.change(texts))]}


@pytest.fixture
def isanlp(monkeypatch):
    module = ModuleType("isanlp_rst.parser")
    module.Parser = StandIn
    monkeypatch.setitem(sys.modules, "isanlp_rst", ModuleType("isanlp_rst"))
    monkeypatch.setitem(sys.modules, "isanlp_rst.parser", module)


def test_isanlp_trees_become_ours(isanlp):
    parser = load_parser("isanlp")
    documents = [random_document(seed, with_tree=False) for seed in range(20)]
    documents = [d for d in documents if all(d.sentences)]
    for document, parsed in zip(documents, parser.parse_batch(documents), strict=True):
        assert parsed.tree == deep_tree(len(document.edus), "NS", relation="elaboration")
    assert parser.counts["documents"] == len(documents) > 2


@pytest.mark.parametrize(
    ("version", "words", "message"),
    [
        ("other", ("Rain", "."), r"document 'd': leaf 2 of the tree is not EDU 2"),
        ("gumrrg", ("refuse", "."), r"cannot parse the EDUs of document 'd' \(an EDU ends inside a token\)"),
        ("gumrrg", (), "has a sentence without words"),
    ],
)
def test_isanlp_trees_over_other_edus_are_refused(isanlp, version, words, message):
    document = DiscourseDocument("d", (words,), edus_from_starts([range(1, len(words))], [len(words)]))
    with pytest.raises(UserError, match=message):
        load_parser(f"isanlp:{version}").parse(document)


def test_missing_isanlp_or_weights_are_one_line(isanlp, monkeypatch):
    with pytest.raises(UserError, match=r"cannot load its weights \(best_weights.pt cannot be found\)"):
        load_parser("isanlp:missing")
    monkeypatch.setitem(sys.modules, "isanlp_rst.parser", None)
    with pytest.raises(UserError, match="cannot import the package isanlp_rst"):
        load_parser("isanlp")


def test_a_file_gives_the_trees_of_its_documents(tmp_path):
    gold = [random_document(seed) for seed in range(6)]
    write_discourse(tmp_path / "trees.discourse.jsonl", gold)
    parser = load_parser(f"file:{tmp_path / 'trees.discourse.jsonl'}")
    parsed = parser.parse_batch([replace(document, tree=None) for document in gold])
    assert [document.tree for document in parsed] == [document.tree for document in gold]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentences": (("Rain", "fell", "!"), ("Go", "!"))}, "its words differ from the words in the document"),
        ({"edus": edus_from_starts([[2], []], [3, 2])}, "its 3 EDUs differ from the 3 in the document"),
        ({"id": "c"}, "expected the tree of document 'a/b' next, found 'c'"),
        ({"tree": None}, "the file has EDUs but no tree"),
    ],
)
def test_a_tree_for_another_document_is_one_line(tmp_path, change, message):
    document = replace(DOCUMENT, **{"tree": TREE} | change)
    write_discourse(tmp_path / "trees.discourse.jsonl", [document])
    with pytest.raises(UserError, match=message):
        load_parser(f"file:{tmp_path / 'trees.discourse.jsonl'}").parse(DOCUMENT)


def test_a_folder_of_bracket_files(tmp_path):
    first = "( Root (span 1 3) ( Nucleus (leaf 1) (text _!Rain_!) ) ( Satellite (span 2 3) (rel2par elaboration) "
    rest = "( Nucleus (leaf 2) (text _!fell ._!) ) ( Satellite (leaf 3) (rel2par elaboration) (text _!Go!_!) ) ) )"
    (tmp_path / "a_b.dis").write_text(first + rest, encoding="utf-8")
    parser = load_parser(f"file:{tmp_path}")
    assert parser.parse(DOCUMENT).tree == TREE
    with pytest.raises(UserError, match="for document 'c'"):
        parser.parse(replace(DOCUMENT, id="c"))
    with pytest.raises(UserError, match="EDUs differ from"):
        parser.parse(replace(DOCUMENT, edus=edus_from_starts([[2], []], [3, 2])))


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no such file or folder"):
        load_parser(f"file:{tmp_path / 'none'}")
