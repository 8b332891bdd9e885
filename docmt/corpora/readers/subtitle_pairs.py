"""Subtitles of two languages, whose cues are paired by time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field
from typing_extensions import override

from docmt.corpora.file_patterns import matching_files
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.errors import UserError
from docmt.files import read_text
from docmt.formats.file_segments import FIRST, MARK, plain_segment
from docmt.formats.subtitle_files import Cue, read_cues


class SrtPairs(DocumentFormat):
    """SRT files, a pattern or a file per language, paired by name or order; cues are paired by time."""

    reader: FormatName[Literal["srt_pairs"]]
    min_overlap: float = Field(default=0.5, gt=0, le=1)
    """Share of the shorter of two cues during which both are shown, if they are a pair."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, lang) for lang in languages]
        src, tgt = (matching_files(path) for path in paths)
        if len(src) != len(tgt):
            raise UserError(f"{paths[0]}: {len(src)} files, but {paths[1]} has {len(tgt)}: one of each is needed")
        collector = DocumentCollector()
        for (name, src_file), (_, tgt_file) in zip(src, tgt, strict=True):
            src_cues, tgt_cues = _texts(src_file), _texts(tgt_file)
            pairs = self._pair([cue for cue, _ in src_cues], [cue for cue, _ in tgt_cues])
            n_paired = sum(len(ours) + len(theirs) for ours, theirs in pairs)
            collector.drop("cue without counterpart", len(src_cues) + len(tgt_cues) - n_paired)
            rows = (
                (" ".join(src_cues[n][1] for n in ours), " ".join(tgt_cues[n][1] for n in theirs))
                for ours, theirs in pairs
            )
            collector.add(name.removesuffix(".srt"), rows)
        return collector.result(if_empty=f"{paths[0]}: no cue has a counterpart in {paths[1]}")

    def _pair(self, src: Sequence[Cue], tgt: Sequence[Cue]) -> list[tuple[list[int], list[int]]]:
        """Numbers of source and target cues that are shown at the same time, several where one meets several."""
        # Cues are in the order of time: target cues that ended before this source cue never match again.
        first = 0
        pairs: list[tuple[list[int], list[int]]] = []
        for number, cue in enumerate(src):
            while first < len(tgt) and tgt[first].end <= cue.begin:
                first += 1
            mates = []
            for other in range(first, len(tgt)):
                if tgt[other].begin >= cue.end:
                    break
                shorter = min(cue.end - cue.begin, tgt[other].end - tgt[other].begin)
                shared = min(cue.end, tgt[other].end) - max(cue.begin, tgt[other].begin)
                if shorter > 0 and shared / shorter >= self.min_overlap:
                    mates.append(other)
            # A target cue that already belongs to a pair draws this source cue into it.
            if mates and pairs and set(mates) & set(pairs[-1][1]):
                pairs[-1][0].append(number)
                pairs[-1][1].extend(mate for mate in mates if mate not in pairs[-1][1])
            elif mates:
                pairs.append(([number], mates))
        return pairs


def _texts(path: Path) -> list[tuple[Cue, str]]:
    """The cues of a file with their text, without tags."""
    text = read_text(path)
    cues = []
    for cue in read_cues(text, where=str(path)):
        segment = plain_segment(text[slice(*cue.place)])
        # A mark is a tag, or a value such as `%s`, which belongs to the text.
        values = {chr(FIRST + n): mark.raw for n, mark in enumerate(segment.marks) if mark.kind == "value"}
        words = MARK.sub(lambda found, values=values: values.get(found[0], ""), segment.text).split()
        cues.append((cue, " ".join(words)))
    return cues
