"""Hypotheses for a split, checked against the document index."""

import logging
import re
from collections.abc import Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from docmt.corpora.documents import DocumentIndex
from docmt.errors import UserError
from docmt.evaluation.references import refuse_markup
from docmt.files import read_jsonl, read_lines
from docmt.text.realignment import align_sentences

log = logging.getLogger(__name__)

Unit = Literal["sentences", "instances", "documents"]
TOKENIZATION = {
    "subword marks": re.compile(r"@@(?: |$)|▁"),
    "escaped characters such as &apos;": re.compile(r"&(?:apos|quot|amp|lt|gt|#[0-9]+);"),
    "a space before a comma or full stop": re.compile(r"\w [,.](?: |$)"),
}
TOKENIZED_SHARE = 0.05


class Hypothesis(BaseModel):
    """Translation of one instance: one line in a hypotheses file (docs/files.md)."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    instance: int = Field(ge=0)
    document: str
    first_sentence: int = Field(ge=0)
    n_sentences: int = Field(ge=1)
    aligned: bool
    sentences: list[str]
    forced_ends: int = Field(default=0, ge=0)
    realigned_lines: int = Field(default=0, ge=0)  # lines in a user-supplied file with other sentences
    joined: bool = False  # translated as one sentence, which was divided by re-alignment
    one_line: bool = False  # a document in one line, whose sentences are unknown

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.aligned and len(self.sentences) != self.n_sentences:
            raise ValueError(
                f"{len(self.sentences)} sentences for {self.n_sentences} source sentences, although `aligned` is true"
            )
        return self


def read_hypotheses(path: Path, index: DocumentIndex) -> list[Hypothesis]:
    """Read hypotheses. They must cover every sentence in a split once, in order, within document boundaries."""
    hypotheses: list[Hypothesis] = []
    owners: list[str] = []
    for name, length in index:
        owners += [name] * length
    following = 0
    for line, value in enumerate(read_jsonl(path), start=1):
        where = f"{path}: line {line}"
        try:
            hypothesis = Hypothesis.model_validate(value)
        except ValidationError as error:
            problem = error.errors()[0]
            if problem["loc"]:
                where += f", key {'.'.join(map(str, problem['loc']))!r}"
            reason = problem["msg"].removeprefix("Value error, ")  # pydantic adds this prefix
            raise UserError(f"{where}: {reason}") from None
        start = hypothesis.first_sentence
        if hypothesis.instance != line - 1:
            raise UserError(f"{where}: expected instance {line - 1}, not {hypothesis.instance}")
        if start != following:
            raise UserError(
                f"{where}: begins at sentence {start}, not {following}: lines are missing, or the hypotheses "
                "belong to another split"
            )
        following += hypothesis.n_sentences
        if following > len(owners):
            raise UserError(f"{where}: ends after the last sentence of the split ({len(owners)})")
        foreign = {*owners[start:following]} - {hypothesis.document}
        if foreign:
            raise UserError(
                f"{where}: belongs to document {hypothesis.document!r}, but its sentences belong to {min(foreign)!r}: "
                "the hypotheses belong to another split"
            )
        hypotheses.append(hypothesis)
    if following != len(owners):
        raise UserError(f"{path}: ends after {following} sentences, but the split has {len(owners)}: decode it again")
    return hypotheses


def read_user_hypotheses(
    path: Path, index: DocumentIndex, reference: Sequence[str], *, tgt_lang: str, blank: Sequence[bool] = ()
) -> list[Hypothesis]:
    """Read user-supplied translations for a split. Documents become instances.

    The file can be docmt's JSONL (its name ends in `.jsonl`, and its instances are kept), or text. Text has one line
    per sentence, or one line per document, in which case it is not aligned by sentence. With blank lines between
    documents, a document can have any number of sentences, and is aligned to the reference if it has another number.
    With `blank` (`read_user_references`), the file can also have one line per reference line.
    """
    if path.suffix == ".jsonl":
        return read_hypotheses(path, index)
    refuse_markup(path)
    lines = [line.removesuffix("\r") for line in read_lines(path)]
    references = cut(reference, index.lengths)
    documents = _divide_documents(path, lines, references, index, blank, tgt_lang)
    hypotheses: list[Hypothesis] = []
    start = 0
    for number, (name, length) in enumerate(index):
        sentences = lines[number : number + 1] if documents is None else documents[number]
        n_realigned = 0
        if documents is not None and len(sentences) != length:
            n_realigned = len(sentences)
            _, sentences = align_sentences(sentences, references[number], tgt_lang)
        hypothesis = Hypothesis(
            instance=number,
            document=name,
            first_sentence=start,
            n_sentences=length,
            aligned=documents is not None,
            sentences=sentences,
            realigned_lines=n_realigned,
            one_line=documents is None,
        )
        hypotheses.append(hypothesis)
        start += length
    remark = describe_realignment(hypotheses)
    if remark:
        log.warning("%s: %s", path, remark)
    return hypotheses


def cut(sentences: Sequence[str], lengths: Sequence[int]) -> list[list[str]]:
    """Return the sentences of each document."""
    following = iter(sentences)
    return [list(islice(following, length)) for length in lengths]


def _divide_documents(
    path: Path,
    lines: Sequence[str],
    references: Sequence[Sequence[str]],
    index: DocumentIndex,
    blank: Sequence[bool],
    lang: str,
) -> list[list[str]] | None:
    """Return the lines of each document, or None if each document is one line without sentence boundaries."""
    n_documents = len(index.ids)
    sentences = lines
    if len(lines) == len(blank):
        # Without the reference's blank lines, if the file has them at the same places.
        sentences = [line for line, is_blank in zip(lines, blank, strict=True) if line.strip() or not is_blank]
    blocks = []
    for is_text, block in groupby(lines, key=lambda line: bool(line.strip())):
        if is_text:
            blocks.append(list(block))
    divisions = []
    if len(sentences) == index.n_sentences:
        divisions.append(cut(sentences, index.lengths))
    if len(blocks) == n_documents and len(lines) != n_documents:
        divisions.append(blocks)
    if len(divisions) == 2 and divisions[0] != divisions[1]:
        # A blank line can be an empty sentence or the end of a document. The number of edits decides.
        divisions.sort(key=lambda documents: _count_edits(documents, references, lang))
    if divisions:
        return divisions[0]
    if len(sentences) == n_documents:
        return None
    form = "write one line for each sentence, or one for each document, or blank lines between documents"
    if len(blocks) <= 1:
        counts = f"{len(lines)} lines"
    else:
        counts = f"{sum(map(len, blocks))} lines in {len(blocks)} documents, by blank lines"
        form = f"{_describe_unmatched(lines, blocks, references, index)}; or {form}"
    raise UserError(
        f"{path}: {counts}, but the test set has {index.n_sentences} sentences in {n_documents} documents: {form}"
    )


def _count_edits(documents: Sequence[Sequence[str]], references: Sequence[Sequence[str]], lang: str) -> int:
    """Return the word edits of sentences, where documents with another number of sentences are aligned."""
    n_edits = 0
    for document, reference in zip(documents, references, strict=True):
        if len(document) != len(reference):
            n_edits += align_sentences(document, reference, lang)[0]
            continue
        for line, sentence in zip(document, reference, strict=True):
            n_edits += align_sentences([line], [sentence], lang)[0]
    return n_edits


def _describe_unmatched(
    lines: Sequence[str], blocks: Sequence[Sequence[str]], references: Sequence[Sequence[str]], index: DocumentIndex
) -> str:
    """Return which document seems to be missing in the file, or superfluous, by the words that it shares."""
    if len(blocks) < len(references):
        missing = index.ids[_first_unmatched(references, blocks)]
        return f"document {missing!r} seems to be missing"
    number = _first_unmatched(blocks, references)
    starts = []
    previous = ""
    for line_number, line in enumerate(lines, start=1):
        if line.strip() and not previous.strip():
            starts.append(line_number)
        previous = line
    after = f" after document {index.ids[number - 1]!r}" if number else ""
    return f"the text at line {starts[number]}{after} seems to be no document of its own"


def _first_unmatched(longer: Sequence[Sequence[str]], shorter: Sequence[Sequence[str]]) -> int:
    """Return the first document in the longer list without a counterpart, if all others are matched in order."""
    longer_words = [{*" ".join(document).casefold().split()} for document in longer]
    n_unmatched = len(longer) - len(shorter)
    # By number of skipped documents: similarity of all pairs so far, and the first skipped document.
    states = [(0.0, len(longer)), *[(0.0, 0)] * n_unmatched]
    for number, document in enumerate(shorter):
        words = {*" ".join(document).casefold().split()}
        for n_skipped, (similarity, first) in enumerate(states):
            counterpart = longer_words[number + n_skipped]
            shared = len(words & counterpart) / max(len(words), len(counterpart), 1)
            states[n_skipped] = similarity + shared, first
        for n_skipped in range(1, n_unmatched + 1):
            similarity, first = states[n_skipped - 1]
            states[n_skipped] = max(states[n_skipped], (similarity, min(first, number + n_skipped)))
    return states[-1][1]


def describe_realignment(hypotheses: Sequence[Hypothesis]) -> str | None:
    """Return how many documents of a user's file, or windows of joined sentences, were re-aligned. None if none."""
    joined = [hypothesis for hypothesis in hypotheses if hypothesis.joined]
    if joined:
        n_sentences = sum(hypothesis.n_sentences for hypothesis in joined)
        return f"{len(joined)} windows of joined sentences, with translations re-aligned to {n_sentences} sentences"
    realigned = [hypothesis for hypothesis in hypotheses if hypothesis.realigned_lines]
    if not realigned:
        return None
    n_lines = sum(hypothesis.realigned_lines for hypothesis in realigned)
    n_sentences = sum(hypothesis.n_sentences for hypothesis in realigned)
    return (
        f"{len(realigned)} of {len(hypotheses)} documents re-aligned to the reference "
        f"(their {n_lines} lines to {n_sentences} sentences)"
    )


