"""Documents with words, EDUs and trees, stored as JSON lines (see docs/files.md)."""

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from docmt.discourse.constituents import Node, check_cover, from_json, to_json
from docmt.discourse.dependencies import DependencyTree, check_dependencies, to_dependencies
from docmt.errors import UserError
from docmt.files import iterate_jsonl, write_jsonl

SAME_SENTENCE, SAME_PARAGRAPH, ABOVE, UNKNOWN, NOTHING = range(5)
"""Levels of a boundary. UNKNOWN: sentence boundary, paragraphs unknown. NOTHING: no two neighbors."""
N_LEVELS = 5


@dataclass(frozen=True, slots=True)
class Edu:
    """Words `start` to `end` − 1 in a sentence. An empty sentence has one EDU without words."""

    sentence: int
    start: int
    end: int


@dataclass(frozen=True)
class DiscourseDocument:
    """The EDUs and trees of one document."""

    id: str
    sentences: tuple[tuple[str, ...], ...]  # words without spaces, per sentence
    edus: tuple[Edu, ...]  # in order, covering the words of all sentences without gap or overlap
    tree: Node | None = None  # constituents over EDUs, if known
    paragraphs: tuple[int, ...] | None = None  # first sentence per paragraph, if known
    arcs: DependencyTree | None = None  # dependency tree from the file (None: derived from `tree`)

    def __post_init__(self) -> None:
        """Raise UserError if EDUs, trees and sentences do not match."""
        where = f"discourse of {self.id!r}"
        check_edus(self.edus, list(map(len, self.sentences)), where=where)
        if self.tree is not None:
            check_cover(self.tree, len(self.edus), where=f"{where}: ")
        if self.arcs is not None:
            if len(self.arcs.heads) != len(self.edus):
                raise UserError(f"{where}: {len(self.arcs.heads)} heads for {len(self.edus)} EDUs")
            check_dependencies(self.arcs.heads, where=where)
        if self.paragraphs is not None and (
            list(self.paragraphs) != sorted(set(self.paragraphs))
            or (self.paragraphs[:1] != (0,) and self.sentences)
            or max(self.paragraphs, default=0) >= max(1, len(self.sentences))
        ):
            raise UserError(f"{where}: paragraphs must be ascending sentence numbers, starting with 0")

    @cached_property
    def dependencies(self) -> DependencyTree:
        if self.arcs is not None:
            return self.arcs
        if self.tree is None:
            raise UserError(f"discourse of {self.id!r}: has EDUs but no tree: parse it first")
        return to_dependencies(self.tree, len(self.edus))

    def edu_words(self, edu: int) -> tuple[str, ...]:
        span = self.edus[edu]
        return self.sentences[span.sentence][span.start : span.end]

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "document": self.id,
            "sentences": [list(words) for words in self.sentences],
            "edus": [{"sentence": edu.sentence, "start": edu.start, "end": edu.end} for edu in self.edus],
            "tree": to_json(self.tree) if self.tree else None,
            "dependency": None,
        }
        if self.tree is not None or self.arcs is not None:
            arcs = zip(self.dependencies.heads, self.dependencies.relations, strict=True)
            value["dependency"] = [{"head": head, "relation": relation} for head, relation in arcs]
        if self.paragraphs is not None:
            value["paragraphs"] = list(self.paragraphs)
        return value

    @classmethod
    def from_json(cls, value: Any) -> "DiscourseDocument":
        """Build a document from the value of `to_json`. Raises UserError for other values."""
        try:
            tree = arcs = paragraphs = None
            if value.get("tree"):
                tree = from_json(value["tree"])
            rows = value.get("dependency")
            if rows:
                arcs = DependencyTree(tuple(row["head"] for row in rows), tuple(row["relation"] for row in rows))
                _check_text(arcs.relations, "relations")
            if value.get("paragraphs") is not None:
                paragraphs = tuple(value["paragraphs"])
            for words in value["sentences"]:
                _check_text(words, "words of a sentence")
            return cls(
                value["document"],
                tuple(map(tuple, value["sentences"])),
                tuple(Edu(edu["sentence"], edu["start"], edu["end"]) for edu in value["edus"]),
                tree,
                paragraphs,
                arcs,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(f"not discourse in the format of docs/files.md ({error!r})") from None


def _check_text(values: Iterable[Any], what: str) -> None:
    for value in values:
        if not isinstance(value, str):
            raise UserError(f"not discourse in the format of docs/files.md: {what} must be text, not {value!r}")


def check_edus(edus: Iterable[Edu], lengths: list[int], *, where: str) -> None:
    """Raise UserError unless EDUs cover the words of all sentences in order, without gap or overlap."""
    ends = [0] * len(lengths)
    counts = [0] * len(lengths)
    before = 0
    for number, edu in enumerate(edus, start=1):
        if not before <= edu.sentence < len(lengths):
            raise UserError(f"{where}: EDU {number} is in sentence {edu.sentence + 1}, out of order or range")
        if edu.start != ends[edu.sentence] or edu.end < edu.start or (edu.end == edu.start and lengths[edu.sentence]):
            raise UserError(
                f"{where}: EDU {number} is words {edu.start} to {edu.end} of sentence {edu.sentence + 1}, but the EDUs "
                "of a sentence must cover it without gap or overlap"
            )
        before = edu.sentence
        ends[edu.sentence] = edu.end
        counts[edu.sentence] += 1
    for sentence, (end, length, count) in enumerate(zip(ends, lengths, counts, strict=True), start=1):
        if length == 0 and count != 1:
            raise UserError(
                f"{where}: sentence {sentence} is empty and needs one EDU, but has {count}: if the trees come from "
                "a file without empty lines, remove them from the text"
            )
        if end != length or not count:
            raise UserError(f"{where}: the EDUs cover {end} of {length} words in sentence {sentence}")


def edus_from_starts(starts: Iterable[Iterable[int]], lengths: Iterable[int]) -> tuple[Edu, ...]:
    """Build EDUs from inner starts per sentence (see `inner_starts`)."""
    edus = []
    for sentence, (inner, length) in enumerate(zip(starts, lengths, strict=True)):
        bounds = [0, *sorted(inner), length]
        for start, end in itertools.pairwise(bounds):
            edus.append(Edu(sentence, start, end))
    return tuple(edus)


def sentences_of(documents: Iterable[DiscourseDocument]) -> list[tuple[str, ...]]:
    """Return the sentences of all documents in order."""
    sentences = []
    for document in documents:
        sentences += document.sentences
    return sentences


def inner_starts(document: DiscourseDocument) -> list[list[int]]:
    """Return the inner starts per sentence: the words, except the first, at which an EDU begins."""
    starts: list[list[int]] = [[] for _ in document.sentences]
    for edu in document.edus:
        if edu.start:
            starts[edu.sentence].append(edu.start)
    return starts


def iterate_discourse(path: Path) -> Iterator[DiscourseDocument]:
    """Yield the documents in `*.discourse.jsonl`."""
    for number, value in enumerate(iterate_jsonl(path), start=1):
        try:
            yield DiscourseDocument.from_json(value)
        except UserError as error:
            raise UserError(f"{path}: line {number}: {error}") from None


def read_discourse(path: Path) -> list[DiscourseDocument]:
    """Read all documents in `*.discourse.jsonl`."""
    return list(iterate_discourse(path))


def write_discourse(path: Path, documents: Iterable[DiscourseDocument]) -> None:
    """Write documents as `*.discourse.jsonl`, one at a time."""
    write_jsonl(path, map(DiscourseDocument.to_json, documents))


class Units:
    """Consecutive EDUs grouped into units: sentences or paragraphs.

    Attributes:
        number_of: unit number per EDU.
        first, last: first and last EDU in the same unit, per EDU.
        n: number of units.
    """

    def __init__(self, number_of: Sequence[int]) -> None:
        # Numbers ascend, so the EDUs of a unit are adjacent.
        self.number_of = list(number_of)
        self.first = [bisect.bisect_left(self.number_of, number) for number in self.number_of]
        self.last = [bisect.bisect_right(self.number_of, number) - 1 for number in self.number_of]
        self.n = self.number_of[-1] + 1 if self.number_of else 0


class DocumentUnits:
    """Sentences and paragraphs of a document.

    Attributes:
        n_edus: number of EDUs.
        sentences: EDUs by sentence.
        paragraphs: EDUs by paragraph, if known.
    """

    def __init__(self, document: DiscourseDocument) -> None:
        self.n_edus = len(document.edus)
        self.sentences = Units([edu.sentence for edu in document.edus])
        self.paragraphs: Units | None = None
        if document.paragraphs is not None:
            starts = document.paragraphs
            self.paragraphs = Units([bisect.bisect_right(starts, edu.sentence) - 1 for edu in document.edus])

    def level(self, left: int, right: int) -> int:
        """Return the level of the boundary between two EDUs, or of a span with this first and last EDU."""
        if self.sentences.number_of[left] == self.sentences.number_of[right]:
            return SAME_SENTENCE
        if self.paragraphs is None:
            return UNKNOWN
        if self.paragraphs.number_of[left] == self.paragraphs.number_of[right]:
            return SAME_PARAGRAPH
        return ABOVE
