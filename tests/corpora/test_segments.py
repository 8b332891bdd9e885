"""WMT's and IWSLT's segment formats, well-formed or not."""

import pytest
from reading import parse, refusal

from docmt.corpora.readers.sgml import read_refsets, replace_entities
from docmt.errors import UserError

EN = """<srcset setid="x" srclang="any">
<doc docid="a" genre="news">
<hl><seg id="1">Title</seg></hl>
<p>
<seg id="2">Tom & Jerry &lt;3</seg>
</p>
</doc>
<DOC sysid='s' docid='b'>
<seg id=1> One
more </seg>
</DOC>
</srcset>
"""
DE = """<?xml version="1.0"?>
<refset setid="x">
<doc docid="a" sysid="ref"><title>not text</title>
<seg id="1">Titel</seg>
<seg id="2">Tom &amp; Jerry
</p>
</doc>
<doc sysid="ref" docid="b"><seg id="1"/></doc>
</refset>
"""


def test_segments_read_files_that_are_not_well_formed(tmp_path):
    en = EN.replace(" sysid='s'", "")
    documents, counts = parse(tmp_path, {"en": en.replace("\n", "\r\n"), "de": DE}, reader="segments")
    assert [d.id for d in documents] == ["a", "b"]
    assert documents[0].src == ("Title", "Tom & Jerry <3")
    assert documents[0].tgt == ("Titel", "Tom & Jerry")
    assert documents[1].src == ("One more",)
    assert (counts.empty_target, counts.joined_sentences) == (1, 1)


def test_segments_pair_documents_by_name(tmp_path):
    en = '<doc docid="a"><seg id="1">A</seg></doc><doc docid="b"><seg id="1">B</seg></doc>'
    de = (
        '<doc docid="b" sysid="x"><seg id="1">Zwei</seg></doc><doc docid="a" sysid="x"><seg id="1">Eins</seg></doc>'
        '<doc docid="a" sysid="y"><seg id="1">Anders</seg></doc>'
    )
    documents, counts = parse(tmp_path, {"en": en, "de": de}, reader="segments")
    assert [(d.id, d.tgt) for d in documents] == [("a", ("Eins",)), ("b", ("Zwei",))]
    assert counts.dropped == {"another reference": 1}


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ('<refset refid="r1">{A}</refset><refset refid="r2">{B}</refset>', ("", "")),
        ("<refset>{A}{B}</refset>", (' sysid="r1"', ' sysid="r2"')),
        ('<REFSET setid="s" refid="r1">{A}</REFSET><refset>{B}</refset>', ("", "")),
        ('<tstset sysid="r1">{A}</tstset><tstset sysid="r2">{B}</tstset>', ("", "")),
    ],
)
def test_further_references_are_named(tmp_path, content, names):
    texts = {
        side: f'<doc docid="a"{name}>\n<hl><seg id="1">{side} &amp; a</seg></hl></doc>'
        f"\n<DOC docid=b{name}><seg id=1></seg></DOC>"
        for side, name in zip("AB", names, strict=True)
    }
    path = tmp_path / "ref.sgm"
    path.write_text(content.format(**texts), encoding="utf-8")
    read = [[(document.id, document.sides) for document in documents] for documents in read_refsets(path)]
    assert read == [[("a", ((f"{side} & a",),)), ("b", (("",),))] for side in "AB"]
    en = '<srcset><doc docid="a"><seg id="1">x</seg></doc><doc docid="b"><seg id="1">y</seg></doc></srcset>'
    documents, counts = parse(tmp_path, {"en": en, "de": path.read_text()}, reader="segments")
    assert [document.tgt for document in documents] == [("A & a",), ("",)]
    assert counts.dropped == {"another reference": 2}


def test_segments_pair_plain_lines(tmp_path):
    en = '<doc docid="a"><seg id="1">A</seg><seg id="2">B</seg></doc><doc docid="b"><seg id="1">C</seg></doc>'
    documents, _ = parse(tmp_path, {"en": en, "de": "D\r\nE\u2028e\r\nF\r\n"}, reader="segments", plain=["de"])
    assert [d.tgt for d in documents] == [("D", "E\u2028e"), ("F",)]