def find_tokenization(hypotheses: Sequence[Hypothesis], reference: Sequence[str]) -> str | None:
    """Return a sign of tokenization that the translations contain and the reference does not, or None.

    Scores of tokenized translations would be wrong.
    """
    unit: Unit = "instances"
    if all(hypothesis.aligned for hypothesis in hypotheses):
        unit = "sentences"
    translations = [hypothesis.sentences for hypothesis in hypotheses]
    segments, (expected,) = join_segments(hypotheses, translations, [reference], unit)
    for sign, pattern in TOKENIZATION.items():
        share = _share_with(pattern, segments)
        # References can also have such signs, for example in programming texts or in tokenized corpora.
        if share >= TOKENIZED_SHARE and share > 2 * _share_with(pattern, expected):
            return f"the translations look tokenized ({100 * share:.0f} % of the {unit} have {sign})"
    return None


def _share_with(pattern: re.Pattern[str], sentences: Sequence[str]) -> float:
    return sum(map(bool, map(pattern.search, sentences))) / max(len(sentences), 1)


def join_segments(
    hypotheses: Sequence[Hypothesis],
    translations: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    unit: Unit,
) -> tuple[list[str], list[list[str]]]:
    """Return translation segments and the segments by reference, as sentences joined by spaces.

    `translations` contains sentences by instance, `references` the split's sentences by reference. Both are raw, or
    both are tokenized. The unit `sentences` requires aligned hypotheses.
    """
    if unit == "sentences":
        return list(chain.from_iterable(translations)), list(map(list, references))

    def segment(pair: tuple[Hypothesis, Sequence[str]]) -> int | str:
        return pair[0].instance if unit == "instances" else pair[0].document

    joined = []
    bounds = []
    for _, group in groupby(zip(hypotheses, translations, strict=True), key=segment):
        members = list(group)
        sentences: list[str] = []
        # Unaligned hypotheses have other sentences than the reference, so segment bounds follow the source.
        start = end = members[0][0].first_sentence
        for hypothesis, translation in members:
            end += hypothesis.n_sentences
            sentences += translation
        bounds.append((start, end))
        joined.append(" ".join(sentences))
    segments = []
    for text in references:
        segments.append([" ".join(text[start:end]) for start, end in bounds])
    return joined, segments
