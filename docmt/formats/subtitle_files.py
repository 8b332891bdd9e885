"""SRT and WebVTT: sentences that run over several cues are translated as one and cut again where the cues were.

The libraries for subtitles write files anew, with other numbers, line ends and positions. Here only the text between
times and blank lines is replaced.
"""

import itertools
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override

from docmt.errors import UserError
from docmt.formats.file_segments import MARK, FileSegment, SegmentDraft, plain_segment
from docmt.formats.sentence_splitting import WITHOUT_BLANKS, split_segment, trim
from docmt.formats.translatable_file import Edit, TextFile

TIME = r"(?:\d+:)?\d{1,2}:\d{2}[,.]\d{1,3}"
TIMES = re.compile(rf"^[ \t]*+({TIME})[ \t]*+-->[ \t]*+({TIME})[^\n]*+\n?", re.MULTILINE)
BLANK_LINE = re.compile(r"^[^\S\n]*+(?:\n|\Z)", re.MULTILINE)
CODE = r"(?:\s|<[^<>]*+>|\{\\[^{}]*+\})*+"
CAPITALS = "A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁ"
# What begins a segment and stays: the dash and the name of a speaker, and music.
OPENING = re.compile(
    rf"(?:{CODE}(?:[-–—]++(?!\d)\s*+|[♪♫]++\s*+|#\s++|[{CAPITALS}][{CAPITALS}\d .'’-]{{0,30}}:\s++))++"
)
LINE = re.compile(r"[^\n]*(?:\n|$)")
NOTE = re.compile(rf"{CODE}[\[(]([^\[\]()]*+)[\])]{CODE}")
# Seconds between two cues that end a sentence.
LONGEST_PAUSE = 3.0


@dataclass(frozen=True)
class Cue:
    """A cue: its times in seconds, and the place of its text, without the last line end."""

    begin: float
    end: float
    place: tuple[int, int]


def read_cues(text: str, *, where: str) -> list[Cue]:
    """The cues of a file, in its order."""
    cues = []
    times = list(TIMES.finditer(text))
    for found, following in itertools.zip_longest(times, times[1:]):
        start, stop = found.end(), following.start() if following else len(text)
        blank = BLANK_LINE.search(text, start, stop)
        content = text[start : blank.start() if blank else stop].rstrip("\r\n")
        cues.append(Cue(_seconds(found[1]), _seconds(found[2]), (start, start + len(content))))
    if not cues and text.strip("\ufeff \t\r\n").removeprefix("WEBVTT"):
        raise UserError(f"{where}: has no cues (lines such as 00:00:01,000 --> 00:00:02,500)")
    return cues


def _seconds(time: str) -> float:
    return sum(float(part) * 60**n for n, part in enumerate(reversed(time.replace(",", ".").split(":"))))


