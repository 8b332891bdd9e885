"""Translating a file: segments become sentences of documents, translated sentences become segments again."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from docmt.formats.files import Languages, TranslatableFile
from docmt.formats.segments import MARK, FileSegment, is_intact
from docmt.formats.sentences import WITHOUT_BLANKS, numbered, split_segment, trim

BLANKS = re.compile(r"[ \t\r\n]+")
NUMBERED = re.compile(r"\{\s*(\d+)\s*\}")

Translate = Callable[[list[list[str]]], Sequence[Sequence[str]]]
"""Translates documents of sentences: as many sentences out as in."""


@dataclass(frozen=True)
class FileCounts:
    """What happened to the segments of a file.

    Attributes:
        sentences: translated, context apart.
        context: sentences that were only read.
        segments: that were to be translated and have letters.
        untouched: segments that stay as they were, by cause.
        simplified: segments whose changes of style (bold, italics) were left out.
        lost: marks that translated segments lack, optional ones apart: `is_intact` should not let this happen.
    """

    sentences: int
    context: int
    segments: int
    untouched: Counter[str]
    simplified: int
    lost: int


@dataclass(frozen=True)
class _Sentence:
    """A sentence of a segment: what the model reads, and what stays around it."""

    before: str
    core: str
    after: str

    @property
    def has_letters(self) -> bool:
        return any(map(str.isalpha, MARK.sub("", self.core)))


def fill_file(file: TranslatableFile, translate: Translate, *, with_context: bool = True) -> FileCounts:
    """Translate the wanted segments of a file. Those whose marks do not come back stay as they are and are counted.

    Where only changes of style were lost, the document is translated again without them. Without context, every
    sentence is a document by itself, and what need not be translated is not read.
    """
    wanted = [s for document in file.documents for s in document if s.is_wanted and any(map(str.isalpha, s.text))]
    if not with_context:
        file.documents, translate = [[s for s in d if s.is_wanted] for d in file.documents], _one_by_one(translate)
    n_sentences, n_context = _fill(file, translate, {id(segment): segment.text for segment in wanted})
    plainer = {id(s): s.without_styles() for s in wanted if s.filled is None and s.is_optional()}
    if plainer:
        _fill(file, translate, plainer)
    simplified = sum(1 for s in wanted if id(s) in plainer and s.filled is not None)
    untouched = Counter(_cause(segment) for segment in wanted if segment.filled is None)
    return FileCounts(n_sentences, n_context, len(wanted), untouched, simplified, sum(map(_n_lost, wanted)))


def _n_lost(segment: FileSegment) -> int:
    """How many marks that may not be left out a translation lacks."""
    if segment.filled is None:
        return 0
    return (Counter(MARK.findall(segment.without_styles())) - Counter(MARK.findall(segment.filled))).total()


def _one_by_one(translate: Translate) -> Translate:
    def translate_alone(documents: list[list[str]]) -> list[list[str]]:
        found = iter(translate([[sentence] for document in documents for sentence in document]))
        return [[next(found)[0] for _ in document] for document in documents]

    return translate_alone


def _cause(segment: FileSegment) -> str:
    return "markup or placeholders did not come back" if MARK.search(segment.text) else "translation empty or unsafe"


def _fill(file: TranslatableFile, translate: Translate, texts: dict[int, str]) -> tuple[int, int]:
    """Translate the documents that have segments among `texts`, and fill these; counts of sentences and of context."""
    documents = [d for d in file.documents if any(id(segment) in texts for segment in d)]
    split = [[_sentences(s, texts.get(id(s), s.text), file.languages.src) for s in document] for document in documents]
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


def _sentences(segment: FileSegment, text: str, lang: str) -> list[_Sentence]:
    return [_Sentence(*trim(segment, sentence)) for sentence in split_segment(segment, text, lang)]


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
            pieces[-1] = _gap(pieces[-1] + sentence.before, file.languages)
        pieces += [core if pieces else sentence.before + core, sentence.after]
    filled = "".join(pieces)
    return filled if is_intact(segment, filled, text) and file.accepts(segment, filled) else None


def _gap(text: str, languages: Languages) -> str:
    """What is between two sentences: some languages write a blank there, some do not."""
    if languages.tgt in WITHOUT_BLANKS:
        return "" if text == " " else text
    is_closed = languages.src in WITHOUT_BLANKS and not any(map(str.isspace, text))
    return f"{text} " if is_closed else text


def _with_marks(segment: FileSegment, core: str, translation: str) -> str:
    """A translation with marks in place of their numbers; pairs are as close to their text as in the source."""
    marks = numbered(core)[1]

    def replaced(found: re.Match[str]) -> str:
        number = int(found[1])
        return marks[number] if number < len(marks) else found[0]

    text = MARK.sub("", BLANKS.sub(" ", translation).strip())
    text = NUMBERED.sub(replaced, text)
    for mark in marks:
        kind = segment.mark(mark).kind
        if kind == "open" and not re.search(rf"{mark}\s", core):
            text = re.sub(rf"{mark}\s+", mark, text)
        elif kind == "close" and not re.search(rf"\s{mark}", core):
            text = re.sub(rf"\s+{mark}", mark, text)
    return text
