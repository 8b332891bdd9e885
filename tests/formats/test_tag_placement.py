# ruff: noqa: E501 (rows of a table)
"""Marks that a model has lost come back by alignment: around and beside the right words, well nested, always."""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from formats_standin import EN_DE, PARTS, forget, members, packed, translated, word_for_word
from test_golden_files import GOLDEN, SOURCES, run

from docmt.formats.file_segments import KINDS, MARK, is_intact, plain_segment
from docmt.formats.tag_placement import MOST_MARKS, BareSentence, TagPlacer, WordAlignment
from docmt.formats.translatable_file import Languages


def place(source, target, links, languages=EN_DE, *, least=0.02):
    """The target with the marks of the source; links are pairs of a target word and its source word, by number."""
    segment = plain_segment(source)
    bare = BareSentence.of(segment, segment.text, KINDS)
    pattern = r"\w+|[^\w\s]" if languages is EN_DE else r"[a-z]+|\w"
    src, tgt = ([word.span() for word in re.finditer(pattern, text)] for text in (bare.text, target))
    weights = np.full((len(tgt), len(src)), least)
    for tgt_word, src_word in links:
        weights[tgt_word, src_word] = 1
    filled = TagPlacer(segment, bare, target, WordAlignment(src, tgt, weights), languages).run()
    assert sorted(MARK.findall(filled)) == sorted(MARK.findall(segment.text))
    return bare.text, segment.plain(filled)


MENU = "Klicken Sie dann auf Datei speichern."
CLICK = [(0, 0), (1, 0), (2, 3), (3, 0), (4, 2), (5, 1), (6, 4)]
IN_ORDER = [(n, n) for n in range(9)]
# source, what the model reads, its translation, links, the translation with marks
PLACES = [
    ("Click <b>Save file</b> then.", "Click Save file then.", MENU, CLICK, "Klicken Sie dann auf <b>Datei speichern</b>."),
    ("Click <b>Save <i>file</i></b> then.", "Click Save file then.", MENU, CLICK, "Klicken Sie dann auf <b><i>Datei</i> speichern</b>."),
    ("Click <i>Save</i> <b>file</b> then.", "Click Save file then.", MENU, CLICK, "Klicken Sie dann auf <b>Datei</b> <i>speichern</i>."),
    # A gap in the words of a pair is bridged; what is far away is not.
    ("<b>look up</b> it", "look up it", "schlag es nach", [(0, 0), (1, 2), (2, 1)], "<b>schlag es nach</b>"),
    ("<b>look up</b> it now", "look up it now", "schlag es jetzt nach", [(0, 0), (1, 2), (2, 3), (3, 1)], "<b>schlag</b> es jetzt nach"),
    ("<b>all</b>.", "all.", "ganz und gar.", [(0, 0), (3, 1)], "<b>ganz und gar</b>."),
    ("one<br/>two <img/> three, <x/>four", "one two three, four", "eins zwei drei, vier", IN_ORDER, "eins<br/>zwei <img/> drei, <x/>vier"),
    ("one.<br/>Two", "one. Two", "eins. Zwei", IN_ORDER, "eins.<br/>Zwei"),
    ("a (<x/>b) <y/>", "a (b) ", "A (B)", IN_ORDER, "A (<x/>B) <y/>"),
    ("a <b></b> c <i>d</i>", "a c d", "A D C", [(0, 0), (1, 2), (2, 1)], "A <b></b> <i>D</i> C"),
    ("file <b>%s</b>?", "file?", "Datei?", IN_ORDER, "Datei <b>%s</b>?"),
    ('of "%s" was', 'of "" was', 'von "" war', IN_ORDER, 'von "%s" war'),
    ("%s files", " files", "Dateien", IN_ORDER, "%s Dateien"),
    ("see the file %s, now", "see the file, now", "jetzt, siehe Datei", [(0, 4), (1, 3), (2, 0), (3, 2)], "jetzt, siehe Datei %s"),
    ("x%sy", "x y", "a b", IN_ORDER, "a%sb"),
    # One side is in another sentence.
    ("two words</b> three", "two words three", "zwei Worte drei", IN_ORDER, "zwei Worte</b> drei"),
    ("<b>+</b> a", "+ a", "+ A", IN_ORDER, "<b>+</b> A"),
    ("<b>a</b>", "a", "...", [], "<b>...</b>"),
    # Parts of words that stay as they are, or end as they did.
    ("H<sub>2</sub>O", "H2O", "H2O", IN_ORDER, "H<sub>2</sub>O"),
    ("word<sup>1</sup>", "word1", "word1", IN_ORDER, "word<sup>1</sup>"),
    ("a word<sup>1</sup> b", "a word1 b", "A Wort1 B1", IN_ORDER, "A Wort<sup>1</sup> B1"),
    ("Eat C<sub>6</sub>H<sub>12</sub> now", "Eat C6H12 now", "Jetzt C6H12", [(0, 2), (1, 1)], "Jetzt C<sub>6</sub>H<sub>12</sub>"),
    ("<i>H<sub>2</sub></i>O or H2O", "H2O or H2O", "H2O or H2O", [(0, 2), (1, 1), (2, 0)], "H2O or <i>H<sub>2</sub></i>O"),
    ("a<i>b</i> c", "ab c", "Cd Ab", [(0, 1), (1, 0)], "Cd A<i>b</i>"),
    ("<i>a</i>b c", "ab c", "C Xy", [(0, 1), (1, 0)], "C <i>Xy</i>"),
    # Punctuation at the edges of a pair.
    ("<b>C++</b>", "C++", "C++", IN_ORDER, "<b>C++</b>"),
    ("in <b>C++</b>.", "in C++.", "in C++.", IN_ORDER, "in <b>C++</b>."),
    ("see <a>(this)</a>", "see (this)", "siehe (dies)", IN_ORDER, "siehe <a>(dies)</a>"),
    ('see <a>"this"</a>.', 'see "this".', "siehe „dies“.", IN_ORDER, "siehe <a>„dies“</a>."),
    ("see (<a>this</a>)", "see (this)", "siehe (dies)", IN_ORDER, "siehe (<a>dies</a>)"),
    ("<b>Really?</b> yes", "Really? yes", "Ja! Wirklich", [(0, 2), (2, 0)], "Ja! <b>Wirklich</b>"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "bare", "target", "links", "expected"), PLACES, ids=[row[0] for row in PLACES])
