"""Input that readers could lose, join or misalign. They refuse it, count it or read it correctly."""

import gzip
import io
import lzma
import zipfile
from pathlib import Path

import pytest
from hostile_files import tar_of
from reading import parse, refusal, texts

from docmt.corpora.file_patterns import paired_files
from docmt.corpora.readers.translated_files import read_cues
from docmt.errors import UserError


def sides(tmp_path, files, languages=("en", "de"), **form):
    documents, counts = parse(tmp_path, files, languages, **form)
    return [side for _, *side in texts(documents)], counts


# Subtitles


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # A blank line between the times and the text, or in the text.
        ("1\n00:01,0 --> 00:02,0\n\nFine!\n\n2\n00:03,0 --> 00:04,0\nOne.\n\nNo.\n", ["Fine!", "One. No."]),
        # Unpadded times, without hours, with a full stop, a colon or blanks before the fraction, or without one.
        ("0:0:0.0 --> 0:0:3.540\nA\n\n0:58.2 --> 1:2.95\nB\n\n0:10:12,5-->0:10:14\nC\n", ["A", "B", "C"]),
        ("1\n00:00:01:500 --> 00:00:02:000\nA\n\n2\n00:00:03, 250 --> 00:00:04 ,000 X1:0\nB\n", ["A", "B"]),
        # Numbers glued to the text before. Numbers that are text.
        ("1\n00:01,0 --> 00:02,0\nA\n2\n00:03,0 --> 00:04,0\n1984\n\n3\n00:05,0 --> 00:06,0\nB\n", ["A", "1984", "B"]),
        ("00:01,0 --> 00:02,0\nA\n1984\n\n00:03,0 --> 00:04,0\nB\n", ["A 1984", "B"]),
        # Cues in any order.
        ("1\n00:09,0 --> 00:10,0\nB\n\n2\n00:01,0 --> 00:02,0\nA\n", ["A", "B"]),
        # WebVTT: names, notes, styles. CRLF.
        ("WEBVTT - x\r\nKind: c\r\n\r\nSTYLE\r\n::cue {}\r\n\r\na/1-0\r\n00:01.0 --> 00:02.0\r\n<v Jo>A</v>\r\n\r\n"
         "NOTE no\r\ntext\r\n\r\nname\r\n00:03.0 --> 00:04.0\r\nB\r\n", ["A", "B"]),
        ("WEBVTT\n", []),
        ("", []),
    ],
)  # fmt: skip
def test_cues_keep_all_text(tmp_path, content, expected):
    path = tmp_path / "a.srt"
    path.write_bytes(content.encode())
    assert [cue.text for cue in read_cues(path)] == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n00:00:01,000 -->\nA\n\n2\n00:00:03,0 --> 00:00:04,0\nB\n", "line 2: the times '00:00:01,000 -->'"),
        ("1\n00:00:01,000 --> 00:00:02,000\nA\n\n2\n00:03 --> x\nB\n", "line 6: the times '00:03 --> x'"),
        ("Some text\n\n1\n00:00:01,0 --> 00:00:02,0\nA\n", "has text before the first cue"),
    ],
)
def test_times_that_cannot_be_read_are_refused(tmp_path, content, message):
    (tmp_path / "a.srt").write_text(content)
    with pytest.raises(UserError, match=message):
        read_cues(tmp_path / "a.srt")


def test_films_are_paired_by_their_names(tmp_path):
    cue = "1\n00:00:01,0 --> 00:00:02,0\n{}\n"
    for name in ("show.1.en", "show.2.en", "show.10.en", "show.01.de", "show.02.de", "show.10.de"):
        (tmp_path / f"{name}.srt").write_text(cue.format(name))
    files = {lang: f"*.{lang}.srt" for lang in ("en", "de")}
    from docmt.corpora.readers.registry import read
    from docmt.corpora.readers.translated_files import SrtPairs

    paths = {lang: tmp_path / pattern for lang, pattern in files.items()}
    documents, _ = read(paths, form=SrtPairs(reader="srt_pairs"), languages=("en", "de"))
    assert [(src[0][5:-3], tgt[0][5:-3]) for _, src, tgt in texts(documents)] == [
        ("1", "01"),
        ("10", "10"),
        ("2", "02"),
    ]
    (tmp_path / "show.02.de.srt").rename(tmp_path / "show.03.de.srt")
    with pytest.raises(UserError, match=r"show\.2\.en\.srt: has no counterpart among"):
        read(paths, form=SrtPairs(reader="srt_pairs"), languages=("en", "de"))


