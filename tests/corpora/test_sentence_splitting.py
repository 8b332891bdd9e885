"""Sentences in PO messages."""

import pytest

from docmt.corpora.readers.gettext import split_text


@pytest.mark.parametrize(
    ("lang", "sentences"),
    [
        ("en", ["The NORM.S.DIST function. ", "Use ISO.CEILING instead!"]),
        ("en", ["See :meth:`~object.__getstate__` for more. ", "Call :c:func:`!PyObject_Call` now."]),
        ("en", ["`Stop! Wait.` ends nothing. ", "This does."]),
        ("en", ["An odd ` says nothing. ", "So this is another."]),
        ("de", ["Siehe docs.example.org! ", "Dann weiter.\n", "Zeile"]),
        ("zh", ["参见 :meth:`~object.__getstate__` 了解。", "调用 :c:func:`!foo` 吧。"]),
        ("ja", ["これは本です。", "あれは?"]),
    ],
)
def test_sentences_end_at_full_stops_before_white_space(lang, sentences):
    assert split_text("".join(sentences), lang) == sentences


@pytest.mark.parametrize("text", ["", "\n", ".", "...", "`", "a.b.c", "` . ! ` ?", "A. B.\u2028C. D"])
def test_splitting_loses_nothing(text):
    assert "".join(split_text(text, "en")) == text
