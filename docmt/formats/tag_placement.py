"""Markup put back into a translation: marks stand around and beside the words that an alignment finds."""

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from docmt.formats.file_segments import MARK, FileSegment
from docmt.formats.sentence_splitting import WITHOUT_BLANKS
from docmt.formats.translatable_file import Languages

Place = tuple[int, int]
# Share of a target word's attention that must be on the content of a pair to make it part of the content.
THRESHOLD = 0.5
# What a mark never cuts: words with hyphens and points inside, and numbers of marks.
UNIT = re.compile(r"\{\s*+\d++\s*+\}|\w++(?:['’.,_-]\w++)*+|[^\w\s]")
# Punctuation before which there is a blank when something new stands there.
CLOSING = tuple(".,;:!?)]}…")
# More marks in a sentence than in any text; the time grows with their square.
MOST_MARKS = 200


@dataclass(frozen=True)
class WordAlignment:
    """The places of the words of a sentence (M) and its translation (N), and the attention between them."""

    src: Sequence[Place]
    tgt: Sequence[Place]
    weights_NM: np.ndarray


# Aligns pairs of a sentence and its translation.
Align = Callable[[Sequence[tuple[str, str]]], Sequence[WordAlignment]]


@dataclass(frozen=True)
class RemovedMark:
    """A mark that a sentence lacks.

    Attributes:
        place: where it was in what is left of the sentence.
        before, after: whether there are blanks, or the ends of the sentence, at its sides.
        is_next: whether it stands directly before a word, and after a blank.
    """

    character: str
    place: int
    before: bool
    after: bool
    is_next: bool


@dataclass(frozen=True)
class BareSentence:
    """A sentence as the model reads it: without the removed marks; `{0}`, `{1}`, … are the numbered ones."""

    text: str
    numbered: Sequence[str]
    removed: Sequence[RemovedMark]

    @property
    def is_incomplete(self) -> bool:
        """Whether there are marks to put back, and no more than a sentence can have."""
        return 0 < len(self.removed) <= MOST_MARKS

    @classmethod
    def of(cls, segment: FileSegment, sentence: str, removed_kinds: Container[str] = ()) -> "BareSentence":
        """The sentence of a segment without the marks of some kinds."""
        text, numbered, removed = "", [], []
        for position, character in enumerate(sentence):
            if not MARK.match(character):
                text += "" if character == " " and text.endswith(" ") and removed else character
                continue
            kind = segment.mark(character).kind
            if kind not in removed_kinds:
                text += f"{{{len(numbered)}}}"
                numbered.append(character)
                continue
            following = MARK.sub("", sentence[position : position + MOST_MARKS])[:1]
            before, after = sentence[max(position - 1, 0) : position], sentence[position + 1 : position + 2]
            is_next = following.isalnum() and not text[-1:].strip()
            if kind in ("tag", "value") and following.isalnum() and (text[-1:].isalnum() or text.endswith(CLOSING)):
                removed.append(RemovedMark(character, len(text), False, False, False))
                text += " "  # what separated two words is a blank for the model
                continue
            if kind in ("tag", "value") and text.endswith(" ") and following in CLOSING:
                text = text[:-1]
                number = len(removed)
                while number and removed[number - 1].place > len(text):
                    number -= 1
                    removed[number] = replace(removed[number], place=len(text))
            removed.append(RemovedMark(character, len(text), not before.strip(), not after.strip(), is_next))
        return cls(text, numbered, removed)


@dataclass
class _Node:
    """A mark, or both sides of a pair with what is between them; the root has neither.

    Attributes:
        opening, closing: the marks; one that stands alone is the opening.
        source: the place of its content in the source.
        inner: nodes of the content, in the order of the source.
        place: its place in the translation.
    """

    opening: RemovedMark | None
    source: Place
    closing: RemovedMark | None = None
    inner: "list[_Node]" = field(default_factory=list)
    place: Place = (0, 0)