def test_marks_stand_at_aligned_words(source, bare, target, links, expected):
    count = len(re.findall(r"\w+|[^\w\s]", bare))
    links = [link for link in links if link[1] < count and link[0] < len(re.findall(r"\w+|[^\w\s]", target))]
    assert place(source, target, links) == (bare, expected)


def test_no_word_is_in_a_pair_if_none_attends_to_its_content():
    _, found = place("see <b>this</b> file", "siehe Datei", [(0, 0), (1, 2)], least=0.0)
    assert found == "<b></b> siehe Datei"


def test_languages_without_blanks_are_cut_between_the_words_of_the_alignment():
    links = [(0, 3), (1, 3), (2, 0), (3, 0), (4, 1), (5, 2), (6, 2)]
    _, found = place("open <b>big file</b> %s now", "现在打开大文件", links, Languages("en", "zh"))
    assert found == "现在打开<b>大文件</b>%s"
    assert place("打开%s文件", "open file", [(0, 0), (1, 2)], Languages("zh", "en"))[1] == "open %s file"


@pytest.mark.parametrize("reads_tags", [True, False])
@pytest.mark.parametrize("source", SOURCES)
def test_a_model_that_loses_all_marks_gives_the_same_file(source, reads_tags):
    out, _, counts = run(source, forget, word_for_word, reads_tags=reads_tags)
    assert out.decode() == (GOLDEN / f"expected.{source}").read_bytes().decode()
    assert counts.aligned > counts.lost == 0


def _random_source(generator):
    words = generator.choices(
        ["Haus", "the", "a-b", "3.5", "x", ",", ".", "(y)", '"', "H<i>x</i>O"], k=generator.randint(1, 9)
    )
    for _ in range(generator.randint(1, 4)):
        first, last = sorted(generator.choices(range(len(words)), k=2))
        words[first] = f"<b>{words[first]}"
        words[last] += generator.choice(["</b>", "</b>", "<br/>", " <i></i>"])
    return generator.choice([" ", "  ", ""]).join(words) if generator.random() < 0.2 else " ".join(words)