@pytest.mark.parametrize(
    ("en", "de", "plain", "parts"),
    [
        ('<doc docid="a">\n<seg id="1">A</seg>\n</doc>', "D\nE\n", ["de"], ["2 lines", "1 segments", "line 2"]),
        ("<seg id='1'>A</seg>", "<doc docid='a'><seg id='1'>A</seg></doc>", [], ["file.en", "line 1", "outside"]),
        ("", "<doc docid='a'><seg id='1'>A</seg></doc>", [], ["file.en", "contains no <doc>"]),
        (
            '<doc docid="a">\n<seg id="1">A</seg>\n<seg id="3">B</seg>\n</doc>',
            '<doc docid="a">\n<seg id="1">A</seg>\n<seg id="2">B</seg>\n<seg id="3">C</seg>\n</doc>',
            [],
            ["document a", "sentence 3", "line 3", "file.en", "file.de"],
        ),
        (
            '<doc docid="a">\n<seg id="1">A</seg>\n</doc>',
            '<doc docid="a">\n<seg id="1">A</seg>\n<seg id="2">B</seg>\n</doc>',
            [],
            ["document a", "line 2 of the first", "line 3 of the second"],
        ),
        (
            '<doc docid="a"><seg id="1">A</seg></doc>\n<doc docid="b"><seg id="1">A</seg></doc>',
            '<doc docid="a"><seg id="1">A</seg></doc>',
            [],
            ["line 2", "document b", "is not in"],
        ),
    ],
)
def test_segments_name_the_first_bad_line(tmp_path, en, de, plain, parts):
    text = refusal(tmp_path, {"en": en, "de": de}, reader="segments", plain=plain)
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a &amp; b &quot;c&quot; &apos;", 'a & b "c" \''),
        ("&#228;&#xE4;", "ää"),
        ("AT&T &copy &none; &#0; &#xD800; &", "AT&T &copy &none; &#0; &#xD800; &"),
        ("&amp;lt; &amp;nbsp;", "&lt; &nbsp;"),
        ("&nbsp;&eacute;&hellip;&ndash;", "\xa0é…–"),
    ],
)
def test_whole_entities_are_replaced(text, expected):
    assert replace_entities(text) == expected


WMT_XML = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="w"><collection id="c"><doc id="a" origlang="en">
<src lang="en"><p><seg id="1">A &amp; a</seg></p><p><seg id="2">B</seg></p></src>
<ref lang="de" translator="X"><p><seg id="1">Ax</seg></p><p><seg id="2">Bx</seg></p></ref>
<ref lang="de" translator="Y"><p><seg id="1">Ay</seg></p><p><seg id="2">By</seg></p></ref>
<hyp system="s"><p><seg id="1">no</seg></p></hyp>
</doc></collection></dataset>
"""


@pytest.mark.parametrize(("translator", "expected"), [(None, ("Ax", "Bx")), ("Y", ("Ay", "By"))])
def test_wmt_xml_reads_the_chosen_reference(tmp_path, translator, expected):
    documents, counts = parse(tmp_path, {"both": WMT_XML}, reader="wmt_xml", translator=translator)
    assert documents[0].src == ("A & a", "B")
    assert documents[0].tgt == expected
    assert counts.dropped == {"another reference": 2}


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (WMT_XML.replace("</p></src>", "</src>"), "line 3 is not well-formed"),
        (WMT_XML.replace('lang="de"', 'lang="fr"'), "document a needs two sides"),
        (WMT_XML.replace('<seg id="2">Bx</seg>', ""), "segment 2"),
        ('<!DOCTYPE d [<!ENTITY x "y">]><d>&x;</d>', "entities"),
        ('<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/hostname">]><d>&x;</d>', "entities"),
        ("<dataset/>", "contains no sentences"),
    ],
)
def test_wmt_xml_refuses_bad_files(tmp_path, content, part):
    assert part in refusal(tmp_path, {"both": content}, reader="wmt_xml")


def talk(number: int, *sentences: str, has_doc: bool = False) -> str:
    head = f'<doc docid="{number}" genre="lectures">\n' if has_doc else ""
    tags = f"<url>http://x/{number}</url>\n<keywords>k</keywords>\n<speaker>S</speaker>\n<talkid>{number}</talkid>\n"
    return head + tags + "<title>T</title>\n<description>D</description>\n" + "".join(f"{s}\n" for s in sentences)


@pytest.mark.parametrize("has_doc", [False, True])
def test_iwslt_training_text(tmp_path, has_doc):
    tail = "<reviewer></reviewer>\n<translator>N</translator>\n" + ("</doc>\n" if has_doc else "")
    en, de = (
        talk(7, f" {x}1 ", "", has_doc=has_doc) + tail + talk(8, has_doc=has_doc) + talk(9, f"{x}2", has_doc=has_doc)
        for x in "ED"
    )
    documents, counts = parse(tmp_path, {"en": en, "de": de}, reader="iwslt_train")
    assert [(d.id, d.src, d.tgt) for d in documents] == [("7", ("E1", ""), ("D1", "")), ("9", ("E2",), ("D2",))]
    assert counts.empty_documents == 1
    assert counts.empty_both == 1


def test_iwslt_talk_of_other_length_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"document 7: 2 sentences .* 1 in .* 8 of the first file; .* 7 of the second"):
        parse(tmp_path, {"en": talk(7, "a", "b"), "de": talk(7, "a")}, reader="iwslt_train")
