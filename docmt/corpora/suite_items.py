"""Test suite items: contrastive items for scoring, generative items for translation (docs/files.md)."""

import logging
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from docmt.errors import UserError
from docmt.files import read_jsonl
from docmt.languages import has_blanks
from docmt.settings import nearest

log = logging.getLogger(__name__)

# Search space for `expected`: words without punctuation (ctxpro), Moses tokens (ContraPro), or the whole text.
Match = Literal["words", "tokens", "text"]


@dataclass(frozen=True)
class SuiteItem:
    """A test of a phenomenon, with a unique id in the suite."""

    id: str
    phenomenon: str
    src: tuple[str, ...]


@dataclass(frozen=True)
class ContrastiveItem(SuiteItem):
    """A source document with one correct and further candidate translations.

    Attributes:
        candidates: at least two target documents, with as many sentences as `src`.
        correct: index of the correct candidate.
        distance: number of sentences from the deciding sentence to the tested sentence.
        kind: subclass of the phenomenon.
        is_prefix: true if the last sentence of the candidates ends after the tested word, so that `</s>` is not scored.
    """

    candidates: tuple[tuple[str, ...], ...]
    correct: int
    distance: int | None = None
    kind: str | None = None
    is_prefix: bool = False

    @property
    def sentence(self) -> int:
        """Index of the first sentence with different candidates (default: the last sentence)."""
        return first_difference(self.candidates)


@dataclass(frozen=True)
class GenerativeItem(SuiteItem):
    """A source document, and expected words in the translation of one sentence (the payload).

    Attributes:
        expected: one or several words.
        sentence: index of the payload sentence.
        distance, kind: as in contrastive items.
    """

    expected: str
    match: Match
    sentence: int
    reference: str | None = None
    distance: int | None = None
    kind: str | None = None


Item = TypeVar("Item", bound=SuiteItem)


def first_difference(candidates: Sequence[Sequence[str]]) -> int:
    """Return the index of the first sentence with different candidates (default: the last sentence)."""
    # Column i holds sentence i of every candidate.
    columns = list(zip(*candidates, strict=True))
    for i, column in enumerate(columns):
        if len(set(column)) > 1:
            return i
    return len(columns) - 1


def read_suite(path: Path) -> list[ContrastiveItem]:
    """Read a contrastive suite."""
    return read_items(path, read_contrastive)


def read_generative_suite(path: Path) -> list[GenerativeItem]:
    """Read a generative suite."""
    return read_items(path, read_generative)


def read_items(path: Path, read_item: Callable[[dict[str, Any], str], Item]) -> list[Item]:
    """Read a suite in JSON lines. The second argument of `read_item` is the line in messages."""
    items: list[Item] = []
    seen = set()
    counts: Counter[str] = Counter()
    for line, value in enumerate(read_jsonl(path), start=1):
        where = f"{path}: line {line}"
        if not isinstance(value, dict):
            raise UserError(f"{where}: must be an object (docs/files.md)")
        item = read_item(value, where)
        if item.id in seen:
            raise UserError(f"{where}: duplicate item {item.id!r}")
        seen.add(item.id)
        items.append(item)
        counts.update(value.keys())
    if not items:
        raise UserError(f"{path}: contains no items to score")
    keys = [*(field.name for field in fields(items[0])), "sentence"]
    for key, n in counts.items():
        if key not in keys:
            log.warning("%s: the unknown key %r of %d items is ignored; %s", path, key, n, nearest(key, keys))
    return items


def check_matches(rules: Iterable[tuple[str, str, str]], lang: str, *, where: str) -> None:
    """Raise UserError if a rule, with id, `expected` and `match`, needs blanks between words in a language without.

    The log has the number of items that no translation can satisfy.
    """
    n_impossible = 0
    for name, expected, match in rules:
        if match != "text" and not has_blanks(lang):
            raise UserError(
                f'{where}: item {name!r}: {lang} does not separate words by blanks: use "match": "text", which '
                "finds `expected` anywhere"
            )
        n_impossible += match == "words" and any(letter in string.punctuation for letter in expected)
    if n_impossible:
        log.warning(
            '%s: %d items are always wrong, because `expected` contains punctuation, which "match": "words" removes '
            'from translations; use "match": "text"',
            *(where, n_impossible),
        )


