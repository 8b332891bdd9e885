"""German forms in the controlled corpus, in tables that were written by hand."""

import re
from random import Random

import pytest
from sacremoses import MosesTokenizer

from docmt.controlled import lexicon, sentences
from docmt.controlled.generator import split_words
from docmt.controlled.german import GENDERS, PRONOUN, Clause, Noun, Phrase, Predicate, noun_phrase, possessive

NEW = Phrase("new", "neu")
NOUNS = {"m": Noun("cake", "Kuchen", "m"), "f": Noun("tart", "Torte", "f"), "n": Noun("egg", "Ei", "n")}

# Genders as a German dictionary gives them, kept apart from the lexicon on purpose.
DICTIONARY = {
    "m": "Kuchen Käse Drucker Toaster Bus Zug Baum Busch Schläger Platz Tisch Schlüssel",
    "f": "Suppe Torte Pumpe Kamera Fähre Straßenbahn Rose Tulpe Bank Robbe Fledermaus "
    "Tabelle Taste Quelle Feder Schleuse",
    "n": "Steak Omelett Radio Mikroskop Boot Taxi Veilchen Kraut Ufer Siegel Gericht Schloss",
}
GENDER_OF = {word: gender for gender, words in DICTIONARY.items() for word in words.split()}


@pytest.mark.parametrize(
    ("gender", "case", "definite", "plain", "with_adjective"),
    [
        ("m", "nom", True, "der Kuchen", "der neue Kuchen"),
        ("m", "acc", True, "den Kuchen", "den neuen Kuchen"),
        ("m", "nom", False, "ein Kuchen", "ein neuer Kuchen"),
        ("m", "acc", False, "einen Kuchen", "einen neuen Kuchen"),
        ("f", "nom", True, "die Torte", "die neue Torte"),
        ("f", "acc", True, "die Torte", "die neue Torte"),
        ("f", "nom", False, "eine Torte", "eine neue Torte"),
        ("f", "acc", False, "eine Torte", "eine neue Torte"),
        ("n", "nom", True, "das Ei", "das neue Ei"),
        ("n", "acc", True, "das Ei", "das neue Ei"),
        ("n", "nom", False, "ein Ei", "ein neues Ei"),
        ("n", "acc", False, "ein Ei", "ein neues Ei"),
    ],
)
def test_german_noun_phrase_agrees(gender, case, definite, plain, with_adjective):
    noun = NOUNS[gender]
    assert noun_phrase(noun, case, definite=definite).german == plain
    assert noun_phrase(noun, case, definite=definite, adjective=NEW).german == with_adjective


@pytest.mark.parametrize(
    ("address", "gender", "case", "expected"),
    [
        ("du", "m", "nom", "dein Kuchen"),
        ("du", "m", "acc", "deinen Kuchen"),
        ("du", "f", "nom", "deine Torte"),
        ("du", "f", "acc", "deine Torte"),
        ("du", "n", "acc", "dein Ei"),
        ("Sie", "m", "nom", "Ihr Kuchen"),
        ("Sie", "m", "acc", "Ihren Kuchen"),
        ("Sie", "f", "acc", "Ihre Torte"),
        ("Sie", "n", "nom", "Ihr Ei"),
    ],
)
def test_possessive_agrees(address, gender, case, expected):
    assert possessive(address, NOUNS[gender], case) == expected


@pytest.mark.parametrize(
    ("noun", "definite", "adjective", "expected"),
    [
        (NOUNS["n"], False, None, "an egg"),
        (NOUNS["n"], False, NEW, "a new egg"),
        (NOUNS["m"], False, Phrase("old", "alt"), "an old cake"),
        (NOUNS["m"], True, None, "the cake"),
    ],
)
def test_english_article(noun, definite, adjective, expected):
    assert noun_phrase(noun, "nom", definite=definite, adjective=adjective).english == expected


def test_clause_puts_the_verb_second_and_last():
    clause = Clause(Phrase("the train", "der Zug"), Predicate("leaves in ten minutes", "fährt", "in zehn Minuten"))
    assert clause.main() == ("the train leaves in ten minutes", "der Zug fährt in zehn Minuten")
    assert clause.main(Phrase("perhaps", "vielleicht")) == (
        "perhaps the train leaves in ten minutes",
        "vielleicht fährt der Zug in zehn Minuten",
    )
    assert clause.subordinate() == "der Zug in zehn Minuten fährt"


def test_every_noun_has_the_gender_of_the_dictionary():
    nouns = [noun for group in lexicon.CLASSES.values() for row in group.nouns.values() for noun in row]
    nouns += [sense.noun for senses in lexicon.AMBIGUOUS.values() for sense in senses]
    assert {noun.german for noun in nouns} == set(GENDER_OF)
    for noun in nouns:
        assert noun.gender == GENDER_OF[noun.german], noun
        assert noun.german[0].isupper()


@pytest.mark.parametrize("name", lexicon.CLASSES)
def test_class_reveals_neither_gender_nor_surface(name):
    group = lexicon.CLASSES[name]
    assert {len(group.nouns[gender]) for gender in GENDERS} == {2}
    predicates = [*group.subjects, *group.objects]
    others = [p for key, other in lexicon.CLASSES.items() if key != name for p in (*other.subjects, *other.objects)]
    assert not {p.english for p in predicates} & {p.english for p in others}
    assert all("{it}" in p.english and "{it}" in p.rest for p in group.objects)


def test_english_nouns_are_unique_and_not_ambiguous_words():
    nouns = [noun.english for group in lexicon.CLASSES.values() for row in group.nouns.values() for noun in row]
    assert len(set(nouns)) == len(nouns) == 24
    assert not set(nouns) & set(lexicon.AMBIGUOUS)
    topics = [phrase.english for senses in lexicon.AMBIGUOUS.values() for sense in senses for phrase in sense.topics]
    assert len(set(topics)) == len(topics)
    for topic in topics:
        assert not set(split_words(topic)) & {*nouns, *lexicon.AMBIGUOUS, "it", "you", "your"}, topic


