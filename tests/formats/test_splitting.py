"""Where sentences end: at full stops before white space, not inside words or between backquotes."""

import pytest

from docmt.formats.sentence_splitting import split_text


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
def test_sentences(lang, sentences):
    assert split_text("".join(sentences), lang) == sentences


@pytest.mark.parametrize("text", ["", "\n", ".", "...", "`", "a.b.c", "` . ! ` ?", "A. B.\u2028C. D"])
def test_nothing_is_lost(text):
    assert "".join(split_text(text, "en")) == text
