"""Published contrastive sets, converted to our format."""

import json
from collections import Counter
from pathlib import Path

import pytest

from docmt.corpora.catalog import ReadableCorpus
from docmt.corpora.splits import convert_suite
from docmt.errors import UserError


def convert(folder: Path, reader: str, files: dict[str, str], languages=("en", "ru"), **expected):
    paths = {}
    for role, content in files.items():
        paths[role] = folder / role
        paths[role].write_text(content, encoding="utf-8")
    split = {"files": {role: role for role in files}} | expected
    value = {"languages": list(languages), "format": {"reader": reader}, "splits": {"test": split}}
    return convert_suite(ReadableCorpus.load(value, where="test"), "test", files=paths, where="corpus x")


def voita(candidates: list[str], correct: int = 0, src: str = "a _eos b") -> dict:
    return {"src": src, "dst": candidates, "true_ind": correct, "ctx_dist": 1}


def test_voita_items_keep_the_correct_index_and_lose_ties(tmp_path):
    values = [
        voita(["x _eos 1", "x _eos 2", "x _eos 2"], correct=1),
        voita(["x _eos 1", "x _eos 1"]),
        voita(["x _eos 2", "y _eos 2", "x _eos 2", "z _eos 1"], correct=2),
    ]
    items, dropped = convert(tmp_path, "voita_suite", {"deixis": json.dumps(values)}, documents=3, sentences=9)
    assert items == [
        {
            "id": "deixis/00001",
            "phenomenon": "deixis",
            "distance": 1,
            "src": ["a", "b"],
            "candidates": [["x", "1"], ["x", "2"]],
            "correct": 1,
            "sentence": 1,
        },
        {
            "id": "deixis/00003",
            "phenomenon": "deixis",
            "distance": 1,
            "src": ["a", "b"],
            "candidates": [["y", "2"], ["x", "2"], ["z", "1"]],
            "correct": 1,
            "sentence": 0,
        },
    ]
    assert dropped == Counter({"duplicate candidate": 3, "item without a wrong candidate": 1})


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (voita(["x", "y _eos z"]), "item 1: each candidate needs 2 sentences"),
        (voita(["x _eos y"], correct=3), "must be among them"),
        ({"src": "a"}, "item 1 lacks"),
        ("text", "item 1 lacks"),
    ],
)
def test_malformed_voita_files_are_named(tmp_path, value, part):
    with pytest.raises(UserError, match=part):
        convert(tmp_path, "voita_suite", {"deixis": json.dumps([value])})


def test_contrapro_lines_are_cut_into_items(tmp_path):
    rows = [
        ("A <SEP> it", "K <SEP> es"),
        ("A <SEP> it", "K <SEP> er"),
        ("A <SEP> it", "K <SEP> sie"),
        # the same sentence pair again, for its second pronoun
        ("A <SEP> it", "K <SEP> es"),
        ("A <SEP> it", "K <SEP> er"),
        ("A <SEP> it", "K <SEP> sie"),
        # no previous sentence, three wrong candidates
        ("<SEP> it", "<SEP> er"),
        ("<SEP> it", "<SEP> es"),
        ("<SEP> it", "<SEP> sie"),
        ("<SEP> it", "<SEP> ihn"),
        # the same English and context with two references
        *(("B <SEP> it", f"L <SEP> {x}") for x in ("es 1", "er 1", "sie 1", "es 2", "er 2", "sie 2")),
    ]
    en, de = ("".join(f"{row[side]}\n" for row in rows) for side in (0, 1))
    items, _ = convert(tmp_path, "contrapro_suite", {"en": en, "de": de}, ("en", "de"), documents=5, sentences=16)
    assert [[candidate[1] for candidate in item["candidates"]] for item in items] == [
        ["es", "er", "sie"],
        ["es", "er", "sie"],
        ["er", "es", "sie", "ihn"],
        ["es 1", "er 1", "sie 1"],
        ["es 2", "er 2", "sie 2"],
    ]
    assert items[2]["src"] == ["", "it"]
    assert {(item["phenomenon"], item["correct"], item["sentence"], item["distance"]) for item in items} == {
        ("pronoun", 0, 1, None)
    }


@pytest.mark.parametrize(
    ("en", "de", "expected", "part"),
    [
        ("A <SEP> b\n", "A <SEP> b\nC <SEP> d\n", {}, "1 lines"),
        ("A b\n", "A <SEP> b\n", {}, "line 1"),
        ("A <SEP> b\n", "A <SEP> b\n", {"documents": 2}, "1 documents read, 2 expected"),
    ],
)
def test_malformed_contrapro_files_are_named(tmp_path, en, de, expected, part):
    with pytest.raises(UserError, match=part):
        convert(tmp_path, "contrapro_suite", {"en": en, "de": de}, ("en", "de"), **expected)
