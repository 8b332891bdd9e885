"""SRT and WebVTT: sentences that run over several cues are translated as one and cut again where the cues were.

The libraries for subtitles write files anew, with other numbers, line ends and positions. Here only the text between
times and blank lines is replaced.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from docmt.errors import UserError
from docmt.formats.cues import Cue, read_cues
from docmt.formats.files import Edit, TextFile
from docmt.formats.segments import MARK, FileSegment, SegmentDraft, plain_segment
from docmt.formats.sentences import WITHOUT_BLANKS, split_segment, trim

LINE_END = re.compile(r"\s*\n\s*(?![-–—\s])")
"""The end of a line within a sentence: the next does not begin with the dash of another speaker."""
LONGEST_PAUSE = 3.0
"""Seconds between two cues that end a sentence."""


class SrtFile(TextFile):
    """An SRT file, as one document."""

    name = "srt"
    suffixes = (".srt",)

    def find(self) -> list[list[FileSegment]]:
        """A segment for each sentence; `_parts` says how many of its characters are in which cue."""
        self._cues = [self._trimmed(cue) for cue in read_cues(self.text, where=self.where)]
        self._parts: dict[int, list[tuple[int, int]]] = {}
        self.documents = [[]]
        run: list[tuple[int, Cue]] = []
        for number, cue in enumerate(self._cues):
            if not any(map(str.isalpha, self.text[slice(*cue.place)])):
                continue
            if run and not 0 <= cue.begin - run[-1][1].end <= LONGEST_PAUSE:
                self._add(run)
                run = []
            run.append((number, cue))
        self._add(run)
        return self.documents

    def _trimmed(self, cue: Cue) -> Cue:
        """A cue without the tags around its text."""
        segment = plain_segment(self.text[slice(*cue.place)])
        before, _, after = trim(segment, segment.text)
        start, end = cue.place
        return replace(cue, place=(start + len(self.render(segment, before)), end - len(self.render(segment, after))))

    def _add(self, run: list[tuple[int, Cue]]) -> None:
        """Split the text of cues that follow one another into sentences."""
        draft, owners = SegmentDraft(), []
        for number, cue in run:
            draft.add(LINE_END.sub(" ", self.text[slice(*cue.place)].replace("\r", "")) + " ")
            owners += [number] * (draft.length - len(owners))
        whole = draft.segment(0, 0)
        position = 0
        for sentence in split_segment(whole, whole.text, self.languages.src):
            counts = Counter(owners[position : position + len(sentence)])
            position += len(sentence)
            segment = FileSegment(sentence, whole.marks, is_sentence=True)
            self._parts[id(segment)] = list(counts.items())
            self.documents[0].append(segment)

    def _pieces(self, segment: FileSegment, filled: str) -> list[str]:
        """What of a translation goes into each cue: pieces as long in proportion as those of the source."""
        weights, position = [], 0
        for _, count in self._parts[id(segment)]:
            weights.append(max(1, len(MARK.sub("", segment.text[position : position + count]).strip())))
            position += count
        return _cut(filled, weights, has_blanks=self.languages.tgt not in WITHOUT_BLANKS)

    def accepts(self, segment: FileSegment, filled: str) -> bool:
        """Whether no pair of tags is cut in two."""
        for piece in self._pieces(segment, filled):
            pairs = [segment.mark(mark).pair for mark in MARK.findall(piece)]
            if any(pairs.count(pair) != 2 for pair in pairs if pair is not None):
                return False
        return True

    def edits(self) -> Iterable[Edit]:
        """The text of each cue with a translated part."""
        blank = "" if self.languages.tgt in WITHOUT_BLANKS else " "
        texts: dict[int, list[str]] = {}
        changed: set[int] = set()
        for segment in self.documents[0]:
            counts = self._parts[id(segment)]
            if segment.filled is not None:
                changed |= {cue for cue, _ in counts}
                pieces = self._pieces(segment, segment.filled)
            else:
                ends = list(itertools.accumulate((count for _, count in counts), initial=0))
                pieces = [segment.text[start:end] for start, end in itertools.pairwise(ends)]
            for (cue, _), piece in zip(counts, pieces, strict=True):
                text = self.render(segment, piece)
                texts.setdefault(cue, []).append(text if text.endswith("\n") else text.strip() + blank)
        for number in changed:
            place = self._cues[number].place
            yield *place, _wrapped("".join(texts[number]).strip(), self.text[slice(*place)], has_blanks=bool(blank))


class VttFile(SrtFile):
    """A WebVTT file, as one document."""

    name = "vtt"
    suffixes = (".vtt",)

    def find(self) -> list[list[FileSegment]]:
        """As in SRT. Raises UserError when the first line is another."""
        if not self.text.removeprefix("\ufeff").startswith("WEBVTT"):
            raise UserError(f"{self.where}: not WebVTT: its first line must begin with WEBVTT")
        return super().find()


def _cut(text: str, weights: Sequence[int], *, has_blanks: bool) -> list[str]:
    """Cut a text into pieces whose lengths are in proportion to the weights, between words."""
    places = [found.end() for found in re.finditer(r"\s+", text)] if has_blanks else list(range(1, len(text)))
    cuts, total = [0], sum(weights)
    for number in range(1, len(weights)):
        wished = len(text) * sum(weights[:number]) / total
        free = [place for place in places if place > cuts[-1]]
        cuts.append(min(free, key=lambda place: abs(place - wished)) if free else len(text))
    return [text[start:end] for start, end in itertools.pairwise([*cuts, len(text)])]


def _wrapped(text: str, before: str, *, has_blanks: bool) -> str:
    """A text in as many lines as there were, of similar lengths, unless it has lines already."""
    lines = text.split("\n") if "\n" in text else _cut(text, [1] * (before.count("\n") + 1), has_blanks=has_blanks)
    return ("\r\n" if "\r\n" in before else "\n").join(filter(None, map(str.strip, lines)))
