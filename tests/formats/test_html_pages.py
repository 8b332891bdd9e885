"""Pages keep their encoding and entities; texts of attributes are translated; `<br>` ends a sentence."""

from pathlib import Path

import pytest
from formats_standin import EN_DE, translated

from docmt.errors import UserError
from docmt.formats.registry import open_file

META = '<meta charset="{}">'
OLD_META = '<meta http-equiv=Content-Type content="text/html; charset={}">'


def umlauts(documents):
    return [["Tür € – " + sentence for sentence in document] for document in documents]


@pytest.mark.parametrize(
    ("head", "encoding", "expected"),
    [
        (META.format("iso-8859-1"), "cp1252", "Tür € – "),
        (META.format("Windows-1252"), "cp1252", "Tür € – "),
        (OLD_META.format("iso-8859-15"), "iso-8859-15", "Tür € &#8211; "),
        (META.format("koi8-r"), "koi8-r", "T&#252;r &#8364; &#8211; "),
        ("<?xml version='1.0' encoding='us-ascii'?>", "ascii", "T&#252;r &#8364; &#8211; "),
        (META.format("shift_jis"), "shift_jis", "T&#252;r &#8364; &#8211; "),
        (META.format("utf-16"), "utf-8", "Tür € – "),
        ("\ufeff", "utf-8", "Tür € – "),
        ("<p>é</p>", "utf-8", "Tür € – "),
        ("", "ascii", "T&#252;r &#8364; &#8211; "),
    ],
)
def test_a_page_is_written_in_the_encoding_that_browsers_read(head, encoding, expected):
    body = "<script>'{}'</script><p>a".format("é" if encoding in ("cp1252", "utf-8") and head else "")
    out, counts = translated(Path("a.html"), (head + body).encode(encoding), umlauts)
    assert counts.untouched.total() == 0
    assert out.decode(encoding).endswith(f"{body[:-1]}{expected}a")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (META.format("klingon"), "a.html: declares an unknown encoding: klingon"),
        (META.format("hex"), "a.html: declares an unknown encoding: hex"),
        (META.format("utf-8") + "\n\udce4", "a.html: line 2 is not UTF-8"),
        (META.format("utf-7") + "+AGEAYg-", "a.html: cannot be written as it was in utf-7"),
    ],
)
def test_encodings_that_cannot_be_kept_are_refused(content, message):
    with pytest.raises(UserError, match=message):
        open_file(Path("a.html"), content.encode(errors="surrogateescape"), languages=EN_DE)


def test_a_line_break_ends_a_sentence():
    seen = []
    page = b"<p>One<br>two <img alt='a picture'> <b title=word>three<br/>four</b>."
    out, _ = translated(Path("a.html"), page, lambda documents: seen.extend(documents) or documents)
    assert seen == [["One", "two {0} {1}three", "four{0}."], ["a picture", "word"]]
    assert out == page.replace(b"title=word", b'title="word"')


@pytest.mark.parametrize(
    "page",
    [
        b"<p translate=no title='a b'>c</p>",
        b"<link title='a b'><code title='a b'>c d</code>",
        b"<svg title='a b'><title>c</title></svg>",
        b"<meta name=keywords content='a b'><input value='a b'>",
        b"<img alt=''><img alt='12'>",
        b"<i @title=\"go()\" #title='a' [title]='b' :alt='c' v-bind:title='d' @click=\"title='e f'\">1</i>",
    ],
)
def test_other_attributes_stay(page):
    out, counts = translated(Path("a.html"), page)
    assert (out, counts.segments) == (page, 0)


def test_attributes_of_segments_that_stay_are_translated_all_the_same():
    def translate(documents):
        return [["X" if sentence == "a b" else "" for sentence in document] for document in documents]

    out, counts = translated(Path("a.html"), b"<p>c <img alt='a b'> d</p><p>e <img alt=\"a b\"></p>", translate)
    assert out == b"<p>c <img alt='X'> d</p><p>e <img alt=\"X\"></p>"
    assert (counts.segments, counts.untouched.total()) == (4, 2)
