"""Hostile text takes linear time in every format."""

from pathlib import Path

import pytest
from formats_standin import packed, translated
from hostile_files import is_linear

from docmt.formats.markup import unescape

# Beginning, what is repeated, end: each took quadratic time in a format once, or is built like one that did.
KINDS = {
    "open tag": ("<", "a", ""),
    "open tags": ("", "<a ", ""),
    "open attributes": ("", "<a ='", ""),
    "quoted brackets": ("", '<a b=">" ', ""),
    "scripts": ("", "<script ", ""),
    "script ends": ("<script>", "</script ", ""),
    "comments": ("", "<!--", ""),
    "comments in a paragraph": ("a ", "<!--", ""),
    "declarations": ("", "<!", ""),
    "sections": ("", "<![CDATA[", ""),
    "open pre": ("", "<pre>x", ""),
    "open bold": ("", "<b>x", ""),
    "images with text": ("", '<img alt="a b">', ""),
    "zeros": ("%(a)", "0", "x"),
    "digits": ("%", "1", ""),
    "brace": ("", "{", ""),
    "pairs of braces": ("{", "{}", ""),
    "blanks": ("a", " ", "b"),
    "one-letter lines": ("", "a\n", ""),
    "columns": ("", "a   ", ""),
    "full stops": ("", "a.", ""),
    "images": ("", "![", ""),
    "links": ("", "[](", ""),
    "image links": ("", "![](a", ""),
    "stars": ("", "*a **b", ""),
    "backquotes": ("", "`` ` ", ""),
    "keys": ("", "a: b\n", ""),
    "dashes": ("", "- a\n", ""),
    "music": ("", "♪ ", ""),
    "names": ("", "A B ", ""),
    "times": ("", "00:00:01,000 --> 00:00:02,000\n", ""),
    "marks": ("", "{0} a ", ""),
}
XLIFF = '<xliff version="1.2"><file source-language="en"><trans-unit id="1">{}</trans-unit></file></xliff>'
WORD = '<w:document xmlns:w="w"><w:p>{}</w:p></w:document>'
ODT = '<a xmlns:text="t"><text:p>{}</text:p></a>'
# Name of the file and its content around the text.
AROUND = {
    "text": ("a.txt", "{}"),
    "lines": ("a.lines", "{}"),
    "markdown": ("a.md", "{}"),
    "html": ("a.html", "{}"),
    "srt": ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n{}\n"),
    "vtt": ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n"),
    "po": ("a.po", 'msgid "{}"\nmsgstr ""\n'),
    "xliff": ("a.xlf", XLIFF.format("<source>{}</source>")),
    "docx": ("a.docx", WORD.format("<w:r><w:t>{}</w:t></w:r>")),
}
# Structures of single formats: a unit of the file that is repeated.
REPEATED = {
    "nested g": ("a.xlf", XLIFF.format("<source>{}</source>"), '<g id="1">x', "</g>"),
    "alternatives": ("a.xlf", XLIFF.format("<source>x</source>{}"), "<alt-trans><source>a</source></alt-trans>", ""),
    "nested bold": ("a.html", "{}", "<b>x", "</b>"),
    "nested blocks": ("a.html", "{}", "<div>x", "</div>"),
    "runs": ("a.docx", WORD, "<w:r><w:rPr><w:b/></w:rPr><w:t>a</w:t></w:r><w:r><w:t>b</w:t></w:r>", ""),
    "boxes": ("a.docx", WORD, "<w:r><w:t>a</w:t></w:r><w:r><w:pict><w:t>a</w:t></w:pict></w:r>", ""),
    "spans": ("a.odt", ODT, "<text:span>a", "</text:span>"),
    "units of xliff": (
        "a.xlf",
        '<xliff version="1.2"><file>{}</file></xliff>',
        f"<trans-unit><note>{'𝄞' * 3000}</note><source>a</source></trans-unit>",
        "",
    ),
    "units of tmx": (
        "a.tmx",
        '<tmx version="1.4">{}</tmx>',
        f"<tu><note>{'𝄞' * 3000}</note><tuv xml:lang='en'><seg>a</seg></tuv></tu>",
        "",
    ),
    "files": ("a.xlf", '<xliff version="1.2">{}</xliff>', "<file/>", ""),
    "blanks of a target": ("a.xlf", XLIFF.format("<source>a</source><target{}/>"), " ", ""),
    "blanks of a run": ("a.docx", WORD.format("<w:r><w:rPr>{}</w:rPr><w:t>a</w:t></w:r>"), " ", ""),
    "strings": ("a.po", 'msgid ""\n{}msgstr ""\n', '"a b"\n', ""),
}


def content(name, around, text):
    if name == "a.po" and "\n" not in around[:9]:
        text = text.replace('"', '\\"').replace("\n", "\\n")
    data = around.replace("{}", text).encode()
    return packed(data, name[2:]) if name in ("a.docx", "a.odt") else data


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", AROUND)
def test_hostile_text_takes_linear_time(form, kind):
    """TMX and ODT pass their text on as XLIFF and DOCX do."""
    name, around = AROUND[form]
    before, unit, after = KINDS[kind]

    def work(size):
        text = before + unit * (size // len(unit)) + after
        if form in ("xliff", "docx"):
            text = text.replace("&", "&amp;").replace("<", "&lt;")
        translated(Path(name), content(name, around, text), name=form)

    assert is_linear(work)


@pytest.mark.parametrize("kind", REPEATED)
def test_hostile_structure_takes_linear_time(kind):
    name, around, unit, end = REPEATED[kind]

    def work(size):
        n = size // min(len(unit), 40)
        translated(Path(name), content(name, around, unit * n + end * n))

    assert is_linear(work)


def test_quadratic_time_would_be_seen():
    assert not is_linear(lambda size: sum(a < b for a in range(size // 8) for b in range(size // 8)))


def test_numbers_of_entities_have_no_limit():
    assert unescape("&#" + "9" * 5000 + ";a&#0000000000065;&#x41;") == "\ufffdaAA"
