"""Headers and times that look like text, and text that looks like them. Every line is kept, counted or refused."""

import re

import pytest
from reading import parse, refusal, texts


def talk(*lines):
    header = ["<url>http://talk/3</url>", "<talkid>3</talkid>", "<title>Bridges</title>", "<description>On bridges"]
    return "".join(f"{line}\n" for line in [*header[:3], header[3] + "</description>", *lines])


@pytest.mark.parametrize(
    "sentence",
    [
        "<title> is the tag that I mean.",
        "<URL> stands for an address.",
        "<speaker>: that is how scripts begin.",
        "<document> is the root element.",
        "</doc> ends it.",
        "<titles> are long",
    ],
)
@pytest.mark.parametrize("position", [0, 1])
def test_sentences_like_headers_are_kept_or_counted(tmp_path, sentence, position):
    sentences = ["First.", "Last."]
    sentences.insert(position, sentence)
    text = talk(*sentences)
    documents, counts = parse(tmp_path, {"en": text, "de": text}, reader="iwslt_train")
    (document,) = documents
    assert document.id == "3"
    assert len(document) + counts.dropped.total() == 3
    if position == 1 or sentence.startswith("<titles>"):
        assert list(document.src) == sentences


def test_whole_header_lines_in_a_talk_are_counted(tmp_path):
    lines = ["One.", "<title>Two</title>", "Three.", "<reviewer></reviewer><translator>A</translator>", "</doc>"]
    text = talk(*lines)
    documents, counts = parse(tmp_path, {"en": text, "de": text}, reader="iwslt_train")
    assert texts(documents) == [("3", ["One.", "Three."], ["One.", "Three."])]
    assert counts.dropped == {"header after the first sentence": 1}


def wmt_xml(src, *references):
    sides = [f'<src lang="{src}"><seg id="1">A</seg></src>']
    sides += [f'<ref lang="{lang}" translator="{name}"><seg id="1">{lang}</seg></ref>' for lang, name in references]
    return f'<dataset><doc id="d">{"".join(sides)}</doc></dataset>'


@pytest.mark.parametrize(
    ("src", "references", "languages", "expected"),
    [
        ("en", [("zh-CN", "A")], ("en", "zh"), "zh-CN"),
        ("en", [("zh-TW", "A"), ("zh", "A")], ("en", "zh"), "zh"),
        ("eng_Latn", [("deu", "A")], ("en", "de"), "deu"),
        ("en-GB", [("pt-BR", "A"), ("pt-PT", "B")], ("en", "pt"), "pt-BR"),
        ("en", [("uk", "A"), ("nb_NO", "A")], ("en", "nb"), "nb_NO"),
    ],
)
def test_wmt_xml_accepts_other_spellings_of_languages(tmp_path, src, references, languages, expected):
    documents, _ = parse(tmp_path, {"both": wmt_xml(src, *references)}, languages, reader="wmt_xml")
    assert texts(documents) == [("d", ["A"], [expected])]


def test_wmt_xml_names_the_sides_of_a_document(tmp_path):
    content = wmt_xml("en", ("fr", "B"), ("de", "B"))
    message = refusal(tmp_path, {"both": content}, ("en", "zh"), reader="wmt_xml")
    assert "needs two sides, en <src> and zh <ref>, but contains <src {'lang': 'en'}>, <ref {'lang': 'fr'" in message
    message = refusal(tmp_path, {"both": content}, reader="wmt_xml", translator="A")
    assert "de <ref> by translator 'A', but contains" in message


def subtitles(*times):
    return "".join(f"{number}\n{time}\nLine {number}.\n\n" for number, time in enumerate(times, start=1))


SECOND = "00:00:03{0}000 {1} 00:00:04{0}500"


@pytest.mark.parametrize(
    "line",
    [
        SECOND.format("，", "-->"),
        SECOND.format(",", "—>"),
        SECOND.format("．", "–>"),
        SECOND.format(",", "→"),
        SECOND.format(",", "－－＞"),
        "００：００：０３，０００ --> ００：００：０４，５００",
        "٠٠:٠٠:٠٣,٠٠٠ --> ٠٠:٠٠:٠٤,٥٠٠",
    ],
)
def test_times_with_other_marks_are_read(tmp_path, line):
    text = subtitles("00:00:01,000 --> 00:00:02,000", line, "00:00:05,000 --> 00:00:06,000")
    documents, counts = parse(tmp_path, {"en": text, "de": text}, suffix=".srt", reader="srt_pairs")
    assert documents[0].src == ("Line 1.", "Line 2.", "Line 3.")
    assert not counts.dropped


@pytest.mark.parametrize("arrow", ["=>", "==>", "bis", "-", ">>", "…"])
def test_times_with_unknown_arrows_are_refused(tmp_path, arrow):
    text = subtitles("00:00:01,000 --> 00:00:02,000", SECOND.format(",", arrow))
    message = refusal(tmp_path, {"en": text, "de": text}, reader="srt_pairs")
    assert re.search(r"line 6: the times '00:00:03,000 .* 00:00:04,500' cannot be read", message)


@pytest.mark.parametrize("text", ["10:30 → 11:45 Bonn", "It is 10:30 — time to go", "3:2 > 1:1", "12：00 → 13：00"])
def test_clocks_in_sentences_are_text(tmp_path, text):
    cue = f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n\n2\n00:00:03,000 --> 00:00:04,000\nEnd.\n"
    documents, _ = parse(tmp_path, {"en": cue, "de": cue}, suffix=".srt", reader="srt_pairs")
    assert documents[0].src == (text, "End.")
