"""Splitting segments into sentences; marks at the edges of a sentence stay outside."""

import itertools
import re

from docmt.formats.file_segments import MARK, FileSegment

# Languages without blanks between sentences.
WITHOUT_BLANKS = ("zh", "ja", "th", "lo", "km", "my", "yue")
# These end a sentence only before white space, not inside a word such as `NORM.DIST`.
FULL_STOPS = (".", "!", "?")
# White space beyond ASCII before a full stop: the library fails on it behind a single capital letter.
FRAGILE = re.compile(r"[^\S\x00-\x7f](?=\.)")
# Longer lines are split in pieces, because the library takes quadratic time for some.
PIECE = re.compile(r".{1,10000}(?:\Z|(?<=[.!?]\s))|.{1,10000}", re.DOTALL)


def split_text(text: str, lang: str) -> list[str]:
    """The sentences of a text, each with the white space after it; a line end ends one.

    No sentence ends inside a word or between backquotes.
    """
    # Imported here, because most commands do without it; a compiled library without types.
    from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]

    sentences = []
    for line in itertools.chain.from_iterable(map(PIECE.findall, text.splitlines(keepends=True))):
        has_pairs = line.count("`") % 2 == 0
        start = end = 0
        for part in segment(lang, FRAGILE.sub(" ", line)):
            end += len(part)
            sentence = line[start:end]
            if not sentence.endswith(FULL_STOPS) and not (has_pairs and sentence.count("`") % 2):
                sentences.append(sentence)
                start = end
        if start < len(line):
            sentences.append(line[start:])
    return sentences


def split_segment(segment: FileSegment, text: str, lang: str) -> list[str]:
    """The sentences of a segment's text, as if it had no markup; joined they are the text."""
    if segment.is_sentence:
        return [text]
    kept = [n for n, character in enumerate(text) if not _is_markup(segment, character)]
    plain = "".join(text[n] for n in kept)
    cuts, position = [0], 0
    for sentence in split_text(plain, lang)[:-1]:
        position += len(sentence)
        cut = kept[position]
        # Markup before a sentence belongs to it, except closing tags.
        while cut > cuts[-1] and _is_markup(segment, text[cut - 1]) and segment.mark(text[cut - 1]).kind != "close":
            cut -= 1
        cuts.append(cut)
    return [text[start:end] for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def _is_markup(segment: FileSegment, character: str) -> bool:
    return bool(MARK.match(character)) and segment.mark(character).kind != "value"


def trim(segment: FileSegment, sentence: str) -> tuple[str, str, str]:
    """White space and markup before a sentence, the sentence, and white space and markup after it.

    If both sides of a pair are in the sentence, they are taken away together or not at all.
    """
    start, end = 0, len(sentence)
    pairs = {place: segment.mark(character).pair for place, character in enumerate(sentence) if MARK.match(character)}
    sides: dict[int, list[int]] = {}
    for place, pair in pairs.items():
        if pair is not None:
            sides.setdefault(pair, []).append(place)

    def is_outside(place: int) -> bool:
        if not _is_markup(segment, sentence[place]):
            return sentence[place].isspace()
        pair = pairs[place]
        return pair is None or len(sides[pair]) == 1

    while start < end:
        if is_outside(start):
            start += 1
        elif is_outside(end - 1):
            end -= 1
        elif (pair := pairs.get(start)) is not None and sides[pair] == [start, end - 1]:
            start, end = start + 1, end - 1
        else:
            break
    return sentence[:start], sentence[start:end], sentence[end:]
