"""Hypotheses of a split, checked against its document index."""

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from docmt.corpora.documents import DocumentIndex, index_path, read_index, text_path
from docmt.errors import UserError
from docmt.files import read_jsonl, read_lines

Unit = Literal["sentences", "instances", "documents"]
# Decoding writes the numbers of these sentences; files of earlier versions have their count.
Count = Annotated[int, BeforeValidator(lambda found: len(found) if isinstance(found, list) else found)]
TOKENIZATION = {
    "subword marks": re.compile(r"@@(?: |$)|▁"),
    "escaped characters such as &apos;": re.compile(r"&(?:apos|quot|amp|lt|gt|#[0-9]+);"),
    "a space before a comma or full stop": re.compile(r"\w [,.](?: |$)"),
}
TOKENIZED_SHARE = 0.05


class Hypothesis(BaseModel):
    """The translation of one instance: one line of a hypotheses file (docs/files.md)."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    instance: int = Field(ge=0)
    document: str
    first_sentence: int = Field(ge=0)
    n_sentences: int = Field(ge=1)
    aligned: bool
    sentences: list[str]
    forced_ends: Count = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.aligned and len(self.sentences) != self.n_sentences:
            raise ValueError(
                f"{len(self.sentences)} sentences for {self.n_sentences} source sentences, although `aligned` is true"
            )
        return self


def read_hypotheses(path: Path, index: DocumentIndex) -> list[Hypothesis]:
    """Read hypotheses, which must cover every sentence of a split once, in order, within its documents.

    Raises UserError that names the file and the first bad line.
    """
    hypotheses = []
    owners = [name for name, length in index for _ in range(length)]
    following = 0
    for line, value in enumerate(read_jsonl(path), start=1):
        try:
            hypothesis = Hypothesis.model_validate(value)
        except ValidationError as error:
            problem = error.errors()[0]
            key = f", key {'.'.join(map(str, problem['loc']))!r}" if problem["loc"] else ""
            reason = problem["msg"].removeprefix("Value error, ")  # pydantic's words before ours
            raise UserError(f"{path}: line {line}{key}: {reason}") from None
        if hypothesis.instance != line - 1:
            raise UserError(
                f"{path}: line {line} is instance {hypothesis.instance}, but instance {line - 1} is expected"
            )
        if hypothesis.first_sentence != following:
            raise UserError(
                f"{path}: line {line} begins at sentence {hypothesis.first_sentence}, but sentence {following} is "
                "expected: lines are missing, or the hypotheses belong to another split"
            )
        following += hypothesis.n_sentences
        if following > len(owners):
            raise UserError(f"{path}: line {line} ends after sentence {len(owners)}, the last one of the split")
        foreign = {owners[i] for i in range(hypothesis.first_sentence, following)} - {hypothesis.document}
        if foreign:
            raise UserError(
                f"{path}: line {line} is of document {hypothesis.document!r}, but its sentences belong to "
                f"{min(foreign)!r}: the hypotheses belong to another split"
            )
        hypotheses.append(hypothesis)
    if following != len(owners):
        raise UserError(f"{path}: ends after {following} sentences, but the split has {len(owners)}: decode it again")
    return hypotheses


def read_reference(prefix: Path, *, src_lang: str, tgt_lang: str) -> tuple[DocumentIndex, list[str]]:
    """The document index and the raw reference sentences of a split.

    Raises UserError when the source, the reference and the index do not have the same number of sentences.
    """
    index = read_index(index_path(prefix))
    for lang in (src_lang, tgt_lang):
        lines = read_lines(text_path(prefix, lang))
        if len(lines) != index.n_sentences:
            raise UserError(
                f"{text_path(prefix, lang)}: {len(lines)} lines, but {index_path(prefix)} counts "
                f"{index.n_sentences} sentences; line {min(len(lines), index.n_sentences) + 1} has no counterpart"
            )
    if not lines:
        raise UserError(f"{text_path(prefix, tgt_lang)}: empty, there is nothing to score")
    return index, lines


def find_tokenization(sentences: Sequence[str], reference: Sequence[str]) -> str | None:
    """A sign of tokenization in translations that the reference lacks, or None; scores of such text are wrong."""
    for sign, pattern in TOKENIZATION.items():
        found, usual = (
            sum(map(bool, map(pattern.search, text))) / max(len(text), 1) for text in (sentences, reference)
        )
        # A reference may have such signs too, in text on programming or in a corpus that exists only so.
        if found >= TOKENIZED_SHARE and found > 2 * usual:
            return f"the translations look tokenized ({100 * found:.0f} % of the sentences have {sign})"
    return None


def join_segments(
    hypotheses: Sequence[Hypothesis],
    translations: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    unit: Unit,
) -> tuple[list[str], list[list[str]]]:
    """The segments of the translations and of each reference: sentences, instances or documents, joined by spaces.

    `translations` are the sentences of each instance, and `references` the sentences of the split in each reference:
    both as they are, or both tokenized. The unit `sentences` needs aligned hypotheses.
    """
    if unit == "sentences":
        return [sentence for sentences in translations for sentence in sentences], [list(text) for text in references]
    pairs = zip(hypotheses, translations, strict=True)
    key = (lambda pair: pair[0].instance) if unit == "instances" else (lambda pair: pair[0].document)
    joined, bounds = [], []
    # Hypotheses that are not aligned have other sentences than the reference, so bounds follow the source.
    for _, group in groupby(pairs, key=key):
        members = list(group)
        start = members[0][0].first_sentence
        bounds.append((start, start + sum(hypothesis.n_sentences for hypothesis, _ in members)))
        joined.append(" ".join(sentence for _, sentences in members for sentence in sentences))
    return joined, [[" ".join(text[start:end]) for start, end in bounds] for text in references]
