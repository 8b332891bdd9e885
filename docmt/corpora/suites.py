"""Published contrastive test sets, converted to the format in docs/files.md."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from docmt.corpora.catalogue import Corpus
from docmt.corpora.readers.sides import pick
from docmt.corpora.reading import check_counts
from docmt.errors import UserError
from docmt.files import read_json, read_lines

VOITA_BREAK = " _eos "
CONTRAPRO_BREAK = "<SEP>"
# An item of ContraPro has a reference and two wrong variants, in 31 of 12,000 cases three.
CONTRAPRO_VARIANTS = 3

SuiteItem = dict[str, Any]


def convert_suite(
    corpus: Corpus, split_name: str, *, files: Mapping[str, Path], where: str
) -> tuple[list[SuiteItem], Counter[str]]:
    """Convert one split of a contrastive corpus.

    Returns the items, and what was left out, by cause: duplicate wrong candidates, those equal to the correct one, and
    items left without a wrong candidate. Raises UserError when the corpus holds no candidates, a file is bad, or
    the counts of items and candidates differ from those expected.
    """
    split = corpus.split(split_name, where=where)
    form = split.format or corpus.format
    if form.reader not in CONVERTERS:
        raise UserError(
            f"{where} has no wrong translations to compare with the correct one (format {form.reader}): "
            "it cannot become a contrastive test set"
        )
    items = list(CONVERTERS[form.reader](files))
    check_counts(split, len(items), sum(len(item["candidates"]) for item in items), where=f"{where} {split_name}")
    dropped: Counter[str] = Counter()
    kept = [fair for item in items if (fair := _without_ties(item, dropped)) is not None]
    return kept, dropped


def _voita(files: Mapping[str, Path]) -> Iterator[SuiteItem]:
    """The sets of Voita et al. 2019: four sentences each, whose candidates differ in the last."""
    for phenomenon, path in files.items():
        values = read_json(path)
        for number, value in enumerate(values, start=1):
            where = f"{path}: item {number}"
            try:
                source, candidates = value["src"].split(VOITA_BREAK), [c.split(VOITA_BREAK) for c in value["dst"]]
                correct, distance = value["true_ind"], value["ctx_dist"]
            except (KeyError, TypeError, AttributeError):
                raise UserError(f"{where} lacks `src`, `dst`, `true_ind` or `ctx_dist`") from None
            name = f"{phenomenon}/{number:05d}"
            yield _item(name, source, candidates, correct=correct, distance=distance, where=where)


def _contrapro(files: Mapping[str, Path]) -> Iterator[SuiteItem]:
    """ContraPro as lines: an item is a run of lines with the same English text and the same preceding German sentence.

    Where adjacent items share both, the reference (the first line of the run) occurs once per item. The lines do not
    say how far the antecedent is.
    """
    src_path, tgt_path = (pick(files, lang, "contrapro_suite") for lang in ("en", "de"))
    src, tgt = read_lines(src_path), read_lines(tgt_path)
    if len(src) != len(tgt):
        raise UserError(f"{len(src)} lines in {src_path}, {len(tgt)} in {tgt_path}: align them line by line")
    rows = [
        (a.strip(), b.strip(), *(_two(line, f"{path}: line {i}") for line, path in ((a, src_path), (b, tgt_path))))
        for i, (a, b) in enumerate(zip(src, tgt, strict=True), start=1)
    ]
    number = 0
    for _, run in groupby(rows, key=lambda row: (row[0], row[3][0])):
        for group in _at_references(list(run)):
            number += 1
            name = f"pronoun/{number:05d}"
            candidates = [row[3] for row in group]
            yield _item(name, group[0][2], candidates, correct=0, distance=None, where=f"{tgt_path}: item {number}")


def _two(line: str, where: str) -> list[str]:
    parts = [part.strip(" \r") for part in line.split(CONTRAPRO_BREAK)]
    if len(parts) != 2:
        raise UserError(f"{where} is not `previous sentence {CONTRAPRO_BREAK} sentence`")
    return parts


def _at_references(run: list[tuple]) -> list[list[tuple]]:
    """Cut a run wherever its first line, the reference, recurs.

    A group that is still too long for one item has several references: it is cut into items of three lines.
    """
    groups: list[list[tuple]] = []
    for row in run:
        if row[1] == run[0][1]:
            groups.append([])
        groups[-1].append(row)
    return [
        group[start : start + size]
        for group in groups
        for size in [CONTRAPRO_VARIANTS if len(group) > CONTRAPRO_VARIANTS + 1 else len(group)]
        for start in range(0, len(group), size)
    ]


def _item(
    name: str,
    src: list[str],
    candidates: list[list[str]],
    *,
    correct: int,
    distance: int | None,
    where: str,
) -> SuiteItem:
    """Make one item. Raises UserError when a candidate and the source differ in their number of sentences."""
    if any(len(candidate) != len(src) for candidate in candidates) or not 0 <= correct < len(candidates):
        raise UserError(f"{where}: each candidate needs {len(src)} sentences, and the correct one must be among them")
    return {
        "id": name,
        "phenomenon": name.partition("/")[0],
        "distance": distance,
        "src": src,
        "candidates": candidates,
        "correct": correct,
        "sentence": _first_difference(candidates),
    }


def _first_difference(candidates: Sequence[Sequence[str]]) -> int:
    """The index of the first sentence in which candidates differ; of the last one when none does."""
    columns = list(zip(*candidates, strict=True))
    return next((i for i, column in enumerate(columns) if len(set(column)) > 1), len(columns) - 1)


def _without_ties(item: SuiteItem, dropped: Counter[str]) -> SuiteItem | None:
    """The item without duplicate candidates: no model can score one of two equal texts higher."""
    right = item["candidates"][item["correct"]]
    kept: list[list[str]] = []
    for number, candidate in enumerate(item["candidates"]):
        is_tie = candidate in kept or (candidate == right and number != item["correct"])
        dropped["duplicate candidate"] += is_tie
        if not is_tie:
            kept.append(candidate)
    if len(kept) < 2:
        dropped["item without a wrong candidate"] += 1
        return None
    return item | {"candidates": kept, "correct": kept.index(right), "sentence": _first_difference(kept)}


CONVERTERS = {"voita_suite": _voita, "contrapro_suite": _contrapro}
