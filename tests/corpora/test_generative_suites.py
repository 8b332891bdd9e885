"""More formats of suites: ctxpro, the fields of ContraPro, the sets of Bawden et al., and docmt's own."""

import json

import pytest

from docmt.cli.main import main
from docmt.corpora.catalog import ReadableCorpus
from docmt.corpora.splits import convert_suite
from docmt.corpora.suite_items import read_generative_suite, read_suite
from docmt.errors import UserError
from docmt.files import read_jsonl, write_jsonl


def convert(folder, reader, files, languages=("en", "de"), **form):
    paths = {}
    for role, content in files.items():
        paths[role] = folder / role
        paths[role].write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    value = {
        "languages": list(languages),
        "format": {"reader": reader, **form},
        "splits": {"test": {"files": {role: role for role in files}}},
    }
    return convert_suite(ReadableCorpus.load(value, where="test"), "test", files=paths, where="corpus x")[0]


def ctxpro_item(payload, expected, *, rule="DO.ELL", reference="Ja, das tut er.", **keys):
    return {"src segment": payload, "expected": expected, "rule": rule, "ref segment": reference, **keys}


def test_ctxpro_items_end_in_their_payload(tmp_path):
    items = [ctxpro_item("Yes, he does.", "tut", **{"ante distance": 2}), ctxpro_item("You?", "sie", rule="NOM.FORM")]
    inputs = "Does he?<eos> Well.<eos> Yes, he does.\nYou?\n"
    found = convert(tmp_path, "ctxpro_generative", {"items": items, "inputs": inputs}, phenomenon="auxiliary")
    assert found[0] == {
        "id": "auxiliary/00001",
        "phenomenon": "auxiliary",
        "distance": 2,
        "kind": "DO.ELL",
        "src": ["Does he?", "Well.", "Yes, he does."],
        "sentence": 2,
        "expected": "tut",
        "reference": "Ja, das tut er.",
        "match": "words",
    }
    assert (found[1]["src"], found[1]["distance"], found[1]["sentence"]) == (["You?"], None, 0)


@pytest.mark.parametrize(
    ("items", "inputs", "part"),
    [
        ([ctxpro_item("a", "b")], "x<eos> a\ny\n", "1 items in .*, 2 lines"),
        ([ctxpro_item("a", "b")], "a<eos> x\n", "line 1 does not end in the payload of item 1"),
        ([{"src segment": "a"}], "a\n", "item 1 lacks"),
        (["a"], "a\n", "item 1 lacks"),
    ],
)
def test_ctxpro_files_that_do_not_belong_together_are_named(tmp_path, items, inputs, part):
    with pytest.raises(UserError, match=part):
        convert(tmp_path, "ctxpro_generative", {"items": items, "inputs": inputs}, phenomenon="auxiliary")


CONTRAPRO = [
    ("A cup. <SEP> it 's big.", "Eine Tasse. <SEP> Sie ist groß und hat ihre Farbe."),
    ("A cup. <SEP> it 's big.", "Eine Tasse. <SEP> Er ist groß und hat seine Farbe."),
    ("A cup. <SEP> it 's big.", "Eine Tasse. <SEP> Es ist groß und hat seine Farbe."),
    ("A dog. <SEP> it sees it.", "Ein Hund. <SEP> er sieht ihn."),
    ("A dog. <SEP> it sees it.", "Ein Hund. <SEP> sie sieht sie."),
    ("A dog. <SEP> it sees it.", "Ein Hund. <SEP> es sieht es."),
]


def contrapro_files():
    en, de = ("".join(f"{row[side]}\n" for row in CONTRAPRO) for side in (0, 1))
    fields = [
        {
            "src segment": "It's big.",
            "ref segment": "Sie ist groß, und hat ihre Farbe!",
            "ante distance": 1,
            "errors": [{"contrastive": "Er ist groß, und hat seine Farbe!"}],
        }
    ]
    return {"en": en, "de": de, "fields": fields}


def test_contrapro_gets_distance_where_fields_know_it_and_always_the_pronoun(tmp_path):
    items = convert(tmp_path, "contrapro_suite", contrapro_files())
    assert [(item["distance"], item["kind"]) for item in items] == [(1, "sie"), (None, "er")]


def test_fields_that_disagree_say_nothing(tmp_path):
    files = contrapro_files()
    files["fields"].append(files["fields"][0] | {"ante distance": 3})
    assert convert(tmp_path, "contrapro_suite", files)[0]["distance"] is None


def test_contrapro_as_generative_items(tmp_path):
    items = convert(tmp_path, "contrapro_generative", contrapro_files())
    assert [(item["expected"], item["match"], item["sentence"]) for item in items] == [
        ("sie", "tokens", 1),
        ("er", "tokens", 1),
    ]
    assert items[1]["reference"] == "er sieht ihn."
    assert items[0]["src"] == ["A cup.", "it 's big."]


