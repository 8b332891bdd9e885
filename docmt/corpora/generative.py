"""Reading generative test sets: what a translation must contain (their format: docs/files.md)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from docmt.corpora.contrastive import ContrastiveItem, check_keys, read_contrastive, read_items
from docmt.errors import UserError

KEYS = ("id", "phenomenon", "src", "expected")
Match = Literal["words", "tokens"]
"""How `expected` is searched: among words without punctuation (ctxpro), or among the tokens of Moses (ContraPro)."""


@dataclass(frozen=True)
class GenerativeItem:
    """A source document, and what the translation of one of its sentences, the payload, must contain.

    Attributes:
        id: unique within the suite.
        phenomenon: what it tests.
        src: source sentences.
        expected: one or several words.
        match: how they are searched.
        sentence: index of the payload sentence.
        reference: its reference translation, or None.
        distance: how many sentences before the payload the deciding one is, or None.
        kind: a finer class within the phenomenon, or None.
    """

    id: str
    phenomenon: str
    src: tuple[str, ...]
    expected: str
    match: Match
    sentence: int
    reference: str | None = None
    distance: int | None = None
    kind: str | None = None


def read_generative_suite(path: Path) -> list[GenerativeItem]:
    """Read the items of a suite. Raises UserError that names the file and the first bad line."""
    return read_items(path, read_generative)


def read_generative(value: dict[str, Any], where: str) -> GenerativeItem:
    """One item from its JSON object. Raises UserError that begins with `where`."""
    check_keys(value, KEYS, where)
    expected, match = value["expected"], value.get("match", "words")
    if not isinstance(expected, str) or not expected.strip():
        raise UserError(f"{where}: `expected` must be at least one word")
    if match not in get_args(Match):
        raise UserError(f"{where}: `match` is {match!r}; known: {', '.join(get_args(Match))}")
    n_sentences = len(value["src"])
    sentence = value.get("sentence", n_sentences - 1)
    if not isinstance(sentence, int) or not 0 <= sentence < n_sentences:
        raise UserError(f"{where}: `sentence` is {sentence!r}, but src has {n_sentences} sentences")
    return GenerativeItem(
        id=value["id"],
        phenomenon=value["phenomenon"],
        src=tuple(value["src"]),
        expected=expected,
        match=match,
        sentence=sentence,
        reference=value.get("reference"),
        distance=value.get("distance"),
        kind=value.get("kind"),
    )


def read_either(value: dict[str, Any], where: str) -> ContrastiveItem | GenerativeItem:
    """An item of either kind from its JSON object. Raises UserError that begins with `where`."""
    return (read_generative if "expected" in value else read_contrastive)(value, where)