@pytest.mark.parametrize(
    "names", [("talk.it.works.{}", "*.{}"), ("dev.en-de.{}.txt", "*.{}.txt"), ("de/a.{}", "de/*.{}")]
)
def test_names_can_contain_both_languages(tmp_path, names):
    name, pattern = (str(tmp_path / name) for name in names)
    languages = ("it" if "it" in name else "en", "de")
    (tmp_path / "de").mkdir()
    for lang in languages:
        Path(name.format(lang)).touch()
    (paired,) = paired_files([Path(pattern.format(lang)) for lang in languages], languages)
    assert [file.name for file in paired[1:]] == [Path(name.format(lang)).name for lang in languages]


# Translation memories and test sets

UNIT = '<tu><tuv xml:lang="{}"><seg>{}</seg></tuv><tuv xml:lang="{}"><seg>{}</seg></tuv></tu>'


def tmx(*units, declared="UTF-8"):
    return (
        f'<?xml version="1.0" encoding="{declared}"?>\n<tmx version="1.4"><header/><body>{"".join(units)}</body></tmx>'
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("<ph>&lt;br/&gt;</ph>", "six lines"),
        ('<ph type="lb"/>', "six lines"),
        ("<it pos='begin'>&lt;p class='x'&gt;</it>", "six lines"),
        ("<ph>\\n</ph>", "six lines"),
        ("<bpt i='1'>&lt;b&gt;</bpt>", "sixlines"),
        ("<ph>&lt;br&gt;</ph> ", "six lines"),
    ],
)
def test_line_breaking_code_is_a_blank(tmp_path, code, expected):
    documents, _ = sides(tmp_path, {"both": tmx(UNIT.format("en", f"six{code}lines", "de", "x"))}, reader="tmx")
    assert documents == [[[expected], ["x"]]]


def test_second_variants_of_a_language_are_counted(tmp_path):
    more = '<tuv xml:lang="{}"><seg>{}</seg></tuv></tu>'
    units = [
        UNIT.format("en-GB", "colour", "de-DE", "Farbe").replace("</tu>", more.format("en-US", "color")),
        UNIT.format("EN", "two", "de", "zwei").replace("</tu>", more.format("deu", "zwo")),
        UNIT.format("en_US", "three", "de-AT", "A").replace("</tu>", more.format("de", "drei")),
    ]
    documents, counts = sides(tmp_path, {"both": tmx(*units)}, reader="tmx")
    assert documents == [[["colour", "two", "three"], ["Farbe", "zwei", "drei"]]]
    assert counts.dropped == {"another variant of a language": 3}


@pytest.mark.parametrize("codec", ["ISO-8859-1", "windows-1251", "UTF-16", "gb18030", "utf-8"])
def test_declared_encodings_are_read(tmp_path, codec):
    text = {"ISO-8859-1": "äöü", "windows-1251": "Привет"}.get(codec, "你好")
    content = tmx(UNIT.format("en", "x", "de", text), declared=codec).encode(codec)
    assert sides(tmp_path, {"both": content}, reader="tmx")[0] == [[["x"], [text]]]
    marked = f'<?xml version="1.0" encoding="{codec}"?>\n<doc docid="a"><seg id="1">{text}</seg></doc>'
    files = {"en": marked.encode(codec), "de": marked.encode(codec)}
    assert sides(tmp_path, files, reader="segments")[0] == [[[text], [text]]]


@pytest.mark.parametrize(("codec", "message"), [("klingon", "unknown encoding 'klingon'"), ("hex", "unknown encoding")])
def test_encodings_that_do_not_exist_are_refused(tmp_path, codec, message):
    assert message in refusal(tmp_path, {"both": tmx(declared=codec)}, reader="tmx")


@pytest.mark.parametrize("codec", ["utf-16", "UTF-16-LE", "utf_16_be"])
@pytest.mark.parametrize("text", ["ab", "abc"])
def test_converted_files_can_declare_utf_16(tmp_path, text, codec):
    content = tmx(UNIT.format("en", "x", "de", text), declared=codec)
    assert sides(tmp_path, {"both": content}, reader="tmx")[0] == [[["x"], [text]]]


