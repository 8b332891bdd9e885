"""Generative accuracy: rules compared with plain implementations, exact rates, and translation files."""

import random

import pytest
from evaluation_fixtures import LANGUAGES, RUN, evaluate

from docmt.corpora.suite_items import GenerativeItem
from docmt.errors import UserError
from docmt.evaluation.generative_accuracy import find_expected, read_payloads, score_generation
from docmt.files import read_json, write_jsonl

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def item(name, expected, *, n=2, match="words", **keys):
    values = {"phenomenon": "auxiliary", "sentence": n - 1} | keys
    return GenerativeItem(id=name, src=("s",) * n, expected=expected, match=match, **values)


def by_hand(expected, payload):
    """ctxpro's rule, character by character."""
    text = "".join(character for character in payload.lower() if character not in PUNCTUATION)
    padded, wanted = f" {text} ", f" {expected.lower()} "
    return any(padded[start : start + len(wanted)] == wanted for start in range(len(padded)))


@pytest.mark.parametrize(
    ("expected", "payload", "right"),
    [
        ("glaube", "- Ja, das glaube ich.", True),
        ("Glaube", "GLAUBE!", True),
        ("glaube", "Ich glaubte.", False),
        ("geht", "Wie geht's?", False),  # without its apostrophe, it is one word
        ("geht", "Es geht, geht's?", True),
        ("mag", "«mag»", False),  # punctuation beyond ASCII stays
        ("mag", "", False),
        ("знаю", "Да, знаю.", True),
        ("ist da", "Er ist -- da.", False),  # a dash between blanks leaves two of them
        ("ist da", "Er ist da.", True),
        ("geht's", "Wie geht's?", False),  # as in ctxpro, what is expected keeps its punctuation
    ],
)
def test_words_are_found_as_by_hand(expected, payload, right):
    assert (find_expected(item("a", expected), payload, lang="de") is not None) == by_hand(expected, payload) == right


def test_random_text_is_judged_as_by_hand():
    draw = random.Random(3)
    letters = "aAbB '-.,«ßж\t"
    for _ in range(3000):
        payload = "".join(draw.choices(letters, k=draw.randrange(12)))
        expected = "".join(draw.choices("abß", k=draw.randrange(1, 3)))
        assert (find_expected(item("a", expected), payload, lang="de") is not None) == by_hand(expected, payload)


def test_pronouns_are_moses_tokens():
    payloads = {"Sie ist da.": 1, "Ich sehe sie!": 1, "sie-ist": 0, "Siegen": 0, "": 0, "er, sie": 1}
    for payload, right in payloads.items():
        (row,) = score_generation([item("a", "sie", match="tokens")], [payload], lang="de")
        assert row["value"] == 100 * right, payload
    assert row["signature"] == "expected token among the lower-case Moses tokens of the payload|interval:Wilson 95 %"


@pytest.mark.parametrize(
    ("match", "expected", "payload", "occurrence"),
    [
        ("words", "Ist da", "Wer, IST... da?", "IST... da"),
        ("words", "ist da", "Wer, IST -- da?", None),
        ("words", "gehts", "Wie Geht's?", "Geht's"),
        ("words", "da", "Dada, da! 'da'", "da"),
        ("words", "σας", "Για ΣΑΣ.", "ΣΑΣ"),
        ("words", "i\u0307st", "-- İST 𝄞", "İST"),
        ("words", "da", "", None),
        ("tokens", "sie", 'Wiesie, "Sie" und sie', "Sie"),
        ("tokens", "es", "Das Esszimmer hat's; es ist &amp; es", "es"),
        ("tokens", "es", "Esszimmer", None),
        ("text", "E-Mail", "Die E-Mail ist da.", "E-Mail"),
        ("text", "sie", "„Sie“ ist da.", "Sie"),
        ("text", "彼女", "これは彼女の本です。", "彼女"),
        ("text", "彼女", "これは彼の本です。", None),
    ],
)
def test_what_is_found_has_a_place(match, expected, payload, occurrence):
    span = find_expected(item("a", expected, match=match), payload, lang="de")
    assert (span and payload[slice(*span)]) == occurrence


