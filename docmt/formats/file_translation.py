"""Translating a file: segments become sentences of documents, translated sentences become segments again."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from docmt.formats.file_segments import KINDS, MARK, FileSegment, Kind, is_intact
from docmt.formats.sentence_splitting import WITHOUT_BLANKS, split_segment, trim
from docmt.formats.tag_placement import Align, BareSentence, TagPlacer
from docmt.formats.translatable_file import TranslatableFile

BLANKS = re.compile(r"[ \t\r\n]+")
NUMBERED = re.compile(r"\{\s*+(\d{1,5})\s*+\}")
BLANK_AFTER = re.compile(rf"(?P<mark>{MARK.pattern})\s+")
BLANK_BEFORE = re.compile(rf"(?<!\s)\s++(?P<mark>{MARK.pattern})")
TAGS: tuple[Kind, ...] = ("tag", "open", "close")

# Translates documents of sentences: as many sentences out as in.
Translate = Callable[[list[list[str]]], Sequence[Sequence[str]]]


@dataclass(frozen=True)
class FileCounts:
    """Counts of a file's translation.

    Attributes:
        context: sentences that were only read, which `sentences` does not count.
        segments: segments to translate that have letters.
        left: source, rejected translation and cause of each segment that stays as it was.
        aligned: translated segments whose markup was put back by alignment.
        lost: marks that translated segments lack; `is_intact` should not let this happen.
    """

    sentences: int
    context: int
    segments: int
    left: list[tuple[str, str, str]]
    aligned: int
    lost: int

    @property
    def untouched(self) -> Counter[str]:
        """Segments that stay as they were, by cause."""
        return Counter(cause for _, _, cause in self.left)


@dataclass
class _Sentence:
    """A sentence of a segment: the core is translated, the text around it stays.

    The translation has the marks that `bare` lacks, the form that the model reads; it is None for a core without
    letters.
    """

    before: str
    core: str
    after: str
    bare: BareSentence
    translation: str | None = None

    @property
    def has_letters(self) -> bool:
        return any(map(str.isalpha, self.core))


def fill_file(
    file: TranslatableFile,
    translate: Translate,
    align: Align | None = None,
    *,
    with_context: bool = True,
    reads_tags: bool = True,
) -> FileCounts:
    """Translate the wanted segments of a file. Segments whose marks do not come back stay as they are and are counted.

    `align` aligns sentences with their translations, to put marks back that the model has lost; None does without.
    Without context, every sentence is a document by itself, and segments that are not wanted are not read. `reads_tags`
    says whether the model reads tags as numbers at first, or never.
    """
    wanted = [s for document in file.documents for s in document if s.is_wanted and s.has_letters]
    if not with_context:
        file.documents = [[segment for segment in document if segment.is_wanted] for document in file.documents]

    def run(documents: list[list[str]]) -> Sequence[Sequence[str]]:
        if with_context:
            return translate(documents)
        found = iter(translate([[sentence] for document in documents for sentence in document]))
        return [[next(found)[0] for _ in document] for document in documents]

    ways: list[Collection[Kind]] = [(), TAGS, KINDS] if align else [()]
    ways = ways if reads_tags or align is None else ways[1:]
    n_sentences = n_context = n_aligned = 0
    for removed in ways:
        # Segments with such marks, if these did not come back, are translated again, with their documents as context.
        texts = [s for s in wanted if s.filled is None and (removed is ways[0] or s.has_marks(removed))]
        counts = _fill(file, run, align, texts, removed) if texts else (0, 0)
        n_sentences, n_context = counts if removed is ways[0] else (n_sentences, n_context)
        n_aligned += sum(s.filled is not None and s.has_marks(removed) for s in texts)
    left: list[tuple[str, str, str]] = []
    n_lost = 0
    for s in wanted:
        if s.filled is None:
            cause = "markup or placeholders did not come back" if MARK.search(s.text) else "translation empty or unsafe"
            left.append((s.plain(s.text), s.plain(s.rejected), cause))
        else:
            n_lost += (Counter(MARK.findall(s.text)) - Counter(MARK.findall(s.filled))).total()
    return FileCounts(n_sentences, n_context, len(wanted), left, n_aligned, n_lost)


def _fill(
    file: TranslatableFile,
    translate: Translate,
    align: Align | None,
    wanted: Sequence[FileSegment],
    removed: Collection[Kind],
) -> tuple[int, int]:
    """Fill wanted segments, which the model reads without some kinds of marks; counts of sentences and of context."""
    is_wanted = {id(segment) for segment in wanted}
    documents = [d for d in file.documents if any(id(segment) in is_wanted for segment in d)]
    split = [[(s, _sentences(s, file.languages.src, removed)) for s in document] for document in documents]
    rows = [[each for _, sentences in document for each in sentences if each.has_letters] for document in split]
    for row, translations in zip(rows, translate([[each.bare.text for each in row] for row in rows]), strict=True):
        for each, translation in zip(row, translations, strict=True):
            # Characters of the private plane in a translation are not marks: only numbers become marks.
            each.translation = MARK.sub("", BLANKS.sub(" ", translation).strip())
    chosen = [job for document in split for job in document if id(job[0]) in is_wanted]
    waiting = [
        (s, each) for s, sentences in chosen for each in sentences if each.translation and each.bare.is_incomplete
    ]
    if align and waiting:
        alignments = align([(each.bare.text, each.translation or "") for _, each in waiting])
        for (s, each), alignment in zip(waiting, alignments, strict=True):
            if alignment.src:  # else, it is too long to be aligned
                each.translation = TagPlacer(s, each.bare, each.translation or "", alignment, file.languages).run()
    for segment, sentences in chosen:
        segment.filled = _joined(file, segment, sentences)
    n_sentences = sum(each.has_letters for _, sentences in chosen for each in sentences)
    return n_sentences, sum(map(len, rows)) - n_sentences


def _sentences(segment: FileSegment, lang: str, removed: Collection[Kind]) -> list[_Sentence]:
    """The sentences of a segment."""
    trimmed = [trim(segment, sentence) for sentence in split_segment(segment, segment.text, lang)]
    return [_Sentence(before, core, after, BareSentence.of(segment, core, removed)) for before, core, after in trimmed]


def _joined(file: TranslatableFile, segment: FileSegment, sentences: Sequence[_Sentence]) -> str | None:
    """The translation of a segment with its marks; None when it cannot be used."""
    pieces: list[str] = []
    for sentence in sentences:
        core = _with_marks(segment, sentence)
        if not core.strip() and sentence.core:
            return None
        if pieces:
            gap = pieces[-1] + sentence.before
            # Some languages write a blank between sentences, some do not.
            if file.languages.tgt in WITHOUT_BLANKS:
                gap = "" if gap == " " else gap
            elif file.languages.src in WITHOUT_BLANKS and not any(map(str.isspace, gap)):
                gap += " "
            pieces[-1] = gap
        pieces += [core if pieces else sentence.before + core, sentence.after]
    filled = "".join(pieces)
    if is_intact(segment, filled) and file.accepts(segment, filled):
        return filled
    segment.rejected = filled
    return None


def _with_marks(segment: FileSegment, sentence: _Sentence) -> str:
    """The translation of a core with marks in place of their numbers; pairs are as close to text as in the source."""
    if sentence.translation is None:
        return sentence.core
    marks = sentence.bare.numbered

    def replaced(found: re.Match[str]) -> str:
        number = int(found[1])
        return marks[number] if number < len(marks) else found[0]

    text = NUMBERED.sub(replaced, sentence.translation)
    for kind, blank in (("open", BLANK_AFTER), ("close", BLANK_BEFORE)):
        apart = {found["mark"] for found in blank.finditer(sentence.core)}
        tight = {mark for mark in marks if segment.mark(mark).kind == kind} - apart
        text = blank.sub(lambda found, tight=tight: found["mark"] if found["mark"] in tight else found[0], text)
    return text
