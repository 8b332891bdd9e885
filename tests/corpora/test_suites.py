"""Published contrastive and generative test sets, converted to docmt's formats, and readers for these formats."""

import json
from collections import Counter

import pytest
from reading import convert

from docmt.cli.main import main
from docmt.corpora.suite_items import ContrastiveItem, read_generative_suite, read_suite
from docmt.errors import UserError
from docmt.files import read_jsonl, write_jsonl


def voita(candidates: list[str], correct: int = 0, src: str = "a _eos b") -> dict:
    return {"src": src, "dst": candidates, "true_ind": correct, "ctx_dist": 1}


def test_voita_items_lose_ties(tmp_path):
    values = [
        voita(["x _eos 1", "x _eos 2", "x _eos 2"], correct=1),
        voita(["x _eos 1", "x _eos 1"]),
        voita(["x _eos 2", "y _eos 2", "x _eos 2", "z _eos 1"], correct=2),
    ]
    items, dropped = convert(
        tmp_path, {"deixis": values}, reader="voita_suite", counts={"documents": 3, "sentences": 9}
    )
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
    counts = {"documents": 5, "sentences": 16}
    items, _ = convert(tmp_path, {"en": en, "de": de}, reader="contrapro_suite", counts=counts)
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
YOU_EN = ["You sleep.", "We see you.", "Rain.", "You ask her.", "Did you call?", "You and you?", "", "You.", "You."]
YOU_DE = ["Du schläfst.", "Wir sehen euch.", "Regen.", "Ihr fragt.", "Du, riefst du?", "Du und ihr?", "", "Du.", "Ihr."]


def cloze(folder, **changes):
    files = {lang: "\n".join(lines) + "\n" for lang, lines in (("en", YOU_EN), ("de", YOU_DE))}
    return convert(folder, files, **CLOZE | changes)[0]


def test_cloze_items_end_in_either_form(tmp_path):
    """Sentences are omitted without context, with another possible source, and with both or no kinds of forms."""
    see, call, last = cloze(tmp_path)
    assert see["candidates"] == [["Du schläfst.", f"Wir sehen {form}"] for form in ("euch", "dich", "dir")]
    assert (see["kind"], see["distance"], see["correct"], see["is_prefix"]) == ("plural", 1, 0, True)
    assert call["src"] == ["Rain.", "You ask her.", "Did you call?"], "two sentences of context"
    assert [candidate[-1] for candidate in call["candidates"]] == ["Du", "Ihr"], "a capital stays"
    assert (call["kind"], call["distance"]) == ("singular", 1)
    assert [candidate[-1] for candidate in last["candidates"]] == ["Ihr", "Du"]


def test_polite_counterparts_have_both_cases(tmp_path):
    see, call, last = cloze(tmp_path, has_polite_capitals=True)
    assert [candidate[-1][10:] for candidate in see["candidates"]] == ["euch", "dich", "Dich", "dir", "Dir"]
    assert [candidate[-1] for candidate in call["candidates"]] == ["Du", "ihr", "Ihr"]
    assert [candidate[-1] for candidate in last["candidates"]] == ["Ihr", "du", "Du"]


def test_foreign_context_comes_from_other_documents(tmp_path):
    items, foreign = cloze(tmp_path), cloze(tmp_path, context="foreign")
    assert [item["id"] for item in foreign] == [item["id"] for item in items]
    pairs = list(zip(YOU_EN, YOU_DE, strict=True))
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
    with pytest.raises(UserError, match="'ihr' is in both kinds"):
        cloze(tmp_path, forms={"singular": ["du", "ihr"], "plural": ["ihr", "euch"]})
    with pytest.raises(UserError, match="'You' must be in lower case"):
        cloze(tmp_path, source_words=["You"])


def test_foreign_context_needs_another_document(tmp_path, monkeypatch):
    for name, lines in {"YOU_EN": YOU_EN[:6], "YOU_DE": YOU_DE[:6]}.items():
        monkeypatch.setitem(globals(), name, lines)
    with pytest.raises(UserError, match="there is only one"):
        cloze(tmp_path, context="foreign")


def ctxpro_item(payload, expected, *, rule="DO.ELL", reference="Ja, das tut er.", **keys):
    return {"src segment": payload, "expected": expected, "rule": rule, "ref segment": reference, **keys}


CTXPRO = {"reader": "ctxpro_generative", "phenomenon": "auxiliary"}