def test_of_a_thousand_random_alignments_all_are_well_nested_and_change_no_word():
    generator = random.Random(3)
    numbers = np.random.default_rng(3)
    n_marks = 0
    for _ in range(1000):
        segment = plain_segment(_random_source(generator))
        kinds = generator.choice([KINDS, ("tag", "open", "close")])
        bare = BareSentence.of(segment, segment.text, kinds)
        target = " ".join(generator.choices(["Wort", "b,", "(c)", "d-e", "…", "HxO"], k=generator.randint(1, 8)))
        src, tgt = ([word.span() for word in re.finditer(r"\w+|[^\w\s]", text)] for text in (bare.text, target))
        weights = numbers.random((len(tgt), len(src))) ** 8
        filled = TagPlacer(segment, bare, target, WordAlignment(src, tgt, weights), EN_DE).run()
        assert is_intact(segment, filled), (segment.plain(segment.text), segment.plain(filled))
        kept = filled if kinds is KINDS else re.sub(r"[{}\d]", "", filled)
        assert MARK.sub("", kept).replace(" ", "") == target.replace(" ", ""), segment.plain(segment.text)
        n_marks += len(bare.removed)
    assert n_marks > 3000


@pytest.mark.parametrize(
    ("text", "n_left"),
    [
        ("a " + "b<br/>" * (MOST_MARKS - 1) + "c", 0),
        ("a " + "b<br/>" * (MOST_MARKS + 1) + "c", 1),
        ("a <b>" * (MOST_MARKS // 2) + "b" + "</b> c" * (MOST_MARKS // 2), 0),
    ],
)
def test_a_sentence_has_a_most_number_of_marks(text, n_left):
    _, counts = translated(Path("a.po"), f'msgid "{text}"\nmsgstr ""\n'.encode(), forget, word_for_word)
    assert len(counts.left) == n_left


def test_placeholders_by_position_never_change_their_order():
    def swap(pairs):
        return [WordAlignment([(0, 4), (5, 8)], [(0, 4), (5, 9)], np.eye(2)[::-1]) for _ in pairs]

    def translate(documents):
        return [["hat Datei" if "{" not in sentence else "" for sentence in document] for document in documents]

    content = b'msgid "%s file %s has"\nmsgstr ""\n'
    _, counts = translated(Path("a.po"), content.replace(b"%s file %s", b"file %s"), translate, swap)
    assert not counts.left
    _, counts = translated(Path("a.po"), b'msgid "file %s has %d ."\nmsgstr ""\n', translate, swap)
    assert [reason for _, _, reason in counts.left] == ["markup or placeholders did not come back"]


def test_what_the_model_kept_stays_and_only_the_rest_is_put_back():
    """The first segment keeps its numbers; the second loses tags, but keeps `%s`; only that is aligned."""
    pairs = []

    def translate(documents):
        return [[sentence.upper() if "{1}" not in sentence else "" for sentence in d] for d in documents]

    def align(found):
        pairs.extend(found)
        return word_for_word(found)

    content = b'msgid "a %s b"\nmsgstr ""\n\nmsgid "c <i>d</i> %s e"\nmsgstr ""\n'
    out, counts = translated(Path("a.po"), content, translate, align)
    assert pairs == [("c d {0} e", "C D {0} E")]
    assert b'msgstr "A %s B"' in out
    assert b'msgstr "C <i>D</i> %s E"' in out
    assert (counts.segments, counts.aligned) == (2, 1)


def test_looks_and_links_of_a_document_move_with_their_words():
    def piece(text, look=""):
        return f'<w:r>{look and f"<w:rPr><w:{look}/></w:rPr>"}<w:t xml:space="preserve">{text}</w:t></w:r>'

    def paragraph(*runs):
        return f'<w:document xmlns:w="w"><w:p>{"".join(runs)}</w:p></w:document>'

    def link(text):
        return f'<w:hyperlink w:id="1">{piece(text)}</w:hyperlink>'

    ends = piece(" is "), piece("read", "i"), piece(" now")
    source = paragraph(piece("press "), piece("Save", "b"), piece(" after "), link("the help"), *ends)
    ends = piece("lesen", "i"), piece(" ist "), piece("Speichern", "b"), piece(" drücken")
    target = paragraph(piece("jetzt nach "), link("die Hilfe"), piece(" "), *ends)

    def align(pairs):
        assert pairs == [("press Save after the help is read now", "jetzt nach die Hilfe lesen ist Speichern drücken")]
        src, tgt = ([word.span() for word in re.finditer(r"\w+", text)] for text in pairs[0])
        return [WordAlignment(src, tgt, np.eye(8)[[7, 2, 3, 4, 6, 5, 1, 0]])]

    def translate(documents):
        return [["jetzt nach die Hilfe lesen ist Speichern drücken"] for _ in documents]

    out, counts = translated(Path("a.docx"), packed(source.encode(), "docx"), translate, align)
    assert members(out)[PARTS["docx"]].decode() == target
    assert counts.aligned == 1
