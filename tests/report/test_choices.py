"""Report text that depends on context in a suite. It comes from the suite's corpus, not from a phenomenon's name."""

import pytest
from score_rows import accuracy, long_table

from docmt.config.references import suite_choices
from docmt.config.schema import Config
from docmt.corpora.catalog import load_catalog
from docmt.report.score_tables import contrastive_table
from docmt.report.settings import ReportSettings
from docmt.report.summary import summarize

GERMAN, RUSSIAN = {"deixis": "du or Sie"}, {"deixis": "ty or vy"}


def corpora(**kinds):
    return Config.model_construct(corpora=type("Corpora", (), {"controlled": {}, "custom": {}} | kinds))


@pytest.mark.parametrize(
    ("kinds", "reference", "words"),
    [
        ({"controlled": {"mine": None}}, "mine/deixis", "not first du, then Sie"),
        ({"custom": {"mine": None}}, "mine/deixis", ""),
        ({"custom": {"voita2019-suites-enru": None}}, "voita2019-suites-enru/test", ""),
        ({}, "voita2019-suites-enru/test", "not first ty, then vy"),
        ({}, "contrapro-ende/test", "er, sie or es"),
        ({}, "ctxpro-enru/gender_dev", "on, ona or ono"),
        ({}, "bawden2018-enfr/test", "il or elle"),
        ({}, "bible-parts-enru/number", ""),
    ],
)
def test_choices_belong_to_the_corpus(kinds, reference, words):
    choices = suite_choices(corpora(**kinds), reference)
    assert words in " ".join(choices.values())
    assert bool(words) == bool(choices)


def test_catalog_words_fit_its_languages():
    """LaTeX without additional packages has no Cyrillic, so words in other scripts are transliterated."""
    for name, entry in load_catalog().items():
        words = " ".join(entry.corpus.choices.values())
        assert not {"ru", "fr"} & set(entry.corpus.languages) or not {"du", "Sie", "sie"} & set(words.split()), name
        assert all(ord(letter) < 0x250 or letter in "“”–" for letter in words), name


@pytest.mark.parametrize(
    ("choices", "sentences"),
    [
        ({}, ""),
        ({"d/x": GERMAN, "e/x": GERMAN}, "deixis: du or Sie."),
        ({"d/x": GERMAN, "e/x": RUSSIAN}, "d deixis: du or Sie. e deixis: ty or vy."),
        ({"e/x": RUSSIAN}, "e deixis: ty or vy."),
        ({"d/other": GERMAN, "e/x": {"pronoun": "he or she"}}, ""),
    ],
)
def test_notes_explain_the_suites_of_each_dataset(choices, sentences):
    rows = [accuracy("a", 90, dataset=dataset, test="x", phenomenon="deixis") for dataset in "de"]
    table = contrastive_table(summarize(long_table(rows)), ReportSettings(), choices=choices)
    assert table.note.partition("Bold")[0].strip() == f"Items: d deixis 9, e deixis 9. {sentences}".strip()
