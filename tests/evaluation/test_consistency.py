"""Consistency of terms and of forms of address, with its controls."""

import random

import pytest
from evaluation_fixtures import make_hypotheses, make_test, write_split

from docmt.evaluation.consistency import TermUse, describe_consistency, list_terms, repetitions, score_consistency
from docmt.evaluation.external_programs import find_program
from docmt.evaluation.metrics import ADDRESS, TERMS, EvaluationSettings
from docmt.evaluation.word_alignment import PROGRAM, Text
from docmt.evaluation.word_lists import AddressForms, SourceWords

FORMS = {
    "de": {
        "Kommst du mit ?": "informal",
        "Du kommst mit .": "informal",
        "Kommen Sie mit ?": "formal",
        "Sie kommt mit .": None,
        "Ja . Sie kommt mit .": None,
        "„ Sie kommt “": None,
        "Wenn , Sie kommen": "formal",
        "Das ist Ihre Tasche .": "formal",
        "Das ist ihre Tasche , ihr Lieben .": None,
        "Gib mir dein Wort , Frau X ; ich danke Ihnen .": "both",
        "": None,
    },
    "ru": {"Ты идёшь ?": "informal", "Вы идёте ?": "formal", "Я тебя вас": "both", "Иду .": None},
    "fr": {"Tu viens ?": "informal", "Je t' aime": "informal", "Vous venez ?": "formal", "Il vient .": None},
}


@pytest.mark.parametrize(("lang", "sentence"), [(lang, text) for lang in FORMS for text in FORMS[lang]])
def test_forms_of_address_are_found_in_context(lang, sentence):
    expected = FORMS[lang][sentence]
    both = {"both": {"formal", "informal"}, None: set()}
    assert AddressForms.of(lang).find(sentence.split()) == both.get(expected, {expected})


SHARED = {
    "Ich habe euch und dir geschrieben": ("you", {"euch": "plural", "dir": "singular"}),
    "Was wollt ihr ?": ("what do you want ?", {"ihr": "plural"}),
    "Ihr habt Recht .": ("you are right .", {"Ihr": "plural"}),
    "Ihr seid da , wenn Ihr wollt .": ("you are there if you like .", {"Ihr": "plural"}),
    "Ihr Haus ist schön , nicht wahr , du ?": ("your house is nice , isn't it ?", {"du": "singular"}),
    "Ich danke ihr .": ("i thank her .", {}),
    "Siehst du ihr Haus ?": ("do you see her house ?", {"du": "singular"}),
    "Ihr kommt mit .": ("they come along .", {}),
    "Das ist Ihr Haus .": ("this is your house .", {"Ihr": "formal"}),
}


@pytest.mark.parametrize("sentence", SHARED)
def test_ihr_is_plural_where_the_source_addresses_somebody_and_names_nobody_else(sentence):
    source, expected = SHARED[sentence]
    _, is_clear = SourceWords.of("en").find(source.split())
    words = sentence.split()
    found = AddressForms.of("de").classify(words, is_clear=is_clear)
    assert {word: name for word, name in zip(words, found, strict=True) if name} == expected


def translated(folder, reference, hypothesis, lengths, metrics, *, source=None, tgt_lang="de", aligned=True):
    documents = [f"d{i}" for i in range(len(lengths))]
    write_split(folder, dict(zip(documents, lengths, strict=True)), en=source or reference)
    found = make_hypotheses(hypothesis, lengths, documents=documents, aligned=aligned)
    settings = EvaluationSettings(metrics=metrics)
    return make_test(found, reference, settings=settings, prefix=folder / "t", tgt_lang=tgt_lang)


def address_rows(tmp_path, reference, hypothesis, lengths, **options):
    rows = score_consistency(translated(tmp_path, reference, hypothesis, lengths, [ADDRESS], **options))
    return {row["kind"]: row for row in rows}


INFORMAL, FORMAL, NONE = "Kommst du ?", "Kommen Sie ?", "Es regnet ."


def test_repetitions_are_compared_with_the_occurrence_before(tmp_path):
    reference = [INFORMAL, NONE, INFORMAL, INFORMAL, FORMAL, FORMAL, FORMAL]
    hypothesis = [INFORMAL, NONE, FORMAL, FORMAL, FORMAL, NONE, FORMAL]
    rows = address_rows(tmp_path, reference, hypothesis, (4, 3))
    # 1→3 changes, 3→4 stays; 5→6 and 6→7 have no form to compare.
    assert (rows[None]["value"], rows[None]["n"]) == (25, 4)
    assert rows["reference"]["value"] == 100
    assert rows["hypothesis"]["value"] == 25


def test_a_change_in_the_reference_is_no_error(tmp_path):
    rows = address_rows(tmp_path, [INFORMAL, FORMAL, FORMAL], [INFORMAL, FORMAL, FORMAL], (3,))
    assert (rows[None]["value"], rows[None]["n"]) == (100, 1)
    assert rows["reference"]["value"] == 50


