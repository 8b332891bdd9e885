"""Contrastive and generative test sets, published or the user's own, converted to the formats in docs/files.md."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from docmt.corpora.catalogue import ReadableCorpus
from docmt.corpora.contrastive import read_contrastive, read_items
from docmt.corpora.generative import read_generative
from docmt.corpora.patterns import matching_files
from docmt.corpora.readers.sides import pick
from docmt.corpora.reading import check_counts
from docmt.errors import UserError
from docmt.files import read_json, read_lines

VOITA_BREAK = " _eos "
CONTRAPRO_BREAK = "<SEP>"
CTXPRO_BREAK = "<eos>"
# An item of ContraPro has a reference and two wrong variants, in 31 of 12,000 cases three.
CONTRAPRO_VARIANTS = 3
CONTRAPRO_PRONOUNS = ("er", "sie", "es")

SuiteItem = dict[str, Any]


def convert_suite(
    corpus: ReadableCorpus, split_name: str, *, files: Mapping[str, Path], where: str
) -> tuple[list[SuiteItem], Counter[str]]:
    """Convert one split of a contrastive or generative corpus.

    Returns the items, and what was left out, by cause: duplicate wrong candidates, those equal to the correct one, and
    items left without a wrong candidate. Raises UserError when the corpus holds no test suite, a file is bad, or
    the counts of items and candidates differ from those expected.
    """
    split = corpus.split(split_name, where=where)
    form = split.format or corpus.format
    if form.reader not in CONVERTERS:
        raise UserError(
            f"{where} {split_name} has no wrong translations to compare with the correct one, and no words to search "
            f"(format {form.reader}): it cannot become a test suite"
        )
    items = list(CONVERTERS[form.reader](files, form))
    if form.reader in GENERATIVE:
        check_counts(split, len(items), len(items), where=f"{where} {split_name}")
        return items, Counter()
    check_counts(split, len(items), sum(len(item["candidates"]) for item in items), where=f"{where} {split_name}")
    dropped: Counter[str] = Counter()
    kept = [fair for item in items if (fair := _without_ties(item, dropped)) is not None]
    return kept, dropped


def _voita(files: Mapping[str, Path], form: Any) -> Iterator[SuiteItem]:
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


def _contrapro(files: Mapping[str, Path], form: Any) -> Iterator[SuiteItem]:
    """ContraPro as lines: an item is a run of lines with the same English text and the same preceding German sentence.

    Where adjacent items share both, the reference (the first line of the run) occurs once per item. The kind of an item
    is its pronoun. The lines do not say how far the antecedent is; files of the role `fields` do.
    """
    distances = _contrapro_distances(files.get("fields"))
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
            src, candidates = group[0][2], [row[3] for row in group]
            right, *wrong = (_letters(candidate[1]) for candidate in candidates)
            found = [distances.get((_letters(src[1]), right, other), set()) for other in wrong]
            known = set().union(*found)
            distance = known.pop() if len(known) == 1 else None
            where = f"{tgt_path}: item {number}"
            item = _item(name, src, candidates, correct=0, distance=distance, where=where)
            yield item | {"kind": _replaced_pronoun([candidate[1] for candidate in candidates])}


def _contrapro_distances(path: Path | None) -> dict[tuple[str, str, str], set[int]]:
    """The distances of antecedents by the letters of source, reference and wrong variant.

    Letters only, because ContraCAT normalizes punctuation and case of the lines.
    """
    found: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for _, file in matching_files(path) if path else []:
        for number, value in enumerate(read_json(file), start=1):
            try:
                sides = _letters(value["src segment"]), _letters(value["ref segment"])
                for error in value["errors"]:
                    found[*sides, _letters(error["contrastive"])].add(value["ante distance"])
            except (KeyError, TypeError):
                raise UserError(f"{file}: item {number} is not an item of ContraPro") from None
    return found


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def _replaced_pronoun(candidates: Sequence[str]) -> str | None:
    """The pronoun of the reference, the first candidate, that all others replace; other words may follow its gender."""
    right, *wrong = (re.findall(r"\w+", candidate.lower()) for candidate in candidates)
    replaced = [{word for word, other in zip(right, words, strict=False) if word != other} for words in wrong]
    return next((word for word in CONTRAPRO_PRONOUNS if replaced and all(word in words for words in replaced)), None)


def _contrapro_generative(files: Mapping[str, Path], form: Any) -> Iterator[SuiteItem]:
    """ContraPro, which expects the pronoun of the reference."""
    for item in _contrapro(files, form):
        if item["kind"] is None:
            raise UserError(f"{files['de']}: {item['id']}: the variants do not replace er, sie or es")
        reference = item["candidates"][item["correct"]][item["sentence"]]
        kept = {key: item[key] for key in ("id", "phenomenon", "distance", "kind", "src", "sentence")}
        yield kept | {"expected": item["kind"], "match": "tokens", "reference": reference}


def _bawden(files: Mapping[str, Path], form: Any) -> Iterator[SuiteItem]:
    """The sets of Bawden et al. 2018: two sentences each, in blocks.

    A block of the anaphora set has one source and several targets; a block of lexical choice has several examples. A
    right target is called semi-correct if it follows a doubtful translation of the context.
    """
    for phenomenon, path in files.items():
        blocks = read_json(path)
        if not isinstance(blocks, dict):
            raise UserError(f"{path} holds no blocks with `src` and `trg`")
        number = 0
        for name, block in blocks.items():
            where = f"{path}: block {name}"
            try:
                pairs = [(block["src"], pair) for pair in block["trg"]] if "trg" in block else []
                pairs += [(example["src"], example["trg"]) for example in block.get("examples", [])]
                for src, pair in pairs:
                    number += 1
                    kind = "correct" if "correct" in pair else "semi-correct"
                    item = _item(
                        f"{phenomenon}/{number:05d}",
                        src,
                        [pair[kind], pair["incorrect"]],
                        correct=0,
                        distance=1,
                        where=where,
                    )
                    yield item | {"kind": kind if "trg" in block else block.get("type")}
            except (KeyError, TypeError, AttributeError):
                raise UserError(f"{where} lacks `src` and `trg`, or `examples` of them") from None


def _ctxpro(files: Mapping[str, Path], form: Any) -> Iterator[SuiteItem]:
    """ctxpro: the payload is the last sentence of its line of inputs."""
    items_path, inputs_path = (pick(files, role, form.reader) for role in ("items", "inputs"))
    values, lines = read_json(items_path), read_lines(inputs_path)
    if len(values) != len(lines):
        raise UserError(f"{len(values)} items in {items_path}, {len(lines)} lines in {inputs_path}: both must agree")
    for number, (value, line) in enumerate(zip(values, lines, strict=True), start=1):
        src = [sentence.strip() for sentence in line.split(CTXPRO_BREAK)]
        try:
            payload, rule = value["src segment"].strip(), value["rule"]
            facts = {"expected": value["expected"], "reference": value["ref segment"]}
        except (KeyError, TypeError, AttributeError):
            raise UserError(
                f"{items_path}: item {number} lacks `src segment`, `ref segment`, `expected` or `rule`"
            ) from None
        if src[-1] != payload:
            raise UserError(f"{inputs_path}: line {number} does not end in the payload of item {number}")
        yield {
            "id": f"{form.phenomenon}/{number:05d}",
            "phenomenon": form.phenomenon,
            "distance": value.get("ante distance"),
            "kind": rule,
            "src": src,
            "sentence": len(src) - 1,
            **facts,
            "match": "words",
        }


def _own(read_item: Callable[[dict[str, Any], str], Any]) -> "Converter":
    """The converter of docmt's own format, which checks it."""

    def convert(files: Mapping[str, Path], form: Any) -> Iterator[SuiteItem]:
        for item in read_items(pick(files, "items", form.reader), read_item):
            yield vars(item)

    return convert


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


Converter = Callable[[Mapping[str, Path], Any], Iterator[SuiteItem]]

GENERATIVE: dict[str, Converter] = {
    "ctxpro_generative": _ctxpro,
    "contrapro_generative": _contrapro_generative,
    "jsonl_generative": _own(read_generative),
}
"""Formats of generative test sets, with their converters."""
CONVERTERS: dict[str, Converter] = {
    "voita_suite": _voita,
    "contrapro_suite": _contrapro,
    "bawden_suite": _bawden,
    "jsonl_suite": _own(read_contrastive),
    **GENERATIVE,
}
"""Formats of all test suites."""
