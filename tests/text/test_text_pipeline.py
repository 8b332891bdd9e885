import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmt.errors import UserError
from docmt.text.pipeline import TextPipeline
from docmt.text.settings import TextSettings
from docmt.text.subwords import HEADER, learn_merges
from docmt.text.truecaser import Truecaser

LANGUAGES = ("en", "de", "ru", "zh", "fr")
CODES = learn_merges(["the end of the thing , the der die das die @/@ &quot; 北京 не нет"], merges=30, min_frequency=1)


def make(lang="de", *, truecaser=("the", "der", "er", "не"), **values):
    other = "fr" if lang == "en" else "en"
    truecasers = {lang: Truecaser(truecaser), other: Truecaser(truecaser)}
    return TextPipeline(TextSettings(**values), languages=(lang, other), truecasers=truecasers, codes=CODES)


PIPELINES = {lang: make(lang) for lang in LANGUAGES}

WORDS = st.sampled_from(["The", "the", "Er", "er", "iPhone", "USA", "well-known", "Не", "北京", "x", "naïve", "ß"])
WORDS |= st.sampled_from(["1,000", "3.5", "e.g.", "z.B.", "don't", "geht's", "it’s", "y's", "О'Нил"])
BETWEEN = st.sampled_from([" ", ", ", ". ", ": ", "; ", "! ", "? ", "/", " – ", "—", "-", "... ", "… ", " & ", "%, "])
QUOTES = st.sampled_from(
    [("", ""), ('"', '"'), ("'", "'"), ("„", "“"), ("“", "”"), ("«", "»"), ("»", "«"), ("(", ")"), ("[", "]")]
)


@st.composite
def sentences(draw):
    """Clean text: words, punctuation between them, phrases in quotes and brackets."""
    text = ""
    for _ in range(draw(st.integers(1, 6))):
        opening, closing = draw(QUOTES)
        phrase = " ".join(draw(st.lists(WORDS, min_size=1, max_size=3)))
        text += opening + phrase + closing + draw(BETWEEN)
    return (text + draw(st.sampled_from([".", "!", "?", "", '."', ".“"]))).strip()


@pytest.mark.parametrize("lang", LANGUAGES)
@settings(max_examples=150, deadline=None)
@given(text=sentences())
def test_clean_text_is_restored(lang, text):
    pipeline = PIPELINES[lang]
    assert pipeline.restore(pipeline.prepare(text, lang=lang), lang=lang) == text


@pytest.mark.parametrize("lang", LANGUAGES)
@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=40) | st.text(alphabet="aT'\"@▁&;#-.,()%$“”„’«»< |文，1\u0301\u200bİ\x07\t", max_size=40))
def test_text_is_restored(lang, text):
    pipeline = PIPELINES[lang]
    subwords = pipeline.prepare(text, lang=lang)
    assert all(subword.split() == [subword] for subword in subwords)
    assert pipeline.restore(subwords, lang=lang) == pipeline.normalize(text, lang=lang)


@settings(max_examples=150, deadline=None)
@given(subwords=st.lists(st.text(alphabet='ab@▁&;#64."(', max_size=6)), lang=st.sampled_from(LANGUAGES))
def test_restore_accepts_any_output_of_a_model(subwords, lang):
    text = PIPELINES[lang].restore(subwords, lang=lang)
    assert "\n" not in text
    assert text == text.strip()


def test_a_pipeline_is_plain_data(tmp_path):
    values = PIPELINES["de"].to_dict()
    assert json.loads(json.dumps(values)) == values
    PIPELINES["de"].save(tmp_path / "pipeline.json")
    for copy in (TextPipeline.load(tmp_path / "pipeline.json"), pickle.loads(pickle.dumps(PIPELINES["de"]))):
        assert copy.to_dict() == values
        assert (copy.src_lang, copy.tgt_lang) == ("de", "en")
        assert copy.prepare("Der Hund.", lang="de") == PIPELINES["de"].prepare("Der Hund.", lang="de")


def test_without_truecasing_nothing_is_capitalized():
    pipeline = make(truecaser=None, truecase=False)
    assert pipeline.restore(["das"], lang="de") == "das"
    assert TextPipeline.from_dict(pipeline.to_dict()).restore(["das"], lang="de") == "das"


def test_lower_case_stays():
    pipeline = make(truecaser=None, truecase=False, lowercase=True)
    assert pipeline.restore(pipeline.prepare("Der HUND.", lang="de"), lang="de") == "der hund."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"src_lang": "xx"}, "unknown language 'xx'"),
        ({"src_lang": "en"}, "two different languages"),
        ({"format": 99}, "format 1"),
        ({"codes": "nonsense"}, "line 1"),
        ({"codes": f"{HEADER}\na b c\n"}, "line 2"),
        ({"truecasers": {}}, "learn-truecaser"),
        ({"truecasers": None}, "damaged"),
        ({"settings": {"truecase": False}}, "learn-truecaser"),
        ({"settings": {"truecas": False}}, "did you mean 'truecase'"),
    ],
)
def test_malformed_values_are_refused(tmp_path, change, message):
    values = make().to_dict() | change
    with pytest.raises(UserError, match=message):
        TextPipeline.from_dict(values)
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(values), "utf-8")
    with pytest.raises(UserError, match=r"pipeline\.json"):
        TextPipeline.load(path)