@pytest.mark.parametrize("name", lexicon.CLASSES)
def test_pronoun_variants_differ_in_the_pronoun_only(name):
    rng = Random(3)
    for _ in range(60):
        sentence = sentences.pronoun(rng, name)
        assert re.search(r"\b[Ii]t\b", sentence.src)
        case = "nom" if re.search(r"(^|course |luckily |perhaps |apparently )it\b", sentence.src.lower()) else "acc"
        rows = {gender: split_words(text) for gender, text in sentence.variants.items()}
        assert set(rows) == set(GENDERS)
        differing = [words for words in zip(*(rows[g] for g in GENDERS), strict=True) if len(set(words)) > 1]
        assert [[word.lower() for word in words] for words in differing] == [[PRONOUN[case][g] for g in GENDERS]]


VERB_FORMS = {
    "kennst": "kennen", "sprichst": "sprechen", "bist": "sind", "hast": "haben", "kannst": "können",
    "brauchst": "brauchen", "verstehst": "verstehen", "kommst": "kommen",
}  # fmt: skip


def test_verbs_agree_with_the_address():
    for form in (*lexicon.STATEMENTS, *lexicon.QUESTIONS):
        assert VERB_FORMS[form.verbs["du"]] == form.verbs["Sie"]


def test_deixis_variants_show_their_address_and_no_other():
    rng = Random(5)
    familiar = re.compile(r"\b([Dd]u|[Dd]ir|[Dd]ich|[Dd]eine?n?)\b")
    formal = re.compile(r"\b(Sie|Ihnen|Ihre?n?)\b")
    for _ in range(300):
        sentence = sentences.deixis(rng)
        assert re.search(r"\b([Yy]ou|[Yy]our)\b", sentence.src)
        assert familiar.search(sentence.variants["du"])
        assert not formal.search(sentence.variants["du"])
        assert formal.search(sentence.variants["Sie"])
        assert not familiar.search(sentence.variants["Sie"])


def test_each_choice_has_one_german_rendering():
    rng = Random(1)
    renderings: dict[str, dict] = {}
    draws = [
        lambda: sentences.filler(rng),
        lambda: sentences.deixis(rng),
        lambda: sentences.pronoun(rng, rng.choice(list(lexicon.CLASSES))),
        lambda: sentences.ambiguous(rng, rng.choice(list(lexicon.AMBIGUOUS))),
        lambda: sentences.consistent(rng, rng.choice(list(lexicon.SYNONYMS))),
        lambda: sentences.greeting(rng, rng.choice(sentences.ADDRESSES)),
        lambda: sentences.topic(rng, rng.choice(list(lexicon.AMBIGUOUS)), rng.randrange(2)),
        lambda: sentences.activity(rng, rng.choice(lexicon.INTRANSITIVE), person="Tom"),
        lambda: sentences.introduction(
            rng,
            [
                rng.choice(lexicon.CLASSES[name].nouns[rng.choice(GENDERS)])
                for name in rng.sample(list(lexicon.CLASSES), rng.choice((1, 2)))
            ],
            person=rng.choice(lexicon.PERSONS),
            predicate=rng.choice(lexicon.TRANSITIVE),
        ),
    ]
    for _ in range(500):
        for draw in draws:
            sentence = draw()
            assert renderings.setdefault(sentence.src, sentence.variants) == sentence.variants
            for text in (sentence.src, *sentence.variants.values()):
                assert re.fullmatch(r"[A-ZÄÖÜ][\w ,.]*\w[.?]", text), text
                assert "  " not in text
                assert " ," not in text
                assert "{" not in text


def test_subordinate_clauses_keep_german_word_order():
    street = Clause(Phrase("the street", "die Straße"), Predicate("is empty", "ist", "leer"))
    day = Clause(Phrase("the day", "der Tag"), Predicate("is long", "ist", "lang"))
    seen = {sentences.with_subordinate(Random(seed), street, day).variants[""] for seed in range(60)}
    assert seen == {
        f"Die Straße ist leer, {conjunction} der Tag lang ist." for conjunction in ("weil", "obwohl", "während")
    } | {f"{conjunction} der Tag lang ist, ist die Straße leer." for conjunction in ("Weil", "Obwohl", "Während")}


@pytest.mark.parametrize(
    ("verb", "gender", "expected"),
    [
        (Predicate("likes", "mag", ""), "m", {"Tom mag ihn sicher auch.", "Aber Tom mag ihn nie."}),
        (Predicate("likes", "mag", ""), "f", {"Tom mag sie sicher auch.", "Aber Tom mag sie nie."}),
        (Predicate("sings", "singt", ""), None, {"Tom singt sicher auch.", "Wie immer singt Tom auch."}),
    ],
)
def test_ellipsis_repeats_the_verb(verb, gender, expected):
    seen = set()
    for seed in range(40):
        sentence = sentences.ellipsis(Random(seed), person="Tom", verbs=(verb,), gender=gender)
        assert verb.english not in sentence.src
        seen.update(sentence.variants.values())
    assert expected < seen
    assert len(seen) == 3


def test_split_words_is_the_moses_tokenization():
    tokenizer = MosesTokenizer("en")
    rng = Random(2)
    for _ in range(200):
        for sentence in (
            sentences.greeting(rng, rng.choice(sentences.ADDRESSES)),
            sentences.filler(rng),
            sentences.deixis(rng),
        ):
            assert split_words(sentence.src) == tokenizer.tokenize(sentence.src, escape=False)