def read_contrastive(value: dict[str, Any], where: str) -> ContrastiveItem:
    """Return the contrastive item in a JSON object."""
    _check_keys(value, ("id", "phenomenon", "src", "candidates", "correct"), where)
    src = value["src"]
    candidates = value["candidates"]
    correct = value["correct"]
    if not isinstance(candidates, list) or not all(map(_is_document, candidates)):
        raise UserError(f"{where}: `candidates` must be a list of lists of sentences")
    if len(candidates) < 2:
        raise UserError(f"{where}: `candidates` needs a correct and a wrong candidate")
    if not (type(correct) is int and 0 <= correct < len(candidates)):
        raise UserError(f"{where}: `correct` is {correct!r}, but there are {len(candidates)} candidates")
    for candidate in candidates:
        if len(candidate) != len(src):
            raise UserError(f"{where}: a candidate has {len(candidate)} sentences, but src has {len(src)}")
    first = first_difference(candidates)
    if value.get("sentence", first) != first:
        raise UserError(f"{where}: `sentence` is {value['sentence']!r}, but the candidates first differ in {first}")
    is_prefix = value.get("is_prefix", False)
    if not isinstance(is_prefix, bool):
        raise UserError(f"{where}: `is_prefix` must be true or false, not {is_prefix!r}")
    return ContrastiveItem(
        **_common(value), candidates=tuple(map(tuple, candidates)), correct=correct, is_prefix=is_prefix
    )


def read_generative(value: dict[str, Any], where: str) -> GenerativeItem:
    """Return the generative item in a JSON object."""
    _check_keys(value, ("id", "phenomenon", "src", "expected"), where)
    expected = value["expected"]
    match = value.get("match", "words")
    if not isinstance(expected, str) or not expected.strip():
        raise UserError(f"{where}: `expected` must be text with at least one word, not {expected!r}")
    if match not in get_args(Match):
        raise UserError(f"{where}: `match` is {match!r}; known: {', '.join(get_args(Match))}")
    expected = " ".join(expected.split())
    if match == "tokens" and " " in expected:
        raise UserError(f"{where}: `expected` is {expected!r}, but `match` is 'tokens', which finds a single word")
    n_sentences = len(value["src"])
    sentence = value.get("sentence", n_sentences - 1)
    if type(sentence) is not int or not 0 <= sentence < n_sentences:
        raise UserError(f"{where}: `sentence` is {sentence!r}, but src has {n_sentences} sentences")
    reference = value.get("reference")
    return GenerativeItem(**_common(value), expected=expected, match=match, sentence=sentence, reference=reference)


def read_either(value: dict[str, Any], where: str) -> ContrastiveItem | GenerativeItem:
    """Return the item of either kind in a JSON object."""
    if "expected" in value:
        return read_generative(value, where)
    return read_contrastive(value, where)


def _common(value: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of both kinds of items."""
    return {
        "id": value.get("id"),
        "phenomenon": value.get("phenomenon"),
        "distance": value.get("distance"),
        "kind": value.get("kind"),
        "src": tuple(value["src"]),
    }


def _check_keys(value: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        if key not in value:
            raise UserError(f"{where}: key {key!r} is missing")
    if not all(isinstance(value[key], str) for key in ("id", "phenomenon")):
        raise UserError(f"{where}: `id` and `phenomenon` must be text")
    if not _is_document(value["src"]):
        raise UserError(f"{where}: `src` must be a list of at least one sentence")
    for key, kind, name in (("distance", int, "a whole number"), ("kind", str, "text"), ("reference", str, "text")):
        if type(value.get(key)) not in (kind, type(None)):
            raise UserError(f"{where}: `{key}` must be {name} or null, not {value[key]!r}")


def _is_document(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(sentence, str) for sentence in value)
