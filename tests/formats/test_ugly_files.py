# ruff: noqa: E501 (rows of a table)
"""Ugly files: nothing is lost, or one clear line says what is wrong."""

import io
import zipfile
from pathlib import Path

import pytest
from formats_standin import EN_DE, PARTS, members, packed, shout, translated

from docmt.decompression import HARMLESS_BYTES
from docmt.errors import UserError
from docmt.formats.file_translation import fill_file
from docmt.formats.registry import open_file

XLIFF = '<xliff version="1.2"><file original="a" source-language="en"><body>{}</body></file></xliff>'
UNIT = '<trans-unit id="1"><source>{}</source></trans-unit>'
TMX = '<tmx version="1.4"><header/><body>{}</body></tmx>'
PO = 'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=1; plural=0;\\n"\n\n{}'
CUE = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"

# name, content, what the result holds
FINE = [
    ("crlf.po", PO.replace("\n", "\r\n").format('msgid "A b"\r\nmsgstr ""\r\n'), '#, fuzzy\r\nmsgid "A b"\r\nmsgstr "A B"\r\n'),
    ("bom.po", "\ufeff" + PO.format('msgid "A b"\nmsgstr ""'), '#, fuzzy\nmsgid "A b"\nmsgstr "A B"\n'),
    ("one_form.po", PO.format('msgid "one"\nmsgid_plural "%d more"\nmsgstr[0] ""\n'), 'msgstr[0] "%d MORE"\n'),
    ("no_blank_lines.po", 'msgid "a"\nmsgstr ""\nmsgid "b"\nmsgstr "x"\n', '#, fuzzy\nmsgid "a"\nmsgstr "A"\nmsgid "b"\nmsgstr "x"\n'),
    ("fuzzy_obsolete.po", '#, fuzzy\n#~ msgid "z"\n#~ msgstr "y"\n\nmsgid "a"\nmsgstr "x"\n', 'msgid "a"\nmsgstr "x"\n'),
    ("half_plural.po", 'msgid "one"\nmsgid_plural "two"\nmsgstr[0] "x"\nmsgstr[1] ""\n', 'msgstr[0] "ONE"\nmsgstr[1] "TWO"\n'),
    ("no_singular.po", 'msgctxt "c"\nmsgid ""\nmsgid_plural "two"\nmsgstr[0] ""\nmsgstr[1] ""\n', 'msgstr[0] ""\nmsgstr[1] "TWO"\n'),
    ("no_msgid.po", 'msgstr "b"\n\nmsgid "a"\nmsgstr ""\n', 'msgstr "b"\n\n#, fuzzy\nmsgid "a"\nmsgstr "A"\n'),
    ("escapes.po", 'msgid "a \\"b\\" \\\\ c\\td"\nmsgstr ""\n', 'msgstr "A \\"B\\" \\\\ C D"'),
    ("separators.po", 'msgid "a\u2028b\x85c"\nmsgstr ""\n', 'msgstr "A\u2028B\x85C"'),
    ("overlapping.srt", CUE.format("First.") + "\n2\n00:00:00,500 --> 00:00:03,000\nsecond one.\n", "FIRST.\n\n2\n00:00:00,500 --> 00:00:03,000\nSECOND ONE.\n"),
    ("no_numbers.srt", "00:00:01,000 --> 00:00:02,000\nno number.", "\nNO NUMBER."),
    ("music.srt", CUE.format("a b") + "\n2\n00:00:02,100 --> 00:00:02,200\n♪\n\n3\n00:00:03,000 --> 00:00:04,000\nc d\n", "\nA B\n\n2\n00:00:02,100 --> 00:00:02,200\n♪\n\n3\n00:00:03,000 --> 00:00:04,000\nC D\n"),
    ("spaced.tmx", TMX.format("<tu ><tuv xml:lang='en' ><seg >a</seg ></tuv ></tu >"), "<seg>A</seg></tuv></tu >"),
    ("empty_cue.srt", CUE.format("") + "\n2\n00:00:03,000 --> 00:00:04,000\ntext\n", "02,000\n\n\n2\n00:00:03,000 --> 00:00:04,000\nTEXT\n"),
    ("positions.srt", "1\n00:00:01,000 --> 00:00:02,000  X1:1 X2:2\n{\\an8}<font color=\"#fff\">hi</font>\n", "X1:1 X2:2\n{\\an8}<font color=\"#fff\">HI</font>\n"),
    ("short_times.vtt", "WEBVTT\n\n00:01.0 --> 00:02.000\na &amp; b\n", "A &amp; B"),
    ("bom.vtt", "\ufeffWEBVTT\r\n\r\n00:01.000 --> 00:02.000\r\na b\r\n", "\r\nA B\r\n"),
    ("plural_number.po", PO.replace("=1", "=2").format('msgid "One file"\nmsgid_plural "%d"\nmsgstr[0] ""\nmsgstr[1] ""\n'), 'msgstr[0] "ONE FILE"\nmsgstr[1] "%d"\n'),
    ("nested.xlf", XLIFF.format(UNIT.format('a <g id="1">b <g id="2">c</g></g> d')), '>A <g id="1">B <g id="2">C</g></g> D</target>'),
    ("cdata.xlf", XLIFF.format(UNIT.format("<![CDATA[a < b]]>")), ">A &lt; B</target>"),
    ("prefix.xlf", '<x:xliff version="1.2" xmlns:x="u"><x:file><x:body><x:trans-unit><x:source>a</x:source></x:trans-unit></x:body></x:file></x:xliff>', "<x:target state=\"needs-review-translation\">A</x:target>"),
    ("escaped_tags.xlf", XLIFF.format(UNIT.format("press &lt;b&gt;here&lt;/b&gt; {0} %1$s")), ">PRESS &lt;b&gt;HERE&lt;/b&gt; {0} %1$s</target>"),
    ("empty_source.xlf", XLIFF.format('<trans-unit id="1"><source/></trans-unit>'), "<source/></trans-unit>"),
    ("quotes.tmx", TMX.format("<tu a='>'><tuv xml:lang='en'><seg>a</seg></tuv></tu>"), "<seg>A</seg></tuv></tu>"),
    ("unclosed.html", "<p>one <b>two<p>three</b> four", "<p>ONE <b>TWO<p>THREE</b> FOUR"),
    ("digits.html", f"<p>a &#{'9' * 5000}; b", "<p>A &#65533; B"),
    ("fragment.html", "no tags &mdash; at all", "NO TAGS &mdash; AT ALL"),
    ("nested.html", "<div><p>a <i>b <b>c</b></i></p>d<!-- e --></div>", "<div><p>A <i>B <b>C</b></i></p>D<!-- e --></div>"),
    ("script_end.html", "<script>'<p>a</p>'</SCRIPT ><p>b</p>", "<script>'<p>a</p>'</SCRIPT ><p>B</p>"),
    ("crlf.md", "# a\r\n\r\nb\r\nc\r\n", "# A\r\n\r\nB C\r\n"),
    ("fences.md", "a\n~~~\nb\n~~~\n    c\n", "A\n~~~\nb\n~~~\n    c\n"),
    ("deep_lists.md", "- a\n  - b\n    > c\n    > d\n", "- A\n  - B\n    > C D\n"),
    ("unbalanced.md", "a *b and `c and [d and _e\n", "A *B AND `C AND [D AND _E\n"),
    ("line_ends.txt", "a\u2028b\x0bc\n\n\n\nd", "A\u2028B\x0bC\n\n\n\nD"),
    ("capital.txt", "Take plan B\u00a0. Then go.\n", "TAKE PLAN B\u00a0. THEN GO.\n"),
    ("indented.txt", "one two three four five six seven\n \u2028 eight nine.", "ONE TWO THREE FOUR FIVE SIX SEVEN\n \u2028 EIGHT NINE."),
    ("blank_before_break.md", "a\u00a0  \nb\u2028", "A\u00a0  \nB\u2028"),
    ("backslash_before_break.md", "a \\  \nb \\\nc", "A \\  \nB \\\nC"),
    ("backslash_at_line_end.md", "a \\\\\nb \\\\\\\nc", "A \\\\ B \\\\\\\nC"),
    ("private.txt", "icon \U000f0000 here and \ue000\n", "ICON \U000f0000 HERE AND \ue000\n"),
    ("empty.txt", "", ""),
    ("blank.md", " \n\n", " \n\n"),
]  # fmt: skip

