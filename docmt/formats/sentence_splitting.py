"""Splitting segments into sentences; marks at the edges of a sentence stay outside."""

from collections.abc import Sequence

from docmt.formats.file_segments import MARK, FileSegment

# Languages without blanks between sentences.
WITHOUT_BLANKS = ("zh", "ja", "th", "lo", "km", "my", "yue")
# These end a sentence only before white space, not inside a word such as `NORM.DIST`.
FULL_STOPS = (".", "!", "?")


def split_text(text: str, lang: str) -> list[str]:
    """The sentences of a text, each with the white space after it; a line end ends one.

    No sentence ends inside a word or between backquotes.
    """
    # Imported here, because most commands do without it; a compiled library without types.
    from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]

    sentences = []
    for line in text.splitlines(keepends=True):
        has_pairs, sentence = line.count("`") % 2 == 0, ""
        for part in segment(lang, line):
            sentence += part
            if not sentence.endswith(FULL_STOPS) and not (has_pairs and sentence.count("`") % 2):
                sentences.append(sentence)
                sentence = ""
        if sentence:
            sentences.append(sentence)
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
    while start < end:
        first, last = (_partner(segment, sentence[start:end], place) for place in (0, -1))
        if first == "outside":
            start += 1
        elif last == "outside":
            end -= 1
        elif first == last == "around":
            start, end = start + 1, end - 1
        else:
            break
    return sentence[:start], sentence[start:end], sentence[end:]


def _partner(segment: FileSegment, text: str, place: int) -> str:
    """The role of the character at an edge: it can stay `outside`, is part of a pair `around` all, or is `text`."""
    character = text[place]
    if character.isspace():
        return "outside"
    if not _is_markup(segment, character):
        return "text"
    mark = segment.mark(character)
    if mark.pair is None:
        return "outside"
    partners = [n for n, other in enumerate(text) if MARK.match(other) and segment.mark(other).pair == mark.pair]
    if len(partners) == 1:
        return "outside"
    return "around" if partners == [0, len(text) - 1] else "text"


def numbered(sentence: str) -> tuple[str, Sequence[str]]:
    """A sentence with marks as `{0}`, `{1}`, …, as models see it; and the marks."""
    marks = list(dict.fromkeys(MARK.findall(sentence)))
    return MARK.sub(lambda found: f"{{{marks.index(found[0])}}}", sentence), marks