class SrtFile(TextFile):
    """An SRT file, as one document: each sentence is a segment.

    `_parts` holds the text of each segment by the number of its cue.
    """

    name = "srt"
    suffixes = (".srt",)

    @override
    def find(self) -> list[list[FileSegment]]:
        self._cues = []
        self._parts: dict[int, dict[int, str]] = {}
        self.documents = [[]]
        run: list[tuple[int, Cue]] = []
        for cue in read_cues(self.text, where=self.where):
            for start, end, begins, ends in self._turns(*cue.place):
                # A long pause ends a sentence, and so does a cue that begins before the last one ends: another speaker.
                if run and (begins or not 0 <= cue.begin - run[-1][1].end <= LONGEST_PAUSE):
                    self._end(run)
                segment = plain_segment(self.text[start:end])
                before, _, after = (self.render(segment, part) for part in trim(segment, segment.text))
                # Tags and positions around the whole text of a cue stay outside of its sentences.
                self._cues.append(replace(cue, place=(start + len(before), end - len(after))))
                if segment.has_letters:
                    run.append((len(self._cues) - 1, self._cues[-1]))
                if ends:
                    self._end(run)
        self._end(run)
        return self.documents

    def _turns(self, start: int, end: int) -> Iterator[tuple[int, int, bool, bool]]:
        """The place of the text of each speaker of a cue, and whether it begins and ends a segment."""
        turns: list[tuple[int, int, bool]] = []
        for line in LINE.finditer(self.text, start, end):
            found = OPENING.match(line[0])
            if found or not turns:
                turns.append((line.start() + (found.end() if found else 0), line.end(), bool(found)))
            else:
                turns[-1] = turns[-1][0], line.end(), turns[-1][2]
        for first, last, begins in turns:
            music = max(self.text.rfind(sign, first, last) for sign in "♪♫")
            is_closed = music >= 0 and bool(re.compile(CODE).fullmatch(self.text, music + 1, last))
            text = self.text[first:music].rstrip("♪♫ \t\r\n") if is_closed else self.text[first:last]
            if note := NOTE.fullmatch(text):
                yield first + note.start(1), first + note.end(1), True, True
            else:
                yield first, first + len(text), begins, is_closed

    def _end(self, run: list[tuple[int, Cue]]) -> None:
        """Split the text of a run of cues into sentences, and empty the run."""
        draft, owners = SegmentDraft(), []
        for number, cue in run:
            draft.add("".join(f"{line.strip()} " for line in self.text[slice(*cue.place)].split("\n")))
            # The cue of each character, so that the translation can be divided as the source was.
            owners += [number] * (draft.length - len(owners))
        whole = draft.segment(0, 0)
        position = 0
        for sentence in split_segment(whole, whole.text, self.languages.src):
            counts = Counter(owners[position : position + len(sentence)])
            position += len(sentence)
            segment = FileSegment(sentence, whole.marks, is_sentence=True)
            rest = iter(sentence)
            self._parts[id(segment)] = {cue: "".join(itertools.islice(rest, n)) for cue, n in counts.items()}
            self.documents[0].append(segment)
        run.clear()

    def _pieces(self, segment: FileSegment, filled: str) -> list[str]:
        """The part of a translation for each cue, as long in proportion as the part of the source."""
        weights = [max(1, len(MARK.sub("", part).strip())) for part in self._parts[id(segment)].values()]
        return _cut(filled, weights, has_blanks=self.languages.tgt not in WITHOUT_BLANKS)

    @override
    def accepts(self, segment: FileSegment, filled: str) -> bool:
        # No pair of tags may be cut in two.
        for piece in self._pieces(segment, filled):
            sides = Counter(segment.mark(mark).pair for mark in MARK.findall(piece))
            if any(count != 2 for pair, count in sides.items() if pair is not None):
                return False
        return True

    @override
    def edits(self) -> Iterable[Edit]:
        blank = "" if self.languages.tgt in WITHOUT_BLANKS else " "
        texts: dict[int, list[str]] = {}
        changed: set[int] = set()
        for segment in self.documents[0]:
            parts = self._parts[id(segment)]
            pieces = parts.values()
            if segment.filled is not None:
                changed |= parts.keys()
                pieces = self._pieces(segment, segment.filled)
            for cue, piece in zip(parts, pieces, strict=True):
                texts.setdefault(cue, []).append(self.render(segment, piece).strip() + blank)
        for number in changed:
            place = self._cues[number].place
            text, before = "".join(texts[number]).strip(), self.text[slice(*place)]
            # As many lines as there were, of similar lengths.
            lines = _cut(text, [1] * (before.count("\n") + 1), has_blanks=bool(blank))
            yield *place, ("\r\n" if "\r\n" in before else "\n").join(filter(None, map(str.strip, lines)))


class VttFile(SrtFile):
    """A WebVTT file, as one document."""

    name = "vtt"
    suffixes = (".vtt",)

    @override
    def find(self) -> list[list[FileSegment]]:
        if not self.text.removeprefix("\ufeff").startswith("WEBVTT"):
            raise UserError(f"{self.where}: not WebVTT: its first line must begin with WEBVTT")
        return super().find()


def _cut(text: str, weights: Sequence[int], *, has_blanks: bool) -> list[str]:
    """Cut a text into pieces whose lengths are in proportion to the weights, between words."""
    places = [found.end() for found in re.finditer(r"\s+", text)] if has_blanks else list(range(1, len(text)))
    # Greedy: each cut is at the place between words nearest to its share of the length, behind the last cut.
    cuts, total, first = [0], sum(weights), 0
    for weight in itertools.accumulate(weights[:-1]):
        wished = len(text) * weight / total
        near = max(first, bisect_left(places, wished) - 1)
        number = min(
            range(near, min(near + 2, len(places))), key=lambda n: abs(places[n] - wished), default=len(places)
        )
        cuts.append(places[number] if number < len(places) else len(text))
        first = number + 1
    return [text[start:end] for start, end in itertools.pairwise([*cuts, len(text)])]
