"""Translating a file: segments become sentences of documents, translated sentences become segments again."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from docmt.formats.file_segments import MARK, FileSegment, is_intact
from docmt.formats.sentence_splitting import WITHOUT_BLANKS, numbered, split_segment, trim
from docmt.formats.translatable_file import TranslatableFile

BLANKS = re.compile(r"[ \t\r\n]+")
NUMBERED = re.compile(r"\{\s*+(\d{1,5})\s*+\}")
BLANK_AFTER = re.compile(rf"(?P<mark>{MARK.pattern})\s+")
BLANK_BEFORE = re.compile(rf"(?<!\s)\s++(?P<mark>{MARK.pattern})")

# Translates documents of sentences: as many sentences out as in.
Translate = Callable[[list[list[str]]], Sequence[Sequence[str]]]


@dataclass(frozen=True)
class FileCounts:
    """Counts of a file's translation.

    Attributes:
        sentences: translated sentences, without context.
        context: sentences that were only read.
        segments: segments to translate that have letters.
        left: source, rejected translation and cause of each segment that stays as it was.
        simplified: segments whose changes of style (bold, italics) were left out.
        lost: obligatory marks that translated segments lack; `is_intact` should not let this happen.
    """

    sentences: int
    context: int
    segments: int
    left: list[tuple[str, str, str]]
    simplified: int
    lost: int

    @property
    def untouched(self) -> Counter[str]:
        """Segments that stay as they were, by cause."""
        return Counter(cause for _, _, cause in self.left)


@dataclass(frozen=True)
class _Sentence:
    """A sentence of a segment: its core, which the model reads, and the text around it, which stays."""

    before: str
    core: str
    after: str

    @property
    def has_letters(self) -> bool:
        return any(map(str.isalpha, MARK.sub("", self.core)))


def fill_file(file: TranslatableFile, translate: Translate, *, with_context: bool = True) -> FileCounts:
    """Translate the wanted segments of a file. Segments whose marks do not come back stay as they are and are counted.

    Without context, every sentence is a document by itself, and segments that are not wanted are not read.
    """
    wanted = [s for document in file.documents for s in document if s.is_wanted and s.has_letters]
    if not with_context:
        file.documents = [[segment for segment in document if segment.is_wanted] for document in file.documents]

    def run(documents: list[list[str]]) -> Sequence[Sequence[str]]:
        if with_context:
            return translate(documents)
        found = iter(translate([[sentence] for document in documents for sentence in document]))
        return [[next(found)[0] for _ in document] for document in documents]

    n_sentences, n_context = _fill(file, run, {id(segment): segment.text for segment in wanted})
    # Segments that only lost changes of style are translated again without these, with their documents as context.
    plainer = {id(s): s.without_styles() for s in wanted if s.filled is None and s.without_styles() != s.text}
    if plainer:
        _fill(file, run, plainer)
    simplified = sum(1 for s in wanted if id(s) in plainer and s.filled is not None)
    left: list[tuple[str, str, str]] = []
    n_lost = 0
    for s in wanted:
        if s.filled is None:
            cause = "markup or placeholders did not come back" if MARK.search(s.text) else "translation empty or unsafe"
            left.append((s.plain(s.text), s.plain(s.rejected), cause))
        else:
            n_lost += (Counter(MARK.findall(s.without_styles())) - Counter(MARK.findall(s.filled))).total()
    return FileCounts(n_sentences, n_context, len(wanted), left, simplified, n_lost)


def _fill(file: TranslatableFile, translate: Translate, texts: dict[int, str]) -> tuple[int, int]:
    """Translate the documents that have segments among `texts`, and fill these; counts of sentences and of context."""
    documents = [d for d in file.documents if any(id(segment) in texts for segment in d)]
    lang = file.languages.src
    split = [
        [[_Sentence(*trim(s, each)) for each in split_segment(s, texts.get(id(s), s.text), lang)] for s in document]
        for document in documents
    ]
    rows = [[each for sentences in document for each in sentences if each.has_letters] for document in split]
    found = translate([[numbered(each.core)[0] for each in row] for row in rows])
    n_sentences = n_all = 0
    for document, sentences_of, translations in zip(documents, split, found, strict=True):
        waiting = iter(translations)
        n_all += len(translations)
        for segment, sentences in zip(document, sentences_of, strict=True):
            new = [next(waiting) if each.has_letters else None for each in sentences]
            if id(segment) in texts:
                n_sentences += sum(each is not None for each in new)
                segment.filled = _joined(file, segment, texts[id(segment)], sentences, new)
    return n_sentences, n_all - n_sentences


def _joined(
    file: TranslatableFile, segment: FileSegment, text: str, sentences: Sequence[_Sentence], new: Sequence[str | None]
) -> str | None:
    """The translation of a segment with its marks; None when it cannot be used."""
    pieces: list[str] = []
    for sentence, translation in zip(sentences, new, strict=True):
        core = sentence.core if translation is None else _with_marks(segment, sentence.core, translation)
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
    if is_intact(segment, filled, text) and file.accepts(segment, filled):
        return filled
    segment.rejected = filled
    return None


def _with_marks(segment: FileSegment, core: str, translation: str) -> str:
    """A translation with marks in place of their numbers; pairs are as close to their text as in the source."""
    marks = numbered(core)[1]

    def replaced(found: re.Match[str]) -> str:
        number = int(found[1])
        return marks[number] if number < len(marks) else found[0]

    # Characters of the private plane in a translation are not marks: only numbers become marks.
    text = MARK.sub("", BLANKS.sub(" ", translation).strip())
    text = NUMBERED.sub(replaced, text)
    for kind, blank in (("open", BLANK_AFTER), ("close", BLANK_BEFORE)):
        apart = {found["mark"] for found in blank.finditer(core)}
        tight = {mark for mark in marks if segment.mark(mark).kind == kind} - apart
        text = blank.sub(lambda found, tight=tight: found["mark"] if found["mark"] in tight else found[0], text)
    return text