def test_contrapro_without_a_pronoun_or_with_other_fields_is_named(tmp_path):
    lines = {"en": "A <SEP> b\n" * 2, "de": "A <SEP> b\nA <SEP> c\n"}
    with pytest.raises(UserError, match="do not replace er, sie or es"):
        convert(tmp_path, "contrapro_generative", lines)
    with pytest.raises(UserError, match="item 1 is not an item of ContraPro"):
        convert(tmp_path, "contrapro_suite", contrapro_files() | {"fields": [{"a": 1}]})


def test_bawden_blocks_of_both_kinds(tmp_path):
    anaphora = {
        "1": {
            "src": ["A fly!", "I see it."],
            "trg": [
                {"correct": ["Une mouche !", "Je la vois."], "incorrect": ["Une mouche !", "Je le vois."]},
                {"semi-correct": ["Un moucheron !", "Je le vois."], "incorrect": ["Un moucheron !", "Je la vois."]},
            ],
        }
    }
    pair = {"correct": ["Un rhume ?", "Atchoum."], "incorrect": ["Un rhume ?", "Froid."]}
    choice = {"7": {"type": "disambig", "examples": [{"src": ["A cold?", "Atishoo."], "trg": pair}]}}
    items = convert(tmp_path, "bawden_suite", {"anaphora": anaphora, "lexical_choice": choice}, ("en", "fr"))
    assert [(item["id"], item["kind"], item["correct"], item["sentence"], item["distance"]) for item in items] == [
        ("anaphora/00001", "correct", 0, 1, 1),
        ("anaphora/00002", "semi-correct", 0, 1, 1),
        ("lexical_choice/00001", "disambig", 0, 1, 1),
    ]
    assert items[1]["candidates"] == [["Un moucheron !", "Je le vois."], ["Un moucheron !", "Je la vois."]]
    for bad in ([], {"1": {}} | {"2": {"trg": [{}], "src": []}}, {"1": "text"}):
        with pytest.raises(UserError, match=r"block .* lacks") if bad else pytest.raises(UserError):
            convert(tmp_path, "bawden_suite", {"anaphora": bad}, ("en", "fr"))


OWN = {"id": "a", "phenomenon": "p", "src": ["x", "y"]}
CANDIDATES = {"candidates": [["b", "c"], ["b", "d"], ["b", "c"]], "correct": 0, "kind": "k"}


def test_own_formats_are_checked_and_lose_ties(tmp_path):
    files = {"items": json.dumps(OWN | CANDIDATES) + "\n"}
    write_jsonl(tmp_path / "suite.jsonl", convert(tmp_path, "jsonl_suite", files))
    (item,) = read_suite(tmp_path / "suite.jsonl")
    assert (item.candidates, item.kind, item.sentence) == ((("b", "c"), ("b", "d")), "k", 1)
    files = {"items": json.dumps(OWN | {"expected": "c d", "sentence": 0}) + "\n"}
    write_jsonl(tmp_path / "suite.jsonl", convert(tmp_path, "jsonl_generative", files))
    (item,) = read_generative_suite(tmp_path / "suite.jsonl")
    assert (item.expected, item.match, item.sentence, item.src) == ("c d", "words", 0, ("x", "y"))


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({}, "key 'expected' is missing"),
        ({"expected": " "}, "at least one word"),
        ({"expected": ["a"]}, "at least one word"),
        ({"expected": "a", "match": "regex"}, "known: words, tokens"),
        ({"expected": "a", "sentence": 2}, "`sentence` is 2, but src has 2 sentences"),
        ({"expected": "a", "src": []}, "`src` must be"),
    ],
)
def test_malformed_generative_items_are_named(tmp_path, changes, part):
    write_jsonl(tmp_path / "suite.jsonl", [OWN | changes])
    with pytest.raises(UserError, match=f"line 1: .*{part}"):
        read_generative_suite(tmp_path / "suite.jsonl")


def test_the_command_takes_own_files(tmp_path):
    source = tmp_path / "own items.jsonl"
    source.write_text(json.dumps(OWN | CANDIDATES) + "\n", encoding="utf-8")
    spec = {
        "languages": ["en", "de"],
        "format": {"reader": "jsonl_suite"},
        "splits": {"all": {"files": {"items": str(source)}, "documents": 1, "sentences": 3}},
    }
    out = tmp_path / "out.jsonl"
    assert main(["corpora", "suite", "--spec", json.dumps(spec), "--split", "all", "--out", str(out)]) == 0
    assert read_jsonl(out)[0]["candidates"] == [["b", "c"], ["b", "d"]]