def test_ctxpro_items_end_in_their_payload(tmp_path):
    items = [ctxpro_item("Yes, he does.", "tut", **{"ante distance": 2}), ctxpro_item("You?", "sie", rule="NOM.FORM")]
    inputs = "Does he?<eos> Well.<eos> Yes, he does.\nYou?\n"
    rows = convert(tmp_path, {"items": items, "inputs": inputs}, **CTXPRO)[0]
    assert rows[0] == {
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
    assert (rows[1]["src"], rows[1]["distance"], rows[1]["sentence"]) == (["You?"], None, 0)


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


def test_contrapro_distances_and_pronouns(tmp_path):
    items = convert(tmp_path, contrapro_files(), reader="contrapro_suite")[0]
    assert [(item["distance"], item["kind"]) for item in items] == [(1, "sie"), (None, "er")]


def test_fields_that_disagree_say_nothing(tmp_path):
    files = contrapro_files()
    files["fields"].append(files["fields"][0] | {"ante distance": 3})
    assert convert(tmp_path, files, reader="contrapro_suite")[0][0]["distance"] is None


def test_contrapro_as_generative_items(tmp_path):
    items = convert(tmp_path, contrapro_files(), reader="contrapro_generative")[0]
    assert [(item["expected"], item["match"], item["sentence"]) for item in items] == [
        ("sie", "tokens", 1),
        ("er", "tokens", 1),
    ]
    assert items[1]["reference"] == "er sieht ihn."
    assert items[0]["src"] == ["A cup.", "it 's big."]


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
    items = convert(tmp_path, {"anaphora": anaphora, "lexical_choice": choice}, reader="bawden_suite")[0]
    assert [(item["id"], item["kind"], item["correct"], item["sentence"], item["distance"]) for item in items] == [
        ("anaphora/00001", "correct", 0, 1, 1),
        ("anaphora/00002", "semi-correct", 0, 1, 1),
        ("lexical_choice/00001", "disambig", 0, 1, 1),
    ]
    assert items[1]["candidates"] == [["Un moucheron !", "Je le vois."], ["Un moucheron !", "Je la vois."]]


PAIR = "A <SEP> b\n"
ITEM = ctxpro_item("a", "b")
VOITA, BAWDEN = {"reader": "voita_suite"}, {"reader": "bawden_suite"}
LINES, PRONOUNS = {"reader": "contrapro_suite"}, {"reader": "contrapro_generative"}


@pytest.mark.parametrize(
    ("form", "files", "part"),
    [
        (VOITA, {"x": [voita(["x", "y _eos z"])]}, "item 1: each candidate needs 2 sentences"),
        (VOITA, {"x": [voita(["x _eos y"], correct=3)]}, "must be among them"),
        (VOITA, {"x": [voita(["x _eos y", "x _eos \ud800"])]}, "item 'x/00001': contains a lone surrogate"),
        (VOITA, {"x": [{"src": "a"}]}, "item 1"),
        (VOITA, {"x": ["text"]}, "item 1"),
        (LINES, {"en": PAIR, "de": PAIR + "C <SEP> d\n"}, "1 lines"),
        (LINES, {"en": "A b\n", "de": PAIR}, "line 1"),
        (LINES | {"counts": {"documents": 2}}, {"en": PAIR, "de": PAIR}, "1 documents, but 2 are expected"),
        (LINES, contrapro_files() | {"fields": [{"a": 1}]}, "item 1 lacks a key of ContraPro"),
        (PRONOUNS, {"en": PAIR * 2, "de": PAIR + "A <SEP> c\n"}, "do not replace er, sie or es"),
        (CTXPRO, {"items": [ITEM], "inputs": "x<eos> a\ny\n"}, "1 items in .*, but 2 lines"),
        (CTXPRO, {"items": [ITEM], "inputs": "a<eos> x\n"}, "line 1 does not end with the source sentence of item 1"),
        (CTXPRO, {"items": [{"src segment": "a"}], "inputs": "a\n"}, "item 1"),
        (CTXPRO, {"items": ["a"], "inputs": "a\n"}, "item 1"),
        (BAWDEN, {"x": []}, "contains no blocks"),
        (BAWDEN, {"x": {"1": {}, "2": {"trg": [{}], "src": []}}}, "block 2: `src` and `trg`"),
        (BAWDEN, {"x": {"1": "text"}}, "block 1: `src` and `trg`"),
    ],
)  # fmt: skip
def test_malformed_files_are_named(tmp_path, form, files, part):
    with pytest.raises(UserError, match=part):
        convert(tmp_path, files, **form)


OWN = {"id": "a", "phenomenon": "p", "src": ["x", "y"]}
CANDIDATES = {"candidates": [["b", "c"], ["b", "d"], ["b", "c"]], "correct": 0, "kind": "k"}


def test_own_formats_are_checked_and_lose_ties(tmp_path):
    files = {"items": json.dumps(OWN | CANDIDATES) + "\n"}
    write_jsonl(tmp_path / "suite.jsonl", convert(tmp_path, files, reader="jsonl_suite")[0])
    (item,) = read_suite(tmp_path / "suite.jsonl")
    assert (item.candidates, item.kind, item.sentence) == ((("b", "c"), ("b", "d")), "k", 1)
    files = {"items": json.dumps(OWN | {"expected": "c d", "sentence": 0}) + "\n"}
    write_jsonl(tmp_path / "suite.jsonl", convert(tmp_path, files, reader="jsonl_generative")[0])
    (item,) = read_generative_suite(tmp_path / "suite.jsonl")
    assert (item.expected, item.match, item.sentence, item.src) == ("c d", "words", 0, ("x", "y"))


def test_the_command_takes_own_files(tmp_path):
    source = tmp_path / "own items.jsonl"
    source.write_text(json.dumps(OWN | CANDIDATES) + "\n", encoding="utf-8")
    spec = {
        "languages": ["en", "de"],
        "format": {"reader": "jsonl_suite"},
        "splits": {"all": {"files": {"items": str(source)}, "documents": 1, "sentences": 3}},
    }
    out = tmp_path / "out.jsonl"
    assert main(["corpora", "convert-suite", "--spec", json.dumps(spec), "--split", "all", "--out", str(out)]) == 0
    assert read_jsonl(out)[0]["candidates"] == [["b", "c"], ["b", "d"]]


GOOD = {"id": "first", "phenomenon": "p", "src": ["s"], "distance": 2, "candidates": [["x"], ["y"]], "correct": 1}


def write(path, *values):
    write_jsonl(path, values)
    return path


def test_an_item_keeps_what_scoring_needs(tmp_path):
    path = write(tmp_path / "suite.jsonl", GOOD, GOOD | {"id": "second", "kind": "k", "sentence": 0})
    assert read_suite(path) == [
        ContrastiveItem("first", "p", ("s",), (("x",), ("y",)), 1, 2, None),
        ContrastiveItem("second", "p", ("s",), (("x",), ("y",)), 1, 2, "k"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": [["x"]], "correct": 0}, "`candidates` needs a correct and a wrong candidate"),
        ({"correct": 2}, "`correct` is 2"),
        ({"sentence": 1}, "`sentence` is 1, but the candidates first differ in 0"),
        ({"is_prefix": "no"}, "`is_prefix` must be true or false, not 'no'"),
        ({"correct": "0"}, "`correct` is '0'"),
        ({"correct": True}, "`correct` is True"),
        ({"distance": "2"}, "`distance` must be a whole number or null, not '2'"),
        ({"kind": ["k"]}, r"`kind` must be text or null, not \['k'\]"),
        ({"id": "first"}, "duplicate item 'first'"),
        ({"candidates": [["x"], ["y", "z"]]}, "a candidate has 2 sentences, but src has 1"),
        ({"candidates": ["x", "y"]}, "list of lists of sentences"),
        ({"candidates": [[1], [2]]}, "list of lists of sentences"),
        ({"src": []}, "at least one sentence"),
        ({"src": "s"}, "at least one sentence"),
        *(({key: None}, f"key '{key}' is missing") for key in ("id", "phenomenon", "src", "candidates", "correct")),
        (None, "must be an object"),
    ],
)
def test_bad_items_are_refused_with_their_line(tmp_path, change, message):
    second = [] if change is None else {k: v for k, v in (GOOD | {"id": "second"} | change).items() if v is not None}
    path = write(tmp_path / "suite.jsonl", GOOD, second)
    with pytest.raises(UserError, match=f"line 2: .*{message}"):
        read_suite(path)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({}, "key 'expected' is missing"),
        ({"expected": " "}, "at least one word"),
        ({"expected": ["a"]}, r"text with at least one word, not \['a'\]"),
        ({"expected": "a b", "match": "tokens"}, "finds a single word"),
        ({"expected": "a", "match": "regex"}, "known: words, tokens, text"),
        ({"expected": "a", "sentence": 2}, "`sentence` is 2, but src has 2 sentences"),
        ({"expected": "a", "sentence": True}, "`sentence` is True, but src has 2 sentences"),
        ({"expected": "a", "reference": 1}, "`reference` must be text or null, not 1"),
        ({"expected": "a", "src": []}, "`src` must be"),
    ],
)
def test_malformed_generative_items_are_named(tmp_path, changes, part):
    with pytest.raises(UserError, match=f"line 1: .*{part}"):
        read_generative_suite(write(tmp_path / "suite.jsonl", OWN | changes))