class TagPlacer:
    """Puts the marks that a sentence lacks into its translation; the result is well nested.

    A pair encloses the words that are aligned with its content, without a gap, or the same part of a word; a mark that
    stands alone is beside the word that is aligned with its neighbor.

    Shape letters: T units of the translation, S units of the source, M and N words of both in the alignment.
    """

    def __init__(
        self,
        segment: FileSegment,
        sentence: BareSentence,
        translation: str,
        alignment: WordAlignment,
        languages: Languages,
    ) -> None:
        self.segment, self.sentence, self.translation, self.languages = segment, sentence, translation, languages
        self.src = _units(sentence.text, alignment.src, languages.src)
        self.tgt = _units(translation, alignment.tgt, languages.tgt)
        # From words of the model's tokenizer to units: a row is a mean, a column a sum, as attention is shared out.
        shares_MS = _shares(alignment.src, self.src)
        shares_NT = _shares(alignment.tgt, self.tgt)
        weights_TS = shares_NT.T @ alignment.weights_NM @ shares_MS
        # In both directions: what many target words attend to a little, such as a full stop, is aligned with none.
        weights_TS = weights_TS * weights_TS / np.maximum(weights_TS.sum(0, keepdims=True), 1e-9)
        self.weights_TS = weights_TS / np.maximum(weights_TS.sum(1, keepdims=True), 1e-9)

    def run(self) -> str:
        """The translation with all marks."""
        root = self._tree()
        root.place = (0, len(self.translation))
        self._place_inner(root)
        return self._written(root)

    def _tree(self) -> _Node:
        """The removed marks as a tree; a pair with one side in another sentence lasts to the edge of this one."""
        length = len(self.sentence.text)
        pairs = [self.segment.mark(mark.character).pair for mark in self.sentence.removed]
        root = _Node(None, (0, length))
        waiting = [root]
        for number, mark in enumerate(self.sentence.removed):
            kind, siblings = self.segment.mark(mark.character).kind, waiting[-1].inner
            if kind == "open":
                siblings.append(_Node(mark, (mark.place, length)))
                waiting.append(siblings[-1])
            elif kind == "close" and pairs[number] in pairs[:number]:
                node = waiting.pop()
                node.closing, node.source = mark, (node.source[0], mark.place)
            elif kind == "close":
                waiting[-1].inner = [_Node(None, (0, mark.place), mark, siblings)]
            else:
                siblings.append(_Node(mark, (mark.place, mark.place)))
        return root

    def _place_inner(self, node: _Node) -> None:
        """Find the places of the nodes in a node, inside of its place."""
        start, end = node.place
        free = inside = [t for t, unit in enumerate(self.tgt) if start <= unit[0] and unit[1] <= end]
        placed: list[_Node] = []
        for pair in (each for each in node.inner if not self._is_single(each)):
            content = self._content(node, pair, free)
            if not pair.opening:
                pair.place = (start, content[1] if content else start)
            elif not pair.closing:
                pair.place = (max([content[0] if content else end, *(other.place[1] for other in placed)]), end)
            elif content:
                pair.place = content
            else:  # nothing is in it
                continue
            placed.append(pair)
            free = [t for t in free if self.tgt[t][0] >= pair.place[1] or self.tgt[t][1] <= pair.place[0]]
            self._place_inner(pair)
        for each in node.inner:
            if each not in placed:
                place = self._beside(each, inside, node.place)
                around = next((other.place for other in placed if other.place[0] < place < other.place[1]), (place,))
                # What stands alone is no part of a pair that it was not in.
                place = min(around, key=lambda edge: abs(edge - place))
                each.place = (place, place)
                self._place_inner(each)

    def _content(self, parent: _Node, pair: _Node, free: Sequence[int]) -> Place | None:
        """The place of the content of a pair, among free units: the run with most attention above the threshold."""
        whole = self._within(pair.source)
        if part := self._part_of_word(parent, pair, whole):
            return part
        content = [s for s in whole if self._is_word(self.sentence.text, self.src[s])]
        words = [t for t in free if self._is_word(self.translation, self.tgt[t])] if content else []
        content, words = content or whole, words or free
        if not content or not words:
            return None
        others = {s for s in self._within(parent.source) if self._is_word(self.sentence.text, self.src[s])}
        if others <= set(content) and len(free) == free[-1] + 1 - free[0]:
            return self._with_punctuation((words[0], words[-1]), whole, content, free)
        gains = dict.fromkeys(free, 0.0)  # punctuation is bridged
        gains |= dict(zip(words, self.weights_TS[np.ix_(words, content)].sum(1) - THRESHOLD, strict=True))
        best, chosen, is_word = -np.inf, (words[0], words[0]), set(words)
        first, total = words[0], 0.0
        for t in range(words[0], words[-1] + 1):
            if total <= 0 or t not in gains:  # a run that gains nothing is better left out
                first, total = t, 0.0
            total += gains.get(t, -np.inf) if first in is_word else 0.0
            if t in is_word and total > best:
                best, chosen = total, (first, t)
        # A word without any attention is as good as any other.
        return self._with_punctuation(chosen, whole, content, free) if best > -THRESHOLD else None

    def _part_of_word(self, parent: _Node, pair: _Node, whole: Sequence[int]) -> Place | None:
        """The content of a pair that is part of a word, if the word stays as it is (H2O), or its end (footnotes)."""
        (start, end), unit = pair.source, self.src[whole[0]] if len(whole) == 1 else (0, 0)
        if unit == pair.source or not unit[0] <= start <= end <= unit[1]:
            return None
        word, part = (self.sentence.text[slice(*place)] for place in (unit, pair.source))
        found = {}
        for (first, last), weight in zip(self.tgt, self.weights_TS[:, whole[0]], strict=True):
            translated, place = self.translation[first:last], (last - len(part), last)
            if translated == word:
                place = (first + start - unit[0], first + end - unit[0])
            elif weight <= THRESHOLD or end < unit[1] or not translated.endswith(part):
                continue
            is_free = all(other.place[1] <= place[0] or place[1] <= other.place[0] for other in parent.inner)
            if is_free and parent.place[0] <= place[0] and place[1] <= parent.place[1]:
                found[place] = weight
        return max(found, key=lambda place: found[place]) if found else None

    def _with_punctuation(
        self, run: tuple[int, int], whole: Sequence[int], content: Sequence[int], free: Sequence[int]
    ) -> Place:
        """The place of a run of units, with the punctuation beside it that the content has at its edges."""
        edges = list(run)
        before, after = [s for s in whole[::-1] if s < content[0]], [s for s in whole if s > content[-1]]
        for side, step, punctuation in ((0, -1, before), (1, 1, after)):
            for s in punctuation:
                t = edges[side] + step
                if t not in free or self._is_word(self.translation, self.tgt[t]):
                    break
                is_same = self.translation[slice(*self.tgt[t])] == self.sentence.text[slice(*self.src[s])]
                if not is_same and self.weights_TS[t, punctuation].sum() <= THRESHOLD:
                    break
                edges[side] = t
        return self.tgt[edges[0]][0], self.tgt[edges[1]][1]

    def _is_single(self, node: _Node) -> bool:
        return node.opening is not None and self.segment.mark(node.opening.character).kind in ("tag", "value")

    def _beside(self, node: _Node, inside: Sequence[int], around: Place) -> int:
        """The place of a mark that stands alone: beside the unit that is aligned with its neighbor."""
        text, mark = self.sentence.text, node.opening
        assert mark is not None
        words = [s for s, unit in enumerate(self.src) if self._is_word(text, unit)]
        before = [s for s in words if self.src[s][1] <= mark.place]
        after = [s for s in words if self.src[s][0] >= mark.place]
        candidates = [t for t in inside if self._is_word(self.translation, self.tgt[t])]
        if not candidates or not (before or after):
            return around[1]
        is_next = mark.is_next and bool(after)
        neighbor = after[0] if is_next or not before else before[-1]
        found = self.tgt[max(candidates, key=lambda t: self.weights_TS[t, neighbor])]
        if is_next or not before:
            return found[0]
        place, between = found[1], text[self.src[neighbor][1] : mark.place].rstrip()
        # Behind the same punctuation as in the source.
        place += len(between) if self.translation.startswith(between, place) else 0
        return min(place, around[1])

    def _within(self, place: Place) -> list[int]:
        """The units of the source that are inside a place, or partly."""
        return [s for s, unit in enumerate(self.src) if unit[0] < place[1] and unit[1] > place[0]]

    @staticmethod
    def _is_word(text: str, unit: Place) -> bool:
        return any(map(str.isalnum, text[slice(*unit)]))

    def _written(self, node: _Node) -> str:
        """The text of a node with its marks."""
        position, end = node.place
        text = node.opening.character if node.opening else ""
        # A language without blanks on either side has no blanks around marks, or the model writes them.
        has_blanks = self.languages.tgt not in WITHOUT_BLANKS
        is_spaced = has_blanks and self.languages.src in WITHOUT_BLANKS
        for each in sorted(node.inner, key=lambda each: each.place):
            text += self.translation[position : each.place[0]]
            position = each.place[1]
            inner = self._written(each)
            mark = each.opening
            if mark is not None and each.place[0] == each.place[1] and has_blanks:
                end_mark = each.closing or mark
                is_value = is_spaced and self.segment.mark(mark.character).kind == "value"
                previous, following = self.translation[:position][-1:], self.translation[position : position + 1]
                is_apart = text.endswith(" ") or not (previous.isalnum() or previous in CLOSING)
                if (mark.before or is_value) and not is_apart:
                    inner = " " + inner
                if (end_mark.after or is_value) and following.isalnum():
                    inner += " "
                elif not (mark.before or end_mark.after or is_value) and following == " ":
                    position += 1  # there was no blank in the source either
            text += inner
        return text + self.translation[position:end] + (node.closing.character if node.closing else "")


def _units(text: str, words: Sequence[Place], lang: str) -> list[Place]:
    """The pieces of a text that no mark cuts; in a language without blanks, the words of the alignment."""
    if lang not in WITHOUT_BLANKS:
        return [found.span() for found in UNIT.finditer(text)]
    numbers = [found.span() for found in UNIT.finditer(text) if found[0].startswith("{") and len(found[0]) > 1]
    return sorted([*numbers, *(word for word in words if all(word[1] <= n[0] or word[0] >= n[1] for n in numbers))])


def _shares(words: Sequence[Place], units: Sequence[Place]) -> np.ndarray:
    """The share of each word's characters in each unit."""
    starts, ends = (np.array([place[side] for place in words], dtype=float)[:, None] for side in (0, 1))
    first, last = (np.array([place[side] for place in units], dtype=float)[None] for side in (0, 1))
    return np.clip(np.minimum(ends, last) - np.maximum(starts, first), 0, None) / np.maximum(ends - starts, 1)
