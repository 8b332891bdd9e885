"""Reading contrastive test sets (their format: docs/files.md)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from docmt.errors import UserError
from docmt.files import read_jsonl

KEYS = ("id", "phenomenon", "src", "candidates", "correct")


@dataclass(frozen=True)
class ContrastiveItem:
    """A source document and candidate translations, one of which is correct.

    Attributes:
        id: unique within the suite.
        phenomenon: what it tests.
        src: source sentences.
        candidates: at least two target documents, each with as many sentences as `src`.
        correct: index of the correct candidate.
        distance: how many sentences before the tested sentence the deciding one is, or None.
        kind: a finer class within the phenomenon, or None.
    """

    id: str
    phenomenon: str
    src: tuple[str, ...]
    candidates: tuple[tuple[str, ...], ...]
    correct: int
    distance: int | None = None
    kind: str | None = None

    @property
    def sentence(self) -> int:
        """The first sentence in which candidates differ; the last one when none does."""
        columns = list(zip(*self.candidates, strict=True))
        return next((i for i, column in enumerate(columns) if len(set(column)) > 1), len(columns) - 1)


class AnyItem(Protocol):
    """What items of all kinds of suites have."""

    @property
    def id(self) -> str:
        """Unique within the suite."""
        ...

    @property
    def src(self) -> tuple[str, ...]:
        """Source sentences."""
        ...


Item = TypeVar("Item", bound=AnyItem)


def read_suite(path: Path) -> list[ContrastiveItem]:
    """Read the items of a suite. Raises UserError that names the file and the first bad line."""
    return read_items(path, read_contrastive)


def read_items(path: Path, read_item: Callable[[dict[str, Any], str], Item]) -> list[Item]:
    """Read a suite of one kind.

    Args:
        path: one JSON object per line.
        read_item: makes an item from an object; its second argument names the line in messages.

    Raises:
        UserError: names the file and the first bad line.
    """
    items: list[Item] = []
    seen = set()
    for line, value in enumerate(read_jsonl(path), start=1):
        where = f"{path}: line {line}"
        if not isinstance(value, dict):
            raise UserError(f"{where}: must be an object (docs/files.md)")
        item = read_item(value, where)
        if item.id in seen:
            raise UserError(f"{path}: line {line}: duplicate item {item.id!r}")
        seen.add(item.id)
        items.append(item)
    if not items:
        raise UserError(f"{path}: empty: there is nothing to score")
    return items


def read_contrastive(value: dict[str, Any], where: str) -> ContrastiveItem:
    """One item from its JSON object. Raises UserError that begins with `where`."""
    check_keys(value, KEYS, where)
    src, candidates, correct = value["src"], value["candidates"], value["correct"]
    if not isinstance(candidates, list) or not all(map(_is_document, candidates)):
        raise UserError(f"{where}: `candidates` must be a list of lists of sentences")
    if len(candidates) < 2 or not (isinstance(correct, int) and 0 <= correct < len(candidates)):
        raise UserError(f"{where}: `correct` is {correct!r}, but there are {len(candidates)} candidates")
    count = next((len(candidate) for candidate in candidates if len(candidate) != len(src)), None)
    if count is not None:
        raise UserError(f"{where}: a candidate has {count} sentences, but src has {len(src)}")
    return ContrastiveItem(
        id=value["id"],
        phenomenon=value["phenomenon"],
        src=tuple(src),
        candidates=tuple(map(tuple, candidates)),
        correct=correct,
        distance=value.get("distance"),
        kind=value.get("kind"),
    )


def check_keys(value: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    """Raises UserError when a key is missing, or `src` is no document."""
    missing = next((key for key in keys if key not in value), None)
    if missing:
        raise UserError(f"{where}: key {missing!r} is missing")
    if not _is_document(value["src"]):
        raise UserError(f"{where}: `src` must be a list of at least one sentence")


def _is_document(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(sentence, str) for sentence in value)