def test_unknown_keys_are_named_once(tmp_path, caplog):
    read_suite(write(tmp_path / "suite.jsonl", GOOD | {"distnace": 3}, GOOD | {"id": "second", "distnace": 3}))
    assert caplog.text.count("the unknown key 'distnace' of 2 items is ignored; did you mean 'distance'?") == 1


def test_a_suite_without_fair_items_is_refused(tmp_path):
    files = {"items": json.dumps(GOOD | {"candidates": [["x"], ["x"]]}) + "\n"}
    with pytest.raises(UserError, match="no item is left; omitted: 1 × duplicate candidate, 1 × item without a wrong"):
        convert(tmp_path, files, reader="jsonl_suite")


def test_generative_items_of_languages_without_blanks(tmp_path, capsys):
    write(tmp_path / "items.jsonl", OWN | {"expected": "彼女"})
    split = {"files": {"items": str(tmp_path / "items.jsonl")}}
    spec = {"languages": ["en", "ja"], "format": {"reader": "jsonl_generative"}, "splits": {"all": split}}
    words = ["--spec", json.dumps(spec), "--split", "all", "--out", str(tmp_path / "out.jsonl")]
    assert main(["corpora", "convert-suite", *words]) == 2
    assert "item 'a': ja does not separate words by blanks" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_empty_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="empty"):
        read_suite(write(tmp_path / "suite.jsonl"))