def test_what_is_no_text_says_what_it_is(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.tmx", tmx())
    assert "is a zip archive, not text: unpack it" in refusal(tmp_path, {"both": stream.getvalue()}, reader="tmx")
    packed = gzip.compress(b"a\tb\n")
    assert "is compressed with gzip: add .gz to its name" in refusal(tmp_path, {"both": packed}, reader="tsv")
    for reader, files in (("blank_lines", ("en", "de")), ("single_lines", ("en", "de")), ("tsv", ("both",))):
        text = refusal(tmp_path, dict.fromkeys(files, "a\tb\rc\td\r"), reader=reader)
        assert "its lines end in CR only" in text
    cyrillic = "Привет\n".encode("cp1251")
    assert "-f ENCODING -t UTF-8`, where" in refusal(tmp_path, {"en": cyrillic, "de": "x\n"}, reader="blank_lines")


def test_comments_and_cdata_of_sgml(tmp_path):
    text = (
        '<srcset><doc docid="d"><seg id="1">&eacute; &amp;nbsp; AT&T</seg>\n<!-- <seg id="9">out</seg>\n-->\n'
        '<seg id="2">Upper <![CDATA[raw <x> & y]]> case</seg><seg id="3">a <!-- b --> c</seg></doc></srcset><!-- open'
    )
    documents, _ = sides(tmp_path, {"en": text, "de": text}, reader="segments")
    assert documents[0][0] == ["é &nbsp; AT&T", "Upper raw <x> & y case", "a  c"]


# CoNLL-U

WORD = "{}\t{}\t_\t_\t_\t_\t_\t_\t_\t{}\n"


def words(*forms):
    return "".join(
        WORD.format(n, form.rstrip("~"), "SpaceAfter=No" if form.endswith("~") else "_") for n, form in forms
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("# newdoc id = a\n# text = A.\n\n# newdoc\n# text = B.\n\n# newdoc id=c\n# text = C.\n\n"
         "#newdoc id = d\n#text = D.\n",
         [("a", ["A."]), ("unnamed", ["B."]), ("c", ["C."]), ("d", ["D."])]),
        # The document is named again at each of its sentences, and later once more.
        ("# newdoc id = a\n# text = 1\n\n# newdoc id = a\n# text = 2\n\n# newdoc id = b\n# text = 3\n\n"
         "# newdoc id = a\n# text = 4\n",
         [("a", ["1", "2"]), ("b", ["3"]), ("a#2", ["4"])]),
        # Without `# text`: words, contractions (`2-3`), and words that are not in the text (`3.1`).
        ("# newdoc\n" + words((1, "Das~"), ("2-3", "zum~"), (2, "zu"), (3, "dem"), ("3.1", "x"), (4, "."), (5, "Ja"))
         + "\n# text = B\n",
         [("unnamed", ["Daszum. Ja", "B"])]),
    ],
)  # fmt: skip
def test_documents_and_sentences_of_conllu(tmp_path, content, expected):
    for suffix, data in (
        (".conllu", content),
        (".conllu.gz", gzip.compress(content.encode())),
        (".txt", "\ufeff" + content),
        (".tar", tar_of({"a.conllu": content})),
        (".tgz", gzip.compress(tar_of({"a.conllu": "\ufeff" + content}))),
        (".tar.xz", lzma.compress(tar_of({"a.conllu": content}))),
    ):
        documents, _ = parse(tmp_path, {"en": data}, ["en"], reader="conllu", suffix=suffix)
        assert texts(documents) == expected


@pytest.mark.parametrize(
    ("misc", "expected"),
    [
        ("SpaceAfter=No", "sogood"),
        ("Lang=en|SpaceAfter=No", "sogood"),
        ("CorrectSpaceAfter=No", "so good"),
        ("SpaceAfter=Not|CorrectSpaceAfter=No", "so good"),
        ("SpacesAfter=\\n", "so good"),
    ],
)
def test_spaces_between_words_of_conllu(tmp_path, misc, expected):
    content = "# newdoc\n" + WORD.format(1, "so", misc) + WORD.format(2, "good", "_")
    documents, _ = parse(tmp_path, {"en": content}, ["en"], reader="conllu", suffix=".conllu")
    assert texts(documents) == [("unnamed", [expected])]


# Tables, catalogs and columns


def test_rows_of_a_table_are_equally_long(tmp_path):
    assert "line 2 has 2 cells, but the lines" in refusal(tmp_path, {"both": "a\tb\tc\nd\te\n"}, reader="tsv")
    assert "line 3 has 3 cells, but the lines" in refusal(tmp_path, {"both": "a\tb\n\nd\te\tf\n"}, reader="tsv")


def test_a_catalog_without_references_is_one_page(tmp_path):
    entry = 'msgid "{}"\nmsgstr "{}"\n\n'
    content = (
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
        + entry.format("B", "b")
        + entry.format("A", "a")
    )
    for reader in ("po_pages", "po_files"):
        documents, counts = sides(tmp_path, {"both": content}, reader=reader)
        assert documents == [[["B", "A"], ["b", "a"]]]
        assert not counts.dropped
