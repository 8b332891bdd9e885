"""Hypotheses for a split, checked against the document index."""

import re
from collections.abc import Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from docmt.corpora.documents import DocumentIndex
from docmt.errors import UserError
from docmt.evaluation.references import read_sentences
from docmt.files import read_jsonl

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
    owners = [name for name, length in index for _ in range(length)]
    following = 0
    for line, value in enumerate(read_jsonl(path), start=1):
        where = f"{path}: line {line}"
        try:
            hypothesis = Hypothesis.model_validate(value)
        except ValidationError as error:
            problem = error.errors()[0]
            key = f", key {'.'.join(map(str, problem['loc']))!r}" if problem["loc"] else ""
            reason = problem["msg"].removeprefix("Value error, ")  # pydantic adds this prefix
            raise UserError(f"{where}{key}: {reason}") from None
        number, start, document = hypothesis.instance, hypothesis.first_sentence, hypothesis.document
        if number != line - 1:
            raise UserError(f"{where}: expected instance {line - 1}, not {number}")
        if start != following:
            raise UserError(
                f"{where}: begins at sentence {start}, not {following}: lines are missing, or the hypotheses "
                "belong to another split"
            )
        following += hypothesis.n_sentences
        if following > len(owners):
            raise UserError(f"{where}: ends after the last sentence of the split ({len(owners)})")
        if foreign := {*owners[start:following]} - {document}:
            raise UserError(
                f"{where}: belongs to document {document!r}, but its sentences belong to {min(foreign)!r}: the "
                "hypotheses belong to another split"
            )
        hypotheses.append(hypothesis)
    if following != len(owners):
        raise UserError(f"{path}: ends after {following} sentences, but the split has {len(owners)}: decode it again")
    return hypotheses


def read_user_hypotheses(path: Path, index: DocumentIndex, blank: Sequence[bool] = ()) -> list[Hypothesis]:
    """Read user-supplied translations for a split. Documents become instances.

    The file can be docmt's JSONL (its name ends in `.jsonl`, and its instances are kept), or text. Text has one line
    per sentence, or one line per document, in which case it is not aligned by sentence. With `blank`
    (`read_user_references`), it can also have one line per reference line.
    """
    if path.suffix == ".jsonl":
        return read_hypotheses(path, index)
    lines = read_sentences(path, blank)
    n_sentences, n_documents = index.n_sentences, len(index.ids)
    if len(lines) not in (n_sentences, n_documents):
        raise UserError(
            f"{path}: {len(lines)} lines, but the test set has {n_sentences} sentences in {n_documents} documents: "
            "write one line for each sentence, or one for each document"
        )
    empty = [number for number, line in enumerate(lines, start=1) if not line.strip()]
    if len(lines) == n_sentences and any(blank) and len(empty) >= sum(blank):
        raise UserError(
            f"{path}: line {empty[0]} is blank, and so are lines of the reference, but the file has one line per "
            f"sentence: write {len(blank)} lines, including the blank lines of the reference"
        )
    # If all documents have one sentence, lines are sentences, and all scores can be computed.
    is_aligned = len(lines) == n_sentences
    following, start, hypotheses = iter(lines), 0, []
    for number, (name, length) in enumerate(index):
        sentences = list(islice(following, length if is_aligned else 1))
        places = {"instance": number, "document": name, "first_sentence": start, "n_sentences": length}
        hypotheses.append(Hypothesis(**places, aligned=is_aligned, sentences=sentences))
        start += length
    return hypotheses


def find_tokenization(sentences: Sequence[str], reference: Sequence[str]) -> str | None:
    """Return a sign of tokenization that the translations contain and the reference does not, or None.

    Scores of tokenized translations would be wrong.
    """
    for sign, pattern in TOKENIZATION.items():
        share, usual = (
            sum(map(bool, map(pattern.search, text))) / max(len(text), 1) for text in (sentences, reference)
        )
        # References can also have such signs, for example in programming texts or in tokenized corpora.
        if share >= TOKENIZED_SHARE and share > 2 * usual:
            return f"the translations look tokenized ({100 * share:.0f} % of the sentences have {sign})"
    return None


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
        return [sentence for sentences in translations for sentence in sentences], [list(text) for text in references]
    pairs = zip(hypotheses, translations, strict=True)
    key = (lambda pair: pair[0].instance) if unit == "instances" else (lambda pair: pair[0].document)
    joined, bounds = [], []
    # Unaligned hypotheses have other sentences than the reference, so segment bounds follow the source.
    for _, group in groupby(pairs, key=key):
        members = list(group)
        start = members[0][0].first_sentence
        bounds.append((start, start + sum(hypothesis.n_sentences for hypothesis, _ in members)))
        joined.append(" ".join(sentence for _, sentences in members for sentence in sentences))
    return joined, [[" ".join(text[start:end]) for start, end in bounds] for text in references]