@pytest.mark.parametrize("match", ["words", "tokens"])
def test_languages_without_blanks_need_text(match):
    suite, payloads = [item("a", "苹果", match=match)], ["我喜欢苹果。"]
    with pytest.raises(UserError, match='item \'a\': zh does not separate words by blanks: use "match": "text"'):
        score_generation(suite, payloads, lang="zh")
    (row,) = score_generation([item("a", "苹果", match="text")], payloads, lang="zh")
    assert row["value"] == 100


def test_impossible_items_are_counted(caplog):
    suite = [item("a", "z.B."), item("b", "z.B.", match="text"), item("c", "da")]
    score_generation(suite, ["z.B. da"] * 3, lang="de")
    assert "1 items are always wrong" in caplog.text


def test_changed_token_has_the_whole_payload():
    """Moses deletes control characters."""
    assert find_expected(item("a", "es", match="tokens"), "e\u0001s", lang="de") == (0, 3)


def test_oracle_and_worst_of_several_phenomena():
    items = [item("a", "tut", kind="DO"), item("b", "sie", phenomenon="formality", kind="NOM")]
    rows = score_generation(items, ["er tut", "sind Sie es?"], lang="de")
    assert [(row["phenomenon"], row["kind"], row["value"]) for row in rows] == [
        (None, None, 100.0),
        ("auxiliary", None, 100.0),
        ("auxiliary", "DO", 100.0),
        ("formality", None, 100.0),
        ("formality", "NOM", 100.0),
    ]
    assert {row["metric"] for row in rows} == {"generative accuracy"}
    assert not any("chance" in row for row in rows)
    assert {row["value"] for row in score_generation(items, ["", "no"], lang="de")} == {0.0}


ITEMS = [item("a", "tut"), item("b", "sie", n=3, sentence=1)]


def test_translations_of_any_system_in_three_forms(tmp_path):
    jsonl, payloads, sentences = (tmp_path / name for name in ("t.jsonl", "payloads.txt", "sentences.txt"))
    write_jsonl(jsonl, [{"id": "b", "sentences": ["x", "y"]}, {"id": "a", "sentences": ["only one"]}])
    assert read_payloads(jsonl, ITEMS) == ["", "y"], "a missing sentence is empty"
    payloads.write_text("er tut\r\nnein\r\n")
    assert read_payloads(payloads, ITEMS) == ["er tut", "nein"]
    sentences.write_text("1\n2\n3\n4\n5\n")
    assert read_payloads(sentences, ITEMS) == ["2", "4"]


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("t.txt", "1\n2\n3\n", "3 lines, but the suite has 2 items of 5 sentences"),
        ("t.jsonl", '{"id": "a", "sentences": ["1"]}\n', "its 1 items differ from the suite"),
        ("t.jsonl", '{"id": "a"}\n', "line 1 is not"),
        ("t.jsonl", '{"id": "a", "sentences": [1]}\n', "line 1 is not"),
        ("t.jsonl", '{"id": ["a"], "sentences": ["1"]}\n', "line 1 is not"),
        ("t.jsonl", '{"id": "a", "sentences": ["1"]}\n' * 2, "line 2: duplicate item id 'a'"),
    ],
)
def test_translations_that_do_not_fit_are_refused(tmp_path, name, content, part):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=part):
        read_payloads(tmp_path / name, ITEMS)


def test_commands_score_a_file_and_compare_two(tmp_path):
    suite, out = tmp_path / "t.jsonl", tmp_path / "out.json"
    good, bad = (tmp_path / name / "generated_t.txt" for name in ("good", "bad"))
    good.parent.mkdir()
    bad.parent.mkdir()
    write_jsonl(suite, map(vars, ITEMS))
    good.write_text("er tut\nSie!\n")
    bad.write_text("er tut\n\n")
    assert evaluate("run", outputs=bad, suites=suite, **LANGUAGES, **RUN, out=out) == 0
    (row,) = read_json(out)["scores"]
    assert (row["system"], row["metric"], row["value"], row["n"]) == ("s", "generative accuracy", 50.0, 2)
    compared = {"outputs": good, "baseline": bad, "suites": suite, "names": ["good", "bad"], "dataset": "d"}
    assert evaluate("difference", **compared, **LANGUAGES, out=out) == 0
    (difference,) = read_json(out)["differences"]
    assert (difference["metric"], difference["difference"], difference["p"]) == ("generative accuracy", 50.0, 1.0)