# name, content, part of the one line
REFUSED = [
    ("latin.txt", "Straße".encode("latin-1"), "line 1 is not UTF-8"),
    ("page.doc", b"", "unknown kind of file"),
    ("utf16.xlf", '<?xml version="1.0" encoding="UTF-16"?><xliff/>'.encode("utf-16"), "not UTF-8"),
    ("declared.xlf", b'<?xml version="1.0" encoding="ISO-8859-1"?><xliff/>', "says that it is in ISO-8859-1"),
    ("broken.xlf", b"<xliff><file>", "not XML"),
    ("other.xlf", b"<tmx/>", "not XLIFF"),
    ("other.tmx", b"<xliff/>", "not TMX"),
    ("bomb.tmx", b'<!DOCTYPE tmx [<!ENTITY a "aaa">]><tmx>&a;</tmx>', "declares entities"),
    ("words.po", b"Hello there\n", "line 1 is not part of a PO message"),
    ("second.po", b'msgid "a"\n\nmsgid "b"\nmsgstr ""\n', "line 3 has a second msgid"),
    ("half.po", b'msgid "a"\n', "has no msgstr"),
    ("text.srt", b"Hello there\n", "has no cues"),
    ("text.vtt", b"1\n00:01.000 --> 00:02.000\na\n", "must begin with WEBVTT"),
    ("forms.po", PO.replace("=1", "=3000000").format("").encode(), "but no language has more than 6 forms"),
    ("digits.po", PO.replace("=1", "=" + "9" * 5000).format("").encode(), "but no language has more than 6 forms"),
    ("tags.xlf", XLIFF.format(UNIT.format('a<x id="1"/>' * 66_000)).encode(), "more than 65,534 tags and placeholders"),
    ("bomb.docx", packed(b" " * (HARMLESS_BYTES + 1), "docx"), "expands to more than 200 times"),
    ("text.docx", b"Hello", "not a DOCX file"),
    ("letter.odt", packed(b"<a/>", "docx"), "it has no such text"),
    ("broken.docx", packed(b"<w:document>", "docx"), "word/document.xml: not XML"),
]


