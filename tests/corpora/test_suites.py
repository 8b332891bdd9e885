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


CLOZE = {
    "reader": "cloze_suite",
    "documents": {"reader": "blank_lines"},
    "languages": ["en", "de"],
    "phenomenon": "number",
    "forms": {"singular": ["du", "dich", "dir"], "plural": ["ihr", "euch", "euch"]},
    "source_words": ["you"],
    "other_source_words": ["her"],
    "context_sentences": 2,
}
CLOZE_EN = [
    "You sleep.",
    "We see you.",
    "Rain.",
    "You ask her.",
    "Did you call?",
    "You and you?",
    "",
    "You.",
    "You.",
]
CLOZE_DE = [
    "Du schläfst.",
    "Wir sehen euch.",
    "Regen.",
    "Ihr fragt.",
    "Du, riefst du?",
    "Du und ihr?",
    "",
    "Du.",
    "Ihr.",
]


def cloze(folder, **changes):
    files = {"en": folder / "en", "de": folder / "de"}
    for path, lines in zip(files.values(), (CLOZE_EN, CLOZE_DE), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    value = {
        "languages": ["en", "de"],
        "format": CLOZE | changes,
        "splits": {"test": {"files": {"en": "en", "de": "de"}}},
    }
    return convert_suite(ReadableCorpus.load(value, where="test"), "test", files=files, where="corpus x")[0]


def test_a_cloze_item_ends_in_the_first_form_or_in_one_of_the_other_kind(tmp_path):
    """Not tested: sentences without context, with another possible source, with forms of both kinds, or with none."""
    see, call, last = cloze(tmp_path)
    assert see["candidates"] == [["Du schläfst.", f"Wir sehen {form}"] for form in ("euch", "dich", "dir")]
    assert (see["kind"], see["distance"], see["correct"], see["is_prefix"]) == ("plural", 1, 0, True)
    assert call["src"] == ["Rain.", "You ask her.", "Did you call?"], "two sentences of context"
    assert [candidate[-1] for candidate in call["candidates"]] == ["Du", "Ihr"], "a capital stays"
    assert (call["kind"], call["distance"]) == ("singular", 1)
    assert [candidate[-1] for candidate in last["candidates"]] == ["Ihr", "Du"]


def test_foreign_context_comes_from_other_documents(tmp_path):
    own, foreign = cloze(tmp_path), cloze(tmp_path, context="foreign")
    assert [item["id"] for item in foreign] == [item["id"] for item in own]
    pairs = list(zip(CLOZE_EN, CLOZE_DE, strict=True))
    for item, there in zip(foreign, (pairs[7:], pairs[7:], pairs[:6]), strict=True):
        context = list(zip(item["src"][:-1], item["candidates"][0][:-1], strict=True))
        assert context
        assert set(context) <= set(there)
        assert all(candidate[:-1] == item["candidates"][0][:-1] for candidate in item["candidates"])


def test_a_cloze_suite_reads_documents(tmp_path):
    with pytest.raises(UserError, match="verses"):
        cloze(tmp_path, documents={"reader": "voita_suite"})
    with pytest.raises(UserError, match="two kinds"):
        cloze(tmp_path, forms={"singular": ["du"], "plural": ["ihr", "euch"]})
    with pytest.raises(UserError, match="'ihr' is of both kinds"):
        cloze(tmp_path, forms={"singular": ["du", "ihr"], "plural": ["ihr", "euch"]})
    with pytest.raises(UserError, match="'You' must be in lower case"):
        cloze(tmp_path, source_words=["You"])


def test_foreign_context_needs_another_document(tmp_path, monkeypatch):
    for name, lines in {"CLOZE_EN": CLOZE_EN[:6], "CLOZE_DE": CLOZE_DE[:6]}.items():
        monkeypatch.setitem(globals(), name, lines)
    with pytest.raises(UserError, match="there is only one"):
        cloze(tmp_path, context="foreign")