def test_the_reference_has_all_and_shuffled_documents_fewer(tmp_path):
    """Documents of one form each: a system that picks a form in each sentence by chance is right half of the time."""
    rng = random.Random(1)
    forms = [rng.choice([INFORMAL, FORMAL]) for _ in range(60)]
    reference = [form for form in forms for _ in range(8)]
    perfect = address_rows(tmp_path, reference, reference, [8] * 60)
    assert perfect[None]["value"] == perfect["reference"]["value"] == perfect["hypothesis"]["value"] == 100
    assert 43 < perfect["shuffled documents"]["value"] < 57
    chance = address_rows(tmp_path, reference, [rng.choice([INFORMAL, FORMAL]) for _ in reference], [8] * 60)
    assert 43 < chance[None]["value"] < 57
    assert abs(chance["shuffled documents"]["value"] - chance["hypothesis"]["value"]) < 10
    swapped = [FORMAL if form == INFORMAL else INFORMAL for form in reference]
    consistent = address_rows(tmp_path, reference, swapped, [8] * 60)
    assert consistent[None]["value"] == 100, "consistency is not which form it is"
    mixed = [a if rng.random() < 0.8 else b for a, b in zip(reference, swapped, strict=True)]
    rows = address_rows(tmp_path, reference, mixed, [8] * 60)
    assert 60 < rows[None]["value"] < 76  # 0.8² + 0.2²
    assert 43 < rows["shuffled documents"]["value"] < 57


def test_nothing_repeats_and_nothing_is_aligned(tmp_path):
    rows = address_rows(tmp_path, [INFORMAL, NONE], [INFORMAL, NONE], (1, 1))
    assert all(row["value"] is None for row in rows.values() if row["kind"] != "shuffled documents")
    assert address_rows(tmp_path, [INFORMAL, NONE], [[INFORMAL]], (2,), aligned=False) == {}
    english = score_consistency(translated(tmp_path, ["you"], ["you"], (1,), [ADDRESS], tgt_lang="en"))
    assert english[0]["value"] is None
    assert "no lists" in english[0]["signature"]


def terms_of(source, hypothesis, reference, documents):
    text = Text(*([line.split() for line in side] for side in (source, hypothesis, reference)))
    links = {
        (tuple(one), tuple(other)): {(i, i) for i in range(min(len(one), len(other)))} for one, other in text.pairs
    }
    return list_terms(text, documents, links, "en", "de")


def test_terms_are_words_of_few_documents_and_choices_are_their_stems():
    source = ["the castle there", "the castle there", "a town there", "some there"]
    reference = ["das Schloss dort", "des Schlosses dort", "die Stadt dort", "etwas dort"]
    hypothesis = ["das Schloss dort", "die Burgen dort", "die Stadt dort", "etwas dort"]
    lower = [[line.lower() for line in side] for side in (source, hypothesis, reference)]
    found = terms_of(*lower, [0, 0, 1, 2])
    assert [one.term for one in found] == ["castle", "castle", "town", "some"], "`there` is in all documents"
    first, second = (found[0], found[1])
    assert first.reference == second.reference == {"schlo"}
    assert (first.hypothesis, second.hypothesis) == ({"schlo"}, {"burge"})
    rows = {row["kind"]: row for row in describe_consistency(TERMS, found, [0, 0, 1, 2], signature="")}
    assert (rows[None]["value"], rows[None]["n"]) == (0, 1)
    assert rows["reference"]["value"] == 100


def test_two_occurrences_in_a_sentence_are_one():
    pair = [
        TermUse(0, 0, "t", frozenset("a"), frozenset("a")),
        TermUse(0, 0, "t", frozenset("a"), frozenset("b")),
    ]
    assert list(repetitions(pair)) == []


@pytest.mark.skipif(find_program(PROGRAM) is None, reason="eflomal is not installed")
def test_terms_by_the_real_aligner_with_the_reference_as_control(tmp_path):
    rng = random.Random(2)
    nouns = {"castle": ("schloss", "burg"), "garden": ("garten", "park"), "forest": ("wald", "gehölz")}
    names = list(nouns)
    source, reference, hypothesis, lengths = [], [], [], []
    for document in range(60):
        noun = names[document % 3]
        good = rng.randrange(2)
        for _ in range(4):
            # An adjective that all sentences had could be what eflomal, whose seed is random, aligns nouns with.
            of, to = rng.choice([("old", "alte"), ("new", "neue"), ("red", "rote")])
            verb = rng.choice([("shines", "glänzt"), ("grows", "wächst"), ("sleeps", "schläft")])
            source.append(f"the {of} {noun} {verb[0]} .")
            reference.append(f"der {to} {nouns[noun][good]}stein {verb[1]} .")
            hypothesis.append(f"der {to} {nouns[noun][rng.randrange(2)]}stein {verb[1]} .")
        lengths.append(4)
    both = []
    for side in (reference, hypothesis):
        rows = score_consistency(translated(tmp_path, reference, side, lengths, [TERMS], source=source))
        both.append({row["kind"]: row for row in rows})
    perfect, chance = both
    assert perfect[None]["value"] == 100
    assert perfect[None]["n"] > 100
    assert 35 < chance[None]["value"] < 65
    assert 35 < perfect["shuffled documents"]["value"] < 65 < perfect["hypothesis"]["value"]
    assert chance["reference"]["value"] == pytest.approx(perfect["reference"]["value"], abs=5)
