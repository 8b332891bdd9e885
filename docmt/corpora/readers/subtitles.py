"""Subtitles of two languages, whose cues are paired by time."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from docmt.corpora.patterns import matching_files
from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.corpora.readers.sides import pick
from docmt.errors import UserError
from docmt.files import read_text
from docmt.formats.cues import Cue, read_cues
from docmt.formats.segments import FIRST, MARK, plain_segment
from docmt.settings import Settings


class SrtPairs(Settings):
    """SRT files, a pattern or a file per language, paired by name or order; cues are paired by time."""

    reader: Literal["srt_pairs"]
    """Name of the format."""
    min_overlap: float = Field(default=0.5, gt=0, le=1)
    """Share of the shorter of two cues during which both are shown, if they are a pair."""


def read_srt_pairs(files: Mapping[str, Path], *, form: SrtPairs, languages: Sequence[str]) -> ReaderResult:
    """Read subtitles of two languages; cues without a counterpart are counted as dropped."""
    paths = [pick(files, lang, form.reader) for lang in languages]
    src, tgt = (matching_files(path) for path in paths)
    if len(src) != len(tgt):
        raise UserError(f"{paths[0]}: {len(src)} files, but {paths[1]} has {len(tgt)}: one of each is needed")
    collector = Collector()
    for (name, src_file), (_, tgt_file) in zip(src, tgt, strict=True):
        sides = []
        for file in (src_file, tgt_file):
            text = read_text(file)
            sides.append([(cue, _words(text[slice(*cue.place)])) for cue in read_cues(text, where=str(file))])
        rows = list(_paired(sides[0], sides[1], form.min_overlap))
        used = [sum(row[2] for row in rows), sum(row[3] for row in rows)]
        collector.drop("cue without counterpart", len(sides[0]) - used[0] + len(sides[1]) - used[1])
        collector.add(name.removesuffix(".srt"), [row[:2] for row in rows])
    return collector.result(if_empty=f"{paths[0]}: no cue has a counterpart in {paths[1]}")


def _words(text: str) -> str:
    """The text of a cue without tags."""
    segment = plain_segment(text)
    kept = {chr(FIRST + n): mark.raw for n, mark in enumerate(segment.marks) if mark.kind == "value"}
    return " ".join(MARK.sub(lambda found: kept.get(found[0], ""), segment.text).split())


def _paired(
    src: Sequence[tuple[Cue, str]], tgt: Sequence[tuple[Cue, str]], least: float
) -> Iterable[tuple[str, str, int, int]]:
    """Texts shown at the same time, joined where one cue meets several, with the numbers of cues of both sides."""
    first = 0
    groups: list[tuple[list[int], list[int]]] = []
    for number, (cue, _) in enumerate(src):
        while first < len(tgt) and tgt[first][0].end <= cue.begin:
            first += 1
        mates = []
        for other in range(first, len(tgt)):
            if tgt[other][0].begin >= cue.end:
                break
            if _overlap(cue, tgt[other][0]) >= least:
                mates.append(other)
        if mates and groups and set(mates) & set(groups[-1][1]):
            groups[-1][0].append(number)
            groups[-1][1].extend(mate for mate in mates if mate not in groups[-1][1])
        elif mates:
            groups.append(([number], mates))
    for ours, theirs in groups:
        texts = " ".join(src[n][1] for n in ours), " ".join(tgt[n][1] for n in theirs)
        yield *texts, len(ours), len(theirs)


def _overlap(one: Cue, other: Cue) -> float:
    """The share of the shorter cue during which both are shown."""
    shorter = min(one.end - one.begin, other.end - other.begin)
    return (min(one.end, other.end) - max(one.begin, other.begin)) / shorter if shorter > 0 else 0.0
