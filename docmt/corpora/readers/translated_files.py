"""Files that translators use: subtitles, whose cues are paired by time, and translation memories."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field
from typing_extensions import override

from docmt.corpora.file_patterns import matching_files
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.errors import UserError
from docmt.files import read_text
from docmt.formats.file_segments import plain_segment
from docmt.formats.markup import draft_of, elements
from docmt.formats.subtitle_files import Cue, read_cues
from docmt.formats.tmx import OPAQUE, read_units, unit_variants

# Cues on the screen at one time. No film has as many, and pairs of cues are compared one by one.
MOST_SHOWN = 1000


class SrtPairs(DocumentFormat):
    """SRT files, a pattern or a file per language, paired by name or order; cues are paired by time."""

    reader: FormatName[Literal["srt_pairs"]]
    min_overlap: float = Field(default=0.5, gt=0, le=1)
    """Least share of the shorter cue shown together with the other."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, lang) for lang in languages]
        src, tgt = (matching_files(path) for path in paths)
        if len(src) != len(tgt):
            raise UserError(f"{paths[0]}: {len(src)} files, but {paths[1]} has {len(tgt)}: one of each is needed")
        collector = DocumentCollector()
        for (name, src_file), (_, tgt_file) in zip(src, tgt, strict=True):
            (src_cues, src_texts), (tgt_cues, tgt_texts) = _read_cues(src_file), _read_cues(tgt_file)
            pairs = self._pair(src_cues, tgt_cues, where=str(tgt_file))
            n_paired = sum(len(ours) + len(theirs) for ours, theirs in pairs)
            collector.drop("cue without counterpart", len(src_cues) + len(tgt_cues) - n_paired)
            rows = (
                (" ".join(src_texts[n] for n in ours), " ".join(tgt_texts[n] for n in theirs)) for ours, theirs in pairs
            )
            collector.add(name.removesuffix(".srt"), rows)
        return collector.result(if_empty=f"{paths[0]}: no cue has a counterpart in {paths[1]}")

    def _pair(self, src: Sequence[Cue], tgt: Sequence[Cue], *, where: str) -> list[tuple[list[int], list[int]]]:
        """Numbers of source and target cues that are shown at the same time, several where one meets several."""
        pairs: list[tuple[list[int], list[int]]] = []
        shown: list[int] = []  # target cues that this source cue or a later one can meet
        taken: set[int] = set()  # the target cues of the last pair
        n_begun = 0
        for number, cue in enumerate(src):
            # Cues are in the order of time: target cues that ended before this source cue never match again.
            while n_begun < len(tgt) and tgt[n_begun].begin < cue.end:
                shown.append(n_begun)
                n_begun += 1
            shown = [other for other in shown if tgt[other].end > cue.begin]
            if len(shown) > MOST_SHOWN:
                raise UserError(
                    f"{where}: shows more than {MOST_SHOWN:,} cues at {cue.begin:.1f} s: these are no subtitles"
                )
            mates = []
            for other in shown:
                shorter = min(cue.end - cue.begin, tgt[other].end - tgt[other].begin)
                shared = min(cue.end, tgt[other].end) - max(cue.begin, tgt[other].begin)
                if shorter > 0 and shared / shorter >= self.min_overlap:
                    mates.append(other)
            # A target cue that already belongs to a pair draws this source cue into it.
            if taken.intersection(mates):
                pairs[-1][0].append(number)
                pairs[-1][1].extend(mate for mate in mates if mate not in taken)
                taken.update(mates)
            elif mates:
                pairs.append(([number], mates))
                taken = set(mates)
        return pairs


class Tmx(DocumentFormat):
    """A TMX translation memory (role `both`; a pattern such as `*.tmx` reads many): a file is a document."""

    reader: FormatName[Literal["tmx"]]
    document_prop: str | None = None
    """Type of the `<prop>` that names a unit's document; null makes each file one document."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        collector = DocumentCollector()
        codes = [lang.lower() for lang in languages]  # as `unit_variants` spells them
        for file_name, file in matching_files(path):
            documents: dict[str, list[tuple[str, str]]] = {}
            text = read_text(file)
            for unit in read_units(text, where=str(file)):
                variants = unit_variants(unit)
                if not all(code in variants for code in codes):
                    collector.drop("unit without both languages")
                    continue
                name = ""
                if self.document_prop is not None:  # the first such property counts
                    props = {prop.opening.get("type"): prop for prop in reversed(elements(unit.content, "prop"))}
                    prop = props.get(self.document_prop)
                    name = "".join(token.text for token in prop.content).strip() if prop else ""
                # Inline elements hold code of the original file and go; placeholders such as `%s` are text and stay.
                drafts = (draft_of(text, variants[code].content, opaque=OPAQUE) for code in codes)
                segments = (draft.segment(0, 0) for draft in drafts)
                src, tgt = (segment.plain(segment.text, lambda mark: mark.is_text) for segment in segments)
                documents.setdefault(name or file_name.removesuffix(".tmx"), []).append((src, tgt))
            for name, rows in documents.items():
                collector.add(name, rows)
        return collector.result(if_empty=f"{path}: contains no units in {' and '.join(languages)}")


def _read_cues(path: Path) -> tuple[list[Cue], list[str]]:
    """The cues of a file, and their texts without tags."""
    text = read_text(path)
    cues = read_cues(text, where=str(path))
    segments = (plain_segment(text[slice(*cue.place)]) for cue in cues)
    # A mark is a tag, or a value such as `%s`, which belongs to the text.
    texts = (segment.plain(segment.text, lambda mark: mark.kind == "value") for segment in segments)
    return cues, [" ".join(text.split()) for text in texts]
