"""Placeholders and markup come back, or the segment stays as it was and is counted; where sentences end."""

import random
import re
from pathlib import Path

import pytest
from formats_standin import translated

from docmt.formats.file_segments import MARK, PLACEHOLDER, is_intact, plain_segment
from docmt.formats.sentence_splitting import split_text

VALUES = ["%s", "%d", "%1$s", "%(name)s", "{name}", "{0}", "${path}", "$unit", "%%", "{{a}}", "&nbsp;", "<br/>"]
VALUES += ["%NAME%"]
PAIRS = ["b", "i", "a href='x'"]


@pytest.mark.parametrize(
    "text", [*VALUES, "%.2f", "%-5d", "%1", "https://a.b/c?d=e", "{n, plural, one {# file} other {# files}}"]
)
def test_placeholders_are_recognized(text):
    assert PLACEHOLDER.fullmatch(text)


@pytest.mark.parametrize("text", ["100 % sure", "a < b", "5 $", "R&D", "{", "50%", "a > b"])
def test_text_is_no_placeholder(text):
    assert not MARK.search(plain_segment(text).text)


def test_pairs_nest_and_positions_keep_their_order():
    segment = plain_segment("<b>a</b> %s <i>b</i> %d")
    one, two, three, four, five, six = MARK.findall(segment.text)
    assert is_intact(segment, f"{one}x{two} {three} {four}{five} {six}")
    assert is_intact(segment, f"{four}{five} {three} {one}x{two} {six}")
    assert not is_intact(segment, f"{one}{four}{two}{five} {three} {six}")  # crossed
    assert not is_intact(segment, f"{two}x{one} {three} {four}{five} {six}")  # closed before it is open
    assert not is_intact(segment, f"{one}x{two} {six} {four}{five} {three}")  # %d before %s
    assert not is_intact(segment, f"{one}x{two} {three} {four}{five}")  # one lost
    assert not is_intact(segment, f"{segment.text} %s")  # one made up
    variable = plain_segment("$unit s")
    assert not is_intact(variable, variable.text.replace(" ", ""))  # $units is another


def _sentence(generator):
    """Words with markup among them."""
    words = [generator.choice(["house", "tree", "r&d", "a", "100"]) for _ in range(generator.randint(1, 8))]
    for _ in range(generator.randint(1, 3)):
        words.insert(generator.randrange(len(words) + 1), generator.choice(VALUES))
    for pair in generator.sample(PAIRS, generator.randint(0, 2)):
        start = generator.randrange(len(words))
        words[start] = f"<{pair}>{words[start]}</{pair.split()[0]}>"
    return " ".join(words)


def _careless(generator):
    """A translator that drops, doubles, moves and invents marks in half of the sentences."""

    def damaged(sentence):
        pieces = re.split(r"(\{\d+\})", sentence.upper())
        if generator.random() < 0.5 and len(pieces) > 1:
            place = generator.randrange(1, len(pieces), 2)
            pieces[place] = generator.choice(["", pieces[place] * 2, "{ 9 }", "%s", "<b>", "{}"])
            if generator.random() < 0.3:
                generator.shuffle(pieces)
        return "".join(pieces)

    return lambda documents: [[damaged(sentence) for sentence in document] for document in documents]


@pytest.mark.parametrize("suffix", ["po", "lines"])
def test_of_a_thousand_segments_none_loses_a_mark_silently(suffix):
    generator = random.Random(7)
    sources = [_sentence(generator) for _ in range(1000)]
    if suffix == "po":
        escaped = [source.replace('"', '\\"') for source in sources]
        content = "\n".join(f'msgctxt "{n}"\nmsgid "{text}"\nmsgstr ""\n' for n, text in enumerate(escaped))
    else:
        content = "\n".join(sources)
    out, counts = translated(Path("x"), content.encode(), _careless(generator), name=suffix)
    text = out.decode()
    found = re.findall(r'msgstr "(.*)"', text) if suffix == "po" else text.split("\n")
    untouched = 0
    for source, target in zip(sources, found, strict=True):
        if target in ("", source):
            untouched += bool(re.search("[a-z]", PLACEHOLDER.sub("", source)))
        else:
            assert sorted(PLACEHOLDER.findall(target)) == sorted(PLACEHOLDER.findall(source)), (source, target)
    assert untouched == counts.untouched.total() > 100
    assert counts.segments - untouched > 100
    assert counts.lost == 0


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
