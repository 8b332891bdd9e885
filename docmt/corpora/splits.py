"""Reading of splits: from files to documents or test items, checked against the counts in the catalog."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from docmt.corpora.catalog import ReadableCorpus, Split
from docmt.corpora.documents import Document
from docmt.corpora.readers.reader import ReaderResult, SuiteFormat, reject_lone_surrogates
from docmt.corpora.readers.registry import read
from docmt.corpora.suite_items import check_matches, first_difference
from docmt.errors import UserError
from docmt.logs import progress


def read_split(
    corpus: ReadableCorpus, split_name: str, *, folder: Path, languages: Sequence[str], where: str
) -> ReaderResult:
    """Read a split from a folder, in the direction of `languages`. `where` is the corpus name in messages."""
    if sorted(languages) != sorted(corpus.languages):
        raise UserError(
            f"{where} is in {' and '.join(corpus.languages)}, not {' and '.join(languages)}: pass --languages "
            f"{' '.join(corpus.languages)}"
        )
    split = corpus.split(split_name, where=where)
    # Read in the direction of the corpus, to which roles and speakers refer, and swap sides later.
    files = _files_by_role(split, folder)
    documents, counts = read(files, form=corpus.format_of(split_name), languages=corpus.languages)
    is_reversed = list(languages) != corpus.languages

    def checked() -> Iterator[Document]:
        for document in progress(documents, label=f"read {where} {split_name}", unit="documents"):
            if is_reversed:
                document = document.reversed()
            yield document
        # For streaming readers, counts are complete only now.
        _check_counts(split, counts.documents, counts.sentences, where=f"{where} {split_name}")
        if is_reversed:
            counts.empty_source, counts.empty_target = counts.empty_target, counts.empty_source

    return checked(), counts


def convert_suite(
    corpus: ReadableCorpus, split_name: str, *, folder: Path, where: str
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Convert a split of a contrastive or generative corpus to docmt's format (docs/files.md).

    Returns the items, and counts of omissions: duplicate wrong candidates, candidates equal to the correct one, and
    items without a wrong candidate.
    """
    split = corpus.split(split_name, where=where)
    where = f"{where} {split_name}"
    form = corpus.format_of(split_name)
    if not isinstance(form, SuiteFormat):
        raise UserError(
            f"{where} contains no wrong translations and no expected words (format {form.reader}), so it cannot "
            "become a test suite"
        )
    if len(corpus.languages) != 2:
        raise UserError(f"{where}: a test suite needs two languages, not {' '.join(corpus.languages)}")
    items = list(form.convert(_files_by_role(split, folder)))
    for item in items:
        reject_lone_surrogates(json.dumps(item, ensure_ascii=False), where=f"{where}: item {item['id']!a}")
    dropped: Counter[str] = Counter()
    if form.holds == "generative":
        rules = [(item["id"], item["expected"], item["match"]) for item in items]
        check_matches(rules, corpus.languages[1], where=where)
        _check_counts(split, len(items), len(items), where=where)
        return items, dropped
    _check_counts(split, len(items), sum(len(item["candidates"]) for item in items), where=where)
    fair_items = []
    for item in items:
        fair_item = _without_ties(item, dropped)
        if fair_item is not None:
            fair_items.append(fair_item)
    if items and not fair_items:
        omitted = ", ".join(f"{n} × {cause}" for cause, n in dropped.items() if n)
        raise UserError(f"{where}: no item is left; omitted: {omitted}")
    return fair_items, dropped


def _files_by_role(split: Split, folder: Path) -> dict[str, Path]:
    return {role: folder / name for role, name in split.files.items()}


def _without_ties(item: dict[str, Any], dropped: Counter[str]) -> dict[str, Any] | None:
    """Remove duplicate candidates, since a model gives equal texts equal scores. None: no wrong candidate left."""
    right = item["candidates"][item["correct"]]
    candidates: dict[tuple[str, ...], list[str]] = {}
    for number, candidate in enumerate(item["candidates"]):
        if number == item["correct"] or candidate != right:
            candidates[tuple(candidate)] = candidate
    distinct = list(candidates.values())
    dropped["duplicate candidate"] += len(item["candidates"]) - len(distinct)
    if len(distinct) < 2:
        dropped["item without a wrong candidate"] += 1
        return None
    return item | {"candidates": distinct, "correct": distinct.index(right), "sentence": first_difference(distinct)}


def _check_counts(split: Split, n_documents: int, n_sentences: int, *, where: str) -> None:
    for name, count, expected in (
        ("documents", n_documents, split.documents),
        ("sentences", n_sentences, split.sentences),
    ):
        if expected is not None and count != expected:
            raise UserError(f"{where}: {count:,} {name}, but {expected:,} are expected: the files have another version")