@pytest.mark.parametrize(("name", "content", "expected"), FINE, ids=[row[0] for row in FINE])
def test_nothing_is_lost(name, content, expected):
    out, counts = translated(Path(name), content.encode())
    assert expected in out.decode()
    assert counts.lost == 0
    assert counts.untouched.total() == 0


@pytest.mark.parametrize(("name", "content", "part"), REFUSED, ids=[row[0] for row in REFUSED])
def test_one_line_says_what_is_wrong(name, content, part):
    with pytest.raises(UserError) as caught:
        open_file(Path(name), content, languages=EN_DE)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize(("outer", "inner"), ["hp", "ph"])
def test_paragraphs_in_a_note_of_a_heading_stay(outer, inner):
    content = (
        "<o xmlns:text='t'><text:{0}>a<text:note><text:{1}>b</text:{1}></text:note></text:{0}><text:p>c</text:p></o>"
    )
    content = content.format(outer, inner)
    out, _ = translated(Path("a.odt"), packed(content.encode(), "odt"))
    assert members(out)[PARTS["odt"]].decode() == content.replace(">a<", ">A<").replace(">c<", ">C<")


def test_a_file_can_be_written_twice():
    content = b'<w:document xmlns:w="w"><w:p><w:r><w:t>a b</w:t></w:r></w:p></w:document>'
    stream = io.BytesIO(packed(content, "docx"))
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("word/styles.xml", '<w:lang w:val="en"/>')
    file = open_file(Path("a.docx"), stream.getvalue(), languages=EN_DE)
    fill_file(file, shout)
    assert file.translated() == file.translated()


def test_pictures_stay_packed():
    stream = io.BytesIO()
    stream.seekable = lambda: False  # sizes then stand behind the data
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("wörd/zeros.bin", bytes(HARMLESS_BYTES))
        archive.writestr(PARTS["docx"], '<w:document xmlns:w="w"><w:p><w:r><w:t>a b</w:t></w:r></w:p></w:document>')
        archive.writestr("word/media/stored.png", bytes(range(256)), zipfile.ZIP_STORED)
    before = zipfile.ZipFile(io.BytesIO(stream.getvalue()))
    out, _ = translated(Path("a.docx"), stream.getvalue())
    after = zipfile.ZipFile(io.BytesIO(out))
    assert after.testzip() is None
    assert "A B" in members(out)[PARTS["docx"]].decode()
    for one, other in zip(before.infolist(), after.infolist(), strict=True):
        for key in ("filename", "date_time", "compress_type"):
            assert getattr(one, key) == getattr(other, key)
        if one.filename != PARTS["docx"]:
            assert (one.compress_size, one.CRC) == (other.compress_size, other.CRC)
    # Level 1 packs worse than the level at which a new copy would be packed.
    packed_anew = io.BytesIO()
    with zipfile.ZipFile(packed_anew, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(HARMLESS_BYTES))
        assert archive.getinfo("a").compress_size < after.getinfo("wörd/zeros.bin").compress_size
