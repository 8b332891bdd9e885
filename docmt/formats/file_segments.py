"""Segments: the translatable pieces of a file, with marks in place of markup and placeholders.

In the text of a segment, mark i is the one character `chr(FIRST + i)`, of a private plane of Unicode. Splitting,
trimming and comparing are then operations on plain strings, and no part of a mark can be mistaken for text.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from docmt.errors import UserError

FIRST = 0xF0000
LAST = 0xFFFFD
MARK = re.compile("[\U000f0000-\U000ffffd]")

# Possessive, because what gives characters back takes quadratic time for hostile text.
PLACEHOLDER = re.compile(
    r"[$#]?\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}"  # {name} ${name} {{name}} {n, plural, one {#} other {#}}
    r"|%%|%\(\w++\)[-+#0]*+\d*+(?:\.\d++)?[a-zA-Z]|%L?\d++(?!\$)\b|%[A-Za-z_]{2,}+%"  # %(name)s, Qt's %1, %NAME%
    r"|%(?:\d++\$)?+[-+#0]*+(?:\d++|\*)?+(?:\.\d++)?+(?:hh?|ll?|[jztLq])?[diouxXeEfFgGcspn@]"  # %s %1$d %.2f
    r"|\$[A-Za-z_]\w*"  # $unit
    r"|</?[A-Za-z][^<>]*+>"  # tags in the text of messages and cues
    r"|&(?:[A-Za-z]++\d*+|#\d++|#x[0-9A-Fa-f]++);"
    r"|(?:https?|ftp)://[^\s<>\"']*[^\s<>\"'.,;:!?)\]]"
)
SPECIAL = re.compile(f"{PLACEHOLDER.pattern}|{MARK.pattern}")
POSITIONAL = re.compile(r"%(?!\d+\$|\(|%)[^%]*[a-zA-Z@]")
TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*?(/?)>")

Kind = Literal["value", "tag", "open", "close"]
KINDS: tuple[Kind, ...] = ("value", "tag", "open", "close")


class TooManyMarksError(UserError):
    """A segment has more marks than there are private characters."""


@dataclass(frozen=True)
class Mark:
    """Markup or a placeholder, which must come back unchanged.

    Attributes:
        raw: its form in the file.
        kind: `value` is a placeholder, part of the sentence; `tag` is markup that stands alone; `open` and `close` are
            two sides of a pair.
        pair: number shared by the two sides of a pair.
        is_text: whether `raw` is text, which a file may have to escape, and not markup of the file.
        is_ordered: whether it must keep its order among ordered marks: `%s` is filled by position.
    """

    raw: str
    kind: Kind = "value"
    pair: int | None = None
    is_text: bool = False
    is_ordered: bool = False


@dataclass
class FileSegment:
    """A piece of text: a paragraph, a message, a cell, or a sentence.

    Attributes:
        text: content, with marks as single characters.
        start, end: place in the text of the file.
        is_wanted: whether to translate it; otherwise it is context.
        is_sentence: whether it is never split.
        filled: its translation, marks included; None if it stays as it was.
        rejected: the translation that could not be used.
    """

    text: str
    marks: tuple[Mark, ...] = ()
    start: int = 0
    end: int = 0
    is_wanted: bool = True
    is_sentence: bool = False
    filled: str | None = None
    rejected: str = ""

    def mark(self, character: str) -> Mark:
        """The mark of a character of the text."""
        return self.marks[ord(character) - FIRST]

    @property
    def has_letters(self) -> bool:
        """Whether there is anything to translate."""
        return any(map(str.isalpha, self.text))

    def plain(self, text: str, is_kept: Callable[[Mark], bool] = lambda mark: True) -> str:
        """A text with its marks as they are in the file, except those that are not to be kept."""
        return MARK.sub(lambda found: mark.raw if is_kept(mark := self.mark(found[0])) else "", text)

    def has_marks(self, kinds: Collection[Kind]) -> bool:
        """Whether there are marks of some kinds."""
        return any(self.mark(found).kind in kinds for found in MARK.findall(self.text))


class SegmentDraft:
    """Collects the text and the marks of a segment, in order."""

    def __init__(self) -> None:
        self.length = 0
        self._pieces: list[str] = []
        self._marks: list[tuple[Mark, str]] = []

    def add(self, text: str) -> None:
        """Add text, in which placeholders become marks."""
        position = 0
        for found in SPECIAL.finditer(text):
            self._append(text[position : found.start()])
            position = found.end()
            if tag := TAG.fullmatch(found[0]):
                kind = "tag" if tag[3] else "close" if tag[1] else "open"
                self.mark(Mark(found[0], kind, is_text=True), name=tag[2].lower())
            elif found[0].startswith("{\\"):  # {\an8}, the position of a cue
                self.mark(Mark(found[0], "tag", is_text=True))
            else:
                self.mark(Mark(found[0], is_text=True, is_ordered=bool(POSITIONAL.fullmatch(found[0]))))
        self._append(text[position:])

    def _append(self, piece: str) -> None:
        self._pieces.append(piece)
        self.length += len(piece)

    def mark(self, mark: Mark, *, name: str = "") -> None:
        """Add a mark; both sides of a pair have the same `name`."""
        if len(self._marks) > LAST - FIRST:
            raise TooManyMarksError(
                f"a paragraph has more than {LAST - FIRST + 1:,} tags and placeholders: this is no text"
            )
        self._append(chr(FIRST + len(self._marks)))
        self._marks.append((mark, name))

    def segment(self, start: int, end: int, *, is_wanted: bool = True, is_sentence: bool = False) -> FileSegment:
        """The segment at a place of the file."""
        marks = tuple(_paired(self._marks))
        return FileSegment("".join(self._pieces), marks, start, end, is_wanted=is_wanted, is_sentence=is_sentence)


def plain_segment(
    text: str, start: int = 0, end: int = 0, *, is_wanted: bool = True, is_sentence: bool = False
) -> FileSegment:
    """A segment of plain text at a place of the file."""
    draft = SegmentDraft()
    draft.add(text)
    return draft.segment(start, end, is_wanted=is_wanted, is_sentence=is_sentence)


def _paired(marks: Iterable[tuple[Mark, str]]) -> list[Mark]:
    """The marks with the numbers of their pairs; one side without the other becomes a tag."""
    found = [mark for mark, _ in marks]
    waiting: list[tuple[int, str]] = []
    n_open: Counter[str] = Counter()
    for number, (mark, name) in enumerate(marks):
        if mark.kind == "open":
            waiting.append((number, name))
            n_open[name] += 1
        elif mark.kind == "close" and n_open[name]:
            partner, other = waiting.pop()
            while other != name:  # sides opened after the last one of this name were never closed
                n_open[other] -= 1
                partner, other = waiting.pop()
            n_open[name] -= 1
            found[partner], found[number] = replace(found[partner], pair=partner), replace(mark, pair=partner)
    return [
        replace(mark, kind="tag") if mark.kind in ("open", "close") and mark.pair is None else mark for mark in found
    ]


def is_intact(segment: FileSegment, filled: str) -> bool:
    """Whether a translation has each mark once, pairs nest, and positional placeholders keep their order."""
    before, after = MARK.findall(segment.text), MARK.findall(filled)
    if sorted(before) != sorted(after):
        return False
    if [m for m in before if segment.mark(m).is_ordered] != [m for m in after if segment.mark(m).is_ordered]:
        return False
    waiting: list[int | None] = []
    for mark in map(segment.mark, after):
        if mark.kind == "open":
            waiting.append(mark.pair)
        elif mark.kind == "close" and (not waiting or waiting.pop() != mark.pair):
            return False
    # The model may have made up a placeholder or a tag, or text that extends one: a letter behind `$unit`.
    texts = {mark: segment.mark(mark).raw for mark in before if segment.mark(mark).is_text}
    restored = MARK.sub(lambda found: texts.get(found[0], "\n"), filled)
    return sorted(SPECIAL.findall(restored)) == sorted(texts.values())
